# SPDX-License-Identifier: GPL-2.0-or-later
"""Signals end a command with 128 + their number at every moment, and never make a run failed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fastenough.recording import read_recording
from tests.support.cli_calls import environment
from tests.support.processes import eventually

pytestmark = pytest.mark.untimed

ASSESS = ("assess", "--loads", "none,cpu", "--duration", "2s")


def _start(cwd: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "fastenough", *arguments],
        cwd=cwd,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def _loading(pid: int) -> bool:
    """Python has begun with our own code: modules of the command line are being read."""
    return "numpy" in Path(f"/proc/{pid}/maps").read_text()


def _moment(wanted: str, cwd: Path, process: subprocess.Popen[bytes]) -> Callable[[], bool]:
    runs = cwd / "fastenough-data" / "runs"
    return {
        "loading": lambda: _loading(process.pid),
        "store made": runs.is_dir,
        "first run": lambda: any(runs.glob("*/recording.jsonl")),
        "first run ended": lambda: any(runs.glob("*/recording.jsonl.zst")),
        "report": lambda: len(list(runs.glob("*/recording.jsonl.zst"))) == 2,
    }[wanted]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("wanted", ["loading", "store made", "first run", "first run ended", "report"])
def test_a_signal_at_any_moment(tmp_path: Path, probe_binary: str, wanted: str, number: signal.Signals) -> None:
    process = _start(tmp_path, *ASSESS)
    assert eventually(lambda: process.poll() is not None or _moment(wanted, tmp_path, process)(), 60)
    assert process.poll() is None, "it ended before the moment came"
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number, errors
    assert b"Traceback" not in errors
    outcomes = [read_recording(path).outcome for path in tmp_path.glob("fastenough-data/runs/*/recording.jsonl.zst")]
    assert set(outcomes) <= {"completed", "aborted"}


_COMMAND = """
import os, signal, sys, click, fastenough.cli
from fastenough.__main__ import main

def interrupted(moment):
    if sys.argv[2] == moment:
        exec("os.kill(os.getpid(), signal.SIGTERM)")

@click.command()
@click.argument("moment")
def command(moment):
    interrupted("running")

if __name__ == "__main__":
    fastenough.cli.SECTIONS["Data"]["interrupted"] = ("interrupted", "interrupts itself")
    main()
interrupted("loading")
"""


@pytest.mark.parametrize("moment", ["loading", "running"])
def test_a_signal_within_text_that_is_executed(tmp_path: Path, moment: str) -> None:
    """As in the making of a dataclass, of which libraries make many while they are loaded: Python remembers it."""
    (tmp_path / "interrupted.py").write_text(_COMMAND)
    done = subprocess.run(
        [sys.executable, "-m", "interrupted", "interrupted", moment],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr.strip()) == (128 + signal.SIGTERM, b"", b"")


@pytest.mark.slow
@pytest.mark.parametrize("wait_s", [0.0, 0.01, 0.02, 0.04, 0.08])
def test_a_run_stopped_as_the_probe_starts_is_aborted(tmp_path: Path, probe_binary: str, wait_s: float) -> None:
    """The probe is told before it, or its guard, can listen."""
    process = _start(tmp_path, "run", "timer", "--duration", "30s")
    assert eventually(lambda: _has_guard(process.pid), 60)
    time.sleep(wait_s)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT
    [recording] = tmp_path.glob("fastenough-data/runs/*/recording.jsonl.zst")
    assert read_recording(recording).outcome == "aborted"


def _has_guard(pid: int) -> bool:
    """Of the run itself: what is granted is tried before, for a shorter time."""
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        try:
            words = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
            if b"timer" in words and b"--duration=30000ms" in words:
                return True
        except OSError:
            continue
    return False


def test_nohup_holds(tmp_path: Path, probe_binary: str) -> None:
    process = subprocess.Popen(
        ["nohup", sys.executable, "-m", "fastenough", "run", "timer", "--duration", "2s"],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    runs = tmp_path / "fastenough-data" / "runs"
    assert eventually(lambda: any(runs.glob("*/recording.jsonl")), 60)
    process.send_signal(signal.SIGHUP)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
