# SPDX-License-Identifier: GPL-2.0-or-later
"""What was granted must also be kept: a change in mid-run fails the run and names thread, before and after."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fastenough.analysis import judge
from fastenough.model import Outcome, Requirement, Verdict
from fastenough.recording import Recording, read_recording
from fastenough.recording.head import SettingChange
from tests.support.privileges import needs_root

CPU = max(os.sched_getaffinity(0))
OTHER = min(os.sched_getaffinity(0))

needs_two = pytest.mark.skipif(CPU == OTHER, reason="needs two CPUs: a thread is moved to another one")
pytestmark = needs_root("real-time policies")


def _change_policy(thread: int) -> None:
    os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))


def _change_priority(thread: int) -> None:
    os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(97))


def _change_affinity(thread: int) -> None:
    os.sched_setaffinity(thread, {OTHER})


def _move_and_back(thread: int) -> None:
    _change_affinity(thread)
    path = Path(f"/proc/{thread}/stat")
    while int(path.read_text().rpartition(")")[2].split()[36]) == CPU:  # field 39: the CPU it last ran on
        pass
    os.sched_setaffinity(thread, {CPU})


@pytest.fixture
def measured(probe_binary: str, tmp_path: Path) -> Callable[[Callable[[int], None]], tuple[Recording, int, str]]:
    """A run whose worker is meddled with after its first interval: recording, exit status, message."""

    def run(meddle: Callable[[int], None]) -> tuple[Recording, int, str]:
        lines = []
        command = [probe_binary, "timer", "-D", "1s", "-a", str(CPU), "--report", "50ms", "--record", "-"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None and process.stderr is not None
            for line in process.stdout:
                lines.append(line)
                if json.loads(line)["type"] == "interval" and json.loads(line)["seq"] == 0:
                    (worker,) = {int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir()} - {process.pid}
                    meddle(worker)
            error = process.stderr.read().decode()
        (tmp_path / "r").write_bytes(b"".join(lines))
        return read_recording(tmp_path / "r"), process.returncode, error

    return run


Measured = Callable[[Callable[[int], None]], tuple[Recording, int, str]]


def _changes(recording: Recording) -> tuple[SettingChange, ...]:
    assert recording.end is not None
    assert all((change.thread, change.cpu) == ("timer", CPU) for change in recording.end.changes)
    return recording.end.changes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("meddle", "name", "before", "after"),
    [
        (_change_policy, "policy", "fifo", "other"),
        (_change_priority, "priority", 98, 97),
        pytest.param(_change_affinity, "affinity", str(CPU), str(OTHER), marks=needs_two),
        pytest.param(_move_and_back, "migrations", 0, 2, marks=needs_two),
    ],
)
def test_a_change_in_mid_run_fails_the_run(
    measured: Measured, meddle: Callable[[int], None], name: str, before: object, after: object
) -> None:
    recording, status, error = measured(meddle)
    assert (recording.outcome, status) == (Outcome.FAILED, 4)
    assert recording.end is not None
    (reason,) = recording.end.reasons
    assert "thread timer" in reason and f"CPU {CPU}" in reason and reason in error
    changes = {change.name: (change.before, change.after) for change in _changes(recording)}
    assert changes.get(name) == (before, after), changes
    assert judge([recording], Requirement(10**9)).verdict is Verdict.BROKEN


def test_where_nothing_was_changed_nothing_is_said(measured: Measured) -> None:
    recording, status, _ = measured(lambda worker: None)
    assert (recording.outcome, status, _changes(recording)) == (Outcome.COMPLETED, 0, ())
