# SPDX-License-Identifier: GPL-2.0-or-later
"""What control groups withhold from a probe is counted by it."""

from __future__ import annotations

from pathlib import Path

from fastenough.analysis import judge
from fastenough.analysis.machine import counter_total, events_of
from fastenough.model import Requirement, Verdict
from fastenough.recording import Recording, read_recording
from tests.support.control_groups import inside, own_group

GENEROUS_US = "200000"
"""Of a second; all groups together may have no more than the system, and other tests may run at the same time."""


def _measured(probe_binary: str, folder: Path, group: Path, *before: str) -> Recording:
    path = folder / "r.jsonl"
    done = inside(
        group, [*before, probe_binary, "timer", "--interval", "1ms", "--duration", "2500ms", "--record", str(path)]
    )
    assert done.returncode == 0, done.stderr
    return read_recording(path)


def test_a_used_up_quota_is_counted(probe_binary: str, tmp_path: Path) -> None:
    with own_group("cpu") as group:
        (group / "cpu.rt_runtime_us").write_text(GENEROUS_US)
        (group / "cpu.cfs_quota_us").write_text("20000")
        busy = 'timeout 60 sh -c "while :; do :; done" & "$@"; status=$?; kill $!; exit $status'
        recording = _measured(probe_binary, tmp_path, group, "sh", "-c", busy, "sh")
        told = int((group / "cpu.stat").read_text().split("nr_throttled ")[1].split()[0])
    counted = counter_total(recording, "cgroup_throttled")
    assert counted is not None
    assert 0 < counted <= told
    [judgment] = judge([recording], Requirement(10**9)).judgments
    assert judgment.verdict is Verdict.BROKEN


def test_a_quota_of_the_group_above_counts_too(probe_binary: str, tmp_path: Path) -> None:
    with own_group("cpu") as group:
        for folder in (group, group / "inner"):
            folder.mkdir(exist_ok=True)
            (folder / "cpu.rt_runtime_us").write_text(GENEROUS_US)
        (group / "cpu.cfs_quota_us").write_text("20000")
        try:
            busy = 'timeout 60 sh -c "while :; do :; done" & "$@"; status=$?; kill $!; wait; exit $status'
            recording = _measured(probe_binary, tmp_path, group / "inner", "sh", "-c", busy, "sh")
        finally:
            (group / "inner").rmdir()
    assert counter_total(recording, "cgroup_throttled")


def test_a_used_up_real_time_budget_is_throttling(probe_binary: str, tmp_path: Path) -> None:
    with own_group("cpu") as group:
        (group / "cpu.rt_runtime_us").write_text("3000")
        recording = _measured(probe_binary, tmp_path, group)
    assert counter_total(recording, "throttled")
    assert events_of(recording, "throttled")
    [judgment] = judge([recording], Requirement(1)).judgments
    assert judgment.verdict is Verdict.BROKEN


def test_a_group_that_grants_enough_withholds_nothing(probe_binary: str, tmp_path: Path) -> None:
    with own_group("cpu") as group:
        (group / "cpu.rt_runtime_us").write_text(GENEROUS_US)
        recording = _measured(probe_binary, tmp_path, group)
    assert (counter_total(recording, "cgroup_throttled"), counter_total(recording, "throttled")) == (0, 0)
