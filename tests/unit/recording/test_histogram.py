# SPDX-License-Identifier: GPL-2.0-or-later
"""Buckets of a histogram."""

from __future__ import annotations

import numpy as np
import pytest

from fastenough.recording.histogram import Histogram, bucket_index, bucket_of

_EDGES = [edge + step for bit in range(1, 63) for edge in (1 << bit, 3 << bit - 1) for step in (-1, 0, 1)]


@pytest.mark.parametrize("k", [0, 3, 10])
def test_an_array_has_the_buckets_of_its_values(k: int) -> None:
    values = [0, *_EDGES, 2**63 - 1, *(-edge for edge in _EDGES), 1 - 2**63]
    assert bucket_index(np.array(values), k).tolist() == [bucket_of(value, k) for value in values]


def test_the_least_value_has_the_magnitude_of_a_64th_bit() -> None:
    assert bucket_index([-(2**63)], 10).tolist() == [bucket_of(-(2**63), 10)]


def test_a_folded_wide_bucket_keeps_its_least_value_beside_narrow_ones() -> None:
    """k = 16 holds single values here, k = 4 those from 64 to 67 and from 144 to 151 in one bucket each."""
    fine = Histogram(
        16,
        np.array([-67, -66, 64, 67, 145, 150]),
        np.array([1, 1, 1, 1, 1, 9]),
        -70,
        150,
        wide=((-67, -70), (67, 66), (150, 3)),
    )
    folded = fine.folded(4)
    assert folded.index.tolist() == [bucket_of(value, 4) for value in (-66, 66, 150)]
    assert folded.wide == ((bucket_of(-66, 4), -70), (bucket_of(66, 4), 64), (bucket_of(150, 4), 3))
    assert folded.lowest().tolist() == [-70, 64, 3]
    assert folded.highest().tolist() == [-64, 67, 150]
    assert (folded.total, folded.minimum, folded.maximum) == (fine.total, -70, 150)
