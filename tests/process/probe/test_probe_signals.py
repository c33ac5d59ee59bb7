# SPDX-License-Identifier: GPL-2.0-or-later
"""Signals: what is ignored at the start stays ignored, and each of the others has an exit status of its own."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from fastenough.model import Outcome
from fastenough.recording import read_recording
from tests.support.processes import eventually, recorded

TIMER = ["timer", "-a", str(min(os.sched_getaffinity(0))), "--report", "50ms", "--allow-difference", "--quiet"]


def _ignoring(number: signal.Signals, *command: str) -> list[str]:
    return ["sh", "-c", f"trap '' {number.name.removeprefix('SIG')}; exec \"$@\"", "sh", *command]


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_ignored_at_the_start_stays_ignored(probe_binary: str, tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "r"
    command = _ignoring(number, probe_binary, *TIMER, "-D", "1500ms", "--record", str(path))
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        assert eventually(lambda: recorded(path))
        process.send_signal(number)
        assert process.wait(20) == 0
    assert read_recording(path).outcome is Outcome.COMPLETED


def test_nohup_outlives_its_terminal(probe_binary: str, tmp_path: Path) -> None:
    path = tmp_path / "r"
    with subprocess.Popen(
        ["nohup", probe_binary, *TIMER, "-D", "1500ms", "--record", str(path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert eventually(lambda: recorded(path))
        process.send_signal(signal.SIGHUP)
        assert process.wait(20) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_these_end_a_run_in_the_background_too(probe_binary: str, tmp_path: Path, number: signal.Signals) -> None:
    """Shells start what is sent to the background with SIGINT ignored; `kill -INT` is meant all the same."""
    path = tmp_path / "r"
    command = _ignoring(number, probe_binary, *TIMER, "--record", str(path))
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        assert eventually(lambda: recorded(path))
        process.send_signal(number)
        assert process.wait(20) == 128 + number
    assert read_recording(path).outcome is Outcome.ABORTED


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_at_any_moment_ends_it_with_its_own_status(
    probe_binary: str, tmp_path: Path, number: signal.Signals
) -> None:
    """Before it records it may die of the signal itself, which a shell reads as the same status."""
    for tries in range(12):
        path = tmp_path / f"r{tries}"
        with subprocess.Popen(
            [probe_binary, *TIMER, "--record", str(path)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            try:
                process.wait(tries * 0.004)
            except subprocess.TimeoutExpired:
                process.send_signal(number)
            assert process.wait(20) in (-number, 128 + number)
        if path.exists() and path.stat().st_size:
            assert read_recording(path).outcome is Outcome.ABORTED
