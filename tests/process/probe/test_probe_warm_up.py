# SPDX-License-Identifier: GPL-2.0-or-later
"""The warm-up: acts take place and none is counted, on the grid that goes on afterwards.

Stalls are real: the whole probe is stopped for a known time.  A busy machine adds stalls of its own, shorter ones.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from fastenough.model import Outcome
from fastenough.recording import Recording, read_recording
from fastenough.recording.reader import head_of
from tests.support.presence import present
from tests.support.privileges import needs_root

PERIOD_NS = 10_000_000
WARM_UP_NS = 2_000_000_000
STALL_BEFORE_S, STALL_AFTER_S = 1.2, 0.4


def _until(mono_ns: int) -> None:
    time.sleep(max(0.0, (mono_ns - time.monotonic_ns()) / 1e9))


def _stop_for(process: subprocess.Popen[bytes], seconds: float) -> None:
    process.send_signal(signal.SIGSTOP)
    time.sleep(seconds)
    process.send_signal(signal.SIGCONT)


def _warmed(probe: str, path: Path, *more: str, after: bool = True, sent: Sequence[int] = ()) -> tuple[Recording, int]:
    """A run with a stall in its warm-up and, where asked for, one after it; its exit status too."""
    with subprocess.Popen(
        [
            probe,
            "timer",
            "-a",
            "0",
            "--policy",
            "other",
            "--allow-difference",
            "-i",
            f"{PERIOD_NS}ns",
            "--warm-up",
            f"{WARM_UP_NS}ns",
            "-D",
            "2s",
            "--report",
            "100ms",
            "--record",
            "-",
            *more,
        ],
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        begin_ns = head_of(first, "head").begin.mono_ns
        _until(begin_ns + WARM_UP_NS // 10)
        _stop_for(process, STALL_BEFORE_S)
        for number in sent:
            process.send_signal(number)
        if after:
            _until(begin_ns + WARM_UP_NS + 500_000_000)
            _stop_for(process, STALL_AFTER_S)
        path.write_bytes(first + process.stdout.read())
    return read_recording(path), process.returncode


@pytest.mark.slow
def test_a_stall_in_the_warm_up_is_not_counted_and_one_after_it_is(probe_binary: str, tmp_path: Path) -> None:
    recording, status = _warmed(probe_binary, tmp_path / "r", "--threshold", "300ms", "--limit", "300ms")
    (wakeup,), (corrected,) = recording.named("wakeup"), recording.named("wakeup_corrected")
    counted_from_ns = recording.intervals[0].begin_mono_ns
    assert (status, recording.outcome) == (0, Outcome.COMPLETED)
    assert recording.head.parameters["warm_up_ns"] == WARM_UP_NS
    assert counted_from_ns - recording.head.begin.mono_ns >= WARM_UP_NS

    total = recording.totals[corrected.id]
    assert total.maximum is not None
    assert (STALL_AFTER_S - 0.02) * 1e9 - PERIOD_NS < total.maximum < STALL_BEFORE_S * 1e9
    assert total.total == recording.totals[wakeup.id].total + recording.missed(wakeup.id)
    assert abs(total.total - recording.duration_ns / PERIOD_NS) <= 2 + 0.05 * total.total
    limit = recording.limit(wakeup.id)
    assert limit is not None and limit.exceeded == 1

    assert {event.kind for event in recording.events} == {"max", "threshold"}
    assert all(event.at.mono_ns >= counted_from_ns for event in recording.events)
    maxima = [present(event.value, "maximum") for event in recording.events if event.kind == "max"]
    assert max(maxima) == total.maximum


@pytest.mark.slow
def test_the_grid_goes_on(probe_binary: str, tmp_path: Path) -> None:
    """Due times lie whole periods behind the begin that the head tells; events come a moment after their acts."""
    recording, _ = _warmed(probe_binary, tmp_path / "r", after=False)
    behind_ns = [
        (event.at.mono_ns - present(event.value, "value of an event") - recording.head.begin.mono_ns) % PERIOD_NS
        for event in recording.events
    ]
    assert behind_ns and min(behind_ns) < PERIOD_NS / 20


def test_a_threshold_ends_nothing_in_the_warm_up(probe_binary: str, tmp_path: Path) -> None:
    recording, status = _warmed(probe_binary, tmp_path / "r", "-b", "300ms")
    assert (status, recording.outcome) == (0, Outcome.COMPLETED)
    (wakeup,) = recording.named("wakeup")
    assert recording.totals[wakeup.id].count_above(300_000_000) == 1
    assert 500_000_000 < recording.duration_ns + PERIOD_NS < 2_000_000_000


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_warm_up_ends_the_run(probe_binary: str, tmp_path: Path, number: signal.Signals) -> None:
    recording, status = _warmed(probe_binary, tmp_path / "r", after=False, sent=[number])
    assert (status, recording.outcome) == (128 + number, Outcome.ABORTED)
    assert sum(recording.totals[series.id].total for series in recording.series) == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("timer --warm-up 1s -l 10", "--warm-up cannot be combined with --loops"),
        ("timer --warm-up 1s --ring /nowhere", "--warm-up cannot be combined with --ring"),
        ("timer --warm-up 1s --samples /nowhere/s", "--samples writes every sample"),
        ("timer --warm-up 2d", "out of range"),
        ("wakeups --warm-up 1s", "unknown option"),
    ],
)
def test_what_cannot_stand_beside_it(probe_binary: str, words: str, said: str) -> None:
    done = subprocess.run([probe_binary, *words.split()], capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert said in done.stderr


def test_a_spinning_probe_is_warmed_up_too(probe_binary: str, tmp_path: Path) -> None:
    """More readings than a bucket holds would be no matter; here it is seen that they are thrown away."""
    path = tmp_path / "r"
    subprocess.run(
        [
            probe_binary,
            "spin",
            "-a",
            "0",
            "--policy",
            "other",
            "--allow-difference",
            "--warm-up",
            "500ms",
            "-D",
            "300ms",
            "--report",
            "100ms",
            "--record",
            str(path),
            "-q",
        ],
        check=True,
        timeout=30,
        stdout=subprocess.DEVNULL,
    )
    recording = read_recording(path)
    (gap,) = recording.series
    total = recording.totals[gap.id]
    floor_ns = int(str(recording.head.parameters["floor_ns"]))
    assert total.total > 0
    assert total.sum + floor_ns * total.total <= recording.duration_ns


_SEIZE, _INTERRUPT, _DETACH = 0x4206, 0x4207, 17
"""Requests of ptrace(2)."""


@pytest.mark.slow
@needs_root("ptrace of a process of real-time threads")
def test_the_watchdog_holds_in_the_warm_up(probe_binary: str, tmp_path: Path) -> None:
    """The reporting thread, and only that, is kept from running: the run is ended long before the warm-up is over."""
    libc = ctypes.CDLL(None, use_errno=True)
    with subprocess.Popen(
        [
            probe_binary,
            "timer",
            "-a",
            "0",
            "-p",
            "5",
            "--warm-up",
            "10m",
            "-D",
            "1s",
            "--record",
            "-",
            "--allow-difference",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        first = process.stdout.readline()
        time.sleep(0.5)
        assert libc.ptrace(_SEIZE, process.pid, None, None) == 0
        assert libc.ptrace(_INTERRUPT, process.pid, None, None) == 0
        os.waitpid(process.pid, 0)
        deadline = time.monotonic() + 60
        while _policies(process.pid) != {"0"} and time.monotonic() < deadline:
            time.sleep(0.5)
        ended = _policies(process.pid) == {"0"}
        assert libc.ptrace(_DETACH, process.pid, None, None) == 0
        if not ended:
            process.kill()
        assert ended, "the watchdog had not freed the machine within a minute"
        (tmp_path / "r").write_bytes(first + process.stdout.read())
        assert b"did not run" in process.stderr.read()
    assert process.returncode == 4
    assert read_recording(tmp_path / "r").outcome is Outcome.FAILED


def _policies(pid: int) -> set[str]:
    """Of all threads of a process, as the kernel numbers them."""
    stats = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    return {stat.rpartition(")")[2].split()[38] for stat in stats}
