# SPDX-License-Identifier: GPL-2.0-or-later
"""The RP2040 gauge tells the truth: its very image in rp2040js, in lock-step, and a board of exactly known delays."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from fastenough.gauge.stream import Splitter, latencies
from tests.support.gauge_simulation import Build, counters, grown, pairs, rows, statistics, wrong_bins
from tests.support.rp2040_simulation import IMAGES, K, play

pytestmark = pytest.mark.untimed

TIMEOUT = 125_000
SHORTEST = 375
"""A wait of 3 us, the shortest that is promised."""


def response(cycles: int, board: str, waits: tuple[int, int], run: int) -> list[str]:
    return [
        board,
        f"say response min={waits[0]} max={waits[1]} timeout=10000000 count={cycles} seed=77",
        f"run {run}",
        "say stats",
        "say take",
        f"truth {K}",
    ]


SCENES = {
    "each of 1 to 1600": response(800, "count 1", (0, 1500), 3_500_000),
    "at once": response(1500, "follow 1 40", (0, 800), 4_000_000),
    "long": response(40, "follow 1 300000", (0, 70_000), 20_000_000),
    "a hundred thousand": response(50_000, "follow 1 3000", (375, 1500), 400_000_000),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*list(SCENES)[:-1], pytest.param(list(SCENES)[-1], marks=pytest.mark.matrix)])
def test_every_latency_is_in_its_bucket(gauge_build: Build, name: str) -> None:
    _, stats, taken, truth = play(gauge_build, SCENES[name]).blocks[:4]
    count = counters(stats)
    assert stats[0].startswith("state=idle")
    assert wrong_bins(taken, truth) == 0
    assert statistics(taken) == statistics(truth)
    assert sum(rows(taken).values()) == count["sent"]
    assert [count[what] for what in ("spurious", "resyncs", "timeouts0", "timeouts1")] == [0, 0, 0, 0]


@pytest.mark.slow
def test_it_says_who_it_is(gauge_build: Build) -> None:
    identity, tested, untested = play(
        gauge_build, ["say id", "follow 1 1", "say selftest", "still", "say selftest"]
    ).blocks[:3]
    assert "mcu=rp2040" in identity[0]
    assert [pairs(identity[0])[key] for key in ("tick_ps", "k", "simulated")] == ["8000", str(K), "1"]
    assert int(pairs(identity[0])["stack_free"]) > 1000
    assert {series: values["max"] for series, values in statistics(tested).items()} == {0: "1", 1: "1"}
    assert "selftest=pass" in tested[-2]
    assert "selftest=fail" in untested[-2]


def _stimuli_after_answers(trace: Path) -> list[int]:
    events = [line.split() for line in trace.read_text().splitlines()]
    return [
        int(after[2]) - int(before[2])
        for before, after in itertools.pairwise(events)
        if (before[0], after[0]) == ("in", "out")
    ]


def _waits(
    build: Build, trace: Path, board: str, waits: str, *meanwhile: str, image: str = IMAGES[0]
) -> tuple[list[int], dict[str, int]]:
    """Of 1000 cycles, and what was counted; ``meanwhile`` is said twice."""
    script = [f"trace {trace}", board, f"say response {waits} count=1000"]
    for _ in range(2):
        script += ["run 100000", *meanwhile]
    stats = play(build, [*script, "run 6000000", "say stats"], image).blocks[-2]
    assert stats[0].startswith("state=idle")
    return _stimuli_after_answers(trace), counters(stats)


@pytest.mark.slow
@pytest.mark.parametrize(("image", "board"), [(IMAGES[0], "follow 300 400"), (IMAGES[1], "follow 1000 2500")])
def test_waits_of_3_us_are_kept_to_the_cycle_where_none_is_counted_late(
    gauge_build: Build, tmp_path: Path, image: str, board: str
) -> None:
    """Also while its histogram is read out.  The first stimulus follows no answer, and may be late."""
    waits, count = _waits(
        gauge_build, tmp_path / "edges", board, f"min={SHORTEST} max={SHORTEST}", "say take", image=image
    )
    assert len(waits) == count["sent"] - 1 == 1999
    longer = sum(wait > SHORTEST + 1 for wait in waits)
    assert min(waits) >= SHORTEST, "longer by a cycle where an odd tick was drawn for"
    assert count["late"] - longer in (0, 1)
    assert longer <= 10


@pytest.mark.slow
def test_no_wait_falls_into_a_blind_spot(gauge_build: Build, tmp_path: Path) -> None:
    """Waits about where it changes who hands them over are kept to the cycle."""
    trace = tmp_path / "edges"
    stats = play(
        gauge_build,
        [
            f"trace {trace}",
            "follow 500 900",
            "say response min=4194300 max=4194308 count=3 seed=5",
            "run 26000000",
            "say stats",
        ],
    )[1]
    assert stats[0].startswith("state=idle")
    assert counters(stats)["late"] == 0
    waits = _stimuli_after_answers(trace)
    assert len(waits) == 5
    assert min(waits) >= 4194300 and max(waits) <= 4194309


@pytest.mark.slow
def test_waits_are_kept_or_counted(gauge_build: Build, tmp_path: Path) -> None:
    waits, count = _waits(gauge_build, tmp_path / "drawn", "follow 600 2500", f"min={SHORTEST} max=2000")
    assert count["late"] <= 3
    assert SHORTEST <= min(waits) < SHORTEST + 20
    assert 1980 < max(waits) <= 2001, "up to the next even tick"
    short, count = _waits(gauge_build, tmp_path / "short", "follow 600 2500", "min=0 max=2000")
    assert 0 < count["late"] < 2 * 2000 * SHORTEST / 2000
    assert max(short) <= 2001
    fast, count = _waits(gauge_build, tmp_path / "fast", "count 1", "min=0 max=0")
    assert count["late"] == count["sent"] == 2000
    assert min(fast) > 40


@pytest.mark.parametrize("before", [10, 11])
def test_one_lost_edge_costs_one_sample(gauge_build: Build, tmp_path: Path, before: int) -> None:
    """The next good sample comes within one time-out after the one that ran out."""
    trace = tmp_path / "edges"
    stats, taken = play(
        gauge_build,
        [
            f"trace {trace}",
            "follow 1000 1000",
            f"type response min=2000 max=2000 timeout={TIMEOUT}",
            f"run {before * 3000}",
            "deaf 1",
            f"run {4 * TIMEOUT}",
            "say stop",
            f"run {2 * TIMEOUT}",
            "say stats",
            "say take",
        ],
    ).blocks[1:3]
    count = counters(stats)
    assert count["timeouts0"] + count["timeouts1"] == 1
    assert count["sent"] == count["stored0"] + count["stored1"] + 1
    assert {int(values[what]) for values in statistics(taken).values() for what in ("min", "max")} == {1000}
    answers = [int(line.split()[2]) for line in trace.read_text().splitlines() if line.startswith("in ")]
    assert max(b - a for a, b in itertools.pairwise(answers)) < 2 * TIMEOUT + 5000


@pytest.mark.slow
@pytest.mark.parametrize(("period", "jitter"), [(12_500, 800), (1_000_000, 60_000), (501, 7)])
def test_periods_are_exact(gauge_build: Build, period: int, jitter: int) -> None:
    falls = 500 if period < 100_000 else 20
    expected = period + jitter // 2
    stats, taken, truth = play(
        gauge_build,
        [
            f"expect {expected}",
            f"say periodic period={expected}",
            f"square {period} {jitter} {period // 4} {falls}",
            f"run {(period + jitter) * (falls + 2)}",
            "say stop",
            "say stats",
            "say take",
            f"truth {K}",
        ],
    ).blocks[2:5]
    assert counters(stats)["edges"] == falls
    assert wrong_bins(taken, truth) == 0
    assert statistics(taken) == statistics(truth)
    assert sum(rows(taken).values()) == falls - 1


@pytest.mark.slow
@pytest.mark.parametrize("period", [2, 3, 17, 100, 333])
def test_no_rate_of_edges_locks_it_up(gauge_build: Build, period: int) -> None:
    """What is stored of too many edges is right, and commands are answered; RESPONSE goes on after them."""
    falls = 600_000 // period
    watched, stopped, stats, taken = play(
        gauge_build,
        [
            f"say periodic period={max(period, 125)}",
            f"square {period} 0 {period // 2} {falls}",
            "run 300000",
            "say stats",
            "say stop",
            "run 1000",
            "say stats",
            "say take",
        ],
    ).blocks[1:5]
    assert watched[0].startswith("state=running")
    assert counters(stats)["gaps"] > 0
    assert stopped[-1].startswith("ok")
    stored = statistics(taken).values()
    assert stored or period < 100
    if period > 16:
        assert {int(values[what]) for values in stored for what in ("min", "max")} <= {period - max(period, 125)}
    stormy, after = play(
        gauge_build,
        [
            f"say response min=1000 max=2000 timeout={TIMEOUT} seed=4",
            f"square {period} 0 {period // 2} {falls}",
            "run 300000",
            "say stats",
            "run 500000",
            "still",
            "follow 50 900",
            f"run {3 * TIMEOUT}",
            "say stop",
            f"run {2 * TIMEOUT}",
            "say stats",
        ],
    ).blocks[1:4:2]
    count = counters(after)
    assert stormy[0].startswith("state=running")
    fates = ("stored", "timeouts", "cut", "unkept")
    assert count["sent"] == sum(count[f"{fate}{series}"] for fate in fates for series in (0, 1))
    assert count["stored0"] + count["stored1"] > 20


def test_takes_during_the_run_add_up(gauge_build: Build) -> None:
    script = ["follow 50 90", "say response min=0 max=3000 timeout=100000"]
    for _ in range(3):
        script += ["run 1000000", "say take"]
    blocks = play(gauge_build, [*script, "say stop", "run 200000", "say take", f"truth {K}", "say stats"]).blocks
    takes, truth, stats = [*blocks[1:4], blocks[5]], blocks[6], blocks[7]
    total: dict[tuple[int, int, str], int] = {}
    for new in grown(takes):
        for key, number in new.items():
            total[key] = total.get(key, 0) + number
    assert total == rows(truth)
    assert sum(total.values()) == counters(stats)["sent"]


def test_raw_samples_are_streamed_without_loss(gauge_build: Build, tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    stats, _, truth = play(
        gauge_build,
        [
            f"raw {raw}",
            "say stream on",
            "count 1",
            "say response min=5000 max=25000 count=400",
            "run 16000000",
            "say stats",
            "say take",
            f"truth {K}",
        ],
    ).blocks[2:5]
    splitter = Splitter()
    splitter.text(raw.read_bytes())
    samples = [sample for frame in splitter.frames for sample in latencies(frame)]
    assert counters(stats)["stream_dropped"] == 0
    assert samples == [(number % 2, number + 1) for number in range(800)]
    assert counters(stats)["sent"] == sum(int(values["count"]) for values in statistics(truth).values()) == 800
