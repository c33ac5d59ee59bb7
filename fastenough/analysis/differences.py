# SPDX-License-Identifier: GPL-2.0-or-later
"""Differences between runs and their series, by the registry of :mod:`keys`, as values and as text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from fastenough.analysis.keys import (
    FOR_COMPARING,
    FOR_MERGING,
    KEYED_FACTS,
    MACHINE,
    RUN_KEYS,
    SERIES_KEYS,
    Forbids,
    Key,
    UnknownValue,
)
from fastenough.model import Series
from fastenough.recording import Recording

Values = dict[str, Any]


def run_values(recording: Recording) -> Values:
    """By name, the value of every key of a run."""
    return {key.name: key.of(recording.head, None) for key in RUN_KEYS}


def series_values(recording: Recording, series: Series) -> Values:
    """By name, the value of every key of one series of a run."""
    return {key.name: key.of(recording.head, series) for key in SERIES_KEYS}


def _differing(keys: Sequence[Key], one: Values, other: Values) -> Iterator[Key]:
    for key in keys:
        mine, theirs = one[key.name], other[key.name]
        if mine != theirs if UnknownValue in (type(mine), type(theirs)) else not key.agree(mine, theirs):
            yield key


def differing_keys(one: Values, other: Values) -> list[Key]:
    """The keys of a run in which two differ, of those that forbid to merge them."""
    return list(_differing([key for key in RUN_KEYS if key.forbids in FOR_MERGING], one, other))


def difference(keys: Sequence[Key], one: Values, other: Values, forbidding: Sequence[Forbids]) -> str | None:
    """In words, the first key of such a kind in which two runs (or series) differ; None where they agree."""
    differing = _differing([key for key in keys if key.forbids in forbidding], one, other)
    return next((_words(key, one, other) for key in differing), None)


def refusal(keys: Sequence[Key], one: Values, other: Values) -> str | None:
    """In words, every key in which two differ that may then not be compared, each with why; None: they may be."""
    differing = _differing([key for key in keys if key.forbids in FOR_COMPARING], one, other)
    return "; ".join(f"{_words(key, one, other)} ({key.why})" for key in differing) or None


def all_differences(keys: Sequence[Key], one: Values, other: Values) -> tuple[str, ...]:
    """Every key in which two runs (or series) differ, as text, those that affect latency first.  Keys that are unknown
    for the same reason share one entry."""
    shaping: list[str] = []
    others: list[str] = []
    unknown: dict[str, list[str]] = {}
    for key in _differing(keys, one, other):
        missing = [value for value in (one[key.name], other[key.name]) if isinstance(value, UnknownValue)]
        if missing:
            unknown.setdefault(str(missing[0]), []).append(key.name)
        else:
            (others if key.forbids is Forbids.NOTHING else shaping).append(_words(key, one, other))
    not_known = (f"whether these agree is {why}: {', '.join(names)}" for why, names in unknown.items())
    return (*shaping, *not_known, *others)


def other_facts(one: Recording, other: Recording) -> tuple[str, ...]:
    """The facts in which two profiles differ and that no key takes (see ``keys.DOES_NOT_MATTER``)."""
    mine, theirs = one.head.profile or {}, other.head.profile or {}
    return tuple(
        name for name in sorted((mine.keys() & theirs.keys()) - KEYED_FACTS - {"absent"}) if mine[name] != theirs[name]
    )


def _words(key: Key, one: Values, other: Values) -> str:
    return f"different {key.name}: {_brief(one[key.name], other[key.name])}"


def _brief(one: Any, other: Any) -> str:
    """Two unequal values, cut down to the parts that differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        unequal = sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
        return "; ".join(f"{name}: {_brief(one.get(name), other.get(name))}" for name in unequal)
    if isinstance(one, list) and isinstance(other, list):
        return f"{[item for item in one if item not in other]} against {[item for item in other if item not in one]}"
    if isinstance(one, str) and isinstance(other, str) and min(one.count(" "), other.count(" ")) >= _MANY_WORDS:
        mine, theirs = one.split(), other.split()
        apart = [
            " ".join(word for word in words if word not in others) for words, others in ((mine, theirs), (theirs, mine))
        ]
        one, other = apart if any(apart) else (one, other)
    return f"{_said(one)} against {_said(other)}"


_MANY_WORDS = 3
"""Blanks in a text from which on only its differing words are told, as of a command line."""


def _said(value: Any) -> str:
    return "nothing" if value is None else str(value) if isinstance(value, UnknownValue) else repr(value)


def _as_text(keys: Sequence[Key], values: Values) -> str:
    return json.dumps(
        {key.name: values[key.name] for key in keys if key.forbids in FOR_MERGING}, sort_keys=True, default=str
    )


def group_text(recording: Recording) -> str:
    """Equal for runs of one machine that may be merged, as one string to group by: the keys of the run and of all its
    series, without the machine, which two runs can have in common and show in part only."""
    keys = [key for key in RUN_KEYS if key.name != MACHINE]
    return "\n".join(
        [_as_text(keys, run_values(recording)), *(kind_text(recording, series) for series in recording.series)]
    )


def kind_text(recording: Recording, series: Series) -> str:
    """Equal for series of one group that differ in their CPU only."""
    return _as_text(SERIES_KEYS, series_values(recording, series))
