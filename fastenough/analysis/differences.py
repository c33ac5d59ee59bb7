# SPDX-License-Identifier: GPL-2.0-or-later
"""Differences between runs and their series, by the registry of :mod:`keys`, as values and as text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from fastenough.analysis.keys import (
    FOR_COMPARING,
    FOR_MERGING,
    KERNEL,
    KEYED_FACTS,
    MACHINE,
    RUN_KEYS,
    SERIES_KEYS,
    Forbids,
    Key,
    UnknownValue,
    without_build_id,
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


def _differing(keys: Sequence[Key], first: Values, second: Values) -> Iterator[Key]:
    for key in keys:
        first_value, second_value = first[key.name], second[key.name]
        unknown = _is_unknown(key, first, second)
        if first_value != second_value if unknown else not key.agree(first_value, second_value):
            yield key


def differing_keys(first: Values, second: Values) -> list[Key]:
    """The keys in which two runs differ and that forbid merging them."""
    return list(_differing([key for key in RUN_KEYS if key.forbids in FOR_MERGING], first, second))


def may_agree(first: Values, second: Values) -> bool:
    """Whether two runs may be of one key: no known value in which they differ forbids merging them."""
    return difference(RUN_KEYS, first, second, FOR_MERGING, unknown_agrees=True) is None


def _is_unknown(key: Key, first: Values, second: Values) -> bool:
    return UnknownValue in (type(first[key.name]), type(second[key.name]))


def difference(
    keys: Sequence[Key],
    first: Values,
    second: Values,
    forbidding: Sequence[Forbids],
    *,
    unknown_agrees: bool = False,
) -> str | None:
    """Text of the first key of this kind in which two runs (or series) differ; None if they agree.

    ``unknown_agrees``: an unknown value agrees with every other one.
    """
    differing = (
        key
        for key in _differing([key for key in keys if key.forbids in forbidding], first, second)
        if not (unknown_agrees and _is_unknown(key, first, second))
    )
    return next((_difference_text(key, first, second) for key in differing), None)


def refusal(keys: Sequence[Key], first: Values, second: Values) -> str | None:
    """Text of every key whose difference forbids a comparison, with the reason; None: a comparison is allowed."""
    differing = _differing([key for key in keys if key.forbids in FOR_COMPARING], first, second)
    return "; ".join(f"{_difference_text(key, first, second)} ({key.why})" for key in differing) or None


def all_differences(keys: Sequence[Key], first: Values, second: Values) -> tuple[str, ...]:
    """Every key in which two runs (or series) differ, as text, those that affect latency first.  Keys that are unknown
    for the same reason share one entry."""
    shaping: list[str] = []
    others: list[str] = []
    unknown: dict[str, list[str]] = {}
    for key in _differing(keys, first, second):
        missing = [value for value in (first[key.name], second[key.name]) if isinstance(value, UnknownValue)]
        if missing:
            unknown.setdefault(str(missing[0]), []).append(key.name)
        else:
            (others if key.forbids is Forbids.NOTHING else shaping).append(_difference_text(key, first, second))
    unknown_texts = (f"whether these agree is {why}: {', '.join(names)}" for why, names in unknown.items())
    return (*shaping, *unknown_texts, *others)


def other_facts(first: Recording, second: Recording) -> tuple[str, ...]:
    """Facts in which two profiles differ and that no key uses (see ``keys.DOES_NOT_MATTER``)."""
    first_profile, second_profile = first.head.profile or {}, second.head.profile or {}
    return tuple(
        name
        for name in sorted((first_profile.keys() & second_profile.keys()) - KEYED_FACTS - {"absent"})
        if first_profile[name] != second_profile[name]
    )


def _difference_text(key: Key, first: Values, second: Values) -> str:
    return f"different {key.name}: {_brief(first[key.name], second[key.name])}"


def _brief(first: Any, second: Any) -> str:
    """Two unequal values, cut down to the parts that differ."""
    if isinstance(first, dict) and isinstance(second, dict):
        unequal = sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))
        return "; ".join(f"{name}: {_brief(first.get(name), second.get(name))}" for name in unequal)
    if isinstance(first, list) and isinstance(second, list):
        return f"{_items_without(first, second)} against {_items_without(second, first)}"
    if isinstance(first, str) and isinstance(second, str) and min(map(_word_count, (first, second))) >= _LONG_TEXT:
        only_first, only_second = _without(first, second), _without(second, first)
        if only_first or only_second:
            first, second = only_first, only_second
    return f"{_value_text(first)} against {_value_text(second)}"


_LONG_TEXT = 4
"""Words of a text, such as a command line, from which on only the differing words are printed."""


def _items_without(items: list[Any], others: list[Any]) -> list[Any]:
    return [item for item in items if item not in others]


def _word_count(text: str) -> int:
    return text.count(" ") + 1


def _without(text: str, other: str) -> str:
    """The words of a text that another one lacks."""
    present = other.split()
    return " ".join(word for word in text.split() if word not in present)


def _value_text(value: Any) -> str:
    return "nothing" if value is None else str(value) if isinstance(value, UnknownValue) else repr(value)


def as_text(keys: Sequence[Key], values: Values) -> str:
    """Equal for equal values of those of the keys that forbid merging."""
    return json.dumps(
        {key.name: values[key.name] for key in keys if key.forbids in FOR_MERGING}, sort_keys=True, default=str
    )


def group_text(recording: Recording) -> str:
    """Equal for runs of one machine and one build of the kernel that may be merged, as one string to group by: the keys
    of the run and of all its series."""
    keys = [key for key in RUN_KEYS if key.name != MACHINE]
    values = run_values(recording)
    values[KERNEL] = without_build_id(values[KERNEL])
    return "\n".join([as_text(keys, values), *(kind_text(recording, series) for series in recording.series)])


def kind_text(recording: Recording, series: Series) -> str:
    """Equal for series of one group that differ in their CPU only."""
    return as_text(SERIES_KEYS, series_values(recording, series))
