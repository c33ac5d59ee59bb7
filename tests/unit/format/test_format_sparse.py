# SPDX-License-Identifier: GPL-2.0-or-later
"""Many sparse histograms are added in one step, exactly, however far apart their buckets are."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastenough.analysis import MixedRuns, merge_samples
from fastenough.recording import Histogram, Recording, histogram
from fastenough.recording.aggregate import MOST_COUNT
from tests.support.recordings import Plan, latencies, recording

SPARSE = st.lists(
    st.dictionaries(st.integers(-(64 << 10), 64 << 10), st.integers(1, 2**40), min_size=1), min_size=1, max_size=6
)


@pytest.mark.parametrize("most_dense", [histogram._MOST_DENSE, 0], ids=["dense", "far apart"])
@settings(max_examples=40, deadline=None)
@given(parts=SPARSE)
def test_sparse_counts_add_up_bucket_by_bucket(parts: list[dict[int, int]], most_dense: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(histogram, "_MOST_DENSE", most_dense)
        index, count = histogram.add_sparse(
            [np.array(list(part), dtype=np.int64) for part in parts],
            [np.array(list(part.values()), dtype=np.int64) for part in parts],
        )
    expected: Counter[int] = Counter()
    for part in parts:
        expected.update(part)
    assert list(zip(index.tolist(), count.tolist(), strict=True)) == sorted(expected.items())


def test_more_values_than_can_be_counted_are_not_merged(tmp_path: Path) -> None:
    """Sums beyond 64 bits would wrap round to few."""

    def huge(run: str) -> Recording:
        one = recording(tmp_path, Plan(latencies(1, cpus=1, intervals=1), run_id=run, views=("wakeup",)))
        one.totals[0] = Histogram(10, np.array([5]), np.array([MOST_COUNT]), 5, 5, 5 * MOST_COUNT, 25 * MOST_COUNT)
        return one

    one, other = huge("run-1"), huge("run-2")
    with pytest.raises(MixedRuns, match="they hold more than"):
        merge_samples([(one, one.series[0]), (other, other.series[0])])


def test_very_many_are_added_some_at_a_time() -> None:
    """With more empty ones in a row than are added in one step."""
    random = np.random.default_rng(8)
    filled = [np.unique(random.integers(-500, 500, 40)) for _ in range(500)]
    index = [*filled[:100], *[np.empty(0, dtype=np.int64)] * 200, *filled[100:]]
    count = [np.arange(1, one.size + 1) for one in index]
    expected: Counter[int] = Counter()
    for one, counts in zip(index, count, strict=True):
        expected.update(dict(zip(one.tolist(), counts.tolist(), strict=True)))
    found, counted = histogram.add_sparse(index, count)
    assert list(zip(found.tolist(), counted.tolist(), strict=True)) == sorted(expected.items())


def test_what_cancels_leaves_nothing() -> None:
    """Rises are added so, too: their deltas are signed."""
    edges, deltas = np.array([1, 7], dtype=np.int64), np.array([2, -2], dtype=np.int64)
    index, count = histogram.add_sparse([edges] * 200, [deltas, -deltas] * 100)
    assert index.size == count.size == 0
    index, count = histogram.add_sparse([index, edges], [count, deltas])
    assert (index.tolist(), count.tolist()) == ([1, 7], [2, -2])
