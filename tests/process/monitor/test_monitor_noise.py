# SPDX-License-Identifier: GPL-2.0-or-later
"""What interrupts, soft-IRQs and threads take from a CPU: as often as the kernel counts, as long as was injected."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastenough.model import Outcome
from fastenough.recording import Recording
from tests.support.monitored import events, watching
from tests.support.privileges import needs_root

pytestmark = needs_root("the monitor")
CPU = 1 if len(os.sched_getaffinity(0)) > 1 else 0
TIMES, BUSY_MS = 40, 5
_FIFO = f"""
import os, sys, time
def become(name, priority):
    open("/proc/self/comm", "w").write(name)
    os.sched_setaffinity(0, {{{CPU}}})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
def taken():
    return int(next(line for line in open("/proc/self/status") if line.startswith("nonvol")).split()[1])
def busy(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass
"""
_VICTIM = (
    _FIFO
    + """
become("noise-victim", 20)
print("ready", flush=True)
sys.stdin.readline()
before = taken()
while not os.path.exists(sys.argv[1]):
    busy(0.02)
print(taken() - before, flush=True)
"""
)
_THIEF = f"""{_FIFO}
become("noise-thief", 30)
for _ in range({TIMES}):
    time.sleep(0.02)
    busy({BUSY_MS} / 1000)
"""
_OFTEN_WOKEN = f"""{_FIFO}
become("noise-woken", 10)
until = time.monotonic() + 3
while time.monotonic() < until:
    busy(0.004)
    time.sleep(0.001)
"""
"""Timers, and ticks while it computes: a CPU that has nothing to do is interrupted ten times a second."""


def _told(path: str, wanted: tuple[str, ...] | None = None) -> int:
    """The sum over the lines of a file in /proc that counts by CPU, of one CPU."""
    header, *lines = Path(path).read_text().splitlines()
    column = header.split().index(f"CPU{CPU}")
    rows = [line.split() for line in lines]
    return sum(
        int(row[1 + column])
        for row in rows
        if len(row) > 1 + column and row[1 + column].isdigit() and (wanted is None or row[0] in wanted)
    )


def _interrupts() -> int:
    """Of the kinds that the kernel has events for: devices, by number, and what x86 tells by vector."""
    numbers = tuple(
        line.split()[0]
        for line in Path("/proc/interrupts").read_text().splitlines()[1:]
        if line.split()[0].rstrip(":").isdigit()
    )
    return _told("/proc/interrupts", (*numbers, "LOC:", "RES:", "CAL:", "IWI:"))


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", _VICTIM, str(tmp_path / "stop")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


def _here(recording: Recording, name: str) -> tuple[int, int]:
    """How many on the CPU, and their sum in ns."""
    [series] = [series for series in recording.named(name) if series.cpu == CPU]
    total = recording.totals[series.id]
    return total.total, total.sum


def test_interrupts_and_soft_irqs_are_as_many_as_the_kernel_counts(monitor_binary: Path, tmp_path: Path) -> None:
    with watching(monitor_binary, tmp_path / "recording.jsonl", "--noise") as watch:
        before = _interrupts(), _told("/proc/softirqs")
        subprocess.run([sys.executable, "-c", _OFTEN_WOKEN], check=True, timeout=60)
        after = _interrupts(), _told("/proc/softirqs")
    recording = watch.recording()
    assert recording.outcome is Outcome.COMPLETED
    for name, kernel in (("noise-interrupt", after[0] - before[0]), ("noise-softirq", after[1] - before[1])):
        count, _ = _here(recording, name)
        assert kernel > 100 and count >= 0.8 * kernel, (name, count, kernel)
        assert count <= 1.5 * kernel + 1000, (name, count, kernel)


def test_what_other_threads_take_is_as_often_and_as_long_as_was_injected(
    monitor_binary: Path, tmp_path: Path, victim: subprocess.Popen[str]
) -> None:
    """The kernel's own count of the victim's involuntary switches is the truth, and the time of the thief."""
    assert victim.stdin is not None and victim.stdout is not None
    with watching(
        monitor_binary, tmp_path / "recording.jsonl", "--noise", "--pid", str(victim.pid), "--threshold", "1ms"
    ) as watch:
        victim.stdin.write("\n")
        victim.stdin.flush()
        time.sleep(0.5)
        subprocess.run([sys.executable, "-c", _THIEF], check=True, timeout=60)
        (tmp_path / "stop").touch()
        switched = int(victim.stdout.readline())
    recording = watch.recording()
    count, sum_ns = _here(recording, "noise-thread")
    assert switched >= TIMES and 0.8 * switched <= count <= switched + 2
    assert sum_ns >= 0.8 * TIMES * BUSY_MS * 1e6
    culprits = [event.culprit or {} for event in events(recording, "noise-thread") if event.kind == "threshold"]
    assert {culprit["task"] for culprit in culprits} == {"noise-victim"}
    assert sum(culprit["waited_for"] == "noise-thief" for culprit in culprits) >= 0.8 * TIMES


def test_noise_is_not_looked_for_unless_asked(monitor_binary: Path, tmp_path: Path) -> None:
    with watching(monitor_binary, tmp_path / "recording.jsonl") as watch:
        time.sleep(0.3)
    assert not [series for series in watch.recording().series if series.name.startswith("noise")]
