# SPDX-License-Identifier: GPL-2.0-or-later
"""The event of the run's maximum is in the recording, however many events came before it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fastenough.recording import Recording, read_recording
from tests.support.presence import present
from tests.support.tools import program

BURST = 100
RING = 64
BOUND = 200


@pytest.fixture(scope="module")
def rising_probe(build_directory: Path) -> Path:
    """A probe each of whose values is a new maximum: bursts of 100; its recordings have room for 200 events."""
    return program(build_directory, "target/probe/rising-probe")


def _record(probe: Path, path: Path, *arguments: str) -> Recording:
    subprocess.run(
        [str(probe), "rising", "--record", str(path), "--quiet", "--allow-difference", *arguments],
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=60,
    )
    return read_recording(path)


def _maxima(recording: Recording) -> list[int]:
    return [present(event.value, "maximum") for event in recording.events if event.kind == "max"]


@pytest.mark.slow
def test_the_maximum_has_its_event_when_the_ring_is_full(rising_probe: Path, tmp_path: Path) -> None:
    recording = _record(rising_probe, tmp_path / "r", "--loops", "1", "--report", "10s")
    assert _maxima(recording) == [*range(1, RING + 1), BURST]
    assert recording.end is not None and recording.end.events_dropped == BURST - RING - 1


def test_the_maximum_has_its_event_when_the_bound_is_reached(rising_probe: Path, tmp_path: Path) -> None:
    recording = _record(rising_probe, tmp_path / "r", "--loops", "40", "--report", "10ms")
    maxima = _maxima(recording)
    assert len(maxima) == BOUND + 1 and maxima == sorted(maxima)
    assert maxima[-1] == recording.totals[0].maximum == 40 * BURST
    assert recording.end is not None and recording.end.events_dropped == 40 * BURST - BOUND - 1


def test_values_over_the_threshold_do_not_push_the_maximum_out(rising_probe: Path, tmp_path: Path) -> None:
    recording = _record(rising_probe, tmp_path / "r", "--loops", "40", "--report", "10ms", "--threshold", "1ns")
    assert _maxima(recording)[-1] == recording.totals[0].maximum
    assert len(recording.events) == BOUND + 1
    assert recording.end is not None
    assert len(recording.events) + recording.end.events_dropped == 2 * 40 * BURST - 1
