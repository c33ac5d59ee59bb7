# SPDX-License-Identifier: GPL-2.0-or-later
"""A gauge that starts anew in the middle, one that was left measuring, and one that is simulated: all are noticed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from fastenough.gauge.protocol import Counters, Restarted, with_crc
from fastenough.gauge.run import GaugeRun, Response, RunHead
from fastenough.gauge.session import Gauge
from fastenough.model import Outcome
from fastenough.recording import read_recording
from tests.support.gauge_simulation import ROOT, Follower, Impostor, RealtimeGauge, gauge_command
from tests.support.json_documents import require_valid
from tests.support.processes import eventually, recorded


def start(instrument: RealtimeGauge, record: Path, intervals: int) -> subprocess.Popen[str]:
    """A run that has recorded so many intervals."""
    running = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "fastenough",
            "gauge",
            "run",
            "response",
            instrument.port,
            "--record",
            str(record),
            "-D",
            "60s",
            "--interval",
            "200ms",
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert eventually(lambda: running.poll() is not None or recorded(record, intervals), 120)
    assert running.poll() is None, running.communicate()
    return running


@pytest.mark.slow
def test_the_reset_button_fails_the_run(instrument: RealtimeGauge, tmp_path: Path) -> None:
    Follower(instrument.pins)
    record = tmp_path / "gauge.jsonl"
    running = start(instrument, record, 3)
    instrument.process.send_signal(signal.SIGUSR1)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 4, errors
    assert "Traceback" not in errors
    recording = read_recording(record)
    assert recording.end
    assert recording.end.outcome == "failed"
    assert "restarted during the run" in recording.end.reasons[0]
    assert all(said.lost >= 0 for said in recording.end.series.values())
    assert sum(total.total for total in recording.totals.values()) > 0


def test_a_reset_just_before_the_end_is_no_completed_run(instrument: RealtimeGauge, tmp_path: Path) -> None:
    Follower(instrument.pins)
    record = tmp_path / "run"
    with Gauge(instrument.port) as gauge, record.open("wb") as stream:
        run = GaugeRun(gauge, Response(1_000_000, 2_000_000, 500_000_000), RunHead("run", "linux-user"), stream, 10**9)
        run.begin()
        time.sleep(0.3)
        instrument.process.send_signal(signal.SIGUSR1)
        time.sleep(0.5)
        assert run.end() is Outcome.FAILED
    recording = read_recording(record)
    assert recording.end and "restarted during the run" in recording.end.reasons[0]


BEFORE = Counters(False, "response", 10**9, {"sent": 100, "bytes_dropped": 65_535}, {0: {"stored": 2**32 - 1}})


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (replace(BEFORE, mode="none"), "it measured response, and now none"),
        (replace(BEFORE, ticks=5), "its time went back"),
        (replace(BEFORE, common={"sent": 99, "bytes_dropped": 65_535}), "its counter sent went back"),
        (replace(BEFORE, by_series={0: {"stored": 7 * 2**28}}), ""),
    ],
)
def test_what_goes_back(now: Counters, why: str) -> None:
    if why:
        with pytest.raises(Restarted, match=why):
            now.after(BEFORE)
    else:
        assert now.after(BEFORE).stored(0) == 2**32 + 7 * 2**28


def test_counters_that_wrap_go_on() -> None:
    now = replace(BEFORE, common={"sent": 101, "bytes_dropped": 4}, by_series={0: {"stored": 2**32 - 1}})
    assert now.after(BEFORE).common == {"sent": 101, "bytes_dropped": 65_540}


@pytest.mark.slow
def test_a_killed_bench_leaves_no_gauge_that_refuses(instrument: RealtimeGauge, tmp_path: Path) -> None:
    Follower(instrument.pins)
    for number in range(2):
        killed = start(instrument, tmp_path / f"killed{number}", 1)
        killed.kill()
        killed.communicate()
    said = gauge_command("stop", instrument.port)
    assert "measurement stopped" in said.stdout
    said = gauge_command("stop", instrument.port, "--json")
    assert require_valid("gauge stop", said.stdout) == {"version": 2, "port": instrument.port, "stopped": False}


def test_a_stream_left_on_is_turned_off(instrument: RealtimeGauge) -> None:
    Follower(instrument.pins)
    with Gauge(instrument.port) as gauge:
        gauge.stream(True)
        gauge.start_response(8_000, 16_000, 1_600_000)
        assert list(gauge.frames(0.3))
    with Gauge(instrument.port) as gauge:
        assert gauge.was_measuring
        assert gauge.counters().idle
        gauge.start_response(8_000, 16_000, 1_600_000)
        assert not list(gauge.frames(0.3))


def test_a_simulated_gauge_marks_its_recording(instrument: RealtimeGauge, tmp_path: Path) -> None:
    Follower(instrument.pins)
    record = tmp_path / "gauge.jsonl"
    done = gauge_command("run", "response", instrument.port, "--record", str(record), "-D", "300ms")
    assert done.returncode == 0, done.stderr
    head = read_recording(record).head
    assert head.marks == {"emulated"}
    assert head.instrument is not None and head.instrument["simulated"] is True


@pytest.mark.parametrize("said", ["simulated=0", "nothing=0"])
def test_another_gauge_does_not(said: str) -> None:
    def reply(data: bytes) -> bytes:
        if data.startswith(b"id"):
            lines = [f"gauge=fastenough firmware=1 mcu=atmega328p protocol=3 tick_ps=62500 k=4 bits=24 {said}"]
        elif data.startswith(b"stats"):
            lines = ["state=idle mode=none ticks=5 stream_dropped=0 bytes_dropped=0"]
        else:
            lines = []
        return b"\r\n".join(with_crc(line) for line in [*lines, f"ok lines={len(lines)}"]) + b"\r\n"

    with Gauge(Impostor(reply).port) as gauge:
        assert not gauge.identity.simulated
