# SPDX-License-Identifier: GPL-2.0-or-later
"""A CPU unplugged in mid-run, and a quota of the unified hierarchy: on a virtual board, where they disturb nobody."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fastenough.analysis import judge
from fastenough.analysis.machine import counter_total
from fastenough.model import Outcome, Requirement, Verdict
from fastenough.recording import Recording
from fastenough.virtual.board import VirtualBoard
from fastenough.virtual.probe import install
from tests.support.virtual_boards import booted, parsed

pytestmark = pytest.mark.untimed

_CPU_1 = "/sys/devices/system/cpu/cpu1/online"
_LIMITED = """
mkdir -p /tmp/groups && mount -t cgroup2 none /tmp/groups
echo +cpu >/tmp/groups/cgroup.subtree_control && mkdir /tmp/groups/small || exit 1
echo "20000 100000" >/tmp/groups/small/cpu.max
echo $$ >/tmp/groups/small/cgroup.procs || exit 1
(while :; do :; done) &
"$@"
status=$?
kill $!
exit $status
"""


@pytest.fixture(scope="module")
def board() -> Iterator[VirtualBoard]:
    for one in booted("stock"):
        install(one.link)
        yield one


def _probe(board: VirtualBoard, duration: str) -> list[str]:
    return [
        "/bin/fastenough-probe",
        "timer",
        "--interval",
        "10ms",
        "--duration",
        duration,
        "--allow-difference",
        "--record",
        "-",
    ]


def _broken_by(recording: Recording) -> str:
    [judgment] = judge([recording], Requirement(10**12)).judgments
    return " ".join(finding.text for finding in judgment.findings if finding.verdict is Verdict.BROKEN)


def test_a_cpu_unplugged_in_mid_run_breaks_it(board: VirtualBoard, tmp_path: Path) -> None:
    process = board.link.start(_probe(board, "4s"))
    lines = process.lines(60.0)
    collected = []
    for line in lines:
        collected.append(line)
        if b'"type":"interval"' in line:
            break
    board.link.write(_CPU_1, b"0")
    try:
        collected += list(lines)
    finally:
        board.link.write(_CPU_1, b"1")
    recording = parsed(collected, tmp_path)
    assert counter_total(recording, "migrations")
    assert counter_total(recording, "steal_ns") is None
    values = [value for interval in recording.intervals for value in interval.counters.values() if value is not None]
    assert min(values) >= 0
    assert recording.outcome is Outcome.FAILED or "moved to another" in _broken_by(recording)


def test_a_used_up_quota_of_the_unified_hierarchy_is_counted(board: VirtualBoard, tmp_path: Path) -> None:
    words = ["sh", "-c", _LIMITED, "sh", *_probe(board, "2s")]
    process = board.link.start(words)
    recording = parsed(list(process.lines(60.0)), tmp_path)
    assert process.wait(30.0) == 0, process.stderr()
    assert counter_total(recording, "cgroup_throttled")
    assert "used up its CPU quota" in _broken_by(recording)
