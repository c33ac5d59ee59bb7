# SPDX-License-Identifier: GPL-2.0-or-later
"""The station that dominates the worst wake-ups of the monitor, and the blamed tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fastenough.recording import Recording
from fastenough.recording.wakeups import STATIONS, Wakeup, wakeups

WORST = 20
"""Number of worst wake-ups, of those recorded individually, that form the tail."""


@dataclass(frozen=True)
class StationTail:
    """The worst wake-ups, and the station with the largest share of their time.

    ``longest_in``: number of them in which it is the longest station; ``share``: its share of their total time.
    """

    worst: tuple[Wakeup, ...]
    station: str
    longest_in: int
    share: float
    causes: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class BlamedTask:
    """A task that delayed wake-ups at a station: number of wake-ups, and the worst one."""

    who: str
    station: str
    times: int
    worst: Wakeup


def worst_wakeups(recordings: Iterable[Recording]) -> list[Wakeup]:
    """All wake-ups with a recorded cause, worst first."""
    recorded = [wakeup for recording in recordings for wakeup in wakeups(recording.head, recording.events)]
    return sorted(recorded, key=lambda wakeup: -wakeup.delay_ns)


def tail_of(ordered: Sequence[Wakeup], limit: int = WORST) -> StationTail | None:
    """Tail of these wake-ups, worst first, whose stations are known; None without any."""
    worst = [wakeup for wakeup in ordered if wakeup.longest][:limit]
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
        tuple(Counter(wakeup.cause for wakeup in worst).most_common()),
    )


def blamed_tasks(recorded: Iterable[Wakeup]) -> list[BlamedTask]:
    """The blamed tasks, greatest delay first."""
    by_cause: dict[tuple[str, str], list[Wakeup]] = {}
    for wakeup in recorded:
        by_cause.setdefault((wakeup.cause, wakeup.longest), []).append(wakeup)
    rows = [
        BlamedTask(cause, station, len(of_cause), max(of_cause, key=lambda wakeup: wakeup.delay_ns))
        for (cause, station), of_cause in by_cause.items()
    ]
    return sorted(rows, key=lambda row: -row.worst.delay_ns)
