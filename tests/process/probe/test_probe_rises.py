# SPDX-License-Identifier: GPL-2.0-or-later
"""Rises and exact counts at a limit are what every sample, kept in order, says by definition."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from fastenough.recording import Rises, read_recording
from fastenough.recording.histogram import bucket_index
from fastenough.recording.samples import Samples, read_samples

INTERVAL_NS = 200_000
RISE_K = 3


def _run(probe: str, directory: Path, *arguments: str) -> None:
    for name in ("r", "s"):
        (directory / name).unlink(missing_ok=True)
    subprocess.run(
        [
            probe,
            "timer",
            "--quiet",
            "--record",
            str(directory / "r"),
            "--samples",
            str(directory / "s"),
            "--policy",
            "other",
            "--allow-difference",
            "-i",
            f"{INTERVAL_NS}ns",
            "-D",
            "2s",
            "--report",
            "50ms",
            "-t",
            "1",
            *arguments,
        ],
        check=True,
        timeout=60,
        stdout=subprocess.DEVNULL,
    )


def _corrected(samples: Samples) -> list[int]:
    """Each act, and behind it the periods it missed, charged from their own due times."""
    due, latency = samples.due_ns.tolist(), samples.latency_ns.tolist()
    # Nothing follows the last act; the period that has begun could still have had its own.
    behind = due[-1] + max(INTERVAL_NS, latency[-1] // INTERVAL_NS * INTERVAL_NS)
    values: list[int] = []
    for this, late, following in zip(due, latency, [*due[1:], behind], strict=True):
        values += [late - n * INTERVAL_NS for n in range((following - this) // INTERVAL_NS)]
    return values


def _rises(values: Sequence[int]) -> dict[int, int]:
    deltas: dict[int, int] = {}
    before = 0
    for value in values:
        this = int(bucket_index([max(value, 0)], RISE_K)[0])
        if this > before:
            deltas[before + 1] = deltas.get(before + 1, 0) + 1
            deltas[this + 1] = deltas.get(this + 1, 0) - 1
        before = this
    return {edge: delta for edge, delta in deltas.items() if delta}


def _runs(values: Sequence[int], limit_ns: int) -> list[int]:
    """Lengths of the runs of consecutive values above the limit."""
    lengths = [0]
    for value in values:
        if value > limit_ns:
            lengths[-1] += 1
        elif lengths[-1]:
            lengths.append(0)
    return [length for length in lengths if length]


@pytest.fixture
def busy_run(probe_binary: str, tmp_path: Path) -> tuple[Path, int]:
    """A run with a limit that about half of its values exceed: the median of a run before."""
    _run(probe_binary, tmp_path)
    (samples,) = read_samples(tmp_path / "s").series.values()
    limit_ns = int(np.median(samples.latency_ns))
    _run(probe_binary, tmp_path, "--limit", f"{limit_ns}ns")
    return tmp_path, limit_ns


@pytest.mark.slow
def test_rises_and_limits_are_those_of_the_samples(busy_run: tuple[Path, int]) -> None:
    directory, limit_ns = busy_run
    recording = read_recording(directory / "r")
    (samples,) = read_samples(directory / "s").series.values()
    each, corrected = recording.series
    assert samples.lost == 0 and len(recording.intervals) > 10
    assert recording.end is not None
    for series, values in ((each, samples.latency_ns.tolist()), (corrected, _corrected(samples))):
        told = recording.end.series[series.id]
        assert len(values) == told.stored
        assert series.rise_k == RISE_K and told.rises is not None
        assert dict(told.rises) == _rises(values)
        parts = Rises.merged((interval.rises[series.id] for interval in recording.intervals), RISE_K)
        assert {edge: delta for edge, delta in parts.entries()} == dict(told.rises)
        lengths = _runs(values, limit_ns)
        limit = told.limit
        assert limit is not None and len(lengths) > 10
        assert (limit.ns, limit.exceeded, limit.runs, limit.sum_sq_runs, limit.longest) == (
            limit_ns,
            sum(lengths),
            len(lengths),
            sum(length * length for length in lengths),
            max(lengths),
        )
        assert told.order_unknown == 0


def test_without_a_limit_none_is_counted(probe_binary: str, tmp_path: Path) -> None:
    _run(probe_binary, tmp_path)
    recording = read_recording(tmp_path / "r")
    assert recording.end is not None
    assert all(one.limit is None and one.rises for one in recording.end.series.values())


def test_a_limit_of_nothing_is_refused(probe_binary: str) -> None:
    done = subprocess.run([probe_binary, "timer", "--limit", "0"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1) and "--limit" in done.stderr
