# SPDX-License-Identifier: GPL-2.0-or-later
"""The histogram: one file of vectors, and C against Python over the whole range."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastenough.recording.histogram import Histogram, bucket_highest, bucket_index, bucket_lowest, bucket_of

pytestmark = pytest.mark.untimed

ROOT = Path(__file__).resolve().parents[3]
VECTORS = (ROOT / "format" / "histogram-vectors.csv").read_text().splitlines()
INT64 = st.integers(min_value=-(2**63) + 1, max_value=2**63 - 1)


def test_vectors_of_buckets() -> None:
    rows = [tuple(map(int, line.split(",")[1:])) for line in VECTORS if line.startswith("bucket,")]
    assert len(rows) > 1000
    for k, value, index, lower, width in rows:
        assert bucket_index([value], k)[0] == bucket_of(value, k) == index
        assert bucket_lowest([index], k)[0] == lower
        assert bucket_highest([index], k)[0] == lower + width - 1
        assert bucket_index([-value], k)[0] == bucket_of(-value, k) == -index


def test_vectors_of_statistics() -> None:
    rows = [line.removeprefix("stats,").split("|") for line in VECTORS if line.startswith("stats,")]
    assert len(rows) >= 10
    for values, result in rows:
        histogram = Histogram.from_values([int(value) for value in values.split()], 10)
        count, low, high, total, sq_hi, sq_lo = map(int, result.split(","))
        assert (histogram.total, histogram.minimum, histogram.maximum) == (count, low, high)
        assert (histogram.sum, histogram.sum_sq) == (total, (sq_hi << 64) + sq_lo)


@pytest.fixture(scope="session")
def hist_check(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("hist") / "hist-check"
    subprocess.run(
        [
            "cc",
            "-std=gnu11",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-fsanitize=address,undefined",
            "-fno-sanitize-recover",
            f"-I{ROOT / 'format'}",
            str(ROOT / "format" / "tests" / "hist_check.c"),
            "-o",
            str(program),
        ],
        check=True,
    )
    return program


@settings(max_examples=30, deadline=None)
@given(k=st.integers(2, 12), magnitudes=st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=200))
def test_c_and_python_agree(hist_check: Path, k: int, magnitudes: list[int]) -> None:
    lines = "".join(f"bucket,{k},{magnitude},?\n" for magnitude in magnitudes)
    answer = subprocess.run([str(hist_check)], input=lines, text=True, capture_output=True, check=True).stdout
    index = bucket_index(magnitudes, k)
    lower = bucket_lowest(index, k)
    width = bucket_highest(index, k) - lower + 1
    mirror = [f"{i},{low},{w}" for i, low, w in zip(index, lower, width.astype(np.uint64), strict=True)]
    assert answer.splitlines() == mirror


@given(k=st.integers(2, 12), value=INT64)
def test_bucket_holds_its_value_and_is_narrow(k: int, value: int) -> None:
    index = bucket_index([value], k)
    low, high = int(bucket_lowest(index, k)[0]), int(bucket_highest(index, k)[0])
    assert low <= value <= high
    assert (high - low) * 2**k <= abs(value)


@given(k=st.integers(2, 12), values=st.lists(INT64, min_size=2))
def test_order_is_kept(k: int, values: list[int]) -> None:
    ordered = bucket_index(sorted(values), k)
    assert (np.diff(ordered) >= 0).all()


@given(parts=st.lists(st.lists(st.integers(-(2**40), 2**40)), max_size=6))
def test_merging_equals_storing_all(parts: list[list[int]]) -> None:
    merged = Histogram.merged((Histogram.from_values(part, 10) for part in parts), 10)
    whole = Histogram.from_values([value for part in parts for value in part], 10)
    assert merged.index.tolist() == whole.index.tolist()
    assert merged.count.tolist() == whole.count.tolist()
    assert (merged.minimum, merged.maximum, merged.sum, merged.sum_sq) == (
        whole.minimum,
        whole.maximum,
        whole.sum,
        whole.sum_sq,
    )


def test_merging_refuses_two_resolutions() -> None:
    with pytest.raises(ValueError, match="different resolution"):
        Histogram.merged([Histogram.from_values([1], 5)], 10)


@given(values=st.lists(st.integers(-(2**40), 2**40), min_size=1), data=st.data())
def test_ranks_and_exceedances_err_to_the_safe_side(values: list[int], data: st.DataObject) -> None:
    histogram = Histogram.from_values(values, 10)
    rank = data.draw(st.integers(1, len(values)))
    true_value = sorted(values)[rank - 1]
    assert true_value <= histogram.value_at_rank(rank) <= max(true_value + abs(true_value) / 1024, true_value)
    limit = data.draw(st.integers(-(2**41), 2**41))
    assert histogram.count_above(limit) >= sum(value > limit for value in values)
    assert histogram.count_above(max(values)) == 0
