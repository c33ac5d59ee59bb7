# SPDX-License-Identifier: GPL-2.0-or-later
"""Disturbances out of recordings against a count, one value at a time, on values whose order is known."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fastenough.analysis import judge, merge_samples
from fastenough.analysis.disturbances import (
    GAP_PERIODS,
    Disturbances,
    OrderSource,
    RunLengths,
    disturbances,
    dominance,
    grouped_counts,
)
from fastenough.model import Requirement, Verdict
from fastenough.recording import Recording
from fastenough.recording.timeline import IntArray
from tests.support.late_values import remembered
from tests.support.recordings import Plan, recording

LIMIT = 50_000
VALUES = st.sampled_from([1_000, 30_000, 47_000, 49_999, 50_000, 50_001, 52_000, 58_000, 90_000, 500_000])
"""Far below the limit, in the coarse bucket around it on both sides, above, and far above."""
ROWS = st.lists(st.lists(VALUES, min_size=1, max_size=40), min_size=1, max_size=12)


def lengths(values: list[int]) -> list[int]:
    """Of runs of values above the limit."""
    return [len(list(run)) for late, run in itertools.groupby(values, lambda value: value > LIMIT) if late]


def gathered(values: list[int]) -> list[int]:
    """Exceedances of disturbances: runs less than the gap apart are one."""
    found: list[int] = []
    since = GAP_PERIODS
    for value in values:
        if value > LIMIT:
            found[-1:] = [found[-1] + 1] if found and since < GAP_PERIODS else [*found[-1:], 1]
            since = 0
        else:
            since += 1
    return found


def _recorded(folder: Path, rows: list[list[int]], **change: Any) -> Recording:
    values = [[np.array(row, dtype=np.int64) for row in rows]]
    return recording(folder, Plan(values, views=("wakeup_corrected",), limit_ns=LIMIT, **change))


def _seen(one: Recording, limit_ns: float = LIMIT) -> Disturbances:
    return disturbances(merge_samples([(one, one.series[0])]), limit_ns)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS)
@example(rows=[[52_000], [1000] * 9 + [50_001], [52_000]])
def test_the_number_and_length_of_disturbances_lie_within_the_bracket(tmp_path: Path, rows: list[list[int]]) -> None:
    """From each source; exactly at the limit where it was counted there."""
    flat = [value for row in rows for value in row]
    runs, merged = lengths(flat), gathered(flat)
    exact = _seen(_recorded(tmp_path, rows, rise_k=3))
    risen = _seen(_without_limit(_recorded(tmp_path, rows, rise_k=3)))
    plain = _seen(_recorded(tmp_path, rows))
    assert (exact.surely, exact.possibly, exact.most) == (sum(runs), sum(runs), len(runs))
    assert exact.source is OrderSource.LIMIT or not flat
    assert (risen.source, plain.source) == (OrderSource.RISES, OrderSource.INTERVALS)
    for seen in (exact, risen, plain):
        assert seen.surely <= sum(runs) <= seen.possibly
        assert seen.least <= len(merged) <= len(runs) <= max(seen.most, 0)
        assert max(merged, default=0) <= seen.longest or not seen.possibly
    if runs:
        assert exact.counts.tolist() == [sum(value > LIMIT for value in row) for row in rows]
        assert exact.size >= sum(length * length for length in runs) / sum(runs) - 1e-9
        assert exact.longest_run == max(runs)
        assert 1 <= risen.longest_run <= risen.possibly


def _without_limit(one: Recording) -> Recording:
    return replace(one, aggregate=replace(one.aggregate, limits={}))


def _summed(counts: IntArray, values: IntArray) -> list[int]:
    (sums,) = grouped_counts(counts, values, [counts])
    return [int(one) for one in sums]


def test_groups_are_parted_by_as_many_values_as_the_gap() -> None:
    counts = np.array([1, 0, 2, 0, 0, 3, 4])
    values = np.array([5, 9, 5, 5, 5, 5, 5])
    assert _summed(counts, values) == [3, 7]
    assert _summed(np.array([1, 0, 1]), np.array([5, 10, 5])) == [1, 1]
    assert _summed(np.zeros(3, dtype=np.int64), values[:3]) == []


def _alternating(stalls: int) -> list[list[int]]:
    """In each stall, every second value is late; a stall every third second."""
    calm = [1000] * 1000
    stall = [1000] * 400 + [90_000, 1000] * 100 + [1000] * 400
    return [stall if second % 3 == 0 else calm for second in range(3 * stalls)]


@pytest.mark.parametrize(("limit_ns", "apart"), [(49_151, 0), (50_000, 2)])
def test_exceedances_of_intervals_are_known_to_the_width_of_a_bucket(tmp_path: Path, limit_ns: int, apart: int) -> None:
    """Exactly where a bucket begins above the limit."""
    row = [1_000, 49_151, 49_152, 50_001, 52_000, 90_000]
    seen = _seen(_recorded(tmp_path, [row] * 3), limit_ns)
    assert seen.counts.tolist() == [4] * 3
    assert seen.sure.tolist() == [4 - apart] * 3


@pytest.mark.parametrize(
    ("lengths", "outweighs"), [([1] * 15, 0.0), ([20] * 12, 0.0), ([1] * 15 + [100], 10_000 / 10_015 - 1 / 16)]
)
def test_the_longest_run_of_equal_ones_outweighs_none(lengths: list[int], outweighs: float) -> None:
    runs = RunLengths(len(lengths), float(sum(length**2 for length in lengths)), float(max(lengths)))
    assert dominance(runs, np.array(lengths)) == pytest.approx(outweighs, abs=1e-12)
    by_intervals = runs._replace(squares=0.0)
    assert dominance(by_intervals, np.array(lengths)) == pytest.approx(outweighs, abs=1e-12)


@pytest.mark.check
def test_a_long_memory_is_found_by_a_lower_value(tmp_path: Path) -> None:
    """The same seconds in another order have none, nor do recordings in which nothing lower is exceeded more often."""
    random = np.random.default_rng(6)
    often = random.poisson(3.0 * remembered(random, 1, 300, hurst=0.9)[0])
    late = random.permutation(np.arange(300) < 20)

    def recorded(order: IntArray, lower: int) -> Recording:
        rows = [[90_000] * int(late[i]) + [lower] * int(often[second]) for i, second in enumerate(order)]
        return _recorded(tmp_path, [(row + [1_000] * 100)[:100] for row in rows], rise_k=3, period_ns=10_000_000)

    lasting, shuffled, rare = (
        recorded(order, lower)
        for order, lower in ((np.arange(300), 40_000), (random.permutation(300), 40_000), (np.arange(300), 1_000))
    )
    assert [_seen(one).long_memory for one in (lasting, shuffled, rare)] == [True, False, False]
    required = Requirement(LIMIT, 0.01)
    assert judge([shuffled], required).verdict is judge([rare], required).verdict is Verdict.PASS
    judged = judge([lasting], required)
    assert judged.verdict is Verdict.INCONCLUSIVE and "long memory" in judged.reasons[0]


def test_every_second_value_late_is_not_many_disturbances(tmp_path: Path) -> None:
    seen = _seen(_recorded(tmp_path, _alternating(12), rise_k=3))
    assert (seen.possibly, seen.most, seen.least) == (1200, 1200, 12)
    assert 10 <= seen.independent <= 20 and seen.longest == 100
    assert not _seen(_recorded(tmp_path, _alternating(5), rise_k=3)).enough


def test_one_stall_of_500_periods_is_one_disturbance(tmp_path: Path) -> None:
    rows = [[1000] * 1000 for _ in range(30)]
    rows[7][700:], rows[8][:200] = [90_000] * 300, [90_000] * 200
    for one in (_recorded(tmp_path, rows, rise_k=3), _without_limit(_recorded(tmp_path, rows, rise_k=3))):
        seen = _seen(one)
        assert (seen.least, seen.most, seen.longest, seen.possibly) == (1, 1, 500, 500)
        assert seen.independent == pytest.approx(1, rel=0.51) and not seen.enough and seen.longest_run == 500


def test_runs_of_several_recordings_add_up_and_cpus_do_not(tmp_path: Path) -> None:
    rows = [[1000, 90_000] + [1000] * 998 for _ in range(10)]
    first, second = (_recorded(tmp_path, rows, rise_k=3, run_id=name) for name in ("a", "b"))
    both = disturbances(merge_samples([(one, one.series[0]) for one in (first, second)]), LIMIT)
    assert (both.possibly, both.most, both.n) == (20, 20, 20_000)
    assert both.run_of.tolist() == [0] * 10 + [1] * 10


def test_the_worst_source_of_all_runs_counts(tmp_path: Path) -> None:
    rows = [[1000, 90_000] * 5 for _ in range(10)]
    known, risen, plain = (
        _recorded(tmp_path, rows, run_id=name, rise_k=k) for name, k in (("a", 3), ("b", 3), ("c", None))
    )
    risen = _without_limit(risen)
    sources = [disturbances(_joined(some), LIMIT).source for some in ([known], [known, risen])]
    assert sources == [OrderSource.LIMIT, OrderSource.RISES]
    assert _seen(plain).source is OrderSource.INTERVALS
    assert _seen(known, 49_000).source is OrderSource.RISES, "the limit counted is another one"


def _joined(some: list[Recording]) -> Any:
    return merge_samples([(one, one.series[0]) for one in some])


def test_gaps_in_the_order_make_it_unknown(tmp_path: Path) -> None:
    one = _recorded(tmp_path, [[1000, 90_000] * 5 for _ in range(10)], rise_k=3)
    torn = replace(one, aggregate=replace(one.aggregate, order_unknown={one.series[0].id: 1}))
    assert _seen(torn).source is OrderSource.INTERVALS


def test_missed_periods_that_no_value_stands_for_exceed(tmp_path: Path) -> None:
    one = recording(tmp_path, Plan([[np.full(100, 1000)] * 12], views=("wakeup",), missed=3, rise_k=3, limit_ns=LIMIT))
    seen = _seen(one)
    assert (seen.surely, seen.possibly, seen.most) == (3, 3, 3) and seen.n == 1203
