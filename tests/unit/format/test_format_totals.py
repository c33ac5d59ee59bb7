# SPDX-License-Identifier: GPL-2.0-or-later
"""An end with the buckets of the whole run, finer than those of its intervals: believed where they agree."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastenough.analysis.merged import merge_samples
from fastenough.model import BadInput
from fastenough.recording import Histogram, Recording, read_recording
from fastenough.recording.building import end_series, line_bytes
from tests.support import recordings
from tests.support.recordings import Plan, latencies, write

VALUES = latencies(5, cpus=1, intervals=4, per_interval=500)
WHOLE = Histogram.from_values(np.concatenate(VALUES[0]), 10)
Line = dict[str, Any]


def lines_of(path: Path) -> list[Line]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def coarse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recording whose intervals have k = 4, and whose end has the buckets of k = 10."""
    monkeypatch.setattr(recordings, "K", 4)
    path = write(tmp_path / "coarse.jsonl", Plan(VALUES))
    lines = lines_of(path)
    for entry in lines[-1]["series"]:
        entry |= {"k": 10, "buckets": pairs(WHOLE)}
    path.write_bytes(b"".join(map(line_bytes, lines)))
    return path


def pairs(histogram: Histogram) -> list[list[int]]:
    return [list(map(int, pair)) for pair in zip(histogram.index, histogram.count, strict=True)]


def changed(path: Path, change: Callable[[Line], None]) -> Recording:
    """The same with another entry for the first series of its end."""
    lines = lines_of(path)
    change(lines[-1]["series"][0])
    path.write_bytes(b"".join(map(line_bytes, lines)))
    return read_recording(path)


def test_totals_are_as_fine_as_the_end_has_them(coarse: Path) -> None:
    recording = read_recording(coarse)
    assert {total.k for total in recording.totals.values()} == {10}
    assert {interval.histograms[0].k for interval in recording.intervals} == {4}
    assert recording.totals[0].value_at_rank(1000) == WHOLE.value_at_rank(1000)
    assert recording.end is not None
    assert end_series(0, recording.end.series[0])["buckets"] == pairs(WHOLE)


def test_what_was_cut_off_is_as_fine_as_its_intervals_and_merges_with_others(coarse: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.jsonl"
    lines = lines_of(coarse)
    lines[0]["run_id"] = "run-2"
    cut.write_bytes(b"".join(map(line_bytes, lines[:-1])))
    one, other = read_recording(coarse), read_recording(cut)
    assert other.totals[0].k == 4
    merged = merge_samples([(one, one.series[0]), (other, other.series[0])])
    assert merged.histogram.k == 4 and merged.histogram.total == 2 * WHOLE.total
    assert merged.histogram.maximum == WHOLE.maximum


def _move(entry: Line) -> None:
    """One value from one bucket into another, far away."""
    entry["buckets"][0][1] += 1
    entry["buckets"][-2][1] -= 1
    entry["buckets"] = [pair for pair in entry["buckets"] if pair[1]]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_move, "its buckets differ from those of the intervals"),
        (lambda entry: entry["buckets"].pop(3), "buckets sum to"),
        (lambda entry: entry["buckets"].reverse(), "do not ascend"),
        (lambda entry: entry.pop("k"), "its buckets have no resolution"),
        (lambda entry: entry.update(k=4), "are not finer than those of the intervals"),
        (lambda entry: entry.update(k=12), "lies outside its bucket"),
        (lambda entry: entry["buckets"].append([2**62, 1]), "out of range"),
        (lambda entry: entry.pop("buckets"), "buckets sum to 0"),
    ],
)
def test_buckets_that_contradict_the_intervals_are_refused(
    coarse: Path, change: Callable[[Line], None], said: str
) -> None:
    with pytest.raises(BadInput, match=said):
        changed(coarse, change)


def test_a_finer_histogram_folds_exactly_into_a_coarser_one() -> None:
    dice = np.random.default_rng(9)
    values = np.concatenate([dice.integers(-(10**9), 10**9, 2000), dice.integers(-70, 70, 500), [0, 2**62, -(2**62)]])
    for fine in (4, 10, 12):
        for k in range(1, 13):
            folded = Histogram.from_values(values, fine).folded(k)
            direct = Histogram.from_values(values, min(k, fine))
            assert (folded.k, pairs(folded)) == (direct.k, pairs(direct))
            assert (folded.minimum, folded.maximum, folded.sum_sq) == (direct.minimum, direct.maximum, direct.sum_sq)
