# SPDX-License-Identifier: GPL-2.0-or-later
"""Stated confidences hold on made-up machines of which the truth is known; ``make bench`` does it at length."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest
from scipy import stats

from fastenough.analysis import bounds, clusters
from fastenough.analysis.compare import independent_rates
from fastenough.analysis.disturbances import OrderSource
from fastenough.model import Requirement
from tests.bench import advice
from tests.bench import confidence as bench
from tests.support.confidence import (
    STATED,
    Again,
    by_advice,
    by_chosen_limit,
    by_looks,
    by_looks_of_rates,
    by_night,
    counted,
    coverage,
    errors,
    errors_of_cpus,
    errors_of_declared,
    errors_of_runs,
    made,
)
from tests.support.late_values import CHANGING, COVERED, DEPENDENT, STEADY, bursts, pareto, remembered
from tests.support.simulated import SEED, block_of, with_block

pytestmark = pytest.mark.slow

REPETITIONS = 200
MOST = float(stats.binom.ppf(0.9999, REPETITIONS, STATED)) / REPETITIONS
"""Errors that 200 measurements show but once in 10,000 where their rate is the one stated."""
FEW = ("independent", "bursts of 20", "bursts of 500", "every second value late, 100 at a time")


@pytest.mark.parametrize("name", FEW)
def test_verdicts_err_no_more_often_than_stated(name: str) -> None:
    machine, size = STEADY[name]
    allowed = 40 * size / 200_000
    counts = made(machine, np.random.default_rng(1), REPETITIONS, 200, allowed)
    assert counts.exceeded.mean() == pytest.approx(allowed * counts.n, rel=0.1), "the machine is what it says"
    for source in (OrderSource.LIMIT, OrderSource.INTERVALS):
        found = errors(counts, allowed, source)
        assert max(found.passed, found.failed) <= MOST


def test_taking_activations_as_independent_would_be_found_out() -> None:
    """The same measurements, judged as before: the error is a multiple of what is stated."""
    machine, size = STEADY["bursts of 20"]
    allowed = 40 * size / 200_000
    counts = made(machine, np.random.default_rng(1), REPETITIONS, 200, allowed)
    naive = [clusters.rate_upper(counts.n, int(x), 1.0, 1.0, 1 - STATED) for x in counts.exceeded]
    assert np.mean(np.array(naive) <= allowed) > 3 * STATED


def test_a_machine_well_within_what_is_allowed_passes_and_one_far_beyond_fails() -> None:
    machine, size = STEADY["bursts of 20"]
    counts = made(machine, np.random.default_rng(2), 50, 200, 40 * size / 200_000)
    assert errors(counts, 90 * size / 200_000).passed > 0.8
    assert errors(counts, 15 * size / 200_000).failed > 0.8


@pytest.mark.parametrize("name", ["independent", "bursts of 20"])
def test_what_is_independent_passes_with_little_more_than_independent_events_need(name: str) -> None:
    """At half the allowed rate; with tests of dispersion at 10 % instead of 1 %, 77 % pass."""
    machine, size = STEADY[name]
    counts = made(machine, np.random.default_rng(20), REPETITIONS, 240, 30 * size / 240_000)
    assert errors(counts, 60 * size / 240_000).passed > 0.82


def test_looked_at_all_the_time_single_late_activations_pass_as_soon_as_bare_evidence() -> None:
    """At half the allowed rate, in 42 allowed disturbances; with room for a longer run among equal ones, 67 %."""
    passed, _, _ = by_looks_of_rates(np.ones((150, 280)), np.random.default_rng(26), 42, range(160, 281, 8), true=0.5)
    assert passed.any(axis=1).mean() > 0.72


def test_a_burst_unlike_the_others_is_no_longest_one() -> None:
    """Lengths with a tail so heavy that the next burst is several times as long; with the longest one alone, 10 %."""
    repetitions, allowed = 400, 60 * 4.5 / 120_000
    counts = made(pareto, np.random.default_rng(21), repetitions, 120, allowed)
    assert errors(counts, allowed).passed <= 0.02


@pytest.mark.parametrize("hurst", [0.8, 0.9])
def test_a_long_memory_is_refused_by_lower_values(hurst: float) -> None:
    """By the disturbances alone, 4 and 11 % pass."""
    random = np.random.default_rng(23)
    rates = remembered(random, REPETITIONS, 240, hurst=hurst)
    assert rates.mean() == pytest.approx(1, rel=0.15)
    passed, failed, refused = by_looks_of_rates(rates, random, 60, [240])
    assert max(passed.mean(), failed.mean()) <= 0.03 and refused.mean() > 0.92


def test_what_is_independent_is_not_refused_for_a_long_memory() -> None:
    random = np.random.default_rng(24)
    passed, _, refused = by_looks_of_rates(np.ones((REPETITIONS, 240)), random, 65, [240], true=0.5)
    assert passed.mean() > 0.7 and not refused.any()


def test_a_declared_longest_burst_holds_with_few_disturbances() -> None:
    machine, size = STEADY["bursts of 20"]
    allowed = 6.5 * size / 120_000
    found = errors(made(machine, np.random.default_rng(3), REPETITIONS, 120, allowed), allowed, longest=int(size))
    assert found.passed <= MOST


def test_a_declared_longest_burst_counts_stalls_in_that_were_not_seen() -> None:
    """Half of what is late is late in stalls, and most measurements see singles only."""
    _, counts, allowed = next(bench.mixtures(REPETITIONS, 12))
    assert errors(counts, allowed).passed > 0.3, "nothing shows what was not seen"
    assert errors(counts, allowed, longest=bench.STALL).passed <= MOST


@pytest.mark.parametrize(("name", "expected"), list(zip(DEPENDENT, (40, 15, 40), strict=True)))
def test_disturbances_that_depend_on_each_other_are_not_counted_as_independent(name: str, expected: int) -> None:
    """Late activations 3 s apart, a burst of 1 declared; taken as independent, 16 and 24 % of these are wrong."""
    machine, size = DEPENDENT[name]
    allowed = expected / 120_000
    counts = made(machine, np.random.default_rng(13), REPETITIONS, 120, allowed)
    found = errors_of_declared(counts, allowed, size)
    assert found.worst <= MOST
    assert found.passed_unseen == pytest.approx(np.mean(counts.exceeded == 0)), "the declaration alone says so"
    assert size > 1 or found.passed_at_half > 0.8, "what is independent keeps its power"


def test_eight_cpus_err_no_more_often_than_one() -> None:
    machine, size = STEADY["bursts of 5"]
    allowed = 40 * size / 120_000
    random = np.random.default_rng(4)
    each = [made(machine, random, 100, 120, allowed) for _ in range(8)]
    most = float(stats.binom.ppf(0.9999, 100, STATED)) / 100
    for cpus in (each, [each[0]] * 8):
        found = errors_of_cpus(cpus, allowed)
        assert max(found.passed, found.failed) <= most


def test_runs_of_one_rate_are_merged_and_err_no_more_often() -> None:
    machine, size = STEADY["bursts of 20"]
    allowed = 25 * size / 120_000
    found = errors_of_runs(machine, np.random.default_rng(10), np.full((100, 5), allowed), 120, allowed)
    assert max(found.passed, found.failed) <= float(stats.binom.ppf(0.9999, 100, STATED)) / 100
    assert found.changing <= float(stats.binom.ppf(0.9999, 100, 0.01)) / 100


def test_runs_of_rates_that_differ_are_not_merged() -> None:
    """Merged they would pass: in the mean they keep what is allowed."""
    machine, size = STEADY["bursts of 20"]
    rates = np.tile(np.array([1, 1, 1, 1, 4]) * 25 * size / 120_000, (20, 1))
    found = errors_of_runs(machine, np.random.default_rng(11), rates, 120, 50 * size / 120_000)
    assert found.changing > 0.9 and found.passed <= 0.1


def test_following_the_advice_errs_no_more_often() -> None:
    machine, size = STEADY["bursts of 20"]
    found = by_advice(machine, np.random.default_rng(5), 40, 120, 25 * size / 120_000)
    assert max(found.passed, found.failed) <= float(stats.binom.ppf(0.9999, 40, STATED)) / 40


def test_looking_until_it_passes_errs_no_more_often_than_stated() -> None:
    """Late activations 3 s apart, a burst of 1 declared.  Also where each look measures anew: a PASS needs the evidence
    of all that was measured."""
    machine, size = DEPENDENT["clusters of 3 late activations, 3 s apart"]
    allowed, looks, repetitions = 6.5 * size / 30_000, 12, 60
    counts = made(machine, np.random.default_rng(9), repetitions * looks, 30, allowed)
    required = Requirement(1, allowed, 1 - STATED, 1)
    wrong = {again: by_looks(counts, looks, required, again)[0].any(axis=1).mean() for again in Again}
    assert max(wrong[Again.NEW], wrong[Again.ALL]) <= float(stats.binom.ppf(0.999, repetitions, STATED)) / repetitions
    assert wrong[Again.ALONE] > wrong[Again.NEW]


def test_a_limit_chosen_after_looking_passes_no_more_often_than_stated() -> None:
    allowed = 15 / 120_000
    passed = by_chosen_limit(np.random.default_rng(22), 100, 120, allowed, np.geomspace(0.5, 2.0, 5))
    assert passed.mean() <= float(stats.binom.ppf(0.9999, 100, STATED)) / 100


def test_a_gate_of_nights_errs_each_night_no_more_often_than_stated() -> None:
    """And in a month of them no more often, where each night is asked for as much more."""
    machine, size = STEADY["bursts of 20"]
    allowed = 6.5 * size / 120_000
    counts = made(machine, np.random.default_rng(8), 20 * bench.NIGHTS, 120, allowed)
    nights, month = (
        by_night(counts, bench.NIGHTS, Requirement(1, allowed, sure, int(size))) for sure in (1 - STATED, bench.A_MONTH)
    )
    assert nights.passed <= float(stats.binom.ppf(0.9999, 20 * bench.NIGHTS, STATED)) / (20 * bench.NIGHTS)
    assert max(month.any_passed, month.any_failed) <= float(stats.binom.ppf(0.9999, 20, STATED)) / 20


def test_a_drift_is_refused() -> None:
    machine, size = CHANGING["drift from 0 to twice the rate"]
    allowed = 80 * size / 200_000
    assert errors(made(machine, np.random.default_rng(6), 50, 200, allowed), allowed).changing > 0.75


def test_intervals_of_quantiles_hold_the_truth_under_autocorrelation() -> None:
    values, _ = COVERED["autocorrelation over 1,000 values"]
    found = coverage(values, np.random.default_rng(7), 100, 120, 0.5)
    least = float(stats.binom.ppf(1e-4, 100, 1 - STATED)) / 100
    assert found.given > 0.9 and min(found.quantile, found.difference) >= least


@pytest.mark.parametrize(("length", "intervals"), [(1, 120), (500, 120), (2000, 300), (5000, 600), (None, 300)])
def test_rates_of_equal_machines_differ_no_more_often_than_stated(length: int | None, intervals: int) -> None:
    """Bursts of one length, or a busy regime of 10 s (None).

    With the size of clusters of one second alone, 15 to 50 % of the pairs differ that come in long bursts.
    """
    pairs, random = 100, np.random.default_rng(12)
    if length is None:
        rates = np.where(random.random((2 * pairs, intervals // 10)) < 0.3, 0.03, 0.001)
        counts = random.binomial(1000, np.repeat(rates, 10, axis=1))
    else:
        counts = made(partial(bursts, length=length), random, 2 * pairs, intervals, 0.02).counts
    differ = 0
    for first, second in zip(counts[:pairs], counts[pairs:], strict=True):
        n = intervals * 1000
        rates_of = independent_rates((int(first.sum()), n), (int(second.sum()), n), first, second)
        lower, upper = bounds.rate_difference(*rates_of, 1 - STATED)
        differ += lower > 0 or upper < 0
    assert differ <= stats.binom.ppf(0.9999, pairs, STATED)


def test_a_rate_ten_times_as_high_is_found() -> None:
    rates_of = [
        made(partial(bursts, length=500), np.random.default_rng(seed), 1, 900, rate).counts[0]
        for seed, rate in ((1, 0.01), (2, 0.1))
    ]
    n = 900_000
    one, two = independent_rates((int(rates_of[0].sum()), n), (int(rates_of[1].sum()), n), *rates_of)
    assert bounds.rate_difference(one, two, 1 - STATED)[0] > 0


def test_what_is_counted_is_counted_right() -> None:
    late = np.zeros((2, 3000), dtype=bool)
    late[0, [0, 1, 2, 999, 1000, 2999]] = True
    counts = counted(late)
    assert counts.counts.tolist() == [[4, 1, 1], [0, 0, 0]]
    assert (counts.runs.tolist(), counts.squares.tolist()) == ([3, 0], [9 + 4 + 1, 0])
    assert counts.longest.tolist() == [3, 0]


CELL = r"\d+(\.\d\d?)? %( \(± \d+\.\d\))?|–|never|\d+(\.\d)?"
"""A share with or without its standard error, a number, or why there is none."""


def test_the_tables_of_the_method_are_those_of_the_program() -> None:
    """Produced by it, never typed: every row it would print is there, in its form."""
    document = bench.METHOD.read_text()
    block = block_of(document)
    assert with_block(document, block) == document
    measurements = re.search(r", ([\d,]+) measurements each", block)
    assert f"seed {SEED}" in block and measurements and int(measurements[1].replace(",", "")) >= 300
    rows = rows_of(block, 10)
    named = {row[0].partition(";")[0] for row in rows}
    assert {*STEADY, *CHANGING, *COVERED, *DEPENDENT, *bench.GATED} <= named


def test_the_tables_of_advice_have_a_seed_of_their_own() -> None:
    document = advice.METHOD.read_text()
    block = block_of(document, advice.NAME)
    assert with_block(document, block, advice.NAME) == document
    assert f"seed {advice.SEED}" in block and advice.SEED != SEED
    named = [row[0] for row in rows_of(block, 2)]
    assert {*advice.ADVISED, *advice.PLANNED} <= {name.partition(";")[0] for name in named}
    for name in advice.ADVISED:
        assert f"{name}; all rates" in named


def rows_of(block: str, tables: int) -> list[list[str]]:
    """Cells of the rows of so many tables, in the form of the program."""
    rows = [line.strip("| ").split(" | ") for line in block.splitlines() if line.startswith("| ")]
    titles = [row for row in rows if row[0] in ("machine", "machine, and what is tried", "values")]
    assert len(titles) == tables
    rows = [row for row in rows if row not in titles]
    assert all(re.fullmatch(CELL, cell.strip()) for row in rows for cell in row[1:])
    return rows
