# SPDX-License-Identifier: GPL-2.0-or-later
"""The probe's recordings hold what they claim: every method, every policy, every way a run can end."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import random
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from fastenough.model import BadInput, Outcome
from fastenough.recording import Recording, read_recording
from fastenough.recording.head import RecordedSetting
from tests.support.presence import present
from tests.support.privileges import needs_root
from tests.support.processes import eventually, recorded, rights

GRID_METHODS = ["clock_nanosleep-abs", "posix-timer", "setitimer", "timerfd", "futex"]
RELATIVE_METHODS = ["clock_nanosleep-rel", "nanosleep", "ppoll"]
DURATION_NS = 400_000_000
INTERVAL_NS = 500_000


def _record(probe: str, path: Path, *arguments: str) -> Recording:
    """A short run, allowed to differ from what it asks where this machine grants less."""
    path.unlink(missing_ok=True)
    subprocess.run(
        [probe, *arguments, "--record", str(path), "--quiet", "--allow-difference"],
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=60,
    )
    return read_recording(path)


def _timer(probe: str, path: Path, *arguments: str) -> Recording:
    return _record(probe, path, "timer", "-i", "500us", "-D", "400ms", "--report", "100ms", *arguments)


def _corrected_by_wakeup(recording: Recording) -> Iterator[tuple[int, int, int, int]]:
    """Per thread: acts that took place, acts missed, values corrected for them and lost."""
    for wakeup, corrected in zip(recording.named("wakeup"), recording.named("wakeup_corrected"), strict=True):
        assert recording.missed(wakeup.id) == recording.missed(corrected.id)
        yield (
            recording.totals[wakeup.id].total,
            recording.missed(wakeup.id),
            recording.totals[corrected.id].total,
            recording.lost(corrected.id),
        )


@pytest.mark.parametrize("method", GRID_METHODS + RELATIVE_METHODS)
def test_every_method_accounts_for_every_period(probe_binary: str, tmp_path: Path, method: str) -> None:
    recording = _timer(probe_binary, tmp_path / "r", "--method", method, "--affinity", "0")
    assert recording.outcome is Outcome.COMPLETED
    assert recording.head.parameters["method"] == method
    ((taken, missed, corrected, lost),) = _corrected_by_wakeup(recording)
    assert taken + missed == corrected + lost
    assert taken > 0
    if method in GRID_METHODS:  # the grid, not the sleeper, says how many periods there were
        assert recording.end is not None
        last = recording.end.at.mono_ns - recording.head.begin.mono_ns
        assert taken + missed <= last // INTERVAL_NS + 1
        if os.geteuid() == 0:  # an ordinary thread may itself begin late, which is no act's delay
            assert taken + missed >= DURATION_NS // INTERVAL_NS - 1


@pytest.mark.parametrize("clock", ["monotonic", "realtime"])
def test_clock(probe_binary: str, tmp_path: Path, clock: str) -> None:
    recording = _timer(probe_binary, tmp_path / "r", "--clock", clock)
    assert {series.clock for series in recording.series} == {clock}
    assert all(taken + missed == corrected for taken, missed, corrected, _ in _corrected_by_wakeup(recording))


def _settings(recording: Recording, name: str) -> list[RecordedSetting]:
    return [setting for setting in recording.head.settings if setting.name == name]


@needs_root("real-time policies, mounts")
@pytest.mark.parametrize("policy", ["fifo", "rr", "deadline", "other"])
def test_policy_is_what_was_read_back(probe_binary: str, tmp_path: Path, policy: str) -> None:
    path = tmp_path / "r"
    asked = [probe_binary, "timer", "-D", "200ms", "--policy", policy, "--record", str(path), "-q"]
    process = subprocess.run(asked, capture_output=True, text=True, timeout=30, check=False)
    if policy == "deadline" and process.returncode == 2:
        assert "policy deadline is refused" in process.stderr  # said, not replaced by something else
        return
    assert process.returncode == 0, process.stderr
    recording = read_recording(path)
    granted = _settings(recording, "policy")
    assert granted and all(setting.in_effect == policy for setting in granted)
    assert ("not-real-time" in recording.head.marks) == (policy == "other")
    assert {setting.in_effect for setting in _settings(recording, "priority")} <= {98}
    assert all(setting.in_effect is True for setting in _settings(recording, "memory_lock"))


def test_every_chosen_cpu_is_measured_and_offset(probe_binary: str, tmp_path: Path) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    recording = _timer(probe_binary, tmp_path / "r", "--offset", "100us")
    assert [series.cpu for series in recording.named("wakeup")] == cpus
    assert [setting.in_effect for setting in _settings(recording, "affinity")] == [str(cpu) for cpu in cpus]


def test_loops_end_the_run(probe_binary: str, tmp_path: Path) -> None:
    recording = _record(probe_binary, tmp_path / "r", "timer", "--loops", "50", "-i", "1ms", "-a", "0")
    ((taken, *_),) = _corrected_by_wakeup(recording)
    assert (recording.outcome, taken) == (Outcome.COMPLETED, 50)


def test_intervals_cover_the_run_without_gaps(probe_binary: str, tmp_path: Path) -> None:
    recording = _timer(probe_binary, tmp_path / "r")
    assert len(recording.intervals) >= 3
    assert recording.intervals[0].begin_mono_ns >= recording.head.begin.mono_ns
    for before, after in zip(recording.intervals, recording.intervals[1:], strict=False):
        assert (after.seq, after.begin_mono_ns) == (before.seq + 1, before.end_mono_ns)
    names = {
        "steal_ns",
        "smi",
        "clock_step_ns",
        "clock_sets",
        "suspended_ns",
        "major_faults",
        "minor_faults",
        "voluntary_switches",
        "involuntary_switches",
        "migrations",
        "throttled",
        "cgroup_throttled",
        "thermal_throttled",
        "frequency_limited",
        "least_idle_ns",
        "most_idle_ns",
    }
    assert recording.end is not None and set(recording.end.counters) == names
    for name in names:
        values = [interval.counters[name] for interval in recording.intervals]
        known = [value for value in values if value is not None]
        assert all(value >= 0 for value in known)
        assert recording.end.counters[name] == (sum(known) if len(known) == len(values) else None)


def test_the_greatest_value_is_an_event(probe_binary: str, tmp_path: Path) -> None:
    recording = _timer(probe_binary, tmp_path / "r", "--affinity", "0")
    (wakeup,) = recording.named("wakeup")
    maxima = (event.value for event in recording.events if event.kind == "max" and event.series == wakeup.id)
    values = [present(value, "maximum") for value in maxima]
    assert values == sorted(values)
    assert recording.end is not None
    if recording.end.events_dropped == 0:
        assert values[-1] == recording.totals[wakeup.id].maximum


def test_threshold_is_told_and_ends_the_run_where_asked(probe_binary: str, tmp_path: Path) -> None:
    recording = _record(probe_binary, tmp_path / "r", "timer", "-D", "20s", "-b", "1ns", "-a", "0")
    assert recording.duration_ns < 10_000_000_000
    values = [event.value for event in recording.events if event.kind == "threshold"]
    assert any(present(value, "value of the event") > 1 for value in values)


def test_spin_counts_every_reading_and_leaves_the_cpu_alone(probe_binary: str, tmp_path: Path) -> None:
    recording = _record(probe_binary, tmp_path / "r", "spin", "-D", "400ms", "--report", "100ms")
    width, window = (recording.head.parameters[name] for name in ("width_ns", "window_ns"))
    assert width * 2 <= window
    for series in recording.named("gap"):
        histogram = recording.totals[series.id]
        assert histogram.total > 1000
        assert histogram.sum < recording.duration_ns


def test_json_summary_says_what_the_recording_says(probe_binary: str, tmp_path: Path) -> None:
    path = tmp_path / "r"
    done = subprocess.run(
        [probe_binary, "timer", "-D", "200ms", "--json", "--record", str(path), "--allow-difference"],
        check=True,
        capture_output=True,
        timeout=30,
    )
    summary, recording = json.loads(done.stdout), read_recording(path)
    for entry, series in zip(summary["series"], recording.series, strict=True):
        histogram = recording.totals[series.id]
        assert (entry["count"], entry["min_ns"], entry["max_ns"]) == (
            histogram.total,
            histogram.minimum,
            histogram.maximum,
        )
        rank = -(-histogram.total // 2)
        assert entry["p50_ns"] == histogram.value_at_rank(rank)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_leaves_a_valid_end(probe_binary: str, tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "r"
    with _running(probe_binary, path) as process:
        assert eventually(lambda: recorded(path))
        process.send_signal(number)
        assert process.wait(60) == 128 + number
    recording = read_recording(path)
    assert recording.outcome is Outcome.ABORTED
    assert recording.end is not None and number.name.removeprefix("SIG") in recording.end.reasons[0]


@contextlib.contextmanager
def _running(probe: str, path: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [probe, "timer", "-i", "500us", "--report", "20ms", "--record", str(path), "--allow-difference", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_kill_at_any_point_leaves_a_readable_recording(probe_binary: str, tmp_path: Path) -> None:
    chance = random.Random(2)
    with_intervals = 0
    for attempt in range(20):
        path = tmp_path / f"r{attempt}"
        with _running(probe_binary, path) as process:
            if attempt % 2:
                assert eventually(partial(recorded, path))
            time.sleep(chance.uniform(0.0, 0.3))
            process.kill()
            process.wait(60)
        try:
            recording = read_recording(path)
        except BadInput:  # before its head was written there is nothing to read
            assert not path.exists() or path.stat().st_size == 0
            continue
        assert recording.end is None and recording.cut_off
        with_intervals += bool(recording.intervals)
    assert with_intervals > 0


def test_a_reader_that_goes_away_ends_the_run(probe_binary: str) -> None:
    process = subprocess.Popen(
        [probe_binary, "timer", "--report", "20ms", "--record", "-", "--allow-difference"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None and process.stderr is not None
    assert json.loads(process.stdout.readline())["type"] == "head"
    process.stdout.close()
    error = process.stderr.read().decode()
    assert process.wait(60) == 4
    assert "cannot be continued" in error and error.count("\n") == 1


@needs_root("real-time policies, mounts")
def test_a_full_disk_keeps_what_was_recorded(probe_binary: str, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(disk)], check=False).returncode:
        pytest.skip("this machine lets nobody mount a tmpfs")
    try:
        with _running(probe_binary, disk / "r") as process:
            assert process.wait(30) == 4
            assert process.stderr is not None
            error = process.stderr.read().decode()
        recording = read_recording(disk / "r")
        assert (disk / "r").read_bytes().endswith(b"\n")
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    assert "No space left on device" in error and error.count("\n") == 1
    assert recording.intervals and recording.end is None


def test_the_live_table_is_redrawn_on_a_terminal(probe_binary: str, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen([probe_binary, "timer", "-D", "3500ms", "-a", "0", "--allow-difference"], stdout=theirs):
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # a terminal whose other end closed reads as an error
            while block := os.read(ours, 4096):
                shown += block
    os.close(ours)
    text = shown.decode()
    assert text.count("running 0:0") >= 2 and " left" in text
    last = text.rsplit("\x1b[J", 1)[1]
    assert "wakeup_corrected" in last and "running" not in last


def test_the_histogram_by_microseconds_holds_every_sample(probe_binary: str) -> None:
    done = subprocess.run(
        [probe_binary, "timer", "-l", "300", "-a", "0", "-h", "100", "--allow-difference"],
        check=True,
        capture_output=True,
        text=True,
        timeout=30,
    )
    early, text = done.stdout.split("# Before the due time: ", 1)[1].split("# Histogram\n", 1)
    rows = {label: int(count) for label, count in re.findall(r"^(\d{6}) (\d+)$", text, re.MULTILINE)}
    (beyond,) = re.findall(r"^# Histogram Overflows: (\d+)$", text, re.MULTILINE)
    assert list(rows)[:2] == ["000000", "000001"] and len(rows) == 100
    assert int(early) + sum(rows.values()) + int(beyond) == 300


def test_a_pipe_that_does_not_block_loses_nothing(probe_binary: str, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with subprocess.Popen(
        [probe_binary, "timer", "-D", "2s", "-i", "100us", "--report", "10ms", "--record", "-", "--allow-difference"],
        stdout=writing,
    ) as process:
        os.close(writing)
        time.sleep(1.0)  # long enough for the pipe to fill
        with os.fdopen(reading, "rb") as pipe:
            (tmp_path / "r").write_bytes(pipe.read())
        assert process.wait(30) == 0
    assert read_recording(tmp_path / "r").outcome is Outcome.COMPLETED


@pytest.mark.slow
@needs_root("capabilities to give up")
@pytest.mark.parametrize("act", [("timer",), ("mutex",), ("condvar",)])
def test_a_probe_that_measures_has_no_capability_left(probe_binary: str, tmp_path: Path, act: tuple[str, ...]) -> None:
    """And yet its threads are real-time ones, and its run completes with the settings that it began with."""
    with subprocess.Popen(
        [probe_binary, *act, "-i", "1ms", "-D", "1500ms", "--record", str(tmp_path / "r"), "--quiet"],
        stdout=subprocess.DEVNULL,
    ) as probe:
        assert eventually(lambda: {(0, 0, 1)} == {*rights(probe.pid)} and len(rights(probe.pid)) > 1)
        assert probe.wait(60) == 0
    recording = read_recording(tmp_path / "r")
    assert recording.outcome is Outcome.COMPLETED and "not-real-time" not in recording.head.marks
