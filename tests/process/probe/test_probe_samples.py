# SPDX-License-Identifier: GPL-2.0-or-later
"""Every sample kept: the file says what the histogram says, and says what it lacks."""

from __future__ import annotations

import os
import signal
import subprocess
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from fastenough.files import Untrusted
from fastenough.model import BadInput, ExitStatus
from fastenough.recording import Histogram, read_recording
from fastenough.recording.samples import SampleFile, read_samples
from tests.support.privileges import needs_root, require_root
from tests.support.processes import eventually

ORDINARY = ["--policy", "other", "--allow-difference"]


def _command(probe: str, directory: Path, *arguments: str) -> list[str]:
    return [
        probe,
        "timer",
        "--quiet",
        "--record",
        str(directory / "r"),
        "--samples",
        str(directory / "s"),
        *ORDINARY,
        *arguments,
    ]


def _agree(directory: Path, kept: SampleFile) -> None:
    """What is kept and what was lost are the values of the histogram, in the order of their due times."""
    recording = read_recording(directory / "r")
    end = recording.end
    assert end is not None
    told = end.samples
    assert told is not None
    assert sum(len(samples.due_ns) for samples in kept.series.values()) == told.stored
    assert sum(samples.lost for samples in kept.series.values()) == told.lost
    for series in recording.named("wakeup"):
        samples, total = kept.series[series.id], recording.totals[series.id]
        assert len(samples.due_ns) + samples.lost == total.total
        assert (np.diff(samples.due_ns) > 0).all()
        if not samples.lost:
            again = Histogram.from_values(samples.latency_ns.tolist(), total.k)
            assert (again.index == total.index).all() and (again.count == total.count).all()
            assert (again.minimum, again.maximum, again.sum) == (total.minimum, total.maximum, total.sum)


def test_samples_and_histogram_hold_the_same_values(probe_binary: str, tmp_path: Path) -> None:
    subprocess.run(_command(probe_binary, tmp_path, "-i", "100us", "-D", "1s"), check=True, timeout=60)
    kept = read_samples(tmp_path / "s")
    assert kept.complete
    assert sum(len(samples.due_ns) for samples in kept.series.values()) > 1000
    _agree(tmp_path, kept)


def test_due_times_lie_on_the_grid(probe_binary: str, tmp_path: Path) -> None:
    subprocess.run(_command(probe_binary, tmp_path, "-i", "1ms", "-D", "500ms", "-t", "1"), check=True, timeout=60)
    (samples,) = read_samples(tmp_path / "s").series.values()
    assert (np.diff(samples.due_ns) % 1_000_000 == 0).all()
    skipped = int((np.diff(samples.due_ns) // 1_000_000 - 1).sum())
    after_the_last = max(0, int(samples.latency_ns[-1]) // 1_000_000 - 1)
    assert skipped + after_the_last == read_recording(tmp_path / "r").missed(0)


_MOST_MISSED = 40_000
"""Of the periods of one second, so that a ring of 65,536 samples fills in half of it."""


def _held_up(probe: str, directory: Path, cpu: str) -> bool:
    """Hold up what is ordinary on that CPU; False where the hog itself came too late each time."""
    record = directory / "hog"
    record.unlink(missing_ok=True)
    done = subprocess.run(
        [
            probe,
            "hog",
            "-a",
            cpu,
            "-p",
            "70",
            "--sizes",
            "500ms",
            "--each",
            "2",
            "-i",
            "1200ms",
            "-q",
            "--lead",
            "40ms",
            "--record",
            str(record),
        ],
        stdout=subprocess.DEVNULL,
        check=False,
        timeout=60,
    )
    acts = read_recording(record).totals[0].total if record.exists() else 0
    assert done.returncode == (ExitStatus.DONE if acts else ExitStatus.BROKEN)
    return acts > 0


def _has_lost(samples: Path) -> bool:
    """Whether a file that is being written says that samples were lost."""
    return any(series.lost for series in read_samples(samples).series.values())


@pytest.mark.slow
@needs_root("real-time priorities")
def test_what_there_was_no_room_for_is_counted(probe_binary: str, tmp_path: Path) -> None:
    """A reporter held up for longer than the ring lasts loses samples, and the file says how many.

    It shares its CPU with the measuring thread and a hog whose priority lies between the two.
    """
    cpu = str(max(os.sched_getaffinity(0)))
    pinned, real_time = ("taskset", "-c", cpu), ("--policy", "fifo", "-p", "80")
    (tmp_path / "alone").mkdir()
    alone = [*pinned, *_command(probe_binary, tmp_path / "alone", "-i", "6us", "-D", "1s"), *real_time]
    subprocess.run(alone, check=True, timeout=60)
    if (missed := read_recording(tmp_path / "alone/r").missed(0)) > _MOST_MISSED:
        pytest.skip(f"the ring fills only where a wake-up takes less than 6 us: {missed} of 166,667 periods missed")
    running = subprocess.Popen([*pinned, *_command(probe_binary, tmp_path, "-i", "6us", "-D", "180s"), *real_time])
    assert eventually(lambda: (tmp_path / "s").exists() and (tmp_path / "s").stat().st_size > 100_000)
    # where the host takes the CPU from the hog, nothing was measured meanwhile, and there is room
    assert any(
        _held_up(probe_binary, tmp_path, cpu) and eventually(partial(_has_lost, tmp_path / "s"), 5) for _ in range(5)
    )
    running.send_signal(signal.SIGINT)
    running.wait(60)
    kept = read_samples(tmp_path / "s")
    assert sum(samples.lost for samples in kept.series.values()) > 0
    _agree(tmp_path, kept)


def test_a_killed_run_leaves_readable_samples(probe_binary: str, tmp_path: Path) -> None:
    running = subprocess.Popen(_command(probe_binary, tmp_path, "-i", "100us"))
    assert eventually(lambda: (tmp_path / "s").exists() and (tmp_path / "s").stat().st_size > 100_000)
    running.send_signal(signal.SIGKILL)
    running.wait(60)
    kept = read_samples(tmp_path / "s")
    assert not kept.complete
    assert all(len(samples.due_ns) for samples in kept.series.values())
    content = (tmp_path / "s").read_bytes()
    (tmp_path / "torn").write_bytes(content[:-3])
    assert not read_samples(tmp_path / "torn").complete


@pytest.mark.slow
def test_a_full_disk_fails_the_run_and_keeps_what_was_written(probe_binary: str, tmp_path: Path) -> None:
    require_root("it mounts a small disk")
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("may not make a file system of its own")
    try:
        command = [
            probe_binary,
            "timer",
            "-q",
            "--record",
            str(tmp_path / "r"),
            "--samples",
            str(disk / "s"),
            *ORDINARY,
        ]
        done = subprocess.run(
            [*command, "-i", "50us", "-D", "20s"], capture_output=True, text=True, timeout=60, check=False
        )
        assert (done.returncode, "No space left" in done.stderr) == (4, True)
        kept = read_samples(disk / "s")
        assert not kept.complete and kept.series
    finally:
        subprocess.run(["umount", disk], check=True)
    end = read_recording(tmp_path / "r").end
    assert end is not None and end.outcome == "failed"
    assert end.samples is not None
    assert end.samples.stored + end.samples.lost == sum(said.taken for said in list(end.series.values())[::2])


def test_an_existing_file_is_not_touched(probe_binary: str, tmp_path: Path) -> None:
    (tmp_path / "s").write_text("mine")
    done = subprocess.run(_command(probe_binary, tmp_path, "-D", "100ms"), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "name a new file" in done.stderr
    assert (tmp_path / "s").read_text() == "mine"


def test_what_is_no_file_of_samples_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s"
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(Untrusted):
        read_samples(tmp_path / "fifo")
    for content in (b"", b"FESAMPLE", b"{}" * 20, b"FESAMPLE" + b"\1\0\0\0\x10\0\0\0" + b"\xfe" * 16):
        path.write_bytes(content)
        with pytest.raises(BadInput):
            read_samples(path)
