# SPDX-License-Identifier: GPL-2.0-or-later
"""Loads under which the subject of a question must have been measured.

A verdict that covers several loads is on subjects: a machine as booted, a probe and an implementation.  A subject needs
a setup that was measured under each required load.  A setup is everything that merging requires to agree, except the
load; another priority or governor is another setup.  Which loads are required depends on whether they were planned:

* of runs of one plan: each entry (probe, implementation, parameters) requires the loads under which it was measured on
  any board and in any configuration; planned runs that were not made are a gap already;
* of other runs: each subject requires all loads under which its probe was measured.

A difference is a known one: a value that a run does not state agrees with every other one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fastenough.analysis import wording
from fastenough.analysis.differences import Values, as_text, difference
from fastenough.analysis.keys import (
    FOR_MERGING,
    SETUP_KEYS,
    SUBJECT_KEYS,
    SYSTEM_KEYS,
    Key,
    UnknownValue,
    agree_where_stated,
)
from fastenough.analysis.merged import load_name
from fastenough.model import is_same_machine
from fastenough.recording import Recording

_ENTRY = ("probe", "implementation", "parameters")
_SYSTEM = frozenset(key.name for key in SYSTEM_KEYS)
_KEYS = tuple(replace(key, agree=agree_where_stated) if key.name == "settings" else key for key in SETUP_KEYS)
"""A run does not state the settings of another one: pulled recordings have none of the bench."""
_NOT_STATED = UnknownValue("", "not stated")


@dataclass(frozen=True)
class _Setup:
    """Runs that state the same of everything except the load; ``run``: the first of them."""

    run: Recording
    values: Values
    loads: set[str | None] = field(default_factory=set)

    def difference(self, other: _Setup, keys: Sequence[Key] = _KEYS) -> str | None:
        """Text of the first known difference; None if both may be one.  One machine can have several names."""
        if is_same_machine(self.run.head.machine, other.run.head.machine):
            keys = [key for key in keys if key.name != "board"]
        return difference(keys, self.values, other.values, FOR_MERGING, unknown_agrees=True)

    def is_of_subject_of(self, other: _Setup) -> bool:
        return self.difference(other, SUBJECT_KEYS) is None


def coverage_gaps(runs: Iterable[Recording], *, planned: bool) -> Iterator[str]:
    """The gaps of each subject of which no setup was measured under all required loads.

    ``runs``: readable ones with a requirement, one of each kind and load suffices.  ``planned``: they are of one plan.
    """
    by_question: dict[str, dict[str, _Setup]] = {}
    for run in runs:
        values = _stated_values(run)
        question = as_text([key for key in _KEYS if key.name in (_ENTRY if planned else _ENTRY[:1])], values)
        setup = by_question.setdefault(question, {}).setdefault(as_text(_KEYS, values), _Setup(run, values))
        setup.loads.add(load_name(run))
    for setups in by_question.values():
        yield from _gaps_of(list(setups.values()))


def _stated_values(run: Recording) -> Values:
    """The values of all keys of a setup, in one form where they are unknown."""
    values = {key.name: key.of(run.head, None) for key in _KEYS}
    return {name: _NOT_STATED if _is_unknown(name, value) else value for name, value in values.items()}


def _is_unknown(name: str, value: Any) -> bool:
    """Whether a run does not state this value.  Each system has a name, a kernel and the like: none was not read."""
    not_read = value is None or (isinstance(value, Mapping) and "absent" in value)
    return isinstance(value, UnknownValue) or (not_read and name in _SYSTEM)


def _gaps_of(setups: Sequence[_Setup]) -> Iterator[str]:
    """The gaps of all subjects whose required loads are those of all these setups."""
    loads = dict.fromkeys(load for setup in setups for load in sorted(setup.loads, key=str))
    subjects: dict[str, _Setup] = {}
    for setup in setups:
        subjects.setdefault(as_text(SUBJECT_KEYS, setup.values), setup)
    for subject in subjects.values():
        alike = [setup for setup in setups if setup.is_of_subject_of(subject)]
        rarest = min(([setup for setup in alike if load in setup.loads] for load in loads), key=len)
        tried = rarest or [max(alike, key=lambda setup: len(setup.loads))]
        yield from min((list(_gaps(first, subject, alike, setups, loads)) for first in tried), key=len)


def _gaps(
    first: _Setup, subject: _Setup, alike: Sequence[_Setup], setups: Sequence[_Setup], loads: Iterable[str | None]
) -> Iterator[str]:
    """A gap for each load under which no setup of the subject can be one with ``first`` and those found so far."""
    found = [first]
    for load in loads:
        if any(load in setup.loads for setup in found):
            continue
        under_load = [setup for setup in alike if load in setup.loads]
        same = next((other for other in under_load if not any(setup.difference(other) for setup in found)), None)
        if same is not None:
            found.append(same)
            continue
        other = next(setup for setup in (*under_load, *setups) if load in setup.loads)
        setup, text = next((setup, text) for setup in (*found, subject) if (text := setup.difference(other)))
        yield wording.load_elsewhere(load, setup.run, other.run, text)
