# SPDX-License-Identifier: GPL-2.0-or-later
"""Recordings of the monitor: stations of wake-ups, and single wake-ups with the time of each station.

The names are those of the series; the times of a wake-up are in its culprit, as ``<station>_ns`` with _ for -.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from fastenough.model import Series
from fastenough.recording.culprits import Culprit, cause_of_delay, culprit_text, integer_of
from fastenough.recording.head import Event, Head, Instant

MONITOR = "monitor"
"""The probe whose recordings show where in the kernel time is spent; it gives no verdict."""

STATIONS: Mapping[str, str] = {
    "expiry-to-interrupt": "the timer interrupt came late",
    "device-to-runnable": "the device interrupt was slow to make the task runnable",
    "interrupt-to-runnable": "the timer interrupt was slow to make the task runnable",
    "waking-to-running": "the task waited for its CPU after another task had woken it",
    "runnable-to-running": "the task waited for its CPU",
    "running-to-return": "the return to user space was slow",
    "runnable-to-return": "the task waited for its CPU, or the return to user space was slow",
}
"""The stations of a wake-up in order of time, without overlap, and the meaning of a long one.  The last
is the rest of a device's wake-up, and not a series."""
_IN_TIMER_INTERRUPT = "interrupt-to-runnable"

SUMS = ("expiry-to-return", "device-to-return", "expiry-to-running")
"""Sums of several stations, the longest first."""

NOISE: Mapping[str, str] = {
    "noise-interrupt": "interrupts",
    "noise-softirq": "soft-IRQs",
    "noise-thread": "other threads",
}
"""Users that take a CPU from a task: one value for each disturbance."""
_NOISE_PREFIX = "noise-"


_LISTED = (*STATIONS, *reversed(SUMS), *NOISE)


def station_place(name: str) -> int:
    """Position in lists of stations: those above in their order, then every other station that a monitor records."""
    return _LISTED.index(name) if name in _LISTED else len(_LISTED)


def is_station(series: Series) -> bool:
    """Whether the monitor labelled it as a station; also true for all those above."""
    return "station" in series.labels or series.name in _LISTED


def is_noise(name: str) -> bool:
    """Whether a series of the monitor is about CPUs, not wake-ups; its name says so."""
    return name.startswith(_NOISE_PREFIX)


def noise_source(name: str) -> str:
    """Printed name of a user of the CPU."""
    return NOISE.get(name, name.removeprefix(_NOISE_PREFIX))


def longest_way(head: Head, n: Mapping[int, int]) -> str | None:
    """Name of the series of the monitor for the whole wake-up, given the number of values of each series by id."""
    return next(
        (name for name in (*SUMS, *STATIONS) for series in head.series if series.name == name and n.get(series.id)),
        None,
    )


def key_of(station: str) -> str:
    """The culprit's key for the time a station took."""
    return f"{station.replace('-', '_')}_ns"


@dataclass(frozen=True)
class Wakeup:
    """One wake-up with its culprit.

    ``parts``: the time each of its stations took, in their order.  ``delay_ns``: all of them together, or, where none
    is known, the recorded value.  ``series``: ids of the series that recorded it.
    """

    run_id: str
    at: Instant
    after_ns: int
    cpu: int | None
    parts: Mapping[str, int]
    delay_ns: float
    culprit: Culprit
    series: tuple[int, ...] = field(default=())

    @cached_property
    def longest(self) -> str:
        """The longest station, empty if none is known."""
        return max(self.parts, key=lambda name: self.parts[name], default="")

    @property
    def culprit_text(self) -> str:
        """The culprit as text."""
        return culprit_text(self.culprit)

    @property
    def cause(self) -> str:
        """The cause of its longest station."""
        return cause_of_delay(
            self.culprit,
            self.parts[self.longest] if self.longest else self.delay_ns,
            in_timer_interrupt=self.longest == _IN_TIMER_INTERRUPT,
        )


def is_monitor(head: Head) -> bool:
    """Whether this is a recording of the monitor."""
    return head.probe == MONITOR


def _station_times(culprit: Culprit) -> dict[str, int]:
    """A negative time is none: no station ends before it begins."""
    times = {name: integer_of(culprit, key_of(name)) for name in STATIONS}
    parts = {name: ns for name, ns in times.items() if ns is not None and ns >= 0}
    by_device, first_ns = integer_of(culprit, key_of("device-to-return")), parts.get("device-to-runnable")
    if by_device is not None and first_ns is not None and by_device > first_ns:
        parts["runnable-to-return"] = by_device - first_ns
    return parts


def _wakeup(head: Head, event: Event, series: Series) -> Wakeup:
    culprit = event.culprit or {}
    parts = _station_times(culprit)
    value_ns = (event.value or 0) * series.unit_ns
    return Wakeup(
        head.run_id,
        event.at,
        event.at.mono_ns - head.begin.mono_ns,
        series.cpu if event.cpu is None else event.cpu,
        parts,
        float(sum(parts.values())) if parts else value_ns,
        culprit,
        (series.id,),
    )


def wakeups(head: Head, events: Iterable[Event]) -> list[Wakeup]:
    """The wake-ups with a culprit in the events, the worst first.

    Each series of a wake-up may have recorded it as its own maximum: events of one CPU, one instant and one task are
    one wake-up, of which the most complete event is used.  Noise is excluded.
    """
    by_id = {series.id: series for series in head.series}
    fullest: dict[tuple[int | None, int, object], Wakeup] = {}
    for event in events:
        series = None if event.series is None else by_id.get(event.series)
        if series is None or is_noise(series.name) or event.culprit is None or event.kind not in ("max", "threshold"):
            continue
        wakeup = _wakeup(head, event, series)
        place = wakeup.cpu, event.at.mono_ns, event.culprit.get("task_pid")
        fullest[place] = _combined(fullest[place], wakeup) if place in fullest else wakeup
    return sorted(fullest.values(), key=lambda wakeup: -wakeup.delay_ns)


def _combined(first: Wakeup, second: Wakeup) -> Wakeup:
    longer, shorter = (second, first) if second.delay_ns > first.delay_ns else (first, second)
    return replace(longer, culprit={**shorter.culprit, **longer.culprit}, series=(*first.series, *second.series))
