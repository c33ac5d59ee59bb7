# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults that an instrument of this kind has had, each in simulation: none may spoil, lose silently or lock up."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from tests.support.gauge_simulation import SETTINGS, Build, counters, grown, rows, statistics, wrong_bins

pytestmark = pytest.mark.untimed

TIMEOUT = 100_000


def gaps(trace: Path) -> list[int]:
    """Cycles between an answer and the stimulus that follows it."""
    events = [line.split() for line in trace.read_text().splitlines()]
    return [
        int(after[2]) - int(before[2])
        for before, after in itertools.pairwise(events)
        if (before[0], after[0]) == ("in", "out")
    ]


def test_a_compare_armed_too_late_does_not_wait_for_the_next_wrap(gauge_build: Build, tmp_path: Path) -> None:
    """With the shortest waits nearly every stimulus is late; none may be a wrap of 65,536 cycles late."""
    trace = tmp_path / "edges"
    stats = gauge_build.play(
        [f"trace {trace}", "follow 0 900", "say response min=0 max=700 count=5000", "run 40000000", "say stats"]
    )[1]
    assert stats[0].startswith("state=idle")
    assert counters(stats)["late"] > 100
    assert max(gaps(trace)) < 5_000


@pytest.mark.parametrize("around", [29_950, 61_340, 65_436, 69_500, 131_000, 135_100])
def test_no_wait_falls_into_a_blind_spot(gauge_build: Build, tmp_path: Path, around: int) -> None:
    """Waits about where arming changes hands, and about whole wraps, are kept to the cycle."""
    trace = tmp_path / "edges"
    stats = gauge_build.play(
        [
            f"trace {trace}",
            "follow 1500 9000",
            f"say response min={around} max={around + 200} count=300",
            f"run {(around + 9000) * 620}",
            "say stats",
        ]
    )[1]
    assert stats[0].startswith("state=idle")
    assert counters(stats)["late"] == 0
    found = gaps(trace)
    assert len(found) == 599
    assert around <= min(found) and max(found) <= around + 200


@pytest.mark.parametrize("before", [400, 401])
def test_one_lost_edge_costs_one_sample(gauge_build: Build, tmp_path: Path, before: int) -> None:
    """Whichever direction it was; the next good sample comes within another time-out."""
    trace = tmp_path / "edges"
    replies = gauge_build.play(
        [
            f"trace {trace}",
            "follow 200 500",
            f"say response min=2000 max=2000 timeout={TIMEOUT}",
            "run 1000000",
            "deaf 1",
            f"run {3 * TIMEOUT + before * 50}",
            "say stop",
            f"run {2 * TIMEOUT}",
            "say stats",
            "say take",
            "truth 4",
        ]
    )
    stats, taken = replies.blocks[2:4]
    count = counters(stats)
    assert stats[0].startswith("state=idle")
    assert (count["resyncs"], count["timeouts0"] + count["timeouts1"]) == (1, 1)
    assert sum(rows(taken).values()) == count["stored0"] + count["stored1"] == count["sent"] - 1
    events = [line.split() for line in trace.read_text().splitlines()]
    outs = [int(event[2]) for event in events if event[0] == "out"]
    assert len(outs) == count["sent"] + count["resync_edges"]
    lost = max(itertools.pairwise(outs), key=lambda pair: pair[1] - pair[0])[0]
    resumed = [int(event[2]) for event in events if event[0] == "in" and int(event[2]) > lost + TIMEOUT]
    assert resumed[1] < lost + 2 * TIMEOUT


def test_a_board_that_never_answers_is_all_time_outs(gauge_build: Build) -> None:
    stats, stop, later = gauge_build.play(
        [
            f"say response min=100 max=1000 timeout={TIMEOUT}",
            "run 20000000",
            "say stats",
            "say stop",
            f"run {3 * TIMEOUT}",
            "say stats",
        ]
    ).blocks[1:4]
    count = counters(stats)
    assert stop == ["ok lines=0"]
    assert count["timeouts0"] > 100
    assert (count["stored0"], count["stored1"]) == (0, 0)
    assert later[0].startswith("state=idle")


@pytest.mark.parametrize("period", [1000, 800, 640, 400, 200, 64, 20, 7])
def test_no_rate_of_edges_locks_periodic_up(gauge_build: Build, period: int) -> None:
    """From 16 kHz to 2.3 MHz: commands are answered, edges dropped are counted."""
    falls = 8_000_000 // period
    replies = gauge_build.play(
        [
            f"say periodic period={max(period, 400)}",
            f"square {period} 0 {period // 2} {falls}",
            "run 3000000",
            "say stats",
            "say take",
            "say time",
            "still",
            "say stop",
            "say stats",
            "say id",
        ]
    )
    for reply in replies.blocks[:-1]:
        assert reply[-1].startswith("ok lines="), reply
    during, after = counters(replies[1]), counters(replies[5])
    assert after["edges"] > during["edges"] > 100
    if period < 500:
        assert during["gaps"] > 0
        assert during["lost0"] >= during["gaps"] - 1


@pytest.mark.parametrize("period", [500, 450, 400])
def test_dropped_edges_spoil_no_sample(gauge_build: Build, period: int) -> None:
    """What is stored is right, and stored and lost add up to the periods there were."""
    falls = 20_000
    replies = gauge_build.play(
        [
            f"say periodic period={period}",
            f"square {period} 0 {period // 2} {falls}",
            f"run {period * (falls + 10)}",
            "say stop",
            "say stats",
            "say take",
        ]
    )
    count, exact = counters(replies[2]), statistics(replies[3])[0]
    assert (exact["min"], exact["max"]) == ("0", "0")
    assert count["gaps"] > 0
    pending = falls - 1 - int(exact["count"]) - count["lost0"]
    assert 0 <= pending < 100  # periods after the last edge seen


@pytest.mark.parametrize("period", [3000, 1000, 300, 100, 30])
def test_a_storm_of_edges_does_not_lock_response_up(gauge_build: Build, period: int) -> None:
    falls = 16_000_000 // period
    replies = gauge_build.play(
        [
            f"say response min=100 max=3000 timeout={TIMEOUT}",
            f"square {period} 0 {period // 2} {falls}",
            "run 6000000",
            "say stats",
            "say take",
            "still",
            f"run {2 * TIMEOUT}",
            "follow 10 200",
            f"run {20 * TIMEOUT}",
            "say take",
            "say stop",
            f"run {2 * TIMEOUT}",
            "say stats",
            "say id",
        ]
    )
    for reply in replies.blocks[:-1]:
        assert reply[-1].startswith("ok lines="), reply
    count = counters(replies[5])
    assert replies[5][0].startswith("state=idle")
    fates = [count[f"{what}{series}"] for what in ("stored", "timeouts", "cut") for series in (0, 1)]
    assert count["sent"] == sum(fates)
    assert int(statistics(replies[3])[0]["count"]) > 100  # it measures again once the storm is over


def test_a_command_that_comes_during_a_reply_is_kept(gauge_build: Build) -> None:
    replies = gauge_build.play(
        [
            "follow 100 9000",
            "say response min=100 max=2000",
            "run 16000000",
            "type take",
            "run 20000",
            "say stats",
            "run 1000000",
            "say time",
        ]
    )
    assert replies[1][-1].startswith("ok lines=")
    assert replies[1][0].startswith(("take=", "b 0"))
    assert replies[-2][-1] == "ok lines=1"


def test_more_bytes_than_the_ring_holds_are_counted(gauge_build: Build) -> None:
    flood = "response min=1 max=2 timeout=3 count=4 seed=5 and so on and on"
    replies = gauge_build.play(
        [
            "follow 100 9000",
            "say response min=100 max=2000",
            "run 16000000",
            "type take",
            "run 20000",
            f"type {flood}",
            f"type {flood}",
            "run 3000000",
            "type x",
            "run 1000000",
            "say stats",
            "say time",
        ]
    )
    assert counters(replies[-3] if replies[-3][0].startswith("state") else replies[-2])["bytes_dropped"] > 0
    assert replies[-2][-1] == "ok lines=1"


def test_the_self_test_finds_the_wires_delay(gauge_build: Build) -> None:
    passed, failed = gauge_build.play(["follow 3 3", "say selftest", "follow 3 90", "say selftest"]).blocks[:2]
    assert passed[2].startswith("selftest=pass")
    assert statistics(passed)[0]["max"] == statistics(passed)[1]["min"] == "3"
    assert failed[2].startswith("selftest=fail")


def test_the_self_test_without_a_wire_fails_and_ends(gauge_build: Build) -> None:
    failed = gauge_build.play(["say selftest"])[0]
    assert failed[-2].startswith("selftest=fail")


def test_the_stack_keeps_clear_of_the_variables(gauge_build: Build) -> None:
    """After everything that goes deep has been done."""
    script = ["say help", "follow 100 9000", "say stream on", "say response min=0 max=900 timeout=70000"]
    for _ in range(5):
        script += ["run 2000000", "say take", "say stats", "say hist"]
    script += [
        "deaf 1",
        "run 400000",
        "say stop",
        "run 400000",
        "say selftest",
        "say periodic period=800",
        "square 700 200 300 4000",
        "run 1000000",
        "say take",
        "say stats",
        "run 3000000",
        "say stop",
        "say id",
    ]
    replies = gauge_build.play(script)
    assert counters(replies[-2])["stack_free"] >= 16


@pytest.mark.parametrize("mcu", SETTINGS)
def test_nothing_is_lost_at_25_khz_nor_while_the_histogram_is_read_out(gauge_build: Build, mcu: str) -> None:
    script = ["expect 640", "say periodic period=640", "square 590 100 200 30000"]
    for _ in range(10):
        script += ["run 500000", "say take"]
    script += ["run 2000000", "say stop", "say take", f"truth {SETTINGS[mcu]}", "say stats"]
    blocks = gauge_build.play(script, mcu).blocks
    total: dict[tuple[int, int, str], int] = {}
    takes = [*blocks[1:11], blocks[12]]
    for take, new in zip(takes, grown(takes), strict=True):
        assert sum(new.values()) == int(statistics(take).get(0, {"count": "0"})["count"])
        for key, n in new.items():
            total[key] = total.get(key, 0) + n
    count = counters(blocks[14])
    assert sum(total.values()) == count["stored0"]
    assert (count["stored0"], count["lost0"], count["gaps"]) == (29_999, 0, 0)
    assert wrong_bins([f"b {s} {sign}{b} {n}" for (s, b, sign), n in total.items()], blocks[13]) == 0
