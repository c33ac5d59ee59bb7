# SPDX-License-Identifier: GPL-2.0-or-later
"""The stations of a wake-up by a timer, as recorded by a monitor, joined on the exact due time.

Evaluates delays that were injected at one station: whether they are detected there, only there, and with their size.
Compares the stations with the latencies of a task, wake-up by wake-up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from fastenough.analysis.injections import Injection, least_ns
from fastenough.recording.samples import Samples

STATIONS = ("expiry-to-interrupt", "interrupt-to-runnable", "runnable-to-running", "running-to-return")
"""Each begins where the previous one ends; they add up to ``SUM``."""
SUM = "expiry-to-return"
TOLERANCE_NS = 2_000
TOLERANCE_SHARE = 0.01
"""Tolerance of the median over many injections: the measured times include the work of the monitor."""
_OTHERS_SHARE = 0.5
"""An injection is at a wrong station where that is longer than usual by this share of it, and the right one is not."""

Times = NDArray[np.int64]


@dataclass(frozen=True)
class Wakeups:
    """Wake-ups of one CPU with times at every station: due times (ns, ascending), and ns by station."""

    due_ns: Times
    by_station: Mapping[str, Times]

    @property
    def sum_ns(self) -> Times:
        """Time from the programmed expiry to the return to user space, in ns."""
        total: Times = np.stack([self.by_station[name] for name in STATIONS]).sum(axis=0)
        return total

    def only(self, chosen: NDArray[np.bool_]) -> Wakeups:
        """The wake-ups where ``chosen`` is true."""
        return Wakeups(self.due_ns[chosen], {name: values[chosen] for name, values in self.by_station.items()})


def wakeups(samples: Mapping[str, Samples]) -> Wakeups:
    """Join the samples of the stations on the programmed expiry; incomplete wake-ups are excluded.

    Raises KeyError if a station has no samples.
    """
    firsts = {name: np.unique(samples[name].due_ns, return_index=True) for name in STATIONS}
    due_ns = reduce(np.intersect1d, (due_of_station for due_of_station, _ in firsts.values()))
    return Wakeups(
        due_ns,
        {
            name: samples[name].latency_ns[first[np.searchsorted(due_of_station, due_ns)]]
            for name, (due_of_station, first) in firsts.items()
        },
    )


@dataclass(frozen=True)
class StationResult:
    """Result of the injections of one size at one station; medians in ns, None without values.

    Of ``injected``, ``detected`` were at the station, ``at_other_station`` only at another one, and ``unrecorded``
    belong to wake-ups that the monitor did not record.  ``too_late``: further injections that did not take place.
    ``culprits``: causes named by the monitor, with their counts.
    """

    station: str
    requested_ns: int
    injected: int
    too_late: int
    unrecorded: int
    detected: int
    at_other_station: int
    injected_median_ns: int | None
    undisturbed_median_ns: int | None
    station_median_ns: int | None
    culprits: tuple[tuple[str, int], ...] = ()

    @property
    def excess_ns(self) -> int | None:
        """Median time at the station, less the undisturbed median and the median injection, in ns."""
        if self.injected_median_ns is None or self.station_median_ns is None or self.undisturbed_median_ns is None:
            return None
        return self.station_median_ns - self.undisturbed_median_ns - self.injected_median_ns

    @property
    def tolerated_ns(self) -> int:
        return TOLERANCE_NS + round(TOLERANCE_SHARE * (self.injected_median_ns or 0))

    @property
    def right_size(self) -> bool:
        return self.excess_ns is not None and abs(self.excess_ns) <= self.tolerated_ns

    @property
    def missed(self) -> bool:
        """Whether an injection into a recorded wake-up was not detected at its station."""
        return self.detected + self.unrecorded < self.injected


def undisturbed(recorded: Wakeups, injected: Sequence[Injection], before_ns: int, after_ns: int) -> Wakeups:
    """Wake-ups due outside the time from ``before_ns`` before an injection to ``after_ns`` after its end."""
    if not injected:
        return recorded
    ordered = sorted(injected, key=lambda injection: injection.due_mono_ns)
    begins = np.array([injection.due_mono_ns - before_ns for injection in ordered])
    ends = np.array([injection.due_mono_ns + injection.injected_ns + after_ns for injection in ordered])
    within = np.searchsorted(begins, recorded.due_ns, side="right") - 1
    return recorded.only((within < 0) | (recorded.due_ns > ends[np.maximum(within, 0)]))


def station_medians(quiet: Wakeups) -> dict[str, int | None]:
    """Median of each station, in ns."""
    return {name: _median(values) for name, values in quiet.by_station.items()}


@dataclass(frozen=True)
class StationWitness:
    """Wake-ups recorded by a monitor while delays were injected at one station.

    ``median_ns``: median of each station without injections.  ``culprits``: cause named by the monitor, by due time.
    """

    station: str
    seen: Wakeups
    median_ns: Mapping[str, int | None]
    culprits: Mapping[int, str]

    def placed(self, injected: Sequence[Injection], late: Mapping[int, int]) -> list[StationResult]:
        """Match each injection with the wake-up of its due time; one result per size.

        ``late``: number of injections that were too late, by size.
        """
        return [
            self._placed(
                requested_ns,
                [injection for injection in injected if injection.requested_ns == requested_ns],
                late.get(requested_ns, 0),
            )
            for requested_ns in sorted({injection.requested_ns for injection in injected} | set(late))
        ]

    def _placed(self, requested_ns: int, group: Sequence[Injection], late: int) -> StationResult:
        position = {due_ns: place for place, due_ns in enumerate(self.seen.due_ns.tolist())}
        matched = [
            (injection, position[injection.due_mono_ns]) for injection in group if injection.due_mono_ns in position
        ]
        values = self.seen.by_station[self.station]
        astray = [(injection, place) for injection, place in matched if values[place] < least_ns(injection.injected_ns)]
        named = Counter(
            self.culprits[injection.due_mono_ns] for injection in group if injection.due_mono_ns in self.culprits
        )
        return StationResult(
            self.station,
            requested_ns,
            len(group),
            late,
            unrecorded=len(group) - len(matched),
            detected=len(matched) - len(astray),
            at_other_station=sum(self._elsewhere(injection, place) for injection, place in astray),
            injected_median_ns=_median(injection.injected_ns for injection in group),
            undisturbed_median_ns=self.median_ns[self.station],
            station_median_ns=_median(int(values[place]) for _, place in matched),
            culprits=tuple(named.most_common()),
        )

    def _elsewhere(self, injection: Injection, place: int) -> bool:
        return any(
            values[place] - (self.median_ns[name] or 0) >= _OTHERS_SHARE * injection.injected_ns
            for name, values in self.seen.by_station.items()
            if name != self.station
        )


def _median(values: Iterable[int] | Times) -> int | None:
    listed = np.fromiter(values, dtype=np.int64)
    return round(float(np.median(listed))) if len(listed) else None


REMAINDER_QUANTILES = (0.0, 0.5, 0.99, 1.0)


@dataclass(frozen=True)
class StationAgreement:
    """Agreement of a task with the stations of a monitor.

    ``activations``: acts of the task.  ``matched``: those with a wake-up of the monitor.  ``awake``: those due before
    the previous act began, so that the task did not sleep.  ``remainder_ns``: latency of the task less the sum of the
    stations (minimum, median, 99 %, maximum), from the return to user space until the task reads the clock.
    ``unrecorded_by_reason``: wake-ups that the monitor counted but did not record, by reason.
    """

    activations: int
    matched: int
    awake: int
    remainder_ns: tuple[int, ...]
    unrecorded_by_reason: tuple[tuple[str, int], ...]

    @property
    def absent(self) -> int:
        """Number of wake-ups of the task that the monitor did not record."""
        return self.activations - self.matched - self.awake

    @property
    def unexplained(self) -> int:
        """Number of absent wake-ups for which the monitor counted no reason."""
        return max(0, self.absent - sum(count for _, count in self.unrecorded_by_reason))

    @property
    def share(self) -> float:
        """Share of joined wake-ups among all wake-ups."""
        return self.matched / (self.activations - self.awake) if self.activations > self.awake else 0.0

    @property
    def later(self) -> bool:
        """Whether the task always read the clock after its return to user space according to the monitor."""
        return not self.remainder_ns or self.remainder_ns[0] >= 0


def station_agreement(task: Samples, recorded: Wakeups, counted: Mapping[str, int | None]) -> StationAgreement:
    """Join the samples of a task with the wake-ups that the monitor recorded on its CPU."""
    joined = np.isin(task.due_ns, recorded.due_ns)
    passed = task.due_ns[1:] <= task.due_ns[:-1] + task.latency_ns[:-1]
    awake = int(np.count_nonzero(passed & ~joined[1:]))
    _, task_places, wakeup_places = np.intersect1d(task.due_ns, recorded.due_ns, return_indices=True)
    remainder = task.latency_ns[task_places] - recorded.sum_ns[wakeup_places]
    quantiles = np.quantile(remainder, REMAINDER_QUANTILES, method="nearest") if remainder.size else ()
    return StationAgreement(
        len(task.due_ns) + task.lost,
        len(task_places),
        awake,
        tuple(int(value) for value in quantiles),
        tuple((reason, count) for reason, count in counted.items() if count),
    )
