# SPDX-License-Identifier: GPL-2.0-or-later
"""Titles of groups of runs: the keys in which they differ, from the registry of keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fastenough import words
from fastenough.analysis.differences import Values
from fastenough.analysis.keys import FOR_MERGING, RUN_KEYS, UnknownValue

_PLAIN = ("board", "configuration", "probe", "implementation", "marks")
_GROUPED_BY_LOAD = ("load", "load's commands")
_OF_THE_ACT = ("act", "parameters", "settings")
"""Keys of the act, which distinguish runs of one probe only."""
_BOOTED = ("board", "configuration")
_RELEASE, _BUILD_ID = "release", "build_id"
_SHORT_ID_DIGITS = 12
_OF_A_THREAD = " of thread "


def _short(name: str, value: Any) -> str:
    if name == "kernel" and isinstance(value, dict):
        return ", ".join(f"build {item}" if part == _BUILD_ID else str(item) for part, item in value.items())
    if isinstance(value, dict):
        return ", ".join(dict.fromkeys(_leaves(value)))
    if isinstance(value, list):
        value = ", ".join(map(str, value)) or "none"
    text = "none" if value is None else str(value)
    return text if name in _PLAIN else f"{name} {text}"


def _kernel_parts(value: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The release of a kernel, and for each other kernel of that release the first part in which they differ."""
    alike = (other for other in others if other.get(_RELEASE) == value.get(_RELEASE))
    differing = (next((part for part in value if other.get(part) != value[part]), None) for other in alike)
    names = dict.fromkeys((_RELEASE, *filter(None, differing)))
    parts = {name: value[name] for name in names if value.get(name) is not None}
    if not parts:  # the fact is absent
        return dict(value)
    return {name: item[:_SHORT_ID_DIGITS] if name == _BUILD_ID else item for name, item in parts.items()}


def _leaves(value: Mapping[str, Any]) -> Iterator[str]:
    """The innermost values of a mapping as text; equal values of several CPUs then appear once."""
    for key, item in value.items():
        if isinstance(item, Mapping) and item:
            yield from _leaves(item)
        else:
            yield words.part(key, item)


def setups(loads: Sequence[str], runs: Sequence[Values]) -> list[str]:
    """A title of each group that distinguishes it from the others, without the load.

    It contains every titled key in which groups differ, as many other keys as are needed to distinguish them, and the
    run id if groups differ only by an unknown value.
    """
    names = [key.name for key in RUN_KEYS if key.forbids in FOR_MERGING and key.name not in _GROUPED_BY_LOAD]
    differing = [name for name in names if any(_differs(name, values, runs) for values in runs)]
    titled = {key.name for key in RUN_KEYS if key.titled}
    distinguishing = [name for name in differing if name in titled]
    for name in differing:
        if name not in distinguishing and not _are_distinct(loads, runs, distinguishing):
            distinguishing.append(name)
    setups = _worded(distinguishing, runs, stated=True)
    if len(set(zip(loads, setups, strict=True))) < len(runs):
        setups = _worded(distinguishing, runs, stated=False)
    labels = list(zip(loads, setups, strict=True))
    return [
        " · ".join(filter(None, (setup, f"run {unknown.run_id}")))
        if unknown and labels.count((load, setup)) > 1
        else setup
        for (load, setup), unknown in zip(labels, map(_first_unknown, runs), strict=True)
    ]


def _worded(distinguishing: Sequence[str], runs: Sequence[Values], *, stated: bool) -> list[str]:
    """The differing values of each group as text.  ``stated``: only parameters and settings that another group states
    too; an instrument and the task of a board have different ones, too many for a title."""
    return [
        " · ".join(
            filter(
                None,
                (
                    _short(name, differing)
                    for name in distinguishing
                    if not isinstance(values[name], UnknownValue)
                    and _differs(name, values, runs)
                    and (differing := _differing(name, values, runs, stated)) not in ({}, [])
                ),
            )
        )
        for values in runs
    ]


def _comparable(name: str, values: Values, runs: Sequence[Values]) -> list[Values]:
    return [other for other in runs if name not in _OF_THE_ACT or other["probe"] == values["probe"]]


def _differs(name: str, values: Values, runs: Sequence[Values]) -> bool:
    return any(other[name] != values[name] for other in _comparable(name, values, runs))


def _are_distinct(loads: Sequence[str], runs: Sequence[Values], distinguishing: Sequence[str]) -> bool:
    keys = [repr((load, [values[name] for name in distinguishing])) for load, values in zip(loads, runs, strict=True)]
    return len(set(keys)) == len(keys)


def _first_unknown(values: Values) -> UnknownValue | None:
    return next((value for value in values.values() if isinstance(value, UnknownValue)), None)


def _differing(name: str, values: Values, runs: Sequence[Values], stated: bool) -> Any:
    """The value of a key; of settings, marks and mappings only the parts that differ."""
    compared = _comparable(name, values, runs)
    value, others = values[name], [other[name] for other in compared]
    if name == "settings":
        return _differing_settings(values, compared, stated)
    if name == "marks":
        return [mark for mark in value if any(mark not in other for other in others)]
    if not isinstance(value, dict):
        return value
    if name == "kernel":
        return _kernel_parts(value, [other for other in others if isinstance(other, dict)])
    return {
        part: _unlike(item, [other.get(part) for other in others if isinstance(other, dict)])
        for part, item in value.items()
        if any(
            not isinstance(other, dict) or other.get(part) != item
            for other in others
            if not (stated and isinstance(other, dict)) or part in other
        )
    }


def _unlike(value: Any, others: Sequence[Any]) -> Any:
    """A value; of a mapping only the parts in which another value differs."""
    mappings = [other for other in others if isinstance(other, dict)]
    return (
        value
        if not isinstance(value, dict) or len(mappings) < len(others)
        else {
            part: _unlike(item, [other.get(part) for other in mappings])
            for part, item in value.items()
            if any(other.get(part) != item for other in mappings)
        }
    )


def _differing_settings(values: Values, compared: Sequence[Values], stated: bool) -> dict[str, None]:
    """Settings that differ from those of runs of the same configuration; settings of a thread only from those of runs
    with the same parameters."""
    same_boot = [other for other in compared if all(other[name] == values[name] for name in _BOOTED)]
    alike = [other["settings"] for other in same_boot if other["parameters"] == values["parameters"]]
    every = [other["settings"] for other in same_boot]
    return dict.fromkeys(
        f"{place.partition(' of ')[0]} {in_effect}"
        for place, in_effect in values["settings"].items()
        if any(
            other.get(place) != in_effect
            for other in (alike if _OF_A_THREAD in place else every)
            if place in other or not stated
        )
    )
