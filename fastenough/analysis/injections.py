# SPDX-License-Identifier: GPL-2.0-or-later
"""Known latencies that were injected, and whether a witness found them: how many, how long, in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from fastenough.recording import Recording
from fastenough.units import parse_duration_ns

TOLERANCE_NS = 2_000
TOLERANCE_SHARE = 0.002
"""A delayed act cannot begin before what delays it ends: so much less is the resolution of clocks and buckets."""


@dataclass(frozen=True)
class Injection:
    """One delay: of what size it was to be, what it was (from the due time to its end), and that due time."""

    asked_ns: int
    injected_ns: int
    due_mono_ns: int


@dataclass(frozen=True)
class Found:
    """What one witness found of the injections of one size; ``excess_ns`` is found minus injected.

    ``too_late`` of the intended injections did not take place: the injector itself came after the due time.
    """

    asked_ns: int
    injected: int
    too_late: int
    found: int
    injected_median_ns: int | None
    found_median_ns: int | None
    excess_median_ns: int | None

    @property
    def complete(self) -> bool:
        """Something was injected, and every one of them was found."""
        return self.injected > 0 and self.found == self.injected


def injections(recording: Recording) -> list[Injection]:
    """Every injection the hog recorded, in order of time (new maxima come as two events)."""
    asked = {series.id: parse_duration_ns(series.labels["size"]) for series in recording.named("injected")}
    told = {Injection(asked[event["series"]], event["value"], event["at"]["mono_ns"] - event["value"])
            for event in recording.events if event["kind"] in ("max", "threshold") and event.get("series") in asked}
    return sorted(told, key=lambda injection: injection.due_mono_ns)


def too_late(recording: Recording) -> dict[int, int]:
    """By size asked, the due times that the hog came too late for."""
    return {parse_duration_ns(series.labels["size"]): recording.missed(series.id)
            for series in recording.named("injected")}


def latency_at(recording: Recording, series_name: str, period_ns: int) -> dict[int, int]:
    """Latency by due time (as a count of periods since the recording began), of every value that has an event."""
    wanted = {series.id for series in recording.named(series_name)}
    begin_mono_ns = recording.head["begin"]["mono_ns"]
    return {round((event["at"]["mono_ns"] - event["value"] - begin_mono_ns) / period_ns): event["value"]
            for event in recording.events if event["kind"] in ("max", "threshold") and event.get("series") in wanted}


def found_by_due(injected: Sequence[Injection], late: dict[int, int], recording: Recording, series_name: str,
                 period_ns: int) -> list[Found]:
    """Match each injection with the latency of the very act it delayed."""
    at = latency_at(recording, series_name, period_ns)
    begin_mono_ns = recording.head["begin"]["mono_ns"]

    def value(injection: Injection) -> int | None:
        seen = at.get(round((injection.due_mono_ns - begin_mono_ns) / period_ns))
        least_ns = injection.injected_ns * (1 - TOLERANCE_SHARE) - TOLERANCE_NS
        return seen if seen is not None and seen >= least_ns else None

    return [_row(asked_ns, [each for each in injected if each.asked_ns == asked_ns], late.get(asked_ns, 0), value)
            for asked_ns in sorted({each.asked_ns for each in injected} | set(late))]


def _row(asked_ns: int, group: list[Injection], late: int, value: Callable[[Injection], int | None]) -> Found:
    pairs = [(injection.injected_ns, seen) for injection in group if (seen := value(injection)) is not None]
    return Found(
        asked_ns, len(group), late, len(pairs), _median(injection.injected_ns for injection in group),
        _median(seen for _, seen in pairs), _median(seen - injected_ns for injected_ns, seen in pairs))


def found_by_count(injected: Sequence[Injection], late: dict[int, int],
                   values: Sequence[tuple[int, int]]) -> list[Found]:
    """Count a witness's values, (ns, how many), by the injected size they are nearest to, from the greatest down.

    For witnesses that keep no time stamp of each value.  A value counts for a size from half-way to the next smaller
    one (for the smallest: from its half); of the values there, as many as were injected are taken, the greatest first.
    """
    sizes = sorted({each.asked_ns for each in injected} | set(late))
    rows = []
    for position, asked_ns in enumerate(sizes):
        floor_ns = (asked_ns + (sizes[position - 1] if position else 0)) / 2
        ceiling_ns = (asked_ns + sizes[position + 1]) / 2 if position + 1 < len(sizes) else float("inf")
        group = [each.injected_ns for each in injected if each.asked_ns == asked_ns]
        near = [ns for ns, count in sorted(values, reverse=True) for _ in range(count) if floor_ns < ns <= ceiling_ns]
        taken = near[:len(group)]
        middle, seen = _median(group), _median(taken)
        rows.append(Found(asked_ns, len(group), late.get(asked_ns, 0), len(taken), middle, seen,
                          None if middle is None or seen is None else seen - middle))
    return rows


def in_order(rows: Sequence[Found]) -> bool:
    """Whether longer injections were found to be longer."""
    medians = [row.found_median_ns for row in rows]
    known = [each for each in medians if each is not None]
    return len(known) == len(medians) and all(one < other for one, other in pairwise(known))


def _median(values: Iterable[int]) -> int | None:
    listed = list(values)
    return round(median(listed)) if listed else None
