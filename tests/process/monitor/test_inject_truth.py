# SPDX-License-Identifier: GPL-2.0-or-later
"""The injector of delays within a station: it computes as long as it says, by its own clock and by a task's."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from fastenough.analysis.station_delays import STATIONS
from fastenough.model import ExitStatus
from fastenough.recording import Recording, read_recording
from fastenough.recording.samples import Samples, read_samples
from fastenough.units import parse_duration_ns
from tests.support.privileges import needs_root

SIZES = ("300us", "1ms")
EACH = 20
TRIES = 2
"""An injector that comes too late tries again, twice as often in all as it was asked to inject."""
PERIOD = "2ms"
INTERVAL = "20ms"
ORDER = {"priority of the task": "90", "priority of the injector": "50"}
pytestmark = needs_root("BPF and real-time priorities")


@dataclass(frozen=True)
class Trial:
    """What the injector says of its injections, and the delayed task of its wake-ups."""

    injector: Recording
    injected: dict[int, Samples]
    task: Samples

    def joined(self, series: int) -> np.ndarray:
        """Which injections the task was there for: of due times that it missed it has no latency."""
        return np.isin(self.injected[series].due_ns, self.task.due_ns)

    def latencies(self, series: int) -> np.ndarray:
        """By the task's own clock, of the injections that it was there for."""
        return np.array(
            [self._latency_at(due_ns) for due_ns in self.injected[series].due_ns[self.joined(series)].tolist()]
        )

    def _latency_at(self, due_ns: int) -> int:
        (position,) = np.flatnonzero(self.task.due_ns == due_ns)
        return int(self.task.latency_ns[position])


def _trial(probe: str, inject: Path, station: str, place: Path) -> Trial:
    cpus = sorted(os.sched_getaffinity(0))
    task = subprocess.Popen(
        [
            probe,
            "timer",
            "-a",
            str(cpus[0]),
            "-p",
            ORDER["priority of the task"],
            "-i",
            PERIOD,
            "--quiet",
            "--record=-",
            "--samples",
            str(place / "task"),
        ],
        stdout=subprocess.PIPE,
    )
    assert task.stdout is not None
    begin_ns = json.loads(task.stdout.readline())["begin"]["mono_ns"]
    try:
        subprocess.run(
            [
                inject,
                "inject",
                "--station",
                station,
                "-a",
                f"{cpus[0]},{cpus[-1]}",
                "-p",
                ORDER["priority of the injector"],
                "--sizes",
                ",".join(SIZES),
                "--each",
                str(EACH),
                "-i",
                INTERVAL,
                "--begin",
                str(begin_ns),
                "--quiet",
                "--record",
                str(place / "record"),
                "--samples",
                str(place / "injected"),
            ],
            check=True,
            timeout=60,
            stdout=subprocess.DEVNULL,
        )
    finally:
        task.send_signal(signal.SIGINT)
        task.communicate(timeout=60)
    (of_task,) = read_samples(place / "task").series.values()
    return Trial(read_recording(place / "record"), read_samples(place / "injected").series, of_task)


def _timely(probe: str, inject: Path, station: str, place: Path) -> Trial:
    """Injector or task come too late where others have their CPU: tried again where that befell most."""
    for attempt in range(5):
        folder = place / str(attempt)
        folder.mkdir()
        trial = _trial(probe, inject, station, folder)
        if len(trial.injected) == len(SIZES) and all(trial.joined(one).sum() > EACH / 2 for one in trial.injected):
            return trial
    pytest.fail("the machine was too busy to inject anything in time")


@pytest.mark.parametrize("station", STATIONS)
def test_a_delay_is_as_long_as_it_says(probe_binary: str, inject_binary: Path, station: str, tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs a second CPU")
    trial = _timely(probe_binary, inject_binary, station, tmp_path)
    series = trial.injector.named("injected")
    assert [one.labels["size"] for one in series] == list(SIZES)
    disturbed: set[int] = set()
    for one in series:
        injected = trial.injected[one.id]
        assert one.labels["station"] == station
        assert one.role.value == "diagnostic"
        assert len(injected.due_ns) == EACH or len(injected.due_ns) + trial.injector.missed(one.id) == TRIES * EACH
        assert (injected.latency_ns >= parse_duration_ns(one.labels["size"])).all()
        assert (trial.latencies(one.id) >= injected.latency_ns[trial.joined(one.id)]).all()
        disturbed |= set(injected.due_ns.tolist())
    medians = [np.median(trial.latencies(one.id)) for one in series]
    others = ~np.isin(trial.task.due_ns, list(disturbed))
    quiet = np.median(trial.task.latency_ns[others])
    assert quiet < parse_duration_ns(SIZES[0]) / 2
    for size, median in zip(SIZES, medians, strict=True):
        assert abs(median - quiet - parse_duration_ns(size)) < parse_duration_ns(size) / 5


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--sizes=200ms", "-i", "1s"), "up to 100ms"),
        (("--sizes=10ms", "-i", "10ms"), "--interval longer"),
        (("--station=nowhere",), "nowhere"),
        (("--station=expiry-to-interrupt", "-a", "0"), "--affinity 0,1"),
    ],
)
def test_the_injector_says_what_is_wrong(inject_binary: Path, words: tuple[str, ...], said: str) -> None:
    done = subprocess.run([inject_binary, "inject", *words], text=True, capture_output=True, check=False)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert said in done.stderr


def test_without_rights_it_does_not_apply(inject_binary: Path) -> None:
    done = subprocess.run(
        [
            "setpriv",
            "--reuid=65534",
            "--clear-groups",
            "--inh-caps=-all",
            inject_binary,
            "inject",
            "--policy=other",
            "--station=running-to-return",
            "-i",
            "10ms",
            "--quiet",
        ],
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 5, done.stderr
    assert "CAP_BPF" in done.stderr


def test_a_station_that_is_delayed_by_nobody_is_counted_as_missed(inject_binary: Path, tmp_path: Path) -> None:
    """No task's timer is due there: not one injection takes place, so the run has failed."""
    done = subprocess.run(
        [
            inject_binary,
            "inject",
            "--station=running-to-return",
            "--sizes=1ms",
            "--each=5",
            "-i",
            "10ms",
            "--quiet",
            "--record",
            str(tmp_path / "r"),
        ],
        check=False,
        timeout=60,
        stdout=subprocess.DEVNULL,
    )
    assert done.returncode == ExitStatus.BROKEN
    recording = read_recording(tmp_path / "r")
    (series,) = recording.named("injected")
    assert (recording.totals[series.id].total, recording.missed(series.id)) == (0, TRIES * 5)
