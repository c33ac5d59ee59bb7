# SPDX-License-Identifier: GPL-2.0-or-later
"""The monitor's recordings in a ring: each has the wake-ups of its own time, with maxima and culprits of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.monitored import build_monitor
from tests.support.privileges import needs_kernel_pids, needs_root
from tests.support.processes import eventually
from tests.support.rings import files, follows, notes, recordings

PERIOD_NS = 500_000
EVENTS = 5000
"""Limit of events in a recording of the monitor; the greatest ones are recorded beyond it."""
pytestmark = [needs_root("the monitor"), needs_kernel_pids]


@pytest.fixture(scope="module")
def monitor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_monitor(tmp_path_factory.mktemp("build"))


def start(monitor: Path, ring: Path, pid: int, *options: str) -> subprocess.Popen[bytes]:
    argv = [
        str(monitor),
        "--quiet",
        "--until-interrupt",
        f"--pid={pid}",
        "--policy=any",
        "--k=10",
        "--interval-k=4",
        f"--ring={ring}",
        *(options or ("--report=50ms", "--ring-cycle=100ms")),
    ]
    return subprocess.Popen(argv, stdout=subprocess.DEVNULL)


@pytest.fixture
def task(probe_binary: str) -> Iterator[subprocess.Popen[bytes]]:
    argv = [
        probe_binary,
        "timer",
        f"--interval={PERIOD_NS}ns",
        "--policy=other",
        "--allow-difference",
        "--affinity=0",
        "--default-system",
        "--quiet",
        "--duration=300s",
    ]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as process:
        yield process
        process.kill()


def slept(process: int) -> int:
    """How often its threads have given up a CPU by themselves so far."""
    told = [status.read_text() for status in Path(f"/proc/{process}/task").glob("*/status")]
    return sum(int(line.split()[1]) for text in told for line in text.splitlines() if line.startswith("voluntary_"))


@pytest.mark.slow
def test_each_recording_has_maxima_and_culprits_of_its_own(
    monitor: Path, task: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    """Recordings turn while the programs in the kernel go on counting: no maximum comes into a neighbour's."""
    ring = tmp_path / "ring"
    watching = start(monitor, ring, task.pid)
    try:
        assert eventually(lambda: files(ring), 60)
        before = slept(task.pid)
        assert eventually(lambda: len(files(ring)) >= 40, 60)
        woken = slept(task.pid) - before
    finally:
        watching.send_signal(signal.SIGINT)
        assert watching.wait(30) == 0
    found = recordings(ring)  # the reader refuses an event above the maximum of its series
    assert all(follows(one, other) for one, other in pairwise(found))
    maxima = blamed = 0
    for recording in found:
        for series in recording.series:
            total = recording.totals[series.id]
            told = [event for event in recording.events if event.series == series.id and event.kind == "max"]
            assert total.k == 10 and series.k == 4
            assert max((event.value or 0 for event in told), default=None) == total.maximum
            maxima += bool(told)
            blamed += bool(told) and told[-1].culprit is not None
        assert recording.end is not None
        for name, value in recording.end.counters.items():
            if name.startswith("monitor_"):
                assert value == sum(one.counters[name] or 0 for one in recording.intervals), "of this recording alone"
    assert maxima > 40 and blamed > 0.8 * maxima
    due = (found[-1].stopped.mono_ns - found[0].head.begin.mono_ns) // PERIOD_NS
    stations = [
        recording.totals[series.id].total for recording in found for series in recording.named("expiry-to-running")
    ]
    assert 0.9 * woken < sum(stations) <= due + 3, "of the few wake-ups that are not counted here, most are by others"


def _watch(monitor: Path, ring: Path, pid: int, count: int, *options: str) -> None:
    """Watch until the ring has so many recordings."""
    watching = start(monitor, ring, pid, *options)
    try:
        assert eventually(partial(_many, ring, count), 60)
    finally:
        watching.send_signal(signal.SIGINT)
        assert watching.wait(30) == 0


def test_each_disturbance_is_in_the_recording_that_counts_it(
    monitor: Path, task: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    """The first interrupt of a recording is a maximum at once, often while the one before is still being read."""
    ring = tmp_path / "ring"
    _watch(monitor, ring, task.pid, 25, "--report=50ms", "--ring-cycle=100ms", "--noise")
    found = recordings(ring)  # the reader refuses an event above the maximum of its series
    for recording in found:
        for series in recording.named("noise-interrupt"):
            told = [event.value or 0 for event in recording.events if event.series == series.id]
            assert max(told, default=None) == recording.totals[series.id].maximum
    assert any(
        recording.totals[series.id].total for recording in found for series in recording.named("noise-interrupt")
    )


def _many(ring: Path, count: int) -> bool:
    return len(files(ring)) >= count


@pytest.mark.slow
def test_the_greatest_events_precede_the_last_interval(
    monitor: Path, task: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    """The publisher sends no event that follows it; the recording has no room for further events by then."""
    ring = tmp_path / "ring"
    _watch(monitor, ring, task.pid, 3, "--report=500ms", "--ring-cycle=5s", "--threshold=1ns")
    for path, recording in zip(files(ring)[:2], recordings(ring), strict=False):
        kinds = [json.loads(line)["type"] for line in path.read_text().splitlines()]
        assert kinds[-2:] == ["interval", "end"]
        assert len(recording.events) > EVENTS
        assert recording.end is not None and recording.end.events_dropped > 0
        for series in recording.series:
            maxima = [event.value or 0 for event in recording.events if event.series == series.id]
            assert max(maxima, default=None) == recording.totals[series.id].maximum


def test_killed_monitors_leave_sound_recordings_and_tell_the_gap(
    monitor: Path, task: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    ring = tmp_path / "ring"
    for _ in range(5):
        before = len(files(ring))
        watching = start(monitor, ring, task.pid)
        assert eventually(partial(_many, ring, before + 2), 60)
        time.sleep(0.03)
        watching.kill()
        watching.wait()
    watching = start(monitor, ring, task.pid)
    before = len(files(ring))
    assert eventually(lambda: len(files(ring)) > before + 1, 60)
    watching.send_signal(signal.SIGINT)
    assert watching.wait(30) == 0
    found = recordings(ring)
    assert sum(len(notes(recording, "gap: ")) for recording in found) == 5
    for one, other in pairwise(found):
        assert bool(notes(other, "gap: ")) == (not follows(one, other))
