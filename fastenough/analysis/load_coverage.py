# SPDX-License-Identifier: GPL-2.0-or-later
"""Loads under which the subject of a question must have been measured.

A verdict that covers several loads is on subjects: a machine as booted, a probe and an implementation.  The newest
setup of a subject must have been measured under each required load.  A setup is everything that merging requires to
agree, except the load; another priority or governor is another setup.  Which loads are required depends on whether they
were planned:

* of runs of one plan: each entry (probe, implementation, parameters) requires the loads under which it was measured on
  any board and in any configuration; planned runs that were not made are a gap already;
* of other runs: each subject requires all loads under which its probe was measured.

A difference is a known one: a value that a run does not state agrees with every other one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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

_OF_BENCH = frozenset({"control-priority", "housekeeping"})


def _settings_agree(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Whether both runs made the same settings, and agree in those of each thread and CPU that both have.

    A run need not state those of the bench: pulled recordings have none.
    """
    names = [{name.split(" of ")[0] for name in settings} - _OF_BENCH for settings in (first, second)]
    return names[0] == names[1] and agree_where_stated(first, second)


_READ_IN_PARTS = {"kernel": agree_where_stated, "tunables": agree_where_stated}
"""Values of which an ordinary user can read some parts only."""
_AGREE = {"settings": _settings_agree, **_READ_IN_PARTS}
_KEYS = tuple(replace(key, agree=_AGREE.get(key.name, key.agree)) for key in SETUP_KEYS)
_BETWEEN_TOOLS = tuple(replace(key, agree=agree_where_stated) if key.name == "parameters" else key for key in _KEYS)
"""Another version of the probe may state a parameter that this one does not have."""
_SUBJECT = frozenset(key.name for key in SUBJECT_KEYS)
_PROBE = frozenset({"probe"})
_ENTRY = frozenset({"probe", "implementation", "parameters"})
_SYSTEM = frozenset(key.name for key in SYSTEM_KEYS)
_NOT_STATED = UnknownValue("", "not stated")


def begin_order(run: Recording) -> tuple[int, str]:
    """The place of a run in the order of their begins, by the wall clock; those without a known begin are first."""
    return run.head.begin.wall_ns, run.run_id


@dataclass(frozen=True)
class _Setup:
    """Runs that state the same of everything except the load: the newest one, and the newest one under each load."""

    run: Recording
    values: Values
    loads: dict[str | None, Recording] = field(default_factory=dict)

    def difference(self, other: _Setup, names: Collection[str] | None = None) -> str | None:
        """Text of the first known difference in these keys; None if both may be one setup."""
        keys = _KEYS if self.run.head.tool == other.run.head.tool else _BETWEEN_TOOLS
        several_names = is_same_machine(self.run.head.machine, other.run.head.machine)
        compared = [
            key for key in keys if (names is None or key.name in names) and not (several_names and key.name == "board")
        ]
        return difference(compared, self.values, other.values, FOR_MERGING, unknown_agrees=True)


def coverage_gaps(runs: Iterable[Recording], *, planned: bool) -> Iterator[str]:
    """The gaps of each subject whose newest setup was not measured under all required loads.

    ``runs``: readable ones with a requirement; the newest of each kind and load suffices.  ``planned``: they are of one
    plan.
    """
    setups: dict[str, _Setup] = {}
    for run in sorted(runs, key=begin_order, reverse=True):
        values = {key.name: _as_stated(key, run) for key in _KEYS}
        setup = setups.setdefault(as_text(_KEYS, values), _Setup(run, values))
        setup.loads.setdefault(load_name(run), run)
    questions = _alike(setups.values(), _ENTRY if planned else _PROBE)
    yield from dict.fromkeys(gap for question in questions for gap in _gaps_of(question))


def _as_stated(key: Key, run: Recording) -> Any:
    """The value of a key without what the run could not read, in one form where it is unknown.

    Each system has a name, a kernel and the like: if they are missing, they were not read.
    """
    value = key.of(run.head, None)
    if key.name in _READ_IN_PARTS:
        parts = value.items() if isinstance(value, Mapping) and "absent" not in value else ()
        return {name: part for name, part in parts if part is not None and (name, part) != ("preemption", "stock")}
    not_read = value is None or (isinstance(value, Mapping) and "absent" in value)
    return _NOT_STATED if isinstance(value, UnknownValue) or (not_read and key.name in _SYSTEM) else value


def _alike(setups: Iterable[_Setup], names: Collection[str]) -> list[list[_Setup]]:
    """The setups in groups: each agrees with the first one of its group in these keys."""
    groups: list[list[_Setup]] = []
    for setup in setups:
        group = next((group for group in groups if not setup.difference(group[0], names)), None)
        if group is None:
            groups.append([setup])
        else:
            group.append(setup)
    return groups


def _gaps_of(setups: Sequence[_Setup]) -> Iterator[str]:
    """The gaps of all subjects whose required loads are those of all these setups; the newest setup is first."""
    loads = sorted({load for setup in setups for load in setup.loads}, key=str)
    subjects: dict[str, _Setup] = {}
    for setup in setups:
        subjects.setdefault(as_text(SUBJECT_KEYS, setup.values), setup)
    for subject in subjects.values():
        alike = [setup for setup in setups if not setup.difference(subject, _SUBJECT)]
        yield from _gaps(subject, alike, setups, loads)


def _gaps(
    subject: _Setup, alike: Sequence[_Setup], setups: Sequence[_Setup], loads: Iterable[str | None]
) -> Iterator[str]:
    """A gap for each load under which no setup of the subject can be one with the newest and those found so far.

    Setups with unknown values can agree with several that differ from each other.  As a heuristic, the one with most
    loads is taken, of several the newest.
    """
    found = [alike[0]]
    for load in loads:
        if any(load in setup.loads for setup in found):
            continue
        under_load = sorted((setup for setup in alike if load in setup.loads), key=lambda setup: -len(setup.loads))
        same = next((other for other in under_load if not any(setup.difference(other) for setup in found)), None)
        if same is not None:
            found.append(same)
            continue
        other = next(setup for setup in (*under_load, *setups) if load in setup.loads)
        setup, text = next((setup, text) for setup in (*found, subject) if (text := setup.difference(other)))
        yield wording.load_elsewhere(load, setup.run, other.loads[load], text)
