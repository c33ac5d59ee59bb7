# SPDX-License-Identifier: GPL-2.0-or-later
"""Each primitive's hand-over is made to fail: by a call that claims success and does nothing, by a partner's death.

A probe that measured regardless would be quick and wrong; every one of these must end as ``failed``, soon.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from fastenough.model import Outcome
from fastenough.recording import read_recording
from tests.support.privileges import needs_root
from tests.support.tools import program

pytestmark = [pytest.mark.untimed, needs_root("real-time policies")]

NOT_GIVEN = "the waiter returned"
STUCK = "no act completed within 300 ms"
STUCK_AFTER, PATIENCE = "300ms", "10s"
"""When a probe calls itself stuck: soon where that is to be seen, else later than a busy machine keeps an ordinary
process waiting, as the partner of shm is one."""
WITHIN_S = 60
"""The time-out (0.3 s), what the frame waits for a thread that never returns (5 s), and a busy machine."""

CASES = [
    ("semaphore", "nothing:sem_post:200", STUCK),
    ("semaphore", "nothing:sem_wait:200", NOT_GIVEN),
    ("semaphore", "die:sem_wait:200", STUCK),
    ("futex", "nothing:futex:200", STUCK),
    ("eventfd", "nothing:write:200", STUCK),
    ("eventfd", "nothing:read:200", NOT_GIVEN),
    ("signal", "nothing:pthread_sigqueue:200", STUCK),
    ("signal", "nothing:sigwaitinfo:200", NOT_GIVEN),
    ("mqueue", "nothing:mq_send:200", STUCK),
    ("mqueue", "nothing:mq_receive:200", NOT_GIVEN),
    ("mqueue", "die:mq_send:200", STUCK),
    ("barrier", "nothing:pthread_barrier_wait:201", NOT_GIVEN),
    ("barrier", "nothing:pthread_barrier_wait:200", STUCK),
    ("barrier", "die:pthread_barrier_wait:200", STUCK),
    ("condvar", "nothing:pthread_cond_signal:200", STUCK),
    ("condvar", "die:pthread_cond_signal:200", STUCK),
    ("mutex", "nothing:pthread_mutex_lock:1", "does not lock"),
    ("mutex", "nothing:pthread_mutex_unlock:500", STUCK),
    ("mutex-contended", "nothing:pthread_mutex_lock:200", NOT_GIVEN),
    ("mutex-contended", "nothing:pthread_mutex_unlock:200", STUCK),
    ("mutex-pi", "nothing:pthread_mutex_lock:200", NOT_GIVEN),
    ("mutex-pi", "nothing:pthread_mutex_unlock:200", STUCK),
    ("inversion", "nothing:pthread_mutexattr_setprotocol:2", "nothing was inherited"),
    ("inversion", "nothing:sem_post:203", STUCK),
    ("inversion", "nothing:sem_post:204", "nothing was inverted"),
    ("inversion", "nothing:sem_post:202", STUCK),
    ("spinlock", "never:pthread_spin_lock:2000", "both CPUs held"),
    ("spinlock", "nothing:pthread_spin_unlock:2000", STUCK),
    ("spinlock", "die:pthread_spin_lock:5000", STUCK),
    ("switch", "never:sched_yield:200", STUCK),
    ("fifo", "nothing:write:200", "is not the one that was sent"),
    ("fifo", "nothing:read:200", "is not the one that was sent"),
    ("fifo", "die:read:200", STUCK),
    ("fifo-message", "nothing:write:200", STUCK),
    ("fifo-message", "nothing:read:200", NOT_GIVEN),
    ("shm", "nothing:memcpy:50", "torn, stale or not the one"),
    ("jitter", "nothing:memcpy:50", "torn, stale or not the one"),
]


@pytest.fixture(scope="module")
def faulty_probe(build_directory: Path) -> Path:
    return program(build_directory, "target/probe/faulty-probe")


def _two_cpus() -> bool:
    return len(os.sched_getaffinity(0)) > 1


@pytest.mark.slow
@pytest.mark.parametrize(("probe", "fault", "reason"), CASES, ids=[f"{probe} {fault}" for probe, fault, _ in CASES])
def test_a_hand_over_that_fails_fails_the_run(
    faulty_probe: Path, tmp_path: Path, probe: str, fault: str, reason: str
) -> None:
    if probe in ("spinlock", "shm") and not _two_cpus():
        pytest.skip("one CPU")
    begin_s = time.monotonic()
    done = subprocess.run(
        [
            str(faulty_probe),
            probe,
            "--timeout=300ms",
            "-D300s",
            "-i500us",
            "--quiet",
            "--allow-difference",
            f"--record={tmp_path / 'r'}",
        ],
        env={**os.environ, "FAULT": fault},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert time.monotonic() - begin_s < WITHIN_S
    recording = read_recording(tmp_path / "r")
    assert done.returncode == 4, done.stderr
    assert recording.outcome is Outcome.FAILED
    assert recording.end is not None
    assert any(reason in said for said in recording.end.reasons), recording.end.reasons


def test_without_a_fault_the_same_build_measures(faulty_probe: Path, tmp_path: Path) -> None:
    subprocess.run(
        [
            str(faulty_probe),
            "semaphore",
            "-l300",
            "-i500us",
            "--quiet",
            "--allow-difference",
            f"--record={tmp_path / 'r'}",
        ],
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=120,
    )
    assert read_recording(tmp_path / "r").outcome is Outcome.COMPLETED


def test_a_pipe_that_fills_slowly_is_no_dead_partner(faulty_probe: Path, tmp_path: Path) -> None:
    """On one CPU the reader of 10-byte blocks runs only when the writer has filled the pipe: here after two seconds."""
    done = subprocess.run(
        [
            str(faulty_probe),
            "fifo",
            "--timeout=300ms",
            "-D3s",
            "--quiet",
            "--allow-difference",
            f"--record={tmp_path / 'r'}",
        ],
        env={**os.environ, "FAULT": "slow:write:1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    end = read_recording(tmp_path / "r").end
    assert end is not None and not any(STUCK in said for said in end.reasons)
    assert done.returncode == 0, done.stderr
