# SPDX-License-Identifier: GPL-2.0-or-later
"""From which station of a wake-up a tail comes, and who is to blame, by the worst wake-ups of the monitor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fastenough.recording import Recording
from fastenough.recording.wakeups import STATIONS, Wakeup, wakeups

WORST = 20
"""So many wake-ups are the tail: the worst that were recorded one by one."""


@dataclass(frozen=True)
class StationTail:
    """The worst wake-ups, and the station that most of their time was spent at.

    ``longest_in``: of how many of them it is the longest station; ``share``: of the time of all of them.
    """

    worst: tuple[Wakeup, ...]
    station: str
    longest_in: int
    share: float
    blamed: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class BlamedTask:
    """Who delayed wake-ups, at which station: how often, by how much at most, and in which of them that was."""

    who: str
    station: str
    times: int
    worst: Wakeup


def worst_wakeups(recordings: Iterable[Recording]) -> list[Wakeup]:
    """All whose culprit was recorded, the worst first."""
    found = [wakeup for recording in recordings for wakeup in wakeups(recording.head, recording.events)]
    return sorted(found, key=lambda wakeup: -wakeup.delay_ns)


def tail_of(found: Sequence[Wakeup], most: int = WORST) -> StationTail | None:
    """Of the worst of these whose stations are known; None where there are none."""
    worst = [wakeup for wakeup in found if wakeup.longest][:most]
    spent: Counter[str] = Counter()
    for wakeup in worst:
        spent.update(wakeup.parts)
    total_ns = sum(spent.values())
    if not total_ns:
        return None
    station = max(STATIONS, key=lambda name: spent[name])
    return StationTail(
        tuple(worst),
        station,
        sum(wakeup.longest == station for wakeup in worst),
        spent[station] / total_ns,
        tuple(Counter(wakeup.blamed for wakeup in worst).most_common()),
    )


def blamed(found: Iterable[Wakeup]) -> list[BlamedTask]:
    """Who is to blame, the one with the greatest delay first."""
    by_who: dict[tuple[str, str], list[Wakeup]] = {}
    for wakeup in found:
        by_who.setdefault((wakeup.blamed, wakeup.longest), []).append(wakeup)
    rows = [
        BlamedTask(who, station, len(each), max(each, key=lambda wakeup: wakeup.delay_ns))
        for (who, station), each in by_who.items()
    ]
    return sorted(rows, key=lambda row: -row.worst.delay_ns)
