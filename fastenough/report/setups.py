# SPDX-License-Identifier: GPL-2.0-or-later
"""Words that distinguish groups of runs in titles, from the registry of keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fastenough import words
from fastenough.analysis.differences import Values
from fastenough.analysis.keys import FOR_MERGING, RUN_KEYS, UnknownValue

_PLAIN = ("board", "configuration", "probe", "implementation", "marks")
_GROUPED_BY_LOAD = ("load", "load's commands")
_OF_THE_ACT = ("act", "parameters", "settings")
"""What one act is made of says nothing about another act: it tells runs of one probe apart only."""
_BOOTED = ("board", "configuration")
_OF_A_THREAD = " of thread "


def _short(name: str, value: Any) -> str:
    if name == "kernel" and isinstance(value, dict):
        return str(value.get("release", value))
    if isinstance(value, dict):
        return ", ".join(dict.fromkeys(_leaves(value)))
    if isinstance(value, list):
        value = ", ".join(map(str, value)) or "none"
    said = "none" if value is None else str(value)
    return said if name in _PLAIN else f"{name} {said}"


def _leaves(value: Mapping[str, Any]) -> Iterator[str]:
    """What has parts by those: what is the same of every CPU is then one."""
    for key, item in value.items():
        if isinstance(item, Mapping) and item:
            yield from _leaves(item)
        else:
            yield words.part(key, item)


def setups(loads: Sequence[str], runs: Sequence[Values]) -> list[str]:
    """Per group the words that tell it from the others, the load apart.

    Named is every titled key in which groups differ; of the others as many as it takes to tell them apart; and where
    a difference is only that something is not known, the run.
    """
    names = [key.name for key in RUN_KEYS if key.forbids in FOR_MERGING and key.name not in _GROUPED_BY_LOAD]
    differing = [name for name in names if any(_differs(name, values, runs) for values in runs)]
    titled = {key.name for key in RUN_KEYS if key.titled}
    telling = [name for name in differing if name in titled]
    for name in differing:
        if name not in telling and not _told_apart(loads, runs, telling):
            telling.append(name)
    setups = _worded(telling, runs, stated=True)
    if len(set(zip(loads, setups, strict=True))) < len(runs):
        setups = _worded(telling, runs, stated=False)
    seen = list(zip(loads, setups, strict=True))
    return [
        " · ".join(filter(None, (setup, f"run {unknown.run_id}")))
        if unknown and seen.count((load, setup)) > 1
        else setup
        for (load, setup), unknown in zip(seen, map(_first_unknown, runs), strict=True)
    ]


def _worded(telling: Sequence[str], runs: Sequence[Values], *, stated: bool) -> list[str]:
    """Per group what differs.  ``stated``: of parameters and settings only what another states too: those of an
    instrument and those of a board's own task are other ones, and no reader looks for them all in a name."""
    return [
        " · ".join(
            filter(
                None,
                (
                    _short(name, differing)
                    for name in telling
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


def _told_apart(loads: Sequence[str], runs: Sequence[Values], telling: Sequence[str]) -> bool:
    told = [repr((load, [values[name] for name in telling])) for load, values in zip(loads, runs, strict=True)]
    return len(set(told)) == len(told)


def _first_unknown(values: Values) -> UnknownValue | None:
    return next((value for value in values.values() if isinstance(value, UnknownValue)), None)


def _differing(name: str, values: Values, runs: Sequence[Values], stated: bool) -> Any:
    """Of settings, of marks and of what has parts only those that differ."""
    compared = _comparable(name, values, runs)
    value, others = values[name], [other[name] for other in compared]
    if name == "settings":
        return _differing_settings(values, compared, stated)
    if name == "marks":
        return [mark for mark in value if any(mark not in other for other in others)]
    if name == "kernel" or not isinstance(value, dict):
        return value
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
    """Of what has parts itself only those in which another differs."""
    held = [other for other in others if isinstance(other, dict)]
    return (
        value
        if not isinstance(value, dict) or len(held) < len(others)
        else {
            part: _unlike(item, [other.get(part) for other in held])
            for part, item in value.items()
            if any(other.get(part) != item for other in held)
        }
    )


def _differing_settings(values: Values, compared: Sequence[Values], stated: bool) -> dict[str, None]:
    """What a thread runs with follows from the parameters of its act, and what all runs of a configuration have from
    that; both stand in the name where they differ."""
    there = [other for other in compared if all(other[name] == values[name] for name in _BOOTED)]
    alike = [other["settings"] for other in there if other["parameters"] == values["parameters"]]
    every = [other["settings"] for other in there]
    return dict.fromkeys(
        f"{place.partition(' of ')[0]} {in_effect}"
        for place, in_effect in values["settings"].items()
        if any(
            other.get(place) != in_effect
            for other in (alike if _OF_A_THREAD in place else every)
            if place in other or not stated
        )
    )
