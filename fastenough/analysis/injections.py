# SPDX-License-Identifier: GPL-2.0-or-later
"""Injected delays, and whether a witness detected them: number, size and order."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from fastenough.recording import Event, Recording
from fastenough.units import parse_duration_ns

_SPARSE = 2
"""Edges whose typical distance is more than this many periods are not those of the task."""
TOLERANCE_NS = 2_000
TOLERANCE_SHARE = 0.002
"""Resolution of clocks and buckets: a delayed act cannot begin earlier than this before the end of its delay."""


@dataclass(frozen=True)
class Injection:
    """One delay: requested size, actual size (from the due time to its end), and due time."""

    requested_ns: int
    injected_ns: int
    due_mono_ns: int


@dataclass(frozen=True)
class InjectionResult:
    """Injections of one size and their measurement by one witness; the excess is measured minus injected.

    ``too_late``: further injections that did not take place, because the injector itself missed the due time.
    ``reasons``: why the witness lacks each injection that was not detected.
    """

    requested_ns: int
    injected: int
    too_late: int
    detected: int
    injected_median_ns: int | None
    measured_median_ns: int | None
    excess_median_ns: int | None
    reasons: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether there were injections and all were detected."""
        return self.injected > 0 and self.detected == self.injected


def injections(recording: Recording) -> list[Injection]:
    """All injections recorded by the hog, in order of time (new maxima have two events)."""
    sizes_ns = {series.id: parse_duration_ns(series.labels["size"]) for series in recording.named("injected")}
    recorded = {
        Injection(sizes_ns[series], value, event.at.mono_ns - value)
        for event, series, value in _late(recording)
        if series in sizes_ns
    }
    return sorted(recorded, key=lambda injection: injection.due_mono_ns)


def _late(recording: Recording) -> Iterator[tuple[Event, int, int]]:
    """Events of values, with their series and value."""
    for event in recording.events:
        if event.kind in ("max", "threshold") and event.series is not None and event.value is not None:
            yield event, event.series, event.value


def too_late(recording: Recording) -> dict[int, int]:
    """Number of due times that the hog missed, by requested size."""
    return {
        parse_duration_ns(series.labels["size"]): recording.missed(series.id) for series in recording.named("injected")
    }


Value = int | str
"""Result of a witness for one injection: nanoseconds, or the reason why there is none."""


def latency_at(recording: Recording, series_name: str, period_ns: int) -> dict[int, int]:
    """Latency by due time (as a count of periods since the recording began), of every value that has an event.

    Due times that passed while an act was late have no act of their own: the late act served them too, and each is
    given the delay from its own due time.
    """
    series_ids = {series.id for series in recording.named(series_name)}
    begin_mono_ns = recording.head.begin.mono_ns
    latencies: dict[int, int] = {}
    for event, series, value in _late(recording):
        if series in series_ids:
            first = round((event.at.mono_ns - value - begin_mono_ns) / period_ns)
            for served in range(max(0, value) // period_ns + 1):
                latencies[first + served] = value - served * period_ns
    return latencies


def match_by_due_time(
    injected: Sequence[Injection], late: dict[int, int], recording: Recording, series_name: str, period_ns: int
) -> list[InjectionResult]:
    """Match each injection with the latency of the very act that served the due time it delayed."""
    latencies = latency_at(recording, series_name, period_ns)
    begin_mono_ns = recording.head.begin.mono_ns
    dropped = recording.end.events_dropped if recording.end else 0

    def value(injection: Injection) -> Value:
        latency_ns = latencies.get(round((injection.due_mono_ns - begin_mono_ns) / period_ns))
        if latency_ns is None:
            return (
                f"{dropped} events of the witness were dropped; this one may be among them"
                if dropped
                else "the witness has no late activation at its due time"
            )
        return (
            latency_ns
            if latency_ns >= least_ns(injection.injected_ns)
            else f"the witness measured {latency_ns} ns, which is shorter"
        )

    return _rows(injected, late, value)


def match_by_interval(
    injected: Sequence[Injection], late: dict[int, int], recording: Recording, series_id: int
) -> list[InjectionResult]:
    """Match each injection with the longest value of the interval in which the act it delayed took place.

    For witnesses without a time stamp of each value.  The act comes right after the injection's end, so its value
    lies in the interval that holds that moment, or, where that was about to end, in the next one.
    """

    def value(injection: Injection) -> Value:
        end_mono_ns = injection.due_mono_ns + injection.injected_ns
        maxima = [
            interval.histograms[series_id].maximum
            for interval in recording.intervals
            if interval.end_mono_ns >= end_mono_ns and series_id in interval.histograms
        ][:2]
        longest = max((maximum for maximum in maxima if maximum is not None), default=None)
        if longest is None:
            return "the witness recorded nothing at its end"
        if longest < least_ns(injection.injected_ns):
            return f"the maximum of the witness at its end is {longest} ns, which is shorter"
        return longest

    return _rows(injected, late, value)


def match_by_edges(
    injected: Sequence[Injection], late: dict[int, int], edges_ns: Sequence[int], lead_ns: int, period_ns: int
) -> list[InjectionResult]:
    """Match each injection with the first edge after it; no edge may lie within it.

    ``period_ns``: nominal time between edges of the delayed task.  Edges of another source that come less often have
    room for any injection, so none is matched with them.

    ``edges_ns`` ascend on the witness's own clock.  Its offset against the injections' clock is the one at which most
    injections are without an edge, and of these the one that brings the next edges nearest.  Nothing is toggled from
    ``lead_ns`` before the due time on; a fifth of that is left for the edge before, which tells an injection of two
    periods from two ordinary ones.
    """
    edges = sorted(edges_ns)
    quiet_ns = lead_ns // 5
    offset_ns = _offset_ns(injected, edges, quiet_ns)
    typical_ns = median([later - earlier for earlier, later in pairwise(edges)] or [0])
    is_sparse = typical_ns > _SPARSE * period_ns

    def value(injection: Injection) -> Value:
        if is_sparse:
            return (
                f"the witness's edges come every {typical_ns / 1e6:.4g} ms, those of the task every "
                f"{period_ns / 1e6:.4g} ms: it watches another pin"
            )
        due_ns = injection.due_mono_ns + offset_ns
        position = bisect_right(edges, due_ns - quiet_ns)
        if position in (0, len(edges)):
            return "the witness's edges do not reach from before it to after it"
        delay_ns = edges[position] - due_ns
        return (
            delay_ns
            if delay_ns >= least_ns(injection.injected_ns)
            else (f"the witness saw an edge {delay_ns} ns after its due time")
        )

    return _rows(injected, late, value)


def _offset_ns(injected: Sequence[Injection], edges: Sequence[int], quiet_ns: int) -> int:
    """What must be added to the injections' clock; 0 where there is nothing to go by."""

    def rating(offset_ns: int) -> tuple[int, int]:
        """How many injections are free of edges, and how much later (negative) the next edges come."""
        free, excess_ns = 0, 0
        for injection in injected:
            end_ns = injection.due_mono_ns + injection.injected_ns + offset_ns
            position = bisect_right(edges, injection.due_mono_ns + offset_ns - quiet_ns)
            if 0 < position < len(edges) and edges[position] >= end_ns:
                free += 1
                excess_ns += edges[position] - end_ns
        return free, -excess_ns

    shortest_ns = min((injection.injected_ns for injection in injected), default=0)
    candidates = {
        later - injection.due_mono_ns - injection.injected_ns
        for injection in injected
        for earlier, later in pairwise(edges)
        if later - earlier > shortest_ns + quiet_ns
    }
    return max(candidates, key=rating, default=0)


def least_ns(ns: int) -> float:
    """Least latency that a witness can measure for a delay of that length."""
    return ns * (1 - TOLERANCE_SHARE) - TOLERANCE_NS


def _rows(
    injected: Sequence[Injection], late: dict[int, int], value: Callable[[Injection], Value]
) -> list[InjectionResult]:
    return [
        _row(
            requested_ns,
            [injection for injection in injected if injection.requested_ns == requested_ns],
            late.get(requested_ns, 0),
            value,
        )
        for requested_ns in sorted({injection.requested_ns for injection in injected} | set(late))
    ]


def _row(requested_ns: int, group: list[Injection], late: int, value: Callable[[Injection], Value]) -> InjectionResult:
    answers = [(injection, value(injection)) for injection in group]
    pairs = [(injection.injected_ns, value_ns) for injection, value_ns in answers if isinstance(value_ns, int)]
    reasons = tuple(
        f"injected at {injection.due_mono_ns} ns for {injection.injected_ns} ns: {reason}"
        for injection, reason in answers
        if isinstance(reason, str)
    )
    return InjectionResult(
        requested_ns,
        len(group),
        late,
        len(pairs),
        _median(injection.injected_ns for injection in group),
        _median(value_ns for _, value_ns in pairs),
        _median(value_ns - injected_ns for injected_ns, value_ns in pairs),
        reasons,
    )


def in_order(rows: Sequence[InjectionResult]) -> bool:
    """Whether measured delays increase with the injected ones."""
    medians = [row.measured_median_ns for row in rows]
    measured = [median_ns for median_ns in medians if median_ns is not None]
    return len(measured) == len(medians) and all(earlier < later for earlier, later in pairwise(measured))


def _median(values: Iterable[int]) -> int | None:
    listed = list(values)
    return round(median(listed)) if listed else None
