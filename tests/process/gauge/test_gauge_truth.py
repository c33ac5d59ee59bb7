# SPDX-License-Identifier: GPL-2.0-or-later
"""The gauge tells the truth: the unmodified firmware against a simulated board of exactly known delays."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from tests.support.gauge_simulation import SETTINGS, Build, counters, finish, grown, rows, statistics, wrong_bins

pytestmark = pytest.mark.untimed

WRAP = 65536


def response(cycles: int, delays: str, waits: str, run: int) -> list[str]:
    """A script of RESPONSE that ends by itself well within ``run`` clock cycles."""
    minimum, maximum = waits.split()
    return [
        f"follow {delays}",
        f"say response min={minimum} max={maximum} timeout=16000000 count={cycles} seed=77",
        f"run {run}",
        "say stats",
        "say take",
        "truth 4",
    ]


SCENES = {
    "short": response(230_000, "0 300", "1500 2500", 1_250_000_000),
    "short too": response(230_000, "0 400", "0 2500", 1_250_000_000),
    "a wrap": response(20_000, "0 70000", "1000 3000", 1_700_000_000),
    "at the wrap": response(5_000, "65436 65636", "0 200", 800_000_000),
    "long": response(400, "0 3000000", "0 70000", 1_600_000_000),
    "waits of wraps": response(3_000, "0 2000", "0 200000", 800_000_000),
    "waits at the wrap": response(5_000, "0 100", "65400 65700", 900_000_000),
    "waits at arming": response(10_000, "0 100", "29800 30200", 800_000_000),
}
"""Together close to a million samples; two play at a time, and those of most samples in ``make bench`` only."""

BY_TWOS = [list(SCENES)[at : at + 2] for at in range(0, len(SCENES), 2)]


@pytest.mark.slow
@pytest.mark.parametrize("names", [pytest.param(BY_TWOS[0], marks=pytest.mark.matrix), *BY_TWOS[1:]], ids=" and ".join)
def test_every_latency_is_in_its_bucket(gauge_build: Build, names: list[str]) -> None:
    plays = [gauge_build.start(SCENES[name]) for name in names]
    for name, play in zip(names, plays, strict=True):
        _, stats, taken, truth = finish(play).blocks[:4]
        count = counters(stats)
        assert stats[0].startswith("state=idle"), name
        assert wrong_bins(taken, truth) == 0, name
        assert statistics(taken) == statistics(truth), name
        assert sum(rows(taken).values()) == count["sent"], name
        assert [count[what] for what in ("spurious", "resyncs", "timeouts0", "timeouts1")] == [0, 0, 0, 0], name


@pytest.mark.parametrize("mcu", SETTINGS)
def test_each_microcontroller(gauge_build: Build, mcu: str) -> None:
    script = [*response(5000, "0 3000", "0 4000", 120000000)[:-1], f"truth {SETTINGS[mcu]}", "say id"]
    _, stats, taken, truth, identity = gauge_build.play(script, mcu).blocks[:5]
    assert counters(stats)["sent"] == 10_000
    assert wrong_bins(taken, truth) == 0
    assert statistics(taken) == statistics(truth)
    assert f"mcu={mcu}" in identity[0]
    assert counters(identity)["stack_free"] > 20


def test_a_bucket_counts_past_its_sixteen_bits(gauge_build: Build) -> None:
    _, _, taken, truth = gauge_build.play(response(70_000, "10 10", "0 100", 320_000_000)).blocks[:4]
    assert rows(taken) == {(0, 10, ""): 70_000, (1, 10, ""): 70_000}
    assert wrong_bins(taken, truth) == 0


@pytest.mark.parametrize(("period", "jitter"), [(16_000, 800), (1_000_000, 60_000), (70_000, 5), (1_600, 100)])
def test_periods_are_exact(gauge_build: Build, period: int, jitter: int) -> None:
    falls = 2000 if period < 100_000 else 300
    expected = period + jitter // 2
    replies = gauge_build.play(
        [
            f"expect {expected}",
            f"say periodic period={expected}",
            f"square {period} {jitter} {period // 4} {falls}",
            f"run {(period + jitter) * (falls + 2)}",
            "say stop",
            "say stats",
            "say take",
            "truth 4",
        ]
    )
    stats, taken, truth = replies.blocks[2:5]
    assert counters(stats)["edges"] == falls
    assert wrong_bins(taken, truth) == 0
    assert statistics(taken) == statistics(truth)
    assert sum(rows(taken).values()) == falls - 1


def test_takes_during_the_run_add_up(gauge_build: Build) -> None:
    """Reading a histogram while it grows neither loses nor doubles a sample, and each take fits itself."""
    script = ["follow 50 5000", "say response min=0 max=3000 timeout=100000"]
    for _ in range(20):
        script += ["run 3000000", "say take"]
    script += ["say stop", "run 200000", "say take", "truth 4", "say stats"]
    blocks = gauge_build.play(script).blocks
    takes, truth, stats = [*blocks[1:21], blocks[22]], blocks[23], blocks[24]
    total: dict[tuple[int, int, str], int] = {}
    for take, new in zip(takes, grown(takes), strict=True):
        for series, exact in statistics(take).items():
            assert int(exact["count"]) == sum(n for key, n in new.items() if key[0] == series)
        for key, n in new.items():
            total[key] = total.get(key, 0) + n
    assert total == rows(truth)
    assert sum(total.values()) == counters(stats)["sent"]


def _waits(trace: Path) -> np.ndarray:
    """Cycles between an answer and the stimulus that follows it."""
    events = [line.split() for line in trace.read_text().splitlines()]
    return np.array(
        [
            int(after[2]) - int(before[2])
            for before, after in itertools.pairwise(events)
            if (before[0], after[0]) == ("in", "out")
        ]
    )


@pytest.mark.slow
def test_waits_are_even_between_their_bounds(gauge_build: Build, tmp_path: Path) -> None:
    minimum, maximum = 4000, 20_000
    trace = tmp_path / "edges"
    stats = gauge_build.play(
        [
            f"trace {trace}",
            "follow 10 500",
            f"say response min={minimum} max={maximum} count=10000 seed=4",
            "run 260000000",
            "say stats",
        ]
    )[1]
    waits = _waits(trace)
    assert counters(stats)["late"] == 0
    assert waits.size == 19_999
    assert minimum <= waits.min() < minimum + 20
    assert maximum - 20 < waits.max() <= maximum
    counts, _ = np.histogram(waits, bins=32, range=(minimum, maximum + 1))
    chi_square = float((((counts - waits.size / 32) ** 2) / (waits.size / 32)).sum())
    assert chi_square < 70  # 31 degrees of freedom: above that once in 10,000 seeds
    neighbours = np.corrcoef(waits[:-1], waits[1:])[0, 1]
    assert abs(neighbours) < 0.03


def test_waits_too_short_to_keep_are_counted(gauge_build: Build, tmp_path: Path) -> None:
    trace = tmp_path / "edges"
    stats = gauge_build.play(
        [
            f"trace {trace}",
            "follow 3000 3000",
            "say response min=0 max=4000 count=2000 seed=4",
            "run 40000000",
            "say stats",
        ]
    )[1]
    count = counters(stats)
    assert 0 < count["late"] < count["sent"]
    waits = _waits(trace)
    kept = waits[waits > 2000]
    assert abs(kept.size - waits.size / 2) < 150  # what could be kept has not been shifted


@pytest.mark.parametrize("mcu", SETTINGS)
def test_three_microseconds_after_an_answer_the_next_stimulus_goes_out(
    gauge_build: Build, tmp_path: Path, mcu: str
) -> None:
    """The shortest wait of the paper.  What else interrupts the gauge makes a few late: just those are counted, and
    the first, which follows no answer."""
    shortest = 48
    trace = tmp_path / "edges"
    stats = gauge_build.play(
        [
            f"trace {trace}",
            "follow 1600 4000",
            f"say response min={shortest} max={shortest} count=2000 timeout=16000",
            "run 30000000",
            "say stats",
        ],
        mcu,
    )[1]
    waits = _waits(trace)
    assert waits.min() == shortest
    assert np.count_nonzero(waits > shortest) + 1 == counters(stats)["late"]
    assert np.mean(waits == shortest) > 0.95
    assert waits.max() < 1000


def test_random_waits_from_three_microseconds_are_all_kept(gauge_build: Build, tmp_path: Path) -> None:
    trace = tmp_path / "edges"
    stats = gauge_build.play(
        [
            f"trace {trace}",
            "follow 800 4000",
            "say response min=48 max=8000 count=5000 seed=4",
            "run 80000000",
            "say stats",
        ]
    )[1]
    waits = _waits(trace)
    assert waits.min() < 60
    assert counters(stats)["late"] <= 3


def test_an_answer_after_the_time_out_is_lost_and_nothing_else(gauge_build: Build) -> None:
    stats, taken = gauge_build.play(
        [
            "follow 900 1200",
            "say response min=2000 max=3000 timeout=1000 count=2000 seed=7",
            "run 60000000",
            "say stats",
            "say take",
        ]
    ).blocks[1:3]
    count = counters(stats)
    lost = count["timeouts0"] + count["timeouts1"] + count["cut0"] + count["cut1"]
    assert sum(rows(taken).values()) + lost == count["sent"]
    assert int(statistics(taken)[0]["max"]) <= 1000
    assert 0.6 < lost / count["sent"] < 0.74
