# SPDX-License-Identifier: GPL-2.0-or-later
"""Answers of exactly known delay are told to a microsecond, and no sample is lost uncounted, at any rate."""

from __future__ import annotations

import contextlib
import socket
import threading
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastenough.cli.gauge import SeriesSummary, figures
from fastenough.gauge.protocol import Identity, RunningCounts, parse_take
from fastenough.gauge.raw_samples import FINE_K, RawSamples
from fastenough.gauge.run import GaugeRun, Periodic, Response, RunHead
from fastenough.gauge.session import Gauge
from fastenough.gauge.stream import Frame, Splitter
from fastenough.model import Outcome
from fastenough.recording import Histogram, Recording, read_recording
from fastenough.recording.histogram import bucket_index, bucket_lowest, sums_fault
from fastenough.recording.reader import as_counted_by_instrument
from tests.support.gauge_simulation import HERTZ, Build, counters, realtime_gauge
from tests.support.presence import present
from tests.support.recordings import Plan, recording

K = 4
TICK_NS = 62.5
UNO = Identity("1", "atmega328p", 1, 62_500, K, 24, True)


class Exact(threading.Thread):
    """A board on the pins of a real-time gauge whose answers come after exactly so long."""

    def __init__(self, path: Path, delay_ns: int) -> None:
        super().__init__(daemon=True)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(path))
        self._delay_ns = delay_ns
        self.start()

    def run(self) -> None:
        with contextlib.suppress(OSError), self._socket.makefile("r") as lines:
            lines.readline()
            for line in lines:
                _, level, _, sent_ns = line.split()
                self._socket.sendall(f"in {level} {int(sent_ns) + self._delay_ns}\n".encode())


def quantile_us(recording: Recording, series: int, share: float) -> float:
    total = recording.totals[series]
    return total.value_at_rank(-(-round(total.total * share * 100) // 100)) * recording.series[series].unit_ns / 1000


@pytest.mark.slow
@pytest.mark.parametrize("delay_us", [200, 307])
def test_a_constant_answer_is_told_to_a_microsecond(gauge_build: Build, tmp_path: Path, delay_us: int) -> None:
    """In buckets of the Uno's own, 200 µs would read 207.938, and 307 µs 319.938.

    This machine may be too busy to place an answer where it belongs in the simulation; the p99 is asked for where that
    happened to fewer than one in a hundred.
    """
    with realtime_gauge(gauge_build, tmp_path) as instrument:
        Exact(instrument.pins, delay_us * 1000)
        with Gauge(instrument.port) as gauge, (tmp_path / "run").open("wb") as stream:
            request = Response(500_000, 2_000_000, 500_000_000)
            run = GaugeRun(gauge, request, RunHead("run", "linux-user"), stream, 10**8)
            run.begin()
            for _ in range(6):
                run.wait(0.3)
                run.poll()
            assert run.end() is Outcome.COMPLETED
    recording = read_recording(tmp_path / "run")
    assert run.counters is not None
    assert [series.k for series in recording.series] == [FINE_K, FINE_K]
    assert present(recording.head.instrument, "instrument")["k"] == K
    for series in (0, 1):
        assert recording.totals[series].total > 100
        assert recording.totals[series].total == run.counters.stored(series)
        assert abs(quantile_us(recording, series, 0.5) - delay_us) <= 1
        put_off = recording.totals[series].count_above(round((delay_us + 1) * 1000 / TICK_NS))
        if put_off < recording.totals[series].total // 100:
            assert abs(quantile_us(recording, series, 0.99) - delay_us) <= 1


def without_end(reply: list[str]) -> list[str]:
    return [line for line in reply if not line.startswith("ok")]


class Edges(NamedTuple):
    """Ticks from edge to edge, and how many more it may be; the period that the gauge is told."""

    period: int
    jitter: int
    expected: int


def streamed(build: Build, folder: Path, edges: Edges) -> tuple[RawSamples, Histogram, int, int]:
    """PERIODIC for a second of exactly simulated time, of an Uno that streams: fine, coarse, stored and lost."""
    raw = folder / "raw"
    replies = build.play(
        [
            "say stream on",
            f"raw {raw}",
            f"say periodic period={edges.expected} timeout=16000000",
            f"square {edges.period} {edges.jitter} {edges.period // 2} {round(HERTZ / edges.period)}",
            f"run {HERTZ}",
            "run 200000",
            "say stop",
            "run 200000",
            "say take n=1",
            "say stats",
        ]
    )
    splitter = Splitter()
    splitter.text(raw.read_bytes())
    fine = RawSamples("periodic", K)
    fine.add(splitter.frames)
    counted = counters(replies[4])
    coarse = RunningCounts(K).new_samples(parse_take(without_end(replies[3]), UNO))[0]
    return fine, coarse, counted["stored0"], counted["lost0"]


CARRIED, UNSENT, DROPPED = 4_000, 2_000, 1_000
"""Ticks between two edges: at 4 kHz the line carries every sample, at 8 kHz not all, at 16 kHz edges go for it."""


@pytest.mark.parametrize("period", [CARRIED, UNSENT, DROPPED])
def test_every_sample_is_kept_or_counted_as_lost(gauge_build: Build, tmp_path: Path, period: int) -> None:
    fine, coarse, stored, lost = streamed(gauge_build, tmp_path, Edges(period, 0, period))
    histogram = fine.histogram(0, coarse)
    assert stored + lost == round(HERTZ / period) - 1
    assert histogram.total == stored == coarse.total
    assert (fine.coarse == 0) is (period != UNSENT) or period == DROPPED
    assert (lost == 0) is (period != DROPPED)
    assert fine.uncounted == 0


@pytest.mark.parametrize(("period", "carried"), [(CARRIED, True), (UNSENT, False)])
def test_what_the_line_does_not_carry_is_told_to_a_microsecond_too(
    gauge_build: Build, tmp_path: Path, period: int, carried: bool
) -> None:
    """A constant deviation of 75 or 200 µs, where the gauge's own buckets are 4 or 8 µs wide."""
    fine, coarse, stored, _ = streamed(gauge_build, tmp_path, Edges(period, 0, 800))
    histogram = fine.histogram(0, coarse)
    assert histogram.total == stored
    assert (fine.coarse == 0) is carried
    for rank in (histogram.total // 2, -(-histogram.total * 99 // 100)):
        assert abs(histogram.value_at_rank(rank) - (period - 800)) * TICK_NS <= 1000


def test_deviations_that_vary_are_those_that_came(gauge_build: Build, tmp_path: Path) -> None:
    fine, coarse, stored, lost = streamed(gauge_build, tmp_path, Edges(CARRIED, 2_000, 800))
    assert lost == 0
    histogram = fine.histogram(0, coarse)
    assert histogram.total == stored
    assert fine.coarse == fine.uncounted == 0
    # a bucket of k = 10 is 4 ticks wide at most here; the gauge's own is 128 to 256
    assert int((histogram.highest() - bucket_lowest(histogram.index, FINE_K)).max()) < 4


@given(st.lists(st.integers(-(2**20), 2**24 - 1), min_size=1, max_size=60), st.data())
def test_whatever_is_lost_on_the_way_the_counts_and_statistics_are_the_gauge_s(
    values: list[int], data: st.DataObject
) -> None:
    """Raw samples are dropped at random: each that came is where it belongs, each that did not in its coarse bucket."""
    came = [value for value in values if data.draw(st.booleans())]
    coarse = Histogram.from_values(values, K)
    fine = RawSamples("periodic", K)
    fine.add(Frame(number, (value & 0xFFFFFFFF,)) for number, value in enumerate(came))
    histogram = fine.histogram(0, coarse)
    assert (histogram.total, histogram.minimum, histogram.maximum, histogram.sum, histogram.sum_sq) == (
        coarse.total,
        coarse.minimum,
        coarse.maximum,
        coarse.sum,
        coarse.sum_sq,
    )
    assert (fine.coarse, fine.uncounted) == (len(values) - len(came), 0)
    again = Histogram.from_values(np.repeat(histogram.highest(), histogram.count), K)
    assert (again.index.tolist(), again.count.tolist()) == (coarse.index.tolist(), coarse.count.tolist())
    assert set(bucket_index([min(values), max(values)], FINE_K).tolist()) == {histogram.index[0], histogram.index[-1]}
    if not fine.coarse:
        assert histogram.index.tolist() == Histogram.from_values(values, FINE_K).index.tolist()


def test_samples_that_did_not_come_are_not_understated() -> None:
    """The exact sum says that the lost ones were greater than those that came: the bucket's top stands for them."""
    coarse = Histogram.from_values([3200] * 50 + [3300] * 50, K)
    fine = RawSamples("periodic", K)
    fine.add(Frame(number, (3200,)) for number in range(50))
    assert fine.histogram(0, coarse).value_at_rank(100) == 3300
    level = RawSamples("periodic", K)
    level.add(Frame(number, (3200,)) for number in range(50))
    assert level.histogram(0, Histogram.from_values([3200] * 100, K)).value_at_rank(99) == 3200


def test_sums_are_held_against_the_buckets_that_the_gauge_counted_in(tmp_path: Path) -> None:
    """What did not come stands with the greatest that came: the exact sum is less than of values in such buckets."""
    coarse = Histogram.from_values([3200] * 50 + [3300] * 50, K)
    fine = RawSamples("periodic", K)
    fine.add(Frame(number, (3300,)) for number in range(50))
    histogram = fine.histogram(0, coarse)
    head = replace(recording(tmp_path, Plan([[np.array([1, 2, 3])]])).head, instrument={"k": K})
    assert sums_fault(histogram) is not None
    assert sums_fault(as_counted_by_instrument(head, histogram)) is None
    assert sums_fault(as_counted_by_instrument(head, replace(histogram, sum=histogram.sum * 2))) is not None


def test_a_sample_counted_in_the_next_reading_waits_for_it() -> None:
    fine = RawSamples("response", K)
    fine.add([Frame(0, (3200, 3201, 3202))])
    first = fine.histogram(0, Histogram.from_values([3200, 3201], K))
    assert (first.total, fine.uncounted, fine.coarse) == (2, 1, 0)
    second = fine.histogram(0, Histogram.from_values([3202], K))
    assert (second.total, second.maximum, fine.uncounted, fine.coarse) == (1, 3202, 0, 0)


def test_numbers_wrap() -> None:
    fine = RawSamples("periodic", K)
    for number in range(0, 200_000, 4):
        fine.add([Frame(number % 65536, (0, 0, 0, 0))])
    assert fine.sent == 200_000


def test_quick_periods_are_not_streamed() -> None:
    """Sending raw samples would make the gauge drop edges that it counts without: see ``DROPPED``."""
    real = replace(UNO, simulated=False)
    for uno in (real, UNO):
        assert not Response(3_000, 3_000, 10**9).streams(uno)
        assert not Response(3_000, 340_000, 10**9).streams(uno)
        assert Response(3_000, 7_071_000, 10**9).streams(uno)
    assert Response(3_000, 3_000, 10**9).streams(replace(UNO, mcu="rp2040", k=7))
    assert Periodic(7_071_000, 10**9).streams(real)
    assert Periodic(125_000, 10**9).streams(real)
    assert not Periodic(120_000, 10**9).streams(real)
    assert not Periodic(7_071_000, 10**9).streams(UNO)


def test_a_printed_maximum_is_not_below_the_measured_one() -> None:
    row = SeriesSummary(
        series="", count=4, lost=0, missed=0, min_ns=187.5, mean_ns=250.0, p99_ns=312.5, max_ns=194_437.5
    )
    assert figures(row) == "min 0.187, mean 0.250, p99 0.313, max 194.438"
