# SPDX-License-Identifier: GPL-2.0-or-later
"""The gate compares the same latencies on the same CPUs as the baseline, in each window of nights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fastenough.analysis.bootstrap import Edges, difference_of
from fastenough.analysis.compare import cautions
from fastenough.analysis.gate import AllowedDepartures, Growth, Limit, beside, departures
from fastenough.jobs.check import CheckResult, check
from fastenough.jobs.limits import Limits
from fastenough.jobs.nights import SinceChange, earlier_nights
from fastenough.model import Requirement, Verdict
from fastenough.recording import Recording
from fastenough.store import Store
from tests.support.recordings import Plan, recording, write

DAY_NS = 86_400 * 10**9
LIMIT = Limit("limit 1", Growth(0.9, more_share=0.1))
NONE = np.empty(0, dtype=np.int64)
TWO_LATENCIES = {"probe": "made-up", "parameters": {"size": 1}}


def _values(seed: int, *levels_us: float) -> list[list[NDArray[np.int64]]]:
    """On one CPU of each level, 60 intervals; level 0: no values."""
    random = np.random.default_rng(seed)
    return [
        [(level * random.lognormal(0, 0.3, 500) * 1000).astype(np.int64) if level else NONE for _ in range(60)]
        for level in levels_us
    ]


class GateStore:
    """A baseline, and a store of later nights; ``two``: CPU 0 measures another latency, without a period."""

    def __init__(self, folder: Path, *levels_us: float, two: bool = False, missed: int = 0) -> None:
        self.folder, self.two = folder, two
        self.store = Store(folder / "store")
        self.baseline = recording(folder, self.plan(0, "base", missed, *levels_us))

    def plan(self, day: int, run_id: str, missed: int, *levels_us: float, name: str = "other") -> Plan:
        plan = Plan(_values(day, *levels_us), run_id=run_id, begin_ns=day * DAY_NS, missed=missed)
        if self.two:
            plan.views, plan.first_series, plan.head = ("wakeup",), {"name": name}, dict(TWO_LATENCIES)
            plan.series, plan.interval_ns = {"period_ns": None}, 10**9
        return plan

    def night(self, day: int, *levels_us: float, missed: int = 0, **series: Any) -> Recording:
        """``series``: fields of its series that differ."""
        writer = self.store.begin({})
        plan = self.plan(day, writer.id, missed, *levels_us)
        plan.series = {**plan.series, **series}
        for line in write(self.folder / "night", plan).read_bytes().splitlines(keepends=True):
            writer.line(line)
        writer.end()
        return self.store.load(writer.id)

    def checked(self, night: Recording, *differs: str) -> CheckResult:
        return check([night], [self.baseline], Limits((LIMIT,), AllowedDepartures(differs)), self.store)


@pytest.mark.check
@pytest.mark.parametrize(("before", "now"), [((20, 60), (26,)), ((60,), (75, 20))])
def test_other_cpus_than_those_of_the_baseline_do_not_hide_a_growth(
    before: tuple[float, ...], now: tuple[float, ...], tmp_path: Path
) -> None:
    """All CPUs together are faster, since the slow one is missing, or a fast one was added."""
    gate = GateStore(tmp_path, *before)
    checked = gate.checked(gate.night(1, *now))
    assert [result.verdict for result in checked.limits] == [Verdict.PASS]
    assert checked.verdict is Verdict.FAIL and len(checked.departures) == 1
    assert gate.checked(gate.night(1, *now), "processor").verdict is Verdict.PASS
    same = gate.checked(gate.night(1, *before))
    assert same.verdict is Verdict.PASS and not same.departures


@pytest.mark.check
def test_a_latency_without_values_is_not_left_out(tmp_path: Path) -> None:
    """And earlier nights that have it do not end in an internal error."""
    gate = GateStore(tmp_path, 20, 60, two=True)
    assert gate.checked(gate.night(1, 20, 60)).verdict is Verdict.PASS
    alone = gate.checked(gate.night(2, 0, 60))
    assert alone.verdict is Verdict.FAIL and len(alone.limits) == len(alone.departures) == 1
    undecided = gate.checked(gate.night(3, 0, 66))
    assert undecided.verdict is Verdict.FAIL and len(undecided.limits) == len(undecided.departures) == 1


def test_a_share_of_a_quantile_below_zero_is_no_decrease() -> None:
    """The median of a jitter: -1,000 ns before and after; it may be -900 ns."""
    before, later = np.full(4000, -1000.0), np.full(4000, -800.0)
    edges = Edges(before, before, 60)
    difference = difference_of(edges, edges, more_share=0.1)
    assert difference is not None and difference.is_no_more(0.95) and difference.chance_of_no_more() > 0.5
    assert Growth(0.5, more_share=0.1).allowed_ns(-1000.0) == pytest.approx(-900.0)
    slower = difference_of(edges, Edges(later, later, 60), more_share=0.1)
    assert slower is not None and slower.chance_of_no_more() < 0.05


@pytest.mark.check
@pytest.mark.parametrize(
    ("before", "missed", "slower", "expected"),
    [
        (0, 0, 1.0, Verdict.PASS),
        (0, 6000, 1.0, Verdict.INCONCLUSIVE),
        (0, 6000, 1.5, Verdict.FAIL),
        (6000, 0, 1.5, Verdict.INCONCLUSIVE),
        (6000, 0, 1.0, Verdict.PASS),
    ],
)
def test_missed_periods_without_a_value_exceed_every_quantile(
    before: int, missed: int, slower: float, expected: Verdict, tmp_path: Path
) -> None:
    """A sixth of all activations never took place, so the quantile at 90 % of all is not that of the values."""
    gate = GateStore(tmp_path, 20, two=True, missed=before)
    night = gate.night(1, 20 * slower, missed=missed)
    assert gate.checked(night).verdict is expected
    assert len(cautions([gate.baseline, night])) == (before > 0) + (missed > 0)
    nights = [night, *(gate.night(day, 20 * slower, missed=missed) for day in range(2, 10))]
    since = check([nights[-1]], [gate.baseline], Limits((LIMIT,)), gate.store, since=SinceChange())
    by_nights = {(0, 6000, 1.0): Verdict.FAIL, (6000, 0, 1.0): Verdict.INCONCLUSIVE}
    assert since.verdict is by_nights.get((before, missed, slower), expected)


@pytest.mark.check
def test_earlier_nights_on_other_cpus_are_no_evidence(tmp_path: Path) -> None:
    """The slow CPU is missing in nights 1 and 2, and both CPUs are slower in night 3."""
    gate = GateStore(tmp_path, 20, 60)
    fewer = [gate.night(day, 20) for day in (1, 2)]
    night = gate.night(3, 26, 78)
    (since,) = check([night], [gate.baseline], Limits((LIMIT,)), gate.store, since=SinceChange()).limits
    assert since.run_ids == (night.run_id,) and all(run.run_id in since.reason for run in fewer)
    nights = earlier_nights(gate.store, [night], [gate.baseline])
    assert nights.runs == () and len(nights.left_out) == len(fewer)
    assert len(earlier_nights(gate.store, [night], [gate.baseline], same_cpus=False).runs) == len(fewer)
    assert len(departures([*fewer, night], [gate.baseline], AllowedDepartures())) == 1


@pytest.mark.check
def test_an_earlier_night_whose_series_may_not_be_merged_is_left_out(tmp_path: Path) -> None:
    gate = GateStore(tmp_path, 20)
    other, alike = gate.night(1, 20, clock="CLOCK_BOOTTIME"), gate.night(2, 20)
    (result,) = gate.checked(gate.night(3, 20)).limits
    assert result.verdict is Verdict.PASS and other.run_id in result.reason and "CLOCK_BOOTTIME" in result.reason
    nights = earlier_nights(gate.store, [gate.night(4, 20)], [gate.baseline])
    assert [run.run_id for run in nights.runs][1:] == [alike.run_id] and len(nights.left_out) == 1


@pytest.mark.parametrize(
    ("before", "missed", "slower", "expected"), [(1, 0, 3.0, Verdict.FAIL), (0, 1, 1.0, Verdict.PASS)]
)
def test_one_missed_period_without_a_value_does_not_decide(
    before: int, missed: int, slower: float, expected: Verdict, tmp_path: Path
) -> None:
    gate = GateStore(tmp_path, 20, two=True, missed=before)
    assert gate.checked(gate.night(1, 20 * slower, missed=missed)).verdict is expected


@pytest.mark.check
def test_a_latency_of_missed_periods_only_does_not_pass(tmp_path: Path) -> None:
    """No stimulus had a response: there is no value to compare, before or now."""
    gate = GateStore(tmp_path, 20, 60, two=True)
    for night in (gate.night(1, 0, 60, missed=600), gate.night(2, 0, 0, missed=600)):
        checked = gate.checked(night)
        assert checked.verdict in NO_PASS and len(checked.limits) == 2 and not checked.departures
    (tmp_path / "silent").mkdir()
    silent = GateStore(tmp_path / "silent", 0, 60, two=True, missed=600)
    assert silent.checked(silent.night(1, 20, 60)).verdict in NO_PASS


NO_PASS = (Verdict.BROKEN, Verdict.INCONCLUSIVE)
OLDER = {"tool": {"name": "test", "version": "-1"}}


@pytest.mark.check
@pytest.mark.parametrize(
    ("base", "stated", "sizes", "comparable"),
    [
        (OLDER, {}, (1,), True),
        ({}, {}, (1,), False),
        ({"tool": {"name": "other", "version": "-1"}}, {}, (1,), False),
        (OLDER, {"size": 2}, (1,), False),
        (OLDER, {}, (1, 2), False),
    ],
)
def test_an_older_version_may_state_fewer_parameters(
    base: dict[str, Any], stated: dict[str, Any], sizes: tuple[int, ...], comparable: bool, tmp_path: Path
) -> None:
    """Unless runs of several acts would be compared with the same run of the baseline."""
    head: dict[str, Any] = {"parameters": {"mode": "sleep"} | stated}
    plan = Plan(_values(1, 20), "base", begin_ns=0, head=head | base)
    baseline = recording(tmp_path, plan)
    runs = [
        recording(tmp_path, replace(plan, run_id=f"run-{size}", head={"parameters": {"mode": "sleep", "size": size}}))
        for size in sizes
    ]
    assert [bool(nearest) for _, nearest in beside(runs, [baseline])] == [comparable] * len(sizes)
    missing = [one for one in departures(runs, [baseline], AllowedDepartures()) if "repeated" in one.requirement]
    assert bool(missing) is (not comparable and len(sizes) == 1)


def test_a_run_is_compared_with_no_one_of_several_acts(tmp_path: Path) -> None:
    """Of a newer version that does not state the parameter in which they differ."""
    head: dict[str, Any] = {"parameters": {"mode": "sleep"}}
    run = recording(tmp_path, Plan(_values(1, 20), "run", begin_ns=0, head=head | OLDER))
    baselines = [
        recording(
            tmp_path,
            Plan(_values(1, 20), f"base-{size}", begin_ns=0, head={"parameters": {"mode": "sleep", "size": size}}),
        )
        for size in (1, 2)
    ]
    assert [bool(nearest) for _, nearest in beside([run], baselines[:1])] == [True]
    assert [bool(nearest) for _, nearest in beside([run], baselines)] == [False]


def test_lost_and_renamed_latencies_are_departures(tmp_path: Path) -> None:
    """All values of a latency were lost; or of two latencies only one is measured, by another name."""
    gate = GateStore(tmp_path, 20, 60, two=True)
    lost = gate.checked(gate.night(1, 0, 0))
    assert lost.verdict is Verdict.FAIL and len(lost.departures) == 2
    renamed = recording(tmp_path, gate.plan(2, "renamed", 0, 20, name="third"))
    assert len(departures([renamed], [gate.baseline], AllowedDepartures())) == 1


WITHOUT_VALUES: dict[str, tuple[dict[str, Any], SinceChange | None]] = {
    "failed": ({"outcome": "failed", "reasons": ("killed",)}, None),
    "failed, by all nights": ({"outcome": "failed"}, SinceChange()),
    "cut off": ({"outcome": None}, None),
    "missed periods": ({"missed": 5}, None),
}


@pytest.mark.check
@pytest.mark.parametrize(("fields", "since"), WITHOUT_VALUES.values(), ids=WITHOUT_VALUES)
def test_a_load_that_was_never_compared_forbids_a_pass(
    fields: dict[str, Any], since: SinceChange | None, tmp_path: Path
) -> None:
    """The run of load cpu, or that of its baseline, has no values; load none keeps the limit."""

    def run(run_id: str, load: str, *levels_us: float, **more: Any) -> Recording:
        values = _values(1 if run_id.startswith("base") else 2, *levels_us)
        plan = Plan(values, run_id=run_id, load=load, interval_ns=500_000_000, **more)
        return recording(tmp_path, plan)

    store, limits = Store(tmp_path / "store"), Limits((LIMIT,))
    base, night = run("base-1", "none", 20), run("run-5", "none", 20)
    silent = run("base-2", "cpu", 0, **fields)
    checked = check([night, run("run-6", "cpu", 200)], [base, silent], limits, store, since=since)
    quiet, result = sorted(checked.limits, key=lambda result: result.run_ids)
    assert quiet.verdict is (Verdict.PASS if since is None else Verdict.INCONCLUSIVE)
    assert checked.verdict is result.verdict is Verdict.BROKEN and silent.run_id in result.reason
    lost = check([night, run("run-7", "cpu", 0, **fields)], [base, run("base-3", "cpu", 20)], limits, store)
    assert lost.verdict is Verdict.FAIL and len(lost.departures) == 1
    assert bool(lost.gaps) == (fields.get("outcome", "completed") != "completed")


def test_one_latency_without_values_in_the_baseline_forbids_a_pass(tmp_path: Path) -> None:
    gate = GateStore(tmp_path, 0, 60, two=True)
    checked = gate.checked(gate.night(1, 200, 60))
    assert checked.verdict is Verdict.INCONCLUSIVE
    assert [result.verdict for result in checked.limits] == [Verdict.PASS, Verdict.INCONCLUSIVE]


def test_a_run_of_latencies_declared_as_something_else_is_broken(tmp_path: Path) -> None:
    quiet = recording(tmp_path, Plan(_values(1, 20), run_id="quiet"))
    hidden = recording(tmp_path, Plan(_values(2, 20), run_id="hidden", load="cpu", series={"role": "diagnostic"}))
    limits = Limits((replace(LIMIT, criterion=Requirement(10**9)),))
    base, store = recording(tmp_path, Plan(_values(3, 20), run_id="base")), Store(tmp_path / "store")
    assert check([quiet], [base], limits, store).verdict is Verdict.PASS
    assert check([quiet, hidden], [base], limits, store).verdict is Verdict.BROKEN
