# SPDX-License-Identifier: GPL-2.0-or-later
"""Helpers of tests: the monitor, started beside tasks that it watches, and such tasks."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fastenough.recording import Event, Recording, read_recording
from tests.support.privileges import require_kernel_pids, require_root
from tests.support.tools import ROOT, build, configure, require

FIFO, OTHER = 1, 0
TIMER_STATIONS = ("expiry-to-interrupt", "interrupt-to-runnable", "runnable-to-running")
"""They add up to expiry-to-running; with running-to-return, to expiry-to-return."""


def build_monitor(directory: Path) -> Path:
    """The monitor that is built, or one built now."""
    require("clang", "bpftool")
    built = ROOT / "build" / "target" / "monitor" / "fastenough-monitor"
    if built.is_file():
        return built
    configure(directory, "-Dmonitor=enabled")
    build(directory, "target/monitor/fastenough-monitor")
    return directory / "target" / "monitor" / "fastenough-monitor"


@dataclass
class Watch:
    """A run of the monitor: what it recorded is there once it has ended."""

    process: subprocess.Popen[str]
    path: Path

    def await_begin(self) -> None:
        """Until it is attached: the head is written behind that."""
        deadline = time.monotonic() + 60
        while not self.path.is_file() or not self.path.read_bytes().count(b"\n"):
            assert self.process.poll() is None, self.process.communicate()[1]
            assert time.monotonic() < deadline, "the monitor does not begin"
            time.sleep(0.02)

    def recording(self) -> Recording:
        return read_recording(self.path)


@contextlib.contextmanager
def watching(monitor: Path, path: Path, *options: str) -> Iterator[Watch]:
    """The monitor while the context lasts; ended by SIGINT, as planned."""
    require_root("the monitor")
    if any(option.startswith("--pid") for option in options):
        require_kernel_pids()
    command = [str(monitor), "--quiet", "--until-interrupt", "--record", str(path), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        watch = Watch(process, path)
        try:
            watch.await_begin()
            yield watch
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=60)
            assert process.returncode == 0, said
        finally:
            process.kill()


@dataclass(frozen=True)
class Slept:
    """What a sleeper says of itself: how often it slept, how often others took its CPU, its due times and when it was
    back (CLOCK_MONOTONIC ns)."""

    times: int
    preempted: int
    due_ns: tuple[int, ...]
    back_ns: tuple[int, ...]


@dataclass
class Sleeper:
    process: subprocess.Popen[str]

    @property
    def pid(self) -> int:
        return self.process.pid

    def let_go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def sleep(self) -> Slept:
        """Let it go, where it was not, and wait for its end."""
        said, _ = self.process.communicate("go\n", timeout=120)
        first, *lines = said.splitlines()
        pairs = [tuple(map(int, line.split())) for line in lines]
        assert self.process.returncode == 0
        times, preempted = map(int, first.split())
        return Slept(times, preempted, tuple(due for due, _ in pairs), tuple(back for _, back in pairs))


def build_sleeper(directory: Path) -> Path:
    require("gcc")
    program = directory / "sleeper"
    source = ROOT / "tests/sources/sleeper.c"
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", program, source], check=True)
    return program


@contextlib.contextmanager
def sleeper(
    program: Path,
    name: str,
    *,
    policy: int = FIFO,
    priority: int = 80,
    cpu: int = 0,
    period_ns: int = 1_000_000,
    acts: int = 1000,
) -> Iterator[Sleeper]:
    """A periodic task that waits to be let go."""
    if policy == FIFO:
        require_root("real-time priorities")
    numbers = (policy, priority if policy == FIFO else 0, cpu, period_ns, acts)
    words = [str(program), name, *map(str, numbers)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            yield Sleeper(process)
        finally:
            process.kill()


def stored(recording: Recording, station: str) -> int:
    """Values of a station, of all CPUs."""
    assert recording.end is not None
    return sum(recording.end.series[series.id].stored for series in recording.series if series.name == station)


def added(recording: Recording, station: str) -> int:
    """The sum of a station's values, of all CPUs."""
    assert recording.end is not None
    return sum(recording.end.series[series.id].sum for series in recording.series if series.name == station)


def events(recording: Recording, station: str) -> list[Event]:
    ids = {series.id for series in recording.series if series.name == station}
    return [event for event in recording.events if event.series in ids]


def counted(recording: Recording, *counters: str) -> int:
    """The sum of counters over the whole run."""
    assert recording.end is not None
    return sum(recording.end.counters[counter] or 0 for counter in counters)


def unseen(recording: Recording) -> int:
    """Wake-ups that were not counted, as far as the monitor knows."""
    return counted(recording, "monitor_unmatched", "monitor_dropped", "monitor_suppressed")
