# SPDX-License-Identifier: GPL-2.0-or-later
"""What every kernel module with our tasks is put through, whichever core schedules them."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from fastenough.recording import Histogram, Recording
from fastenough.virtual.board import VirtualBoard
from fastenough.virtual.module import build_module
from fastenough.virtual.pins import INPUT_LINE, OUTPUT_LINE
from fastenough.virtual.probe import PROBE
from tests.support.virtual_boards import RESPONSE, insert, parsed, quiet, reading, since_load, unload_module

PATIENCE_S = 60.0
HOGGED, HOG_NS = 10, 20_500_000
HOGGED_PERIOD_NS = 1_000_000


def settled(board: VirtualBoard) -> None:
    """Input low, and every edge of before seen."""
    board.pins.drive(INPUT_LINE, 0)
    quiet(board)
    board.pins.take()


def every_edge_is_answered(board: VirtualBoard, edges: int, place: Path, *options: str) -> Recording:
    """Of the module's `response`, which is there: sent, seen, answered and recorded are as many."""
    probe = reading(board, *options)
    lines = probe.lines(PATIENCE_S)
    head = next(lines)
    board.pins.take()
    before = board.pins.counts[OUTPUT_LINE]
    for number in range(edges):
        level = (number + 1) % 2
        board.pins.drive(INPUT_LINE, level)
        board.pins.wait(OUTPUT_LINE, level, PATIENCE_S)
    probe.signal(signal.SIGINT)
    recording = parsed([head, *lines], place)
    assert probe.wait(PATIENCE_S) == 128 + signal.SIGINT
    assert recording.end is not None
    counters = recording.end.counters
    assert [counters[name] for name in ("seen", "answered", "unchanged")] == [edges, edges, 0]
    assert since_load(counters) == {"seen": edges, "answered": edges, "unchanged": 0}
    assert recording.totals[0].total == edges == board.pins.counts[OUTPUT_LINE] - before
    return recording


def missed_by(histogram: Histogram, period_ns: int) -> tuple[int, int]:
    """How many periods acts with such delays have missed: at least, and at most, for a bucket is some values wide."""
    lowest, highest, count = histogram.lowest(), histogram.highest(), histogram.count
    least, most = (np.maximum(edge, 0).astype(np.int64) // period_ns for edge in (lowest, highest))
    return int((least * count).sum()), int((most * count).sum())


def assert_every_period_is_accounted_for(recording: Recording, period_ns: int) -> None:
    """Each act has missed as many periods as it was late, and each of them is charged in the view that owes.

    Every due time from begin to end is an act or missed: only those that the first act was late by lie before,
    and those that the next act is late by are still to come; that one may be late as none before.
    """
    assert recording.end is not None
    wakeup, corrected = recording.end.series.values()
    assert wakeup.taken + wakeup.missed == corrected.taken
    least, most = missed_by(recording.totals[0], period_ns)
    assert least <= wakeup.missed <= most
    late_ns = max(recording.totals[0].maximum or 0, 0)
    off_ns = corrected.taken * period_ns - recording.duration_ns
    assert -2 * late_ns - period_ns <= off_ns <= late_ns + period_ns


def overruns_that_were_made_are_found(board: VirtualBoard, place: Path, *, core_counts: bool) -> None:
    """Of the periodic task that is there: a hog keeps its CPU so many times, each time for so many periods."""
    probe = reading(board, "--until-interrupt")
    lines = probe.lines(PATIENCE_S)
    head = next(lines)
    hog = build_module(board.kernel, Path(__file__).parents[1] / "sources/oob_hog")
    insert(board, hog, {"cpu": 1, "width_ns": HOG_NS, "times": HOGGED})
    deadline = time.monotonic() + PATIENCE_S
    while int(board.link.read("/sys/module/oob_hog/parameters/done")) < HOGGED and time.monotonic() < deadline:
        time.sleep(0.1)
    unload_module(board, "oob_hog")
    probe.signal(signal.SIGINT)
    recording = parsed([head, *lines], place)
    least = HOGGED * (HOG_NS // HOGGED_PERIOD_NS - 1)
    assert recording.end is not None
    assert recording.totals[0].count_above(HOG_NS - 2 * HOGGED_PERIOD_NS) >= HOGGED
    assert recording.end.series[0].missed >= least
    if core_counts:
        told = sum(interval.counters["core_overruns"] or 0 for interval in recording.intervals)
        assert told == recording.end.counters["core_overruns"]
        assert told >= least, "the core counts beside the clock"
    assert_every_period_is_accounted_for(recording, HOGGED_PERIOD_NS)


@contextmanager
def _fire(board: VirtualBoard, sent: list[int]) -> Iterator[None]:
    """An edge each half millisecond, and their levels."""
    over = threading.Event()

    def fire() -> None:
        while not over.is_set():
            sent.append(len(sent) % 2)
            board.pins.drive(INPUT_LINE, sent[-1])
            time.sleep(0.0005)

    gun = threading.Thread(target=fire)
    gun.start()
    try:
        yield
    finally:
        over.set()
        gun.join()


def it_comes_and_goes(board: VirtualBoard, module: Path, turns: int, beside: str = "") -> None:
    """Many times in and out, under fire; ``beside``: words of a shell that keep the board busy meanwhile.

    On a busy machine a run may see no edge, which fails it; it ends in order all the same.
    """
    settled(board)
    place, name = f"/tmp/{module.name}", module.stem
    board.link.write(place, module.read_bytes())
    words = " ".join(f"{parameter}={value}" for parameter, value in RESPONSE.items())
    turn = (
        f"insmod {place} {words} && {{ {PROBE} kernel --duration=1ms --record=- || true; }} && rmmod {name} || exit 1"
    )
    sent: list[int] = []
    with _fire(board, sent):
        done = board.link.run(["sh", "-c", f"{beside}for turn in $(seq {turns}); do {turn}; done"], timeout_s=400.0)
    assert done.status == 0, done.stderr
    ends = [since_load(line["counters"]) for line in map(json.loads, done.text.splitlines()) if line["type"] == "end"]
    totals = {count: sum(end[count] for end in ends) for count in ("seen", "answered", "unchanged")}
    assert len(ends) == turns and 0 < totals["seen"] <= len(sent)
    assert totals["answered"] + totals["unchanged"] == totals["seen"]
