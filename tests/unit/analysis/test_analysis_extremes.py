# SPDX-License-Identifier: GPL-2.0-or-later
"""Estimates beyond the maximum: known tails are found, and what is no such tail is refused with its reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Unpack

import numpy as np
import pytest
from scipy import stats

from fastenough.analysis import judge
from fastenough.analysis.changes import LEVEL, change_points
from fastenough.analysis.estimates import Estimate, by_blocks, by_threshold, estimates
from fastenough.analysis.extreme_tests import GEV, GPD, Family, checked_model, periodicity
from fastenough.analysis.extremes import Likelihood, TailModel
from fastenough.analysis.longer_runs import LongerRun
from fastenough.analysis.maxima import Maxima, maxima_of
from fastenough.model import Series
from fastenough.recording import Recording
from fastenough.report.context import make_context
from fastenough.report.document import ReportTable, Text
from fastenough.report.sections import extremes as section
from tests.support.extreme_values import (
    HOUR_NS,
    LOCATION_NS,
    REFUSED,
    SCALE_NS,
    SHAPES,
    Values,
    autocorrelated,
    drifting,
    gev,
    maxima,
    true_level_ns,
    two_kinds,
    two_regimes,
)
from tests.support.recordings import COUNTERS, Plan, PlanFields, latencies, recording


def threshold_ns(values: Values, exceedances: int) -> float:
    return float(np.sort(values)[-exceedances - 1])


@pytest.mark.parametrize("shape", SHAPES)
def test_the_likelihood_finds_the_tail_that_scipy_drew(shape: float) -> None:
    values = maxima(gev(shape, 4000, 1))
    by_gev = Likelihood(values).fitted()
    assert by_gev.shape == pytest.approx(shape, abs=0.05)
    assert by_gev.location_ns == pytest.approx(LOCATION_NS, rel=0.02)
    assert by_gev.scale_ns == pytest.approx(SCALE_NS, rel=0.05)
    fitted = stats.genextreme.fit(values.values_ns, -shape, loc=LOCATION_NS, scale=SCALE_NS)
    assert by_gev.shape == pytest.approx(-fitted[0], abs=0.005)
    by_gpd = Likelihood(values, threshold_ns(values.values_ns, 800)).fitted()
    assert by_gpd.level_ns(HOUR_NS) == pytest.approx(true_level_ns(shape, HOUR_NS), rel=0.15)


@pytest.mark.parametrize("shape", SHAPES)
def test_levels_and_disturbances_per_hour_are_one_thing(shape: float) -> None:
    tail = TailModel(LOCATION_NS, SCALE_NS, shape, 1e9)
    assert tail.level_ns(HOUR_NS) == pytest.approx(true_level_ns(shape, HOUR_NS))
    assert tail.per_hour(tail.level_ns(HOUR_NS)) == pytest.approx(1.0)
    assert tail.per_hour(tail.level_ns(24 * HOUR_NS)) == pytest.approx(1 / 24)


def test_a_coarse_clock_moves_no_estimate() -> None:
    """Rounded to 4 us, half the scale: the likelihood of cells gives what exact values give, densities do not."""
    fine, coarse = (Likelihood(maxima(gev(0.0, 2000, 5), step_ns)).fitted() for step_ns in (1.0, 4000.0))
    assert coarse.scale_ns == pytest.approx(fine.scale_ns, rel=0.03)
    assert coarse.shape == pytest.approx(fine.shape, abs=0.03)
    as_if_exact = Likelihood(replace(maxima(gev(0.0, 2000, 5), 4000.0), step_ns=1.0)).fitted()
    assert abs(as_if_exact.shape - fine.shape) > abs(coarse.shape - fine.shape)


@pytest.mark.parametrize("seconds", [299, 300, 599, 650])
@pytest.mark.parametrize("last", [1, 40])
def test_the_newest_maximum_is_never_left_out(seconds: int, last: int) -> None:
    """Blocks of 2 to 6 s leave seconds over at the end, and there the greatest value lies."""
    values = gev(0.0, seconds, 9)
    values[-last] = 900_000.0
    whole = maxima(values)
    assert whole.blocks(100).values_ns.max() == 900_000.0
    for found in (by_blocks(whole), by_threshold(whole)):
        assert all(level.high_ns >= 900_000.0 for level in found.levels)


def test_a_short_last_interval_counts(tmp_path: Path) -> None:
    values = [[*latencies(3, cpus=1)[0][:29], np.array([5_000, 900_000])]]
    run = recording(tmp_path, Plan(values))
    found = maxima_of([(run, run.series[0])])
    assert (found.values_ns.size, found.values_ns.max()) == (29, 900_000.0)


@pytest.mark.check
@pytest.mark.parametrize(
    ("long_s", "stretch_s", "number"), [(10, 10, 30 + 60), (1.5, 3, 100 + 30), (1.4, 2.8, 100 + 30)]
)
def test_runs_of_other_intervals_are_gathered_to_equal_stretches(
    tmp_path: Path, long_s: float, stretch_s: float, number: int
) -> None:
    """Maxima of 1 s beside those of 10 s would show a change of the tail where there is none."""
    runs = []
    for place, (interval_s, intervals) in enumerate(((1.0, 300), (long_s, 60))):
        random = np.random.default_rng(place)
        values = [
            [np.floor(random.gumbel(20_000, 2_000, round(20 * interval_s))).astype(np.int64) for _ in range(intervals)]
        ]
        runs.append(
            recording(
                tmp_path,
                Plan(
                    values,
                    run_id=f"run-{place}",
                    interval_ns=round(interval_s * 1e9),
                    period_ns=50_000_000,
                    begin_ns=place * 10**12,
                ),
            )
        )
    found = maxima_of([(run, run.named("wakeup_corrected")[0]) for run in runs])
    assert found.values_ns.size == number and found.stretch_ns == pytest.approx(stretch_s * 1e9)
    assert found.values_ns.max() == max(
        int(run.totals[series.id].maximum or 0) for run in runs for series in run.named("wakeup_corrected")
    )
    assert not change_points(found)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("exceedances", [None, 80])
def test_intervals_of_return_levels_cover_the_truth(shape: float, exceedances: int | None) -> None:
    """Of profile intervals stated at 95 %: no fewer than the 0.1 % quantile of as many as there would be at 92 %, which
    so few maxima reach."""
    trials = 100
    truth = true_level_ns(shape, HOUR_NS)
    covered = 0
    for seed in range(trials):
        values = maxima(gev(shape, 100 if exceedances is None else 800, seed))
        above = None if exceedances is None else threshold_ns(values.values_ns, exceedances)
        level = Likelihood(values, above).return_level(HOUR_NS)
        assert level.low_ns < level.level_ns < level.high_ns
        covered += level.low_ns <= truth <= level.high_ns
    assert stats.binom.ppf(0.001, trials, 0.92) <= covered


@pytest.mark.slow
def test_sound_data_are_seldom_refused_and_what_is_given_covers_the_truth() -> None:
    trials, given, covered = 60, {"GEV": 0, "GPD": 0}, 0
    for seed in range(trials):
        values = maxima(gev(0.0, 600, 1000 + seed))
        for found in (by_blocks(values), by_threshold(values)):
            given[found.method[:3]] += bool(found.levels)
            covered += any(
                level.low_ns <= true_level_ns(0.0, HOUR_NS) <= level.high_ns
                for level in found.levels
                if level.mission_ns == HOUR_NS
            )
    least = stats.binom.ppf(0.001, trials, 1 - (4 * 0.05 + 3 * 0.01))
    assert min(given.values()) >= least
    assert covered >= stats.binom.ppf(0.001, sum(given.values()), 0.92)


SINGLE: dict[str, tuple[Values, str]] = {
    "rising": (drifting(600, 3), "rise over time"),
    "another regime": (two_regimes(600, 3), "maxima changed"),
    "too few": (gev(0.0, 49, 3), "fewer than 50 maxima, from 49 intervals"),
    "heavy": (gev(0.9, 600, 3), "too heavy"),
    "coarse": (np.round(gev(0.0, 600, 3) / 20_000) * 20_000, "too coarse"),
    "constant": (np.full(600, 5_000.0), "too coarse"),
    "two kinds": (two_kinds(199, 3), "the distribution does not fit"),
}


@pytest.mark.parametrize("name", SINGLE)
def test_what_is_no_such_tail_is_refused_with_its_reason(name: str) -> None:
    values, reason = SINGLE[name]
    found = by_blocks(maxima(values))
    assert found.levels == ()
    assert found.refused is not None and reason in found.refused


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_what_must_be_refused_is_refused_again_and_again(name: str) -> None:
    given = [by_blocks(maxima(REFUSED[name](150, seed))) for seed in range(20)]
    assert sum(bool(one.levels) for one in given) <= 2


def test_every_second_exceedance_is_refused_by_the_threshold_too() -> None:
    values = gev(0.0, 600, 3) + np.tile([0.0, 20_000.0], 300)
    assert "not independent" in str(by_threshold(maxima(values)).refused)


def test_autocorrelated_maxima_are_refused_as_dependent() -> None:
    refused = [by_blocks(maxima(autocorrelated(150, seed, 0.8))).refused for seed in range(20)]
    assert sum("independent" in str(one) for one in refused) >= 10


def test_a_back_test_that_fails_refuses() -> None:
    """The second half holds one value that the first one rules out; the fit of all of them is not bad."""
    values = np.round(gev(-0.3, 100, 2))
    assert checked_model(values, 1.0, GEV).reason is None
    values[80] = 95_000.0
    found = checked_model(values, 1.0, GEV)
    assert found.forward.chance < 0.025
    assert (found.forward.greatest_ns, found.backward.greatest_ns) == (95_000.0, values[:50].max())
    assert found.reason is not None
    reverse = checked_model(values[::-1], 1.0, GEV)
    assert reverse.backward.chance < 0.05
    assert [test.expected_ns for test in (reverse.backward, reverse.forward)] == [
        test.expected_ns for test in (found.forward, found.backward)
    ]


@pytest.mark.check
@pytest.mark.parametrize("family", [GEV, GPD])
def test_a_back_test_expects_the_level_that_one_maximum_exceeds(family: Family) -> None:
    """Of a half of 2,000 maxima one exceeds the level whose chance is 1 in 2,000."""
    random = np.random.default_rng(3)
    tail = stats.genextreme(0.0, 0.0, SCALE_NS) if family is GEV else stats.genpareto(0.0, 0.0, SCALE_NS)
    found = checked_model(np.round(tail.rvs(4000, random_state=random)), 1.0, family, LOCATION_NS)
    for half in (found.forward, found.backward):
        assert half.expected_ns == pytest.approx(LOCATION_NS + tail.isf(1 / 2000), rel=0.1)


@pytest.mark.parametrize("place", [3, 150])
@pytest.mark.parametrize("by", [by_blocks, by_threshold])
def test_one_stall_of_a_rare_kind_refuses(place: int, by: Callable[[Maxima], Estimate]) -> None:
    """Four times the greatest of all others, in the first half or in the second."""
    for seed in range(5):
        values = gev(0.0, 600, seed)
        values[place] = 4 * values.max()
        found = by(maxima(values))
        assert found.levels == () and found.model is not None and found.model.isolated < 0.05


@pytest.mark.check
def test_the_maximum_of_a_longer_run_refuses_an_estimate_that_does_not_reach_it() -> None:
    values = maxima(gev(0.0, 600, 1))
    alone = by_blocks(values)
    assert alone.levels
    within, above = (
        by_blocks(values, LongerRun("long", HOUR_NS, chance * true_level_ns(0.0, HOUR_NS))) for chance in (1.0, 4.0)
    )
    assert within == alone
    assert above.levels == () and "run long" in str(above.refused)
    year_ns = 365 * 24 * HOUR_NS
    assert by_blocks(values, LongerRun("long", year_ns, true_level_ns(0.0, year_ns))).levels


def test_a_tail_that_begins_elsewhere_refuses() -> None:
    """Heavy up to its median, and with an upper end near by from there on: their fit alone is not bad."""
    said = []
    for seed in range(20):
        share = 1 - np.random.default_rng(seed).random(200)
        above = 2**0.3 * (1 - (2 * share) ** 1.2) / 1.2
        values = np.where(share > 0.5, (share**-0.3 - 1) / 0.3, (2**0.3 - 1) / 0.3 + above)
        said.append(str(checked_model(np.round(SCALE_NS * values) + 1, 1.0, GPD).reason))
    assert sum("depends on the threshold" in reason for reason in said) >= 8


@pytest.mark.slow
@pytest.mark.parametrize("family", [GEV, GPD])
def test_tests_of_the_model_refuse_sound_data_as_often_as_stated(family: object) -> None:
    trials = 150
    found = []
    for seed in range(trials):
        values = (
            gev(0.1, 100, seed)
            if family is GEV
            else np.asarray(stats.genpareto.rvs(0.1, 0, SCALE_NS, 100, random_state=np.random.default_rng(seed)))
        )
        found.append(checked_model(np.round(values), 1.0, GEV if family is GEV else GPD))
    most = stats.binom.ppf(0.999, trials, 0.05)
    for name in ("fit", "stability", "isolated"):
        assert sum(getattr(one, name) < 0.05 for one in found) <= most, name
    for name in ("forward", "backward"):
        assert sum(getattr(one, name).chance < 0.05 for one in found) <= most, name


@pytest.mark.check
def test_a_change_is_found_where_it_is_and_none_where_there_is_none() -> None:
    shifted = np.concatenate([gev(0.0, 700, 1), gev(0.0, 300, 2) + 15_000])
    changes = change_points(maxima(shifted))
    assert len(changes) == 1
    assert changes[0].after_ns == pytest.approx(700e9, abs=2 * changes[0].within_ns)
    assert changes[0].wall_ns == changes[0].after_ns
    assert changes[0].later_ns - changes[0].before_ns == pytest.approx(15_000, rel=0.2)
    trials = 300
    false = sum(bool(change_points(maxima(gev(0.2, 100, seed)))) for seed in range(trials))
    assert false <= stats.binom.ppf(0.999, trials, LEVEL)


@pytest.mark.check
def test_what_lasts_for_a_moment_is_no_change() -> None:
    """Bursts of a few maxima: shuffled one by one, two thirds of these would be taken for changes."""
    trials = 100
    false = sum(bool(change_points(maxima(autocorrelated(150, seed, 0.5)))) for seed in range(trials))
    assert false <= stats.binom.ppf(0.999, trials, 0.05)


def test_two_changes_are_two() -> None:
    values = np.concatenate([gev(0.0, 60, 1), gev(0.0, 60, 2) + 30_000, gev(0.0, 60, 3)])
    assert [round(one.after_ns / 1e9) for one in change_points(maxima(values))] == [
        pytest.approx(60, abs=3),
        pytest.approx(120, abs=3),
    ]


def _long_run(folder: Path, **changed: Unpack[PlanFields]) -> Recording:
    """Two CPUs, 120 intervals of 20 values, the greatest of each of which is drawn from a GEV."""
    drawn = [gev(0.0, 120, cpu) for cpu in range(2)]
    values = [
        [np.append(np.full(19, 20_000 + place % 7), int(one)).astype(np.int64) for place, one in enumerate(cpu)]
        for cpu in drawn
    ]
    plan = Plan(values, interval_ns=10**9, period_ns=50_000_000)
    return recording(folder, replace(plan, **changed))


def _parts(run: Recording) -> list[tuple[Recording, Series]]:
    return [(run, run.named("wakeup_corrected")[0])]


def test_maxima_come_out_of_a_recording(tmp_path: Path) -> None:
    found = maxima_of(_parts(_long_run(tmp_path)))
    assert found.values_ns.tolist() == np.floor(gev(0.0, 120, 0)).tolist()
    assert (found.stretch_ns, found.step_ns) == (1e9, 1.0)


@pytest.mark.check
@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"counters": COUNTERS | {"steal_ns": 5_000_000}}, "its hypervisor took 5 ms"),
        ({"marks": ("virtual-machine",)}, "virtual machine"),
        ({"marks": ("emulated",)}, "emulated"),
        ({"lost": 3}, "samples were lost"),
        ({"missed": 3, "views": ("wakeup",)}, "missed periods"),
    ],
)
def test_a_machine_of_which_nothing_can_be_learned_is_refused(tmp_path: Path, changed: PlanFields, reason: str) -> None:
    assert all(one.levels for one in estimates(_parts(_long_run(tmp_path)))[:1])
    run = _long_run(tmp_path, **changed)
    found = estimates([(run, run.named(run.series[-1].name)[0])])
    assert [one.levels for one in found] == [()]
    assert reason in str(found[0].refused)


def test_the_report_tells_estimates_and_that_they_are_no_part_of_the_verdict(tmp_path: Path) -> None:
    run = _long_run(tmp_path)
    made = section.section(make_context([run], judge([run])))
    assert made is not None and "the verdict does not use them" in made.lead
    table = made.leaves()[0]
    assert isinstance(table, ReportTable) and table.name == "extremes"
    assert "exceeded once an hour [µs]" in [column.title for column in table.columns]
    lines = [line for part in made.leaves() if isinstance(part, Text) for line in part.lines]
    assert [
        "fewer than 50 maxima, from 120 intervals: it takes 250 intervals, which are 4.17 min" in line for line in lines
    ] == [True]


def test_a_short_run_is_told_why_there_is_no_estimate(tmp_path: Path) -> None:
    run = recording(tmp_path, Plan(latencies(1, intervals=6, per_interval=500)))
    made = section.section(make_context([run], judge([run])))
    assert made is not None
    assert [part.kind for part in made.leaves()] == ["text"]


@pytest.mark.parametrize("by", [by_blocks, by_threshold])
@pytest.mark.parametrize(("period", "scales"), [(10, 3.0), (2, 1.5), (37, 4.0)])
def test_periodic_maxima_are_refused(by: Callable[[Maxima], Estimate], period: int, scales: float) -> None:
    """Without this test two thirds of those with a period of ten get an estimate, which often does not cover."""
    for seed in range(5):
        job = np.where(np.arange(600) % period == 3 % period, scales * SCALE_NS, 0.0)
        periodic = maxima(gev(0.0, 600, seed) + job)
        assert by(periodic).refused and f" every {period} s " in str(periodicity(periodic))


@pytest.mark.slow
def test_maxima_without_a_period_are_not_taken_for_periodic() -> None:
    drawn = [gev(shape, n, seed) for shape in (-0.3, 0.0, 0.2) for n in (60, 600) for seed in range(100)]
    assert sum(periodicity(maxima(values)) is not None for values in drawn) <= 15, "at 1 %, 6 of 600"
