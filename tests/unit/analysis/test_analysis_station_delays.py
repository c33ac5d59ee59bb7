# SPDX-License-Identifier: GPL-2.0-or-later
"""Stations of wake-ups, joined on the due time: delays are found where they were injected, and only there."""

from __future__ import annotations

import numpy as np
import pytest

from fastenough.analysis.injections import Injection
from fastenough.analysis.station_delays import (
    STATIONS,
    StationResult,
    StationWitness,
    Wakeups,
    station_agreement,
    station_medians,
    undisturbed,
    wakeups,
)
from fastenough.recording.samples import Samples

MS = 1_000_000
PERIOD_NS = 2 * MS
N = 1000
EVERY = 10
SIZE_NS = 300_000
DUE_NS = 5 * MS + PERIOD_NS * np.arange(N, dtype=np.int64)
USUAL_NS = dict(zip(STATIONS, (1000, 700, 2000, 1500), strict=True))
INJECTED = [Injection(SIZE_NS, SIZE_NS + 20, int(due_ns)) for due_ns in DUE_NS[5::EVERY]]
random = np.random.default_rng(5)


def samples(values: dict[str, np.ndarray], kept: np.ndarray | None = None) -> dict[str, Samples]:
    chosen = np.ones(N, dtype=bool) if kept is None else kept
    return {name: Samples(DUE_NS[chosen], one[chosen], 0) for name, one in values.items()}


def with_delays(station: str, injected: list[Injection] = INJECTED) -> dict[str, np.ndarray]:
    values = {name: usual_ns + random.integers(0, 300, N) for name, usual_ns in USUAL_NS.items()}
    for one in injected:
        values[station][(one.due_mono_ns - DUE_NS[0]) // PERIOD_NS] += one.injected_ns
    return values


def found(seen: Wakeups, station: str) -> StationResult:
    quiet = undisturbed(seen, INJECTED, PERIOD_NS // 2, PERIOD_NS)
    culprits = {one.due_mono_ns: "someone" for one in INJECTED[:7]}
    (row,) = StationWitness(station, seen, station_medians(quiet), culprits).placed(INJECTED, {SIZE_NS: 2})
    return row


@pytest.mark.parametrize("station", STATIONS)
def test_what_is_injected_at_a_station_is_found_there(station: str) -> None:
    row = found(wakeups(samples(with_delays(station))), station)
    assert (row.injected, row.too_late, row.unrecorded, row.detected, row.at_other_station) == (
        len(INJECTED),
        2,
        0,
        len(INJECTED),
        0,
    )
    assert row.right_size and not row.missed
    assert row.excess_ns is not None and abs(row.excess_ns) < 300
    assert row.culprits == (("someone", 7),)


def test_what_is_injected_at_another_station_is_not_found_here() -> None:
    row = found(wakeups(samples(with_delays(STATIONS[3]))), STATIONS[0])
    assert (row.detected, row.at_other_station) == (0, len(INJECTED))
    assert row.missed and not row.right_size


def test_what_is_nowhere_is_missed_and_not_elsewhere() -> None:
    row = found(wakeups(samples(with_delays(STATIONS[0], INJECTED[1:]))), STATIONS[0])
    assert (row.detected, row.at_other_station, row.missed) == (len(INJECTED) - 1, 0, True)


def test_what_the_monitor_has_not_is_unseen() -> None:
    kept = ~np.isin(DUE_NS, [one.due_mono_ns for one in INJECTED[:3]])
    row = found(wakeups(samples(with_delays(STATIONS[0]), kept)), STATIONS[0])
    assert (row.detected, row.unrecorded, row.missed) == (len(INJECTED) - 3, 3, False)


@pytest.mark.parametrize(("off_ns", "right"), [(0, True), (4_000, True), (6_000, False), (-6_000, False)])
def test_the_size_may_be_off_by_a_little(off_ns: int, right: bool) -> None:
    longer = [Injection(one.requested_ns, one.injected_ns + off_ns, one.due_mono_ns) for one in INJECTED]
    assert found(wakeups(samples(with_delays(STATIONS[1], longer))), STATIONS[1]).right_size is right


def test_neighbours_of_an_injection_are_not_undisturbed() -> None:
    seen = wakeups(samples(with_delays(STATIONS[0])))
    quiet = undisturbed(seen, INJECTED, PERIOD_NS // 2, PERIOD_NS)
    assert len(quiet.due_ns) == N - 2 * len(INJECTED)
    assert undisturbed(seen, [], 1, 1) is seen


def test_only_wake_ups_known_at_each_station_are_joined() -> None:
    given = samples(with_delays(STATIONS[0]))
    lacking = given[STATIONS[2]]
    given[STATIONS[2]] = Samples(lacking.due_ns[10:], lacking.latency_ns[10:], 0)
    seen = wakeups(given)
    assert seen.due_ns.tolist() == DUE_NS[10:].tolist()
    assert (seen.sum_ns == sum(given[name].latency_ns[-len(seen.due_ns) :] for name in STATIONS)).all()


def test_what_the_task_saw_beyond_its_stations_is_told_and_what_is_absent_counted() -> None:
    seen = wakeups(samples(with_delays(STATIONS[0])))
    task = Samples(DUE_NS, seen.sum_ns + 1200, lost=0)
    kept = np.ones(N, dtype=bool)
    kept[:8] = False
    one = station_agreement(
        task, seen.only(kept), {"monitor_suppressed": 6, "monitor_dropped": 0, "monitor_unmatched": None}
    )
    assert (one.activations, one.matched, one.absent, one.unexplained) == (N, N - 8, 8, 2)
    assert one.remainder_ns == (1200,) * 4 and one.later
    assert one.unrecorded_by_reason == (("monitor_suppressed", 6),)
    slow = seen.sum_ns.copy()
    slow[100] = 3 * PERIOD_NS + 5
    busy = station_agreement(Samples(DUE_NS, slow, 0), seen.only(~np.isin(np.arange(N), [101, 102, 200])), {})
    assert (busy.awake, busy.absent) == (1, 2), "only the act right behind the late one is known not to have slept"
    early = station_agreement(Samples(DUE_NS, seen.sum_ns - 1, lost=3), seen, {})
    assert (early.later, early.activations, early.share < 1) == (False, N + 3, True)
