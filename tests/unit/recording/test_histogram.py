# SPDX-License-Identifier: GPL-2.0-or-later
"""Buckets of a histogram."""

from __future__ import annotations

import numpy as np
import pytest

from fastenough.recording.histogram import bucket_index, bucket_of

_EDGES = [edge + step for bit in range(1, 63) for edge in (1 << bit, 3 << bit - 1) for step in (-1, 0, 1)]


@pytest.mark.parametrize("k", [0, 3, 10])
def test_an_array_has_the_buckets_of_its_values(k: int) -> None:
    values = [0, *_EDGES, 2**63 - 1, *(-edge for edge in _EDGES), 1 - 2**63]
    assert bucket_index(np.array(values), k).tolist() == [bucket_of(value, k) for value in values]


def test_the_least_value_has_the_magnitude_of_a_64th_bit() -> None:
    assert bucket_index([-(2**63)], 10).tolist() == [bucket_of(-(2**63), 10)]
