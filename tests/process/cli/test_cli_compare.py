# SPDX-License-Identifier: GPL-2.0-or-later
"""``compare`` says first what follows, and of each difference whether its interval excludes zero."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from fastenough.analysis import Comparison, compare
from fastenough.analysis.compare import (
    BY_ITSELF,
    GREATER,
    NONE,
    OPEN,
    SMALLER,
    QuantileDifference,
    RateDifference,
    cautions,
    conclusion,
    finding,
    judged_names,
)
from fastenough.analysis.resampling import NoInterval
from fastenough.cli.compare import _print_quantiles
from fastenough.recording import Recording, read_recording
from fastenough.report.gate_summary import _quantiles
from fastenough.store import Store
from tests.process.cli.test_cli_variants import keep
from tests.support.cli_calls import fastenough
from tests.support.recordings import Plan, latencies, recording, write
from tests.support.terminal import Terminal, screen

pytestmark = pytest.mark.untimed


def quantile(lower_ns: float | None, upper_ns: float | None, share: float = 0.99) -> QuantileDifference:
    middle = None if lower_ns is None or upper_ns is None else (lower_ns + upper_ns) / 2
    zero_is_out = lower_ns is not None and upper_ns is not None and not lower_ns <= 0 <= upper_ns
    return QuantileDifference(
        share,
        1000.0,
        2000.0,
        middle,
        lower_ns,
        upper_ns,
        None if middle is None else 0.001 if zero_is_out else 0.5,
        zero_is_out,
    )


def read(folder: Path, name: str, values: list[list[NDArray[np.int64]]]) -> Recording:
    return read_recording(write(folder / f"{name}.jsonl", Plan(values, run_id=name)))


def comparison(*quantiles: QuantileDifference, series: str = "wakeup_corrected") -> Comparison:
    return Comparison("a", "b", series, (1000, 1000), (), quantiles, (1.0, 2.0), (), 0.95)


@pytest.mark.parametrize(
    ("bounds", "said"), [((1, 2), GREATER), ((-2, -1), SMALLER), ((-1, 1), OPEN), ((0, 1), OPEN), ((None, None), NONE)]
)
def test_a_difference_is_one_where_its_interval_excludes_zero(
    bounds: tuple[float | None, float | None], said: str
) -> None:
    assert finding(quantile(*bounds)) == said
    if said in (GREATER, SMALLER):
        assert finding(replace(quantile(*bounds), significant=False)) == said + BY_ITSELF, "not among so many"


def test_the_conclusion_is_that_of_the_judged_series() -> None:
    plain, judged = comparison(quantile(-2, -1), series="wakeup"), comparison(quantile(1000, 3000))
    assert conclusion([plain, judged], {"wakeup_corrected"}) == (
        "wakeup_corrected: the second run is greater at 99 % (at 99 % by 2.00 µs, 95 % interval 1.00 to 3.00 µs)"
    )
    assert "no difference of the second run is shown" in conclusion(
        [replace(judged, quantiles=(quantile(-1, 1),))], {"wakeup_corrected"}
    )
    by_itself = replace(judged, quantiles=(replace(quantile(1, 2), significant=False),))
    assert "no difference of the second run is shown" in conclusion([by_itself], {"wakeup_corrected"})
    assert "too few samples" in conclusion([replace(judged, quantiles=(quantile(None, None),))], set())
    short = [replace(judged, second_id=run, quantiles=(quantile(None, None),)) for run in ("b", "c")]
    assert conclusion(short, set()) == ("too little data for any interval; measure at least 30 s per run")
    dependent = replace(judged, quantiles=(replace(quantile(None, None), no_interval=NoInterval.DEPENDENT),))
    assert NoInterval.DEPENDENT in conclusion([dependent], set())
    both = conclusion([short[0], replace(dependent, second_id="c")], set())
    assert NoInterval.FEW_SAMPLES in both and NoInterval.DEPENDENT in both
    uneven = replace(judged, quantiles=(quantile(1234, 1236),))
    assert "by 1.24 µs, 95 % interval 1.23 to 1.24" in conclusion([uneven], set()), "as the table says it"
    mixed = comparison(quantile(1, 2, 0.5), quantile(-2, -1, 0.999))
    assert "greater at 50 % and smaller at 99.9 %" in conclusion([mixed], set())
    assert "greater at some quantile in 1 and smaller in 1" in conclusion([plain, judged], set())
    assert conclusion([replace(plain, quantiles=(quantile(-1, 1),))] * 2, set()) == (
        "no difference of the second run is shown in any of 2 series"
    )
    third = replace(judged, second_id="c", quantiles=(quantile(-3000, -1000),))
    assert conclusion([judged, third], {"wakeup_corrected"}).count("\n") == 0
    assert "; wakeup_corrected: the third run is smaller at 99 %" in conclusion([judged, third], {"wakeup_corrected"})


def test_the_conclusion_names_each_rate_that_differs() -> None:
    """A rate above a limit may differ where no quantile does."""
    rate = RateDifference(100_000, (10, 100_000), (200, 100_000), 0.0019, 0.0017, 0.0021, 1e-9, True)
    fewer = RateDifference(1_000_000, (200, 1000), (10, 1000), -0.19, -0.21, -0.17, 1e-9, True)
    open_rate = replace(rate, lower=-0.001, significant=False)
    equal = replace(comparison(quantile(-1, 1)), rates=(rate, open_rate, fewer))
    rates = "values above 100 µs more often (1 in 500 instead of 1 in 10,000)"
    text = (
        f"wakeup_corrected: the second run has {rates} and has values above 1 ms less often (1 in 100 instead of 20 %)"
    )
    assert conclusion([equal], set()) == text
    greater = replace(comparison(quantile(1000, 3000)), rates=(rate,))
    assert conclusion([greater], set()).endswith(f" 3.00 µs) and has {rates}")
    by_itself = replace(rate, significant=False)
    assert "no difference" in conclusion([replace(equal, rates=(open_rate, by_itself))], set())
    several = conclusion([replace(equal, rates=(rate,)), replace(equal, rates=(open_rate,))], set())
    assert "greater at some quantile or limit in 1 and smaller in 0" in several


@pytest.mark.parametrize("reason", [NoInterval.FEW_SAMPLES, NoInterval.DEPENDENT])
def test_a_difference_without_interval_has_its_reason(tmp_path: Path, reason: NoInterval) -> None:
    """A calm half and a busy one depend on each other for too long; ten intervals are too few samples."""
    rows = [[row + 20_000 * (place >= 15) for place, row in enumerate(rows)] for rows in latencies(2)]
    values = [row[:10] for row in rows] if reason is NoInterval.FEW_SAMPLES else rows
    runs = [read(tmp_path, "base", latencies(1)), read(tmp_path, "other", values)]
    median = compare(*runs)[0].quantiles[0]
    assert (median.quantile, median.ends, median.no_interval) == (0.5, None, reason)
    assert reason in conclusion(compare(*runs), judged_names(runs))


def _run_of_activations(
    folder: Path, number: int, missed: int, level_ns: int = 20_000, series: Mapping[str, object] | None = None
) -> Recording:
    """100 activations without a period in each of 100 s; of each second, the longest ``missed`` have no value."""
    values = np.sort((level_ns * np.random.default_rng(number).lognormal(0, 0.3, (100, 100))).astype(np.int64))
    answered = [np.random.default_rng(number).permutation(row[: 100 - missed]) for row in values]
    plan = Plan([answered], run_id=f"run-{number}", missed=100 * missed, views=("wakeup",), interval_ns=10**9)
    plan.head = {"probe": "made-up", "parameters": {"size": 1}}
    plan.series = {"period_ns": None, **(series or {})}
    return recording(folder, plan)


@pytest.mark.parametrize("missed", [0, 20, 60])
def test_a_run_is_not_smaller_since_its_longest_activations_have_no_value(tmp_path: Path, missed: int) -> None:
    runs = [_run_of_activations(tmp_path, 1, 0), _run_of_activations(tmp_path, 2, missed)]
    [compared] = compare(*runs)
    shown = {difference.quantile: finding(difference) for difference in compared.quantiles}
    assert SMALLER not in {text.removesuffix(BY_ITSELF) for text in shown.values()}
    assert "smaller" not in conclusion([compared], set())
    known = [difference for difference in compared.quantiles if difference.no_interval is not NoInterval.MISSED]
    assert [difference.quantile for difference in known if difference.second_ns] == {
        0: [0.5, 0.95, 0.99, 0.999, 0.9999],
        20: [0.5],
        60: [],
    }[missed]
    assert [difference.first_ns is not None for difference in compared.quantiles] == [True] * 5 + [False]
    assert (f"{100 * missed:,} of the second run" in conclusion([compared], set())) == (missed > 0)
    caveat = f"run run-2: {100 * missed:,} missed periods have no value; in quantiles they exceed all values"
    assert (caveat in cautions(runs)) == (missed > 0)


@pytest.mark.parametrize("missed_in_base", [False, True])
def test_a_quantile_among_missed_periods_exceeds_all_that_is_known(tmp_path: Path, missed_in_base: bool) -> None:
    """A run of twice the values, with 3 % of its activations missed: beyond 97 % only one end of each interval is
    known, and excludes zero."""
    longer = _run_of_activations(tmp_path, 2, 3, level_ns=40_000)
    runs = [_run_of_activations(tmp_path, 1, 0), longer]
    [compared] = compare(*(reversed(runs) if missed_in_base else runs))
    tail = next(difference for difference in compared.quantiles if difference.quantile == 0.99)
    known, unknown = (tail.second_ns, tail.first_ns) if missed_in_base else (tail.first_ns, tail.second_ns)
    end_ns, open_end_ns = (tail.upper_ns, tail.lower_ns) if missed_in_base else (tail.lower_ns, tail.upper_ns)
    assert known is not None and 35_000 < known < 50_000
    assert (unknown, open_end_ns, tail.difference_ns) == (None, None, None)
    assert end_ns is not None and 20_000 < abs(end_ns) < 60_000
    assert tail.significant and finding(tail) == (SMALLER if missed_in_base else GREATER)
    assert compared.missed == ((300, 0) if missed_in_base else (0, 300))
    text = conclusion([compared], set())
    assert "99 %, 95 % interval" in text and "∞" in text and " by " not in text
    assert "300 of the base" in text if missed_in_base else "300 of the second run" in text


def test_a_jitter_with_missed_periods_has_no_interval(tmp_path: Path) -> None:
    """Its values below zero may be greater in magnitude than those of the missed periods."""
    runs = [
        _run_of_activations(tmp_path, number, missed, series={"two_sided": True}) for number, missed in ((1, 0), (2, 3))
    ]
    [compared] = compare(*runs)
    assert {difference.ends for difference in compared.quantiles} == {None}
    assert [difference.first_ns is not None for difference in compared.quantiles] == [True] * 5 + [False]
    assert NoInterval.MISSED in conclusion([compared], set())


@pytest.mark.parametrize("columns", [80, 200])
def test_what_was_made_slower_is_found_slower(tmp_path: Path, columns: int) -> None:
    """Each latency of the second run is 3 µs longer; the maxima get no test."""
    store = Store(tmp_path / "fastenough-data")
    values = latencies(1)
    first = keep(store, tmp_path / "scratch", values=values)
    second = keep(store, tmp_path / "scratch", values=[[row + 3000 for row in rows] for rows in values])
    with Terminal("compare", first, second, cwd=tmp_path, columns=columns) as terminal:
        status, said = terminal.end()
    shown = screen(said)
    assert status == 0
    assert shown[0].startswith("wakeup_corrected: the second run is greater at 50 %, 95 %")
    rows = [line for line in shown if line.startswith(("50 %", "95 %"))]
    assert len(rows) == 4 and all(line.endswith("greater") for line in rows)
    assert max(map(len, rows)) <= columns
    assert sum("no test can show" in line for line in shown) == 2
    assert any("together at 95 % (Holm)" in line for line in shown) and "x0a" not in said


@pytest.mark.slow
@pytest.mark.parametrize("columns", [80, 200])
def test_three_runs_stand_beside_a_base(tmp_path: Path, columns: int) -> None:
    """One slower, one faster, one alike; all four maxima on one line, which is no test."""
    store = Store(tmp_path / "fastenough-data")
    values = [latencies(seed) for seed in (1, 2, 3, 4)]
    shifts = (0, 3000, -2000, 0)
    runs = [
        keep(store, tmp_path / "scratch", values=[[row + shift for row in rows] for rows in one])
        for one, shift in zip(values, shifts, strict=True)
    ]
    with Terminal("compare", *runs, cwd=tmp_path, columns=columns) as terminal:
        status, said = terminal.end()
    shown = screen(said)
    assert status == 0
    sentence = " ".join(" ".join(shown[:12]).split())
    assert sentence.startswith("wakeup_corrected: the second run is greater at 50 %")
    assert "; wakeup_corrected: the third run is smaller at 50 %" in sentence
    assert "; wakeup_corrected: no difference of the fourth run is shown" in sentence
    rows = [line for line in shown if line.startswith("50 %")]
    assert [line.split()[-1] for line in rows] == ["greater", "smaller", "equal"] * 2
    assert max(map(len, rows)) <= columns
    maxima = " ".join(" ".join(shown).split())
    assert maxima.count("fourth ") >= 2 and maxima.count("no test can show") == 2


@pytest.mark.slow
def test_wrong_numbers_of_runs_and_unsound_ones(tmp_path: Path) -> None:
    store = Store(tmp_path / "fastenough-data")
    runs = [keep(store, tmp_path / "scratch", lost=lost) for lost in (0, 0, 0, 0, 7)]
    many = fastenough("compare", *runs, cwd=tmp_path)
    assert (many.returncode, b"at most 3 " in many.stderr) == (2, True)
    twice = fastenough("compare", runs[0], runs[1], runs[1], cwd=tmp_path)
    assert (twice.returncode, b"given twice" in twice.stderr) == (2, True)
    unsound = fastenough("compare", runs[0], runs[4], cwd=tmp_path)
    assert unsound.returncode == 0 and f"caveat: run {runs[4]}: ".encode() in unsound.stdout
    assert b"lost" in unsound.stdout


@pytest.mark.slow
def test_a_run_does_not_differ_from_itself(tmp_path: Path) -> None:
    keep(Store(tmp_path / "fastenough-data"), tmp_path / "scratch")
    said = fastenough("compare", "last", "last", "--limit", "10us", cwd=tmp_path).stdout.decode()
    assert said.startswith("wakeup_corrected: no difference of the second run is shown")
    assert not [line for line in said.splitlines() if line.endswith(("greater", "smaller", "by itself"))]
    assert said.count("above 10 µs") == 2 and said.count("): may be equal") == 2


@pytest.mark.check
def test_counts_are_in_the_order_of_the_columns_and_name_their_run(capsys: pytest.CaptureFixture[str]) -> None:
    rate = RateDifference(100_000.0, (39, 6_000), (76, 5_996), 0.0062, -0.0056, 0.0191, 0.3)
    _print_quantiles(replace(comparison(quantile(-1.0, 1.0)), n=(6_000, 5_996), rates=(rate,)), "second")
    text = " ".join(capsys.readouterr().out.split())
    assert "n = 6,000 (base) and 5,996 (second)" in text
    assert "above 100 µs: base 39 of 6,000, second 76 of 5,996; difference" in text


@pytest.mark.check
@pytest.mark.parametrize(
    ("ends", "expected"),
    [((None, None), "no interval"), ((-1.0, 1.0), "not significant"), ((1.0, 2.0), "significant")],
)
def test_a_gate_without_an_interval_does_not_call_a_difference_not_significant(
    ends: tuple[float | None, float | None], expected: str
) -> None:
    row = next(line for line in _quantiles(comparison(quantile(*ends))) if line.startswith("| 99 %"))
    assert row.endswith(f"| {expected} |")


@pytest.mark.check
def test_a_gate_shows_a_quantile_that_only_one_run_has() -> None:
    greater = replace(quantile(1.0, 2.0), first_ns=None)
    row = next(line for line in _quantiles(comparison(greater)) if line.startswith("| 99 %"))
    assert row.startswith("| 99 % | – | 2.00 |") and row.endswith("| significant |")
