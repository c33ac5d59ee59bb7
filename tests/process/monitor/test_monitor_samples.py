# SPDX-License-Identifier: GPL-2.0-or-later
"""Every wake-up kept by the monitor: the file says what its histograms say, and what the task itself saw."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import numpy as np

from fastenough.analysis.station_delays import STATIONS, SUM, station_agreement, wakeups
from fastenough.recording import Histogram, Recording, read_recording
from fastenough.recording.samples import SampleFile, read_samples
from tests.support.monitored import watching
from tests.support.privileges import needs_kernel_pids, needs_root
from tests.support.tools import require

pytestmark = needs_root("BPF and real-time priorities")
PERIOD_NS = 1_000_000


def _watch(probe: str, monitor: Path, place: Path) -> tuple[Recording, SampleFile, SampleFile]:
    """The monitor's recording and samples of a timer, and the timer's own samples."""
    cpu = str(min(os.sched_getaffinity(0)))
    task = subprocess.Popen(
        [
            probe,
            "timer",
            "-a",
            cpu,
            "-p",
            "90",
            "-i",
            f"{PERIOD_NS}ns",
            "--quiet",
            "--record=-",
            "--samples",
            str(place / "task"),
        ],
        stdout=subprocess.PIPE,
    )
    assert task.stdout is not None
    assert json.loads(task.stdout.readline())["type"] == "head"
    try:
        subprocess.run(
            [
                monitor,
                "monitor",
                "-a",
                cpu,
                "--pid",
                str(task.pid),
                "-D",
                "2s",
                "--report",
                "100ms",
                "--quiet",
                "--record",
                str(place / "record"),
                "--samples",
                str(place / "seen"),
            ],
            check=True,
            timeout=60,
            stdout=subprocess.DEVNULL,
        )
    finally:
        task.send_signal(signal.SIGINT)
        task.communicate(timeout=60)
    return read_recording(place / "record"), read_samples(place / "seen"), read_samples(place / "task")


@needs_kernel_pids
def test_samples_histograms_and_the_task_agree(probe_binary: str, monitor_binary: Path, tmp_path: Path) -> None:
    recording, kept, task = _watch(probe_binary, monitor_binary, tmp_path)
    assert kept.complete and recording.end is not None and recording.end.samples is not None
    assert recording.end.samples.stored == sum(len(one.due_ns) for one in kept.series.values())
    assert recording.end.samples.lost == recording.end.counters["monitor_unkept"] == 0
    by_name = {series.name: kept.series[series.id] for series in recording.head.series if series.id in kept.series}
    assert {*STATIONS, SUM} <= set(by_name)
    for series in recording.head.series:
        total = recording.totals[series.id]
        values = kept.series[series.id].latency_ns.tolist() if series.id in kept.series else []
        if series.name.startswith(("expiry-", "interrupt-", "runnable-", "running-")):
            again = Histogram.from_values(values, total.k)
            assert (again.index == total.index).all() and (again.count == total.count).all()
            assert (again.total, again.maximum, again.sum) == (total.total, total.maximum, total.sum)
    (own,) = task.series.values()
    seen = wakeups({name: by_name[name] for name in STATIONS})
    assert (seen.sum_ns == by_name[SUM].latency_ns[np.searchsorted(by_name[SUM].due_ns, seen.due_ns)]).all()
    assert ((seen.due_ns - own.due_ns[0]) % PERIOD_NS == 0).all()
    agreed = station_agreement(own, seen, {})
    assert agreed.matched == len(seen.due_ns) > 1000
    assert agreed.later


def test_a_task_that_is_not_asked_for_is_not_kept(probe_binary: str, monitor_binary: Path, tmp_path: Path) -> None:
    cpu = str(min(os.sched_getaffinity(0)))
    subprocess.run(
        [
            monitor_binary,
            "monitor",
            "-a",
            cpu,
            "--comm",
            "nobody-at-all",
            "-D",
            "300ms",
            "--quiet",
            "--record",
            str(tmp_path / "r"),
            "--samples",
            str(tmp_path / "s"),
        ],
        check=True,
        timeout=60,
        stdout=subprocess.DEVNULL,
    )
    assert read_samples(tmp_path / "s").series == {}


def test_the_file_of_samples_is_new(monitor_binary: Path, tmp_path: Path) -> None:
    (tmp_path / "s").touch()
    done = subprocess.run(
        [monitor_binary, "monitor", "-D", "100ms", "--samples", str(tmp_path / "s")],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    assert "name a new file" in done.stderr


def test_cyclictest_saw_each_wake_up_end_behind_its_stations(monitor_binary: Path, tmp_path: Path) -> None:
    """It says no due times: its k-th longest latency is not below the k-th longest sum of stations, whole us."""
    require("cyclictest")
    cpu = str(max(os.sched_getaffinity(0)))
    with watching(monitor_binary, tmp_path / "record", "--comm=cyclictest", f"--samples={tmp_path / 'seen'}") as watch:
        said = subprocess.run(
            ["cyclictest", "-m", "-t1", "-a", cpu, "-p", "90", "-i", "1000", "-l", "2000", "-v"],
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        ).stdout
    own_us = np.array([int(line.split(":")[2]) for line in said.splitlines() if line.count(":") == 2], dtype=np.int64)
    recording = watch.recording()
    kept = read_samples(tmp_path / "seen").series
    sums = np.concatenate([kept[series.id].latency_ns for series in recording.named(SUM) if series.id in kept])
    assert recording.end is not None
    assert len(own_us) >= 2000
    suppressed = recording.end.counters["monitor_suppressed"] or 0
    assert len(own_us) - suppressed - len(own_us) // 100 <= len(sums) <= len(own_us) + 1
    longest = np.sort(own_us)[::-1][: len(sums)] * 1000 + 999
    assert (longest >= np.sort(sums)[::-1][: len(own_us)]).all()
