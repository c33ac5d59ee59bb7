# SPDX-License-Identifier: GPL-2.0-or-later
"""A CPU that goes and comes again, a clock that is set, while the monitor watches: it says so and counts all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from fastenough.analysis.station_delays import STATIONS, StationAgreement, station_agreement, wakeups
from fastenough.link.base import Link, Process
from fastenough.model import Outcome
from fastenough.recording import Recording
from fastenough.recording.samples import Samples, read_samples
from fastenough.virtual.board import VirtualBoard
from fastenough.virtual.monitor import MONITOR, install_monitor
from fastenough.virtual.probe import PROBE
from tests.support.monitored import unseen
from tests.support.tools import require
from tests.support.virtual_boards import booted, parsed

pytestmark = pytest.mark.untimed

ONLINE = "/sys/devices/system/cpu/cpu1/online"
CPUS = (0, 1)
HOUR_S = 3600
Step = Callable[[Link], object]
ACTS = 200
"""Of each of the two tasks that are watched, one each 50 ms."""
_PAUSE = 3
"""Intervals between two steps, at least."""
_LONGEST_S = 120.0


@pytest.fixture(scope="module")
def board() -> Iterator[VirtualBoard]:
    require("clang")
    for board in booted("stock"):
        install_monitor(board.link)
        yield board


@dataclass(frozen=True)
class Watched:
    """What the monitor recorded, and by task what it and the monitor have of the same wake-ups."""

    monitor: Recording
    agreed: list[StationAgreement]

    @property
    def notes(self) -> list[str]:
        return [event.text or "" for event in self.monitor.events if event.kind == "note"]


def _samples(link: Link, name: str, place: Path) -> dict[int, Samples]:
    (place / name).write_bytes(link.read(f"/tmp/{name}"))
    return read_samples(place / name).series


def _task(link: Link, cpu: int) -> Process:
    return link.start(
        [
            PROBE,
            "timer",
            "--interval=50ms",
            f"--loops={ACTS}",
            f"--affinity={cpu}",
            "--quiet",
            f"--samples=/tmp/task{cpu}",
            "--allow-difference",
        ]
    )


def _all_cpus(recording: Recording, kept: dict[int, Samples], station: str) -> Samples:
    found = [kept[series.id] for series in recording.named(station) if series.id in kept]
    return Samples(np.concatenate([one.due_ns for one in found]), np.concatenate([one.latency_ns for one in found]), 0)


def _online(content: bytes, link: Link) -> None:
    link.write(ONLINE, content)


def _set_clock(by_s: int, link: Link) -> None:
    link.run(["sh", "-c", f"date -s @$(( $(date +%s) + {by_s} ))"])


def _follow(link: Link, monitor: Process, steps: tuple[Step, ...]) -> list[bytes]:
    """Its lines, with a task on each CPU; a step is taken when the one before it is told for some intervals already."""
    lines: list[bytes] = []
    tasks: list[Process] = []
    taken = told = since = 0
    for line in monitor.lines(_LONGEST_S):
        lines.append(line)
        tasks = tasks or [_task(link, cpu) for cpu in CPUS]
        said = json.loads(line)
        tells = said.get("kind") in ("note", "clock-step")
        told += tells
        since = 0 if tells else since + (said["type"] == "interval")
        if since < _PAUSE or told < taken:
            continue
        if taken == len(steps):
            break
        steps[taken](link)
        taken += 1
    for task in tasks:
        task.wait(_LONGEST_S)
    return lines


def _watched(link: Link, steps: tuple[Step, ...], place: Path) -> Watched:
    """What is done to the machine, step by step, while a task of each CPU is watched."""
    link.run(["sh", "-c", "rm -f /tmp/seen /tmp/task*"])
    monitor = link.start(
        [
            MONITOR,
            "monitor",
            "--comm=fastenough-prob",
            "--report=500ms",
            "--until-interrupt",
            f"--duration={_LONGEST_S}s",
            "--samples=/tmp/seen",
            "--record=-",
        ]
    )
    lines = _follow(link, monitor, steps)
    monitor.signal(2)
    recording = parsed([*lines, *monitor.lines(_LONGEST_S)], place)
    assert monitor.wait(_LONGEST_S) == 0, monitor.stderr()
    kept = _samples(link, "seen", place)
    seen = wakeups({station: _all_cpus(recording, kept, station) for station in STATIONS})
    own = [next(iter(_samples(link, f"task{cpu}", place).values())) for cpu in CPUS]
    return Watched(recording, [station_agreement(one, seen, {}) for one in own])


def _check_all_counted(watched: Watched) -> None:
    assert watched.monitor.outcome is Outcome.COMPLETED, watched.monitor.reasons
    assert [one.activations for one in watched.agreed] == [ACTS, ACTS]
    assert all(one.matched > ACTS // 4 for one in watched.agreed)
    assert sum(one.absent for one in watched.agreed) <= unseen(watched.monitor)
    assert all(one.later for one in watched.agreed)


@pytest.mark.matrix
def test_a_cpu_that_goes_and_comes_again_is_told_and_no_count_is_lost(board: VirtualBoard, tmp_path: Path) -> None:
    """The task of the CPU that goes is moved: where its wake-ups are counted changes, and not one is missing."""
    watched = _watched(board.link, (partial(_online, b"0"), partial(_online, b"1")), tmp_path)
    assert watched.notes == ["the CPUs online changed from 0-1 to 0", "the CPUs online changed from 0 to 0-1"]
    _check_all_counted(watched)


def test_a_clock_that_is_set_an_hour_on_and_back_is_told_and_no_count_is_lost(
    board: VirtualBoard, tmp_path: Path
) -> None:
    watched = _watched(board.link, (partial(_set_clock, HOUR_S), partial(_set_clock, -HOUR_S)), tmp_path)
    steps = [event.value or 0 for event in watched.monitor.events if event.kind == "clock-step"]
    assert [round(step / HOUR_S / 10**9, 1) for step in steps] == [1, -1]
    assert watched.monitor.end is not None and watched.monitor.end.counters["clock_sets"] == 2
    assert max(watched.monitor.timeline.end_mono_ns - watched.monitor.timeline.begin_mono_ns) < HOUR_S * 10**9
    _check_all_counted(watched)
