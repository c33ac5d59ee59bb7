# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures against NumPy on the raw values; merging; comparing; sizes."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fastenough.analysis import MixedRuns, compare, grouped, highest_frequency_hz, judge, measure, merge_samples
from fastenough.analysis.merged import Merged
from fastenough.model import BadInput
from fastenough.recording import Histogram, Recording
from fastenough.recording.building import series_line
from fastenough.recording.histogram import bucket_lowest
from fastenough.report.context import make_context
from fastenough.report.document import ReportTable
from fastenough.report.sections.percentiles import percentiles
from tests.support.presence import present
from tests.support.recordings import PROFILE, Plan, RunFields, latencies, recording


def _merged(histogram: Histogram, name: str = "wakeup", period_ns: int | None = 1_000_000) -> Merged:
    return Merged(name, (0,), 1.0, period_ns, False, "jitter" in name, histogram, 0, 0, 10**9, ("r",), "a", "b")


def _all(one: Recording, name: str = "wakeup") -> Merged:
    return merge_samples([(one, series) for series in one.named(name)])


def test_measures_agree_with_the_raw_values(tmp_path: Path) -> None:
    values = latencies(1)
    measures = measure(_all(recording(tmp_path, Plan(values))))
    raw = np.concatenate([interval for cpu in values for interval in cpu])
    assert measures.n == raw.size
    assert (measures.minimum_ns, measures.maximum_ns) == (raw.min(), raw.max())
    assert measures.mean_ns == pytest.approx(raw.mean())
    assert measures.standard_deviation_ns == pytest.approx(raw.std(ddof=1))
    assert measures.duration_ns == 60 * 10**9
    for quantile in measures.quantiles[:5]:
        truth = np.quantile(raw, quantile.quantile, method="inverted_cdf")
        assert quantile.value_ns is not None and truth <= quantile.value_ns <= truth * 1.001 + 1
        enough = quantile.quantile < 0.9999
        assert (quantile.lower_ns is not None) == enough and (not enough or float(quantile.lower_ns or 0) <= truth)


def test_a_quantile_that_n_does_not_reach_is_none_with_its_reason() -> None:
    measures = measure(_merged(Histogram.from_values(np.arange(5000), 10)))
    assert measures.quantile(0.9999).value_ns is None
    assert "n = 5,000 is too small: 10,000" in str(measures.quantile(0.9999).reason)
    assert measures.quantile(0.999).value_ns is not None
    assert measures.quantile(0.99).lower_ns is None and "needs 30 intervals" in str(measures.quantile(0.99).reason)


@pytest.mark.check
def test_an_interval_needs_blocks_of_time_and_disturbances_and_is_wider_for_bursts(tmp_path: Path) -> None:
    random = np.random.default_rng(8)
    spread = [random.integers(1000, 2000, 1000) for _ in range(60)]
    bursts = [np.sort(row) if number % 6 == 0 else np.minimum(row, 1900) for number, row in enumerate(spread)]
    for row in bursts[::6]:
        row[-600:] += 900
    found = [
        measure(_all(recording(tmp_path, Plan([rows], run_id=name))))
        for name, rows in (("spread", spread), ("bursts", bursts), ("short", spread[:20]))
    ]
    even, uneven, short = (measures.quantile(0.95) for measures in found)
    assert even.lower_ns is not None and even.upper_ns is not None and even.reason is None
    assert even.lower_ns < 1950 < even.upper_ns and even.upper_ns - even.lower_ns < 12
    assert uneven.lower_ns is None or present(uneven.upper_ns, "upper end") - uneven.lower_ns > 300
    assert short.lower_ns is None and found[0].quantile(0.99999).lower_ns is None


@pytest.mark.check
@pytest.mark.parametrize("number", [1, 5])
def test_intervals_of_any_number_of_runs_are_labelled(tmp_path: Path, number: int) -> None:
    runs = [recording(tmp_path, Plan(latencies(3, cpus=1), run_id=f"run-{place}")) for place in range(number)]
    made = percentiles(make_context(runs, judge(runs)))
    assert made is not None
    tables = [part for part in made.leaves() if isinstance(part, ReportTable)]
    assert tables and all("within these runs" in table.caption for table in tables)
    assert {kind.measures.scope for group in make_context(runs, judge(runs)).groups for kind in group.kinds} == {
        "within these runs"
    }


def test_nothing_and_one_sample() -> None:
    nothing = measure(_merged(Histogram(10)))
    assert nothing.n == 0 and nothing.maximum_ns is None and nothing.bound.text.startswith("no bound")
    assert all(quantile.value_ns is None for quantile in nothing.quantiles)
    one = measure(_merged(Histogram.from_values([5000], 10)))
    assert (one.minimum_ns, one.mean_ns, one.maximum_ns) == (5000, 5000, 5000)
    assert one.standard_deviation_ns is None


def test_the_bound_is_printed_as_one_in_every() -> None:
    bound = measure(_merged(Histogram.from_values(np.full(1_000_000, 5), 10))).bound
    assert bound.every_ns == pytest.approx(1e6 / 2.9957e-6, rel=1e-3)
    assert bound.text == "at most 1 disturbance per 333,808 activations (5.56 min)"


def test_jitter_counts_in_both_directions() -> None:
    values = np.concatenate([np.zeros(9000), np.full(500, -3000), np.full(490, 2000), np.full(10, -9000)])
    jitter = _merged(Histogram.from_values(values.astype(np.int64), 10), "jitter")
    measures = measure(jitter)
    assert measures.maximum_ns == 9000 and measures.minimum_ns == -9000
    assert measures.quantile(0.5).value_ns == 0
    assert measures.quantile(0.95).value_ns == pytest.approx(3000, rel=0.001)
    assert jitter.exceeded(2500) == (510, 510)
    latency = _merged(jitter.histogram)
    assert latency.exceeded(2500) == (0, 0), "an early wake-up is not a late one"


def test_a_limit_within_a_bucket_is_counted_both_ways() -> None:
    low = int(bucket_lowest([7 * 1024], 10)[0])
    values = _merged(Histogram.from_values([low, low + 1, low + 5, low + 500_000], 10))
    assert values.exceeded(low + 3) == (1, 4)


def test_instrument_ticks_are_turned_into_time(tmp_path: Path) -> None:
    ticks = [[np.array([16, 32, 160])]]
    one = recording(tmp_path, Plan(ticks, series={"unit": "ticks", "tick_ps": 62_500}))
    assert measure(_all(one)).maximum_ns == 10_000
    assert _all(one).exceeded(2000) == (1, 1)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"load": "cpu"}, "different load: 'none' against 'cpu'"),
        ({"marks": ("virtual-machine",)}, "different marks"),
        ({"period_ns": 500_000}, "different act: interval_ns: 1000000 against 500000"),
        ({"series": {"clock": "CLOCK_REALTIME"}}, "different clock"),
        ({"series": {"unit": "ticks", "tick_ps": 1000}}, "different unit"),
        ({"head": {"board": "other"}}, "different board: 'testboard' against 'other'"),
        ({"head": {"probe": "response"}}, "different probe"),
        ({"head": {"implementation": "linux-kernel"}}, "different implementation"),
        ({"head": {"configuration": "rt"}}, "different configuration"),
        ({"head": {"profile": PROFILE | {"kernel": {"release": "6.12"}}}}, "different kernel: preemption"),
        ({"settings": ({"name": "priority", "requested": 50, "in_effect": 50},)}, "different settings"),
    ],
)
def test_what_differs_may_not_be_added_and_is_named(tmp_path: Path, change: RunFields, word: str) -> None:
    values = latencies(2, cpus=1, intervals=2)
    one = recording(tmp_path, Plan(values))
    other = recording(tmp_path, Plan(values, run_id="run-2", **change))
    with pytest.raises(MixedRuns, match="run-1 and run-2 cannot be merged") as refusal:
        merge_samples([(one, one.named("wakeup")[0]), (other, other.named("wakeup")[0])])
    assert word in str(refusal.value)
    assert len(grouped([one, other])) == 2


def test_a_load_that_ran_other_commands_is_another_load(tmp_path: Path) -> None:
    def load(run: str, workers: str, folder: str, seconds: str) -> Recording:
        command = ["stress-ng", "--cpu", workers, "--temp-path", f"/var/tmp/fastenough-{folder}", "--timeout", seconds]
        return recording(
            tmp_path,
            Plan(latencies(2, cpus=1, intervals=1), run_id=run, head={"load": {"name": "cpu", "commands": [command]}}),
        )

    same = [load("a", "2", "0a1b", "10s"), load("b", "2", "9f", "60s")]
    assert len(grouped(same)) == 1
    assert len(grouped([*same, load("c", "4", "0a1b", "10s")])) == 2


def test_a_different_resolution_may_not_be_added(tmp_path: Path) -> None:
    one = recording(tmp_path, Plan(latencies(2, cpus=1, intervals=1)))
    empty = recording(
        tmp_path, Plan([], run_id="run-2", head={"series": [series_line(replace(one.series[0], k=8))]}, outcome=None)
    )
    with pytest.raises(MixedRuns, match="different resolution k: 10 against 8"):
        merge_samples([(one, one.series[0]), (empty, empty.series[0])])


def test_equal_runs_of_other_length_add_up(tmp_path: Path) -> None:
    one = recording(tmp_path, Plan(latencies(3, intervals=3)))
    other = recording(tmp_path, Plan(latencies(4, intervals=5), run_id="run-2"))
    both = merge_samples([(r, series) for r in (one, other) for series in r.named("wakeup")])
    assert both.n == _all(one).n + _all(other).n
    assert both.duration_ns == one.duration_ns + other.duration_ns
    assert both.cpus == (0, 1) and both.run_ids == ("run-1", "run-2")


def test_frequency_view() -> None:
    assert highest_frequency_hz(307_000) == pytest.approx(1628.7, abs=0.1)
    assert highest_frequency_hz(0) is None and highest_frequency_hz(None) is None


@pytest.mark.check
def test_comparison_finds_a_shift_and_says_what_differs(tmp_path: Path) -> None:
    one = recording(tmp_path, Plan(latencies(5)))
    other = recording(tmp_path, Plan([[i + 3000 for i in cpu] for cpu in latencies(6)], run_id="run-2", load="cpu"))
    comparison = compare(one, other, limits_ns=(8000.0,))[0]
    median = comparison.quantiles[0]
    assert median.lower_ns is not None and median.upper_ns is not None
    assert median.lower_ns < 3000 < median.upper_ns and median.upper_ns - median.lower_ns < 300
    assert comparison.differences == ("different load: 'none' against 'cpu'",)
    assert comparison.rates[0].lower > 0
    assert compare(one, other)[0].quantiles == comparison.quantiles, "the same input gives the same output"


@pytest.mark.slow
def test_comparison_intervals_hold_their_confidence(tmp_path: Path) -> None:
    random = np.random.default_rng(23)
    held, trials = 0, 120
    for trial in range(trials):
        runs = [
            recording(
                tmp_path,
                Plan([[random.integers(0, 1900, 50) for _ in range(40)]], run_id=f"run-{trial}-{i}", views=("wakeup",)),
            )
            for i in (0, 1)
        ]
        tail = compare(*runs)[0].quantiles[1]
        assert tail.lower_ns is not None and tail.upper_ns is not None
        held += tail.lower_ns <= 0 <= tail.upper_ns
    assert held >= 0.88 * trials


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"head": {"probe": "spin"}}, "different probe"),
        ({"period_ns": 200_000}, "different act"),
        ({"marks": ("emulated",)}, "different emulation"),
        ({"head": {"profile": PROFILE | {"emulator": {"version": "7.2"}}}}, "different emulator"),
        ({"head": {"profile": PROFILE | {"emulator": "written by hand"}}}, "different emulator"),
        ({"series": {"two_sided": True}}, "different two-sided"),
    ],
)
def test_what_may_not_be_compared_is_refused(tmp_path: Path, change: RunFields, word: str) -> None:
    values = latencies(2, cpus=1, intervals=2)
    one = recording(tmp_path, Plan(values))
    other = recording(tmp_path, Plan(values, run_id="run-2", **change))
    with pytest.raises(MixedRuns, match=f"cannot be compared.*{word}.*[(][a-z].*[)]"):
        compare(one, other)
    third = recording(tmp_path, Plan(values, run_id="run-3"))
    with pytest.raises(MixedRuns, match=r"runs run-1 and run-2 cannot be compared"):
        compare(one, third, other)


def test_every_key_that_forbids_is_named_with_its_reason(tmp_path: Path) -> None:
    values = latencies(2, cpus=1, intervals=2)
    one = recording(tmp_path, Plan(values))
    other = recording(tmp_path, Plan(values, run_id="run-2", period_ns=200_000, head={"probe": "spin"}))
    with pytest.raises(
        MixedRuns, match=r"different probe.*another probe measures another activation.*; different act.*interval"
    ):
        compare(one, other)


def test_what_shapes_a_latency_is_told_first(tmp_path: Path) -> None:
    values = latencies(2, cpus=1, intervals=2)
    profile = PROFILE | {
        "modules": ["loop", "nfs"],
        "cmdline": "root=/dev/sda1 quiet splash isolcpus=2 nohz=on",
        "kernel_config": {"sha256": "b2" * 32, "of_interest": {"CONFIG_HZ": "1000"}},
    }
    before = PROFILE | {"cmdline": "root=/dev/sda1 quiet splash isolcpus=1"}
    del profile["clocksource"]
    runs = [
        recording(tmp_path, Plan(values, run_id=name, head={"profile": of} | tool))
        for name, of, tool in (("run-1", before, {}), ("run-2", profile, {"tool": {"name": "test", "version": "1"}}))
    ]
    differences = compare(*runs)[0].differences
    assert [text.split(":")[0] for text in differences] == [
        "different kernel configuration",
        "different command line",
        "whether these agree is unknown for run run-2 (its profile does not have clocksource)",
        "different tool",
        "different modules",
    ]
    assert "CONFIG_HZ: nothing against '1000'" in differences[0]
    assert differences[1] == "different command line: 'isolcpus=1' against 'isolcpus=2 nohz=on'", "only what differs"


@pytest.mark.slow
def test_three_runs_beside_a_base_err_no_more_often_than_one(tmp_path: Path) -> None:
    """Without allowing for how many differences are judged, one of these would be called one in every third trial."""
    random = np.random.default_rng(29)
    wrong, unadjusted, trials = 0, 0, 24
    for trial in range(trials):
        runs = [
            recording(
                tmp_path,
                Plan([[random.integers(0, 1900, 50) for _ in range(40)]], run_id=f"r-{trial}-{i}", views=("wakeup",)),
            )
            for i in range(4)
        ]
        found = [each for comparison in compare(*runs) for each in comparison.quantiles if each.p_value is not None]
        wrong += any(each.significant for each in found)
        unadjusted += any(each.p_value < 0.05 for each in found if each.p_value is not None)
        assert all(
            each.ends is not None and (each.ends[0] <= 0 <= each.ends[1]) == (each.p_value > 0.05)
            for each in found
            if each.p_value is not None and abs(each.p_value - 0.05) > 0.005
        ), "both say the same"
    assert wrong <= 4 and wrong < unadjusted


@pytest.mark.check
def test_latencies_that_lie_within_one_bucket_of_intervals_are_no_surer(tmp_path: Path) -> None:
    """All within 5 %: draws of buckets that are 6 % wide cannot tell how much their quantiles vary."""
    random = np.random.default_rng(31)
    held, trials = 0, 30
    for trial in range(trials):
        runs = [
            recording(
                tmp_path,
                Plan([[random.integers(5130, 5370, 8) for _ in range(40)]], run_id=f"n-{trial}-{i}", views=("wakeup",)),
            )
            for i in range(2)
        ]
        median = compare(*runs)[0].quantiles[0]
        assert median.ends is not None and median.ends[0] < median.ends[1]
        held += median.ends[0] <= 0 <= median.ends[1]
    assert held >= 0.8 * trials


def test_an_interval_needs_values_beyond_the_quantile_not_beside_it(tmp_path: Path) -> None:
    """Of 2,000 values two lie above 99.9 %, whatever else is in the bucket that holds it."""
    random = np.random.default_rng(37)
    one = _all(recording(tmp_path, Plan([[random.integers(0, 1900, 50) for _ in range(40)]], views=("wakeup",))))
    assert measure(one).quantile(0.95).lower_ns is not None
    assert measure(one).quantile(0.999).lower_ns is None


def test_runs_without_samples_cannot_be_compared(tmp_path: Path) -> None:
    nothing = recording(tmp_path, Plan([[np.array([], dtype=np.int64)]]))
    with pytest.raises(BadInput, match="no measured series in common"):
        compare(nothing, nothing)


def test_twenty_thousand_million_samples_are_measured_at_once() -> None:
    random = np.random.default_rng(29)
    base = Histogram.from_values((random.lognormal(1.5, 0.6, 200_000) * 1000).astype(np.int64), 10)
    parts = [
        Histogram(10, base.index, base.count * 500, base.minimum, base.maximum, base.sum * 500, base.sum_sq * 500)
        for _ in range(200)
    ]
    begin = time.process_time()
    measures = measure(_merged(Histogram.merged(parts, 10)))
    assert measures.n == 20 * 10**9
    assert measures.bound.rate * measures.n == pytest.approx(2.9957, rel=1e-3)
    assert all(q.value_ns is not None for q in measures.quantiles)
    assert time.process_time() - begin < 20
