# SPDX-License-Identifier: GPL-2.0-or-later
"""The bench's side of the gauge with the RP2040's very image, whose line is a pseudo-terminal, in simulated time."""

from __future__ import annotations

import itertools
import os
import pty
import subprocess
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fastenough.gauge.run import GaugeRun, Periodic, Response, RunHead
from fastenough.gauge.session import Gauge, GaugeLost
from fastenough.model import Outcome
from fastenough.recording import read_recording
from tests.support.gauge_simulation import Build, finish, statistics
from tests.support.rp2040_simulation import IMAGES, K, start

WHOLE = 10**12
HEAD = RunHead("run", "linux-user")
RESPONSE = Response(3_000, 24_000, 10_000_000)
PERIOD_NS, PERIOD = 100_000, 12_500


@contextmanager
def served(
    build: Build, script: list[str], image: str = IMAGES[0], cycles: int = WHOLE
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The port of a gauge, and the simulation, which tells the truth once that is closed, or after so many cycles."""
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    os.set_blocking(ours, False)
    process = start(build, [*script, f"serve {ours} {cycles}", f"truth {K}"], image, ours)
    os.close(ours)
    try:
        yield os.ttyname(theirs), process
    finally:
        os.close(theirs)


@pytest.mark.slow
@pytest.mark.parametrize(("image", "board"), [(IMAGES[0], "follow 300 9000"), (IMAGES[1], "follow 1000 1040")])
def test_a_run_of_responses_tells_the_truth(gauge_build: Build, tmp_path: Path, image: str, board: str) -> None:
    """Over the pins few buckets are read: they are slow, and simulated time is slower still."""
    with (
        served(gauge_build, [board], image) as (port, simulation),
        Gauge(port) as gauge,
        (tmp_path / "run").open("wb") as stream,
    ):
        assert (gauge.identity.mcu, gauge.identity.tick_ps, gauge.identity.k) == ("rp2040", 8000, K)
        run = GaugeRun(gauge, RESPONSE, HEAD, stream, 10**9)
        run.begin()
        for _ in range(3):
            run.wait(0.4)
            run.poll()
        assert run.end() is Outcome.COMPLETED
    truth = statistics(finish(simulation).blocks[0])
    recording = read_recording(tmp_path / "run")
    assert "emulated" in recording.head.marks
    assert run.counters and run.counters.common["sent"] > 100
    for series, total in recording.totals.items():
        assert {"count": total.total, "min": total.minimum, "max": total.maximum, "sum": total.sum} == {
            name: int(truth[series][name]) for name in ("count", "min", "max", "sum")
        }
        assert recording.lost(series) == 0


@pytest.mark.slow
def test_a_run_of_periods_tells_the_truth(gauge_build: Build, tmp_path: Path) -> None:
    trace = tmp_path / "edges"
    with (
        served(gauge_build, [f"trace {trace}", f"square {PERIOD - 300} 600 3000 {WHOLE}"]) as (port, simulation),
        Gauge(port) as gauge,
        (tmp_path / "run").open("wb") as stream,
    ):
        run = GaugeRun(gauge, Periodic(PERIOD_NS, 10_000_000), HEAD, stream, 10**9)
        run.begin()
        run.wait(1.0)
        run.poll()
        assert run.end() is Outcome.COMPLETED
    finish(simulation)
    total = read_recording(tmp_path / "run").totals[0]
    falls = [int(line.split()[2]) for line in trace.read_text().splitlines() if line.startswith("in 0 ")]
    deviations = [after - before - PERIOD for before, after in itertools.pairwise(falls)]
    assert total.total > 50
    assert any(
        (sum(part), min(part), max(part)) == (total.sum, total.minimum, total.maximum)
        for part in (deviations[at : at + total.total] for at in range(len(deviations) - total.total + 1))
    )


def test_its_self_test(gauge_build: Build) -> None:
    with served(gauge_build, ["follow 1 1"]) as (port, _), Gauge(port) as gauge:
        assert gauge.self_test().passed


def test_unplugged_in_mid_run_keeps_what_came_before(gauge_build: Build, tmp_path: Path) -> None:
    with (
        served(gauge_build, ["follow 300 9000"], cycles=12_000_000) as (port, simulation),
        Gauge(port) as gauge,
        (tmp_path / "run").open("wb") as stream,
    ):
        run = GaugeRun(gauge, RESPONSE, HEAD, stream, 10**9)
        run.begin()
        with pytest.raises(GaugeLost, match="unplugged"):
            while True:
                run.wait(0.1)
                run.poll()
        assert run.end(Outcome.FAILED, ["the gauge has disappeared"]) is Outcome.FAILED
    truth = statistics(finish(simulation).blocks[0])
    recording = read_recording(tmp_path / "run")
    assert recording.end and recording.end.outcome == "failed"
    for series, total in recording.totals.items():
        assert 0 < total.total <= int(truth[series]["count"])
        assert int(truth[series]["min"]) <= (total.minimum or 0) <= (total.maximum or 0) <= int(truth[series]["max"])
