# SPDX-License-Identifier: GPL-2.0-or-later
"""What is odd but allowed is measured rightly; what cannot be measured is refused in one line."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from fastenough.model import Outcome
from fastenough.recording import read_recording
from tests.support.privileges import needs_root

CPU = str(max(os.sched_getaffinity(0)))
RARE = [
    *(
        f"{arguments} -i700ms --timeout=500ms"
        for arguments in (
            "semaphore -l2",
            "mutex -l200",
            "switch -l200",
            "jitter -D2s --size=10",
            "spinlock --burst=1000 -l2000",
        )
    ),
    "inversion --medium=100ms -l3 --timeout=100ms",
]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--method=setitimer -i100500ns", "whole microseconds"),
        ("--method=clock_nanosleep-rel --offset=100us", "omit --offset"),
        ("--method=nanosleep --offset=100us", "omit --offset"),
        ("--method=ppoll --offset=100us", "omit --offset"),
    ],
)
def test_what_a_method_cannot_do_is_refused(probe_binary: str, arguments: str, said: str) -> None:
    done = subprocess.run(
        [probe_binary, "timer", "-a", CPU, "-D", "100ms", *arguments.split()],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert said in done.stderr


@pytest.mark.slow
@needs_root("real-time priorities")
@pytest.mark.parametrize("arguments", RARE)
def test_acts_rarer_than_the_timeout_are_no_failure(probe_binary: str, tmp_path: Path, arguments: str) -> None:
    path = tmp_path / "r"
    done = subprocess.run(
        [probe_binary, *arguments.split(), "-q", "--record", str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode == 5:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    assert sum(total.total for total in read_recording(path).totals.values()) >= 2


@needs_root("real-time priorities")
def test_bursts_that_pass_each_other_are_no_dead_partner(probe_binary: str) -> None:
    """One act in 50 ms takes 2 us: the two sides hardly ever want the lock at once."""
    done = subprocess.run(
        [probe_binary, "spinlock", "--burst=1", "-i50ms", "-l20", "--timeout=100ms", "-q"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode == 5:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0 or "never contended for the lock" in done.stderr, done.stderr


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "1>&- 2>&-", "0<&- 1>&- 2>&-"])
def test_no_message_lands_in_the_recording(probe_binary: str, tmp_path: Path, closed: str) -> None:
    path = tmp_path / "r"
    run = subprocess.Popen(
        [
            "sh",
            "-c",
            f'exec "$@" {closed}',
            "sh",
            probe_binary,
            "timer",
            "-a",
            CPU,
            "--latency=off",
            "--allow-difference",
            "--record",
            str(path),
        ],
        stdout=subprocess.DEVNULL,
    )
    try:
        while not path.exists() or b"\n" not in path.read_bytes():
            assert run.poll() is None
            time.sleep(0.01)
        run.send_signal(signal.SIGINT)  # there is a message at the end, and a table
        assert run.wait(30) == 130
    finally:
        run.kill()
    assert read_recording(path).outcome is Outcome.ABORTED
    assert path.read_bytes().endswith(b"}\n")


def test_a_recording_to_a_closed_output_is_not_lost_in_silence(probe_binary: str) -> None:
    done = subprocess.run(
        [
            "sh",
            "-c",
            'exec "$@" 1>&-',
            "sh",
            probe_binary,
            "timer",
            "-a",
            CPU,
            "-D",
            "100ms",
            "--allow-difference",
            "--record",
            "-",
        ],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode in (2, 4)
    assert "recording" in done.stderr
