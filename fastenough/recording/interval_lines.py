# SPDX-License-Identifier: GPL-2.0-or-later
"""Interval lines of a recording: parsed and checked for consistency; raises BadInput."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from fastenough.model import BadInput, Series
from fastenough.recording.head import LimitCount
from fastenough.recording.histogram import Histogram, bucket_lowest, bucket_of
from fastenough.recording.interval import Interval
from fastenough.recording.parsing import limit_count, load_use
from fastenough.recording.rises import Rises, limit_fault, rises_fault

_MOST_IN_BUCKET = 2**53
_MOST_DELTA = 2**53


def parsed_interval(where: str, line: Mapping[str, Any], by_id: Mapping[int, Series]) -> Interval:
    """One interval from a line that matches the schema; ``where`` names the line in messages."""
    entries: dict[int, Mapping[str, Any]] = {}
    for entry in line["series"]:
        if entry["id"] not in by_id:
            raise BadInput(f"{where}: series {entry['id']}: not declared in the head")
        if entry["id"] in entries:
            raise BadInput(f"{where}: series {entry['id']}: twice in one interval")
        entries[entry["id"]] = entry
    begin, end = line["begin"], line["end"]
    if end["mono_ns"] < begin["mono_ns"]:
        raise BadInput(f"{where}: the interval ends before it begins")
    values = {key: checked_histogram(f"{where}: series {key}", entry, by_id[key].k) for key, entry in entries.items()}
    rises = {
        key: _rises(f"{where}: series {key}", entry, by_id[key], values[key])
        for key, entry in entries.items()
        if "rises" in entry or by_id[key].rise_k is not None
    }
    limits = {
        key: _limit(f"{where}: series {key}", entry, by_id[key], values[key])
        for key, entry in entries.items()
        if "limit" in entry
    }
    unknown = {key: entry["order_unknown"] for key, entry in entries.items() if "order_unknown" in entry}
    interval = Interval(
        line["seq"],
        begin["mono_ns"],
        end["mono_ns"],
        begin["wall_ns"],
        end["wall_ns"],
        values,
        {key: entry["lost"] for key, entry in entries.items()},
        {key: entry["missed"] for key, entry in entries.items()},
        line["counters"],
        load=load_use(line.get("load")),
    )
    if not (rises or limits or unknown):
        return interval
    return replace(interval, rises=rises, limits=limits, order_unknown=unknown)


def checked_histogram(where: str, entry: Mapping[str, Any], k: int) -> Histogram:
    """The histogram of one series, usually of one interval; raises BadInput if it is inconsistent."""
    indices, counts = [i for i, _ in entry["buckets"]], [n for _, n in entry["buckets"]]
    if not {*map(type, indices), *map(type, counts)} <= {int} or (
        counts and not 1 <= min(counts) <= max(counts) <= _MOST_IN_BUCKET
    ):
        raise BadInput(f"{where}: a bucket is not [index, count] with a count from 1 to 2^53")
    try:
        index, count = np.array(indices, dtype=np.int64), np.array(counts, dtype=np.int64)
    except OverflowError as error:
        raise BadInput(f"{where}: a bucket index does not fit 64 bits") from error
    if np.any(np.diff(index) <= 0):
        raise BadInput(f"{where}: bucket indices do not ascend")
    if index.size and (index[-1] >= 64 << k or index[0] <= -(64 << k)):
        raise BadInput(f"{where}: bucket index out of range for k = {k}")
    total = sum(counts)
    if total != entry["count"]:
        raise BadInput(f"{where}: buckets sum to {total}, count says {entry['count']}")
    if total == 0:
        if entry["sum"] or int(entry["sum_sq"]):
            raise BadInput(f"{where}: a sum of no values is not 0")
        return _none(k)
    if "min" not in entry or "max" not in entry or not -(2**63) < entry["min"] <= entry["max"] < 2**63:
        raise BadInput(f"{where}: minimum and maximum are missing or contradict each other")
    if (bucket_of(entry["min"], k), bucket_of(entry["max"], k)) != (indices[0], indices[-1]):
        raise BadInput(f"{where}: minimum or maximum lies outside its bucket")
    _check_sums(where, entry)
    return Histogram(
        k,
        index,
        count,
        entry["min"],
        entry["max"],
        entry["sum"],
        int(entry["sum_sq"]),
        _wide(where, entry, k, frozenset(indices)) if "wide" in entry else (),
    )


def _wide(where: str, entry: Mapping[str, Any], k: int, filled: frozenset[int]) -> tuple[tuple[int, int], ...]:
    """The wide buckets, each once and ascending, with least values from the minimum up."""
    pairs = tuple((index, least) for index, least in entry["wide"])
    if not all(
        type(index) is int
        and type(least) is int
        and index in filled
        and entry["min"] <= least <= int(bucket_lowest([index], k)[0])
        for index, least in pairs
    ):
        raise BadInput(
            f"{where}: a wide bucket is not [index, least value] of an existing bucket with a value from the minimum up"
        )
    if sorted({index for index, _ in pairs}) != [index for index, _ in pairs]:
        raise BadInput(f"{where}: wide buckets do not ascend")
    return pairs


@cache
def _none(k: int) -> Histogram:
    """The empty histogram, shared by all intervals without values."""
    return Histogram(k)


def _check_sums(where: str, entry: Mapping[str, Any]) -> None:
    """Raises BadInput if the sum is not between n minima and n maxima, or the sum of squares is impossible."""
    n, low, high, total, squares = entry["count"], entry["min"], entry["max"], entry["sum"], int(entry["sum_sq"])
    if not n * low <= total <= n * high:
        raise BadInput(f"{where}: the sum cannot be that of {n} values from {low} to {high}")
    if n * squares < total * total or squares > n * max(low * low, high * high):
        raise BadInput(f"{where}: the sum of squares cannot be that of these values")


def _rises(where: str, entry: Mapping[str, Any], series: Series, values: Histogram) -> Rises:
    entries = entry.get("rises")
    if entries is None or series.rise_k is None:
        raise BadInput(f"{where}: every interval has rises if the head has a rise_k, and none otherwise")
    if not all(
        type(edge) is int and type(delta) is int and 1 <= edge < 64 << series.rise_k and abs(delta) <= _MOST_DELTA
        for edge, delta in entries
    ):
        raise BadInput(f"{where}: a rise is not [edge, delta] with an edge from 1 to the last of rise_k")
    rises = Rises.of(entries, series.rise_k)
    fault = rises_fault(rises, values, series.two_sided)
    if fault is not None:
        raise BadInput(f"{where}: {fault}")
    return rises


def _limit(where: str, entry: Mapping[str, Any], series: Series, values: Histogram) -> LimitCount:
    count = limit_count(entry["limit"])
    assert count is not None
    fault = limit_fault(count, values, series)
    if fault is not None:
        raise BadInput(f"{where}: {fault}")
    return count
