# SPDX-License-Identifier: GPL-2.0-or-later
"""Inject known delays at each station of a wake-up and check their station, size and cause by the monitor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fastenough.analysis.station_delays import (
    STATIONS,
    StationAgreement,
    StationResult,
    StationWitness,
    Wakeups,
    station_agreement,
    station_medians,
    undisturbed,
    wakeups,
)
from fastenough.board import Board
from fastenough.jobs.injectors import InjectionPlan
from fastenough.jobs.monitored_task import MonitoredTask, TaskMonitor
from fastenough.model import FastenoughError, NotApplicable
from fastenough.recording import culprits
from fastenough.recording import wakeups as monitor_wakeups
from fastenough.recording.samples import Samples

AGREEMENT_S = 10.0
"""Time for which task and monitor are compared without injections."""


_ABSENT = tuple(f"monitor_{why}" for why in ("unmatched", "dropped", "suppressed", "no_return", "unkept"))


@dataclass(frozen=True)
class StationTrial:
    """Injections at one station as recorded by the monitor; ``reason``: why this is not applicable here.

    ``injector``: name of the injector.  ``quiet`` and ``delayed``: wake-ups without and with an injection, on ``cpu``.
    ``unrecorded_by_reason``: number of wake-ups without all stations, by reason.
    """

    station: str
    cpu: int
    rows: tuple[StationResult, ...] = ()
    quiet: Wakeups | None = None
    delayed: Wakeups | None = None
    unrecorded_by_reason: tuple[tuple[str, int], ...] = ()
    injector: str = ""
    reason: str | None = None

    @property
    def applicable(self) -> bool:
        return self.reason is None

    @property
    def missed(self) -> bool:
        """Whether a recorded wake-up lacks its injection at this station."""
        return any(row.missed for row in self.rows)

    @property
    def shortfall(self) -> str | None:
        """Why the result is inconclusive although no injection was missed; None if it is conclusive."""
        if not self.applicable or self.missed:
            return None
        never = [row for row in self.rows if not row.injected]
        if never or not self.rows:
            return f"no delay of {_sizes(never)} was injected: the injector was always late, the machine is busy"
        unrecorded = sum(row.unrecorded for row in self.rows)
        if unrecorded:
            reasons = (
                ", ".join(
                    f"{count} {why.removeprefix('monitor_').replace('_', ' ')}"
                    for why, count in self.unrecorded_by_reason
                )
                or "none"
            )
            return f"the monitor missed {unrecorded} delayed wake-ups; reasons it counted: {reasons}"
        wrong = [row for row in self.rows if not row.right_size]
        return f"the measured size of {_sizes(wrong)} is outside the tolerance" if wrong else None

    @property
    def passed(self) -> bool:
        """Whether all injections were detected with their size at their own station only."""
        return self.applicable and not self.missed and self.shortfall is None


def _sizes(rows: list[StationResult]) -> str:
    return ", ".join(f"{row.requested_ns / 1e3:g} µs" for row in rows) or "any size"


def calibrate_monitor(
    board: Board, configuration: str, plan: InjectionPlan
) -> Iterator[StationTrial | StationAgreement]:
    """Test each station of a wake-up in turn, then compare task and monitor without injections.

    Raises NotApplicable if the monitor or the injector cannot run there.
    """
    with board.boot(configuration) as booted:
        watching = TaskMonitor(booted, plan)
        for station in STATIONS:
            try:
                yield trial_of(watching.injecting(station), station, plan)
            except NotApplicable as why:
                yield StationTrial(station, plan.cpu, reason=str(why))
        yield _agreement(watching.alone(AGREEMENT_S), plan)


def _recorded_wakeups(watched: MonitoredTask, cpu: int) -> Wakeups:
    """The wake-ups of one CPU that the monitor recorded."""
    by_station: dict[str, Samples] = {}
    for series in watched.monitor.head.series:
        if series.cpu == cpu and series.name in STATIONS and series.id in watched.samples:
            by_station[series.name] = watched.samples[series.id]
    missing = [name for name in STATIONS if name not in by_station]
    if missing:
        raise FastenoughError(f"the monitor recorded no wake-up of CPU {cpu} at {', '.join(missing)}")
    return wakeups(by_station)


def _absent_counts(watched: MonitoredTask) -> dict[str, int | None]:
    """The counters of wake-ups that the monitor did not record at every station."""
    end = watched.monitor.end
    return {name: end.counters.get(name) for name in _ABSENT} if end else {}


def trial_of(watched: MonitoredTask, station: str, plan: InjectionPlan) -> StationTrial:
    """Evaluate the injections at one station."""
    recorded = _recorded_wakeups(watched, plan.cpu)
    quiet = undisturbed(recorded, watched.injected, plan.lead_ns, plan.period_ns)
    witnessed = StationWitness(station, recorded, station_medians(quiet), _culprits(watched))
    dues = np.array([injection.due_mono_ns for injection in watched.injected], dtype=np.int64)
    return StationTrial(
        station,
        plan.cpu,
        tuple(witnessed.placed(watched.injected, watched.late)),
        quiet,
        recorded.only(np.isin(recorded.due_ns, dues)),
        tuple((why, count) for why, count in _absent_counts(watched).items() if count),
        watched.injector,
    )


def _culprits(watched: MonitoredTask) -> dict[int, str]:
    """Cause named by the monitor, by due time."""
    return {
        expiry_ns: wakeup.cause
        for wakeup in monitor_wakeups.wakeups(watched.monitor.head, watched.monitor.events)
        if (expiry_ns := culprits.integer_of(wakeup.culprit, "expiry_mono_ns")) is not None
    }


def _agreement(watched: MonitoredTask, plan: InjectionPlan) -> StationAgreement:
    """Compare the wake-ups that were due while both task and monitor ran."""
    recorded = _recorded_wakeups(watched, plan.cpu)
    begin_ns, end_ns = int(recorded.due_ns[0]), int(recorded.due_ns[-1])
    own = watched.task
    common = (own.due_ns >= begin_ns) & (own.due_ns <= end_ns)
    return station_agreement(
        Samples(own.due_ns[common], own.latency_ns[common], own.lost), recorded, _absent_counts(watched)
    )
