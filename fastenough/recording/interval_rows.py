# SPDX-License-Identifier: GPL-2.0-or-later
"""Intervals as table rows, one for each interval and series, and timelines from such rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from fastenough.model import Series
from fastenough.recording.histogram import Histogram
from fastenough.recording.interval import Interval
from fastenough.recording.timeline import INTERVAL_K, Course, IntArray, KnownValues, Timeline, folded, packed

ROWS_AT_ONCE = 8192
_INSTANTS = ("begin_mono_ns", "end_mono_ns", "begin_wall_ns", "end_wall_ns")
_NAMED = pa.map_(pa.string(), pa.int64())
SCHEMA = pa.schema(
    [
        ("seq", pa.int64()),
        *((name, pa.int64()) for name in _INSTANTS),
        ("series", pa.int64()),
        ("count", pa.int64()),
        ("lost", pa.int64()),
        ("missed", pa.int64()),
        ("min", pa.int64()),
        ("max", pa.int64()),
        ("sum", pa.decimal128(38, 0)),
        ("sum_sq", pa.string()),
        ("exceeded", pa.int64()),
        ("runs", pa.int64()),
        ("bucket", pa.list_(pa.int32())),
        ("bucket_count", pa.list_(pa.int64())),
        ("counters", _NAMED),
        ("load", _NAMED),
    ]
)
"""Counters and load are in the first row of each interval only, so that they add up.  ``exceeded`` and ``runs`` are
of the limit given before the run; null: there was none."""
_SCALARS = SCHEMA.names[: SCHEMA.get_field_index("bucket")]


def interval_scale(k: int) -> int:
    """The scale of the stored intervals of a series of scale ``k``."""
    return min(k, INTERVAL_K)


def _load(interval: Interval) -> list[tuple[str, int | None]] | None:
    return None if interval.load is None else list(asdict(interval.load).items())


class _Rows:
    """Rows of the next batch."""

    def __init__(self) -> None:
        self._scalars: dict[str, list[Any]] = {name: [] for name in _SCALARS}
        self._named: dict[str, list[Any]] = {"counters": [], "load": []}
        self._buckets: list[tuple[int, IntArray, IntArray]] = []

    def __len__(self) -> int:
        return len(self._buckets)

    def add(self, interval: Interval, k_by_id: Mapping[int, int]) -> None:
        bounds = [interval.seq, *(getattr(interval, name) for name in _INSTANTS)]
        named = {"counters": list(interval.counters.items()), "load": _load(interval)}
        nothing = np.empty(0, dtype=np.int64)
        measured = [(number, values) for number, values in interval.histograms.items() if number in k_by_id]
        for number, values in measured:
            limit = interval.limits.get(number)
            self._add(
                [
                    *bounds,
                    number,
                    values.total,
                    interval.lost[number],
                    interval.missed[number],
                    values.minimum,
                    values.maximum,
                    values.sum,
                    str(values.sum_sq),
                    *((None, None) if limit is None else (limit.exceeded, limit.runs)),
                ],
                named,
            )
            self._buckets.append((k_by_id[number], values.index, values.count))
            named = {"counters": None, "load": None}
        if not measured:
            self._add([*bounds, None, 0, 0, 0, None, None, 0, "0", None, None], named)
            self._buckets.append((INTERVAL_K, nothing, nothing))

    def _add(self, scalars: list[Any], named: Mapping[str, Any]) -> None:
        for name, value in zip(_SCALARS, scalars, strict=True):
            self._scalars[name].append(value)
        for name, value in named.items():
            self._named[name].append(value)

    def batch(self) -> pa.RecordBatch:
        """All rows as one batch."""
        offsets, index, count = _folded_rows(self._buckets)
        columns: dict[str, list[Any]] = self._scalars | self._named
        arrays = [pa.array(columns[field.name], field.type) for field in SCHEMA if field.name in columns]
        lists = [
            pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(values, kind))
            for values, kind in ((index, pa.int32()), (count, pa.int64()))
        ]
        first = len(_SCALARS)
        return pa.RecordBatch.from_arrays([*arrays[:first], *lists, *arrays[first:]], schema=SCHEMA)


def _folded_rows(rows: list[tuple[int, IntArray, IntArray]]) -> tuple[IntArray, IntArray, IntArray]:
    """Offsets, indices and counts of the buckets of all rows, folded; rows ascend, and so do indices within one."""
    sizes = np.array([index.size for _, index, _ in rows], dtype=np.int64)
    row = np.repeat(np.arange(len(rows)), sizes)
    index = np.concatenate([index for _, index, _ in rows])
    count = np.concatenate([count for _, _, count in rows])
    scale = np.repeat(np.array([k for k, _, _ in rows], dtype=np.int64), sizes)
    for k in np.unique(scale):
        index[scale == k] = folded(index[scale == k], int(k))
    begins = np.flatnonzero(np.r_[True, (np.diff(row) != 0) | (np.diff(index) != 0)]) if index.size else row
    count = np.add.reduceat(count, begins) if index.size else count
    offsets = np.searchsorted(row[begins], np.arange(len(rows) + 1)).astype(np.int64)
    return offsets, index[begins], count


class Batching:
    """Converts intervals to batches of rows; memory holds one batch."""

    def __init__(self, series: Iterable[Series]) -> None:
        self._k_by_id = {declared.id: declared.k for declared in series}
        self._rows = _Rows()

    def add(self, interval: Interval) -> Iterator[pa.RecordBatch]:
        """The next batch if it is full."""
        self._rows.add(interval, self._k_by_id)
        if len(self._rows) >= ROWS_AT_ONCE:
            yield from self.remainder()

    def remainder(self) -> Iterator[pa.RecordBatch]:
        """The last, partial batch."""
        if len(self._rows):
            yield self._rows.batch()
            self._rows = _Rows()


def timeline_of(batches: Iterable[pa.RecordBatch], series: Iterable[Series]) -> Timeline:
    """The timeline of rows; raises ValueError if they are not those of consecutive intervals."""
    table = pa.Table.from_batches(batches, SCHEMA).combine_chunks()
    seq = _ints(table, "seq")
    first = np.flatnonzero(np.r_[True, np.diff(seq) != 0]) if seq.size else np.empty(0, dtype=np.int64)
    if not np.array_equal(seq[first], np.arange(first.size)):
        raise ValueError("its intervals are not in order")
    bounds = {name: _ints(table, name)[first] for name in _INSTANTS}
    series_ids = _ints(table, "series", -1)
    courses = {
        declared.id: _course(table, np.flatnonzero(series_ids == declared.id), seq, declared.k) for declared in series
    }
    return Timeline(
        **bounds, courses=courses, counters=_named(table, "counters", first), load=_named(table, "load", first)
    )


def intervals_of(batches: Iterable[pa.RecordBatch], series: Iterable[Series]) -> Iterator[Interval]:
    """The intervals of rows with folded buckets, without counters, load and order."""
    k_by_id = {declared.id: interval_scale(declared.k) for declared in series}
    for batch in batches:
        rows = pa.Table.from_batches([batch], SCHEMA)
        offsets, index = _lists(rows, "bucket")
        _, count = _lists(rows, "bucket_count")
        edges = offsets.tolist()
        scalars = rows.select(_SCALARS).to_pylist()
        for seq, places in groupby(range(len(scalars)), key=lambda place: scalars[place]["seq"]):
            interval_rows = [(scalars[place], slice(*edges[place : place + 2])) for place in places]
            with_series = [(row, buckets) for row, buckets in interval_rows if row["series"] is not None]
            begin_mono_ns, end_mono_ns, begin_wall_ns, end_wall_ns = (interval_rows[0][0][name] for name in _INSTANTS)
            yield Interval(
                seq,
                begin_mono_ns,
                end_mono_ns,
                begin_wall_ns,
                end_wall_ns,
                {
                    row["series"]: Histogram(
                        k_by_id[row["series"]],
                        index[buckets],
                        count[buckets],
                        row["min"],
                        row["max"],
                        int(row["sum"]),
                        int(row["sum_sq"]),
                    )
                    for row, buckets in with_series
                },
                {row["series"]: row["lost"] for row, _ in with_series},
                {row["series"]: row["missed"] for row, _ in with_series},
                {},
            )


def timeline_of_intervals(intervals: Iterable[Interval], series: Iterable[Series]) -> Timeline:
    """The timeline of intervals in memory."""
    batching = Batching(series)
    batches = [batch for interval in intervals for batch in batching.add(interval)]
    return timeline_of([*batches, *batching.remainder()], series)


def _ints(table: pa.Table, name: str, nothing: int = 0) -> IntArray:
    column = table.column(name)
    return np.asarray(column.fill_null(nothing).to_numpy(), dtype=np.int64)


def _course(table: pa.Table, rows: IntArray, seq: IntArray, k: int) -> Course:
    entries = table.take(pa.array(rows)).combine_chunks()
    offsets, index = _lists(entries, "bucket")
    count_offsets, count = _lists(entries, "bucket_count")
    if not np.array_equal(offsets, count_offsets):
        raise ValueError("the numbers of buckets and counts differ")
    return Course(
        interval_scale(k),
        seq[rows],
        _ints(entries, "count"),
        _ints(entries, "lost"),
        _ints(entries, "missed"),
        _ints(entries, "min"),
        _ints(entries, "max"),
        np.asarray(entries.column("sum").cast(pa.float64()).to_numpy()),
        _ints(entries, "exceeded"),
        _ints(entries, "runs"),
        offsets,
        packed(index),
        packed(count),
    )


def _lists(table: pa.Table, name: str) -> tuple[IntArray, IntArray]:
    """Offsets from 0 on, and the values that they divide."""
    column = table.column(name)
    chunk = column.chunk(0) if column.num_chunks else pa.array([], column.type)
    offsets = chunk.offsets.to_numpy().astype(np.int64)
    return offsets - offsets[0], chunk.flatten().to_numpy().astype(np.int64)


def _named(table: pa.Table, name: str, first: IntArray) -> dict[str, KnownValues]:
    """The values in the first row of each interval, by name."""
    chunked = table.column(name).take(pa.array(first))
    chunk = chunked.combine_chunks() if chunked.num_chunks != 1 else chunked.chunk(0)
    interval_of_item = np.repeat(np.arange(first.size), np.diff(chunk.offsets.to_numpy()))
    names = np.array(chunk.keys.to_pylist(), dtype=object)
    unknown = np.asarray(chunk.items.is_null().to_numpy(zero_copy_only=False), dtype=bool)
    items = np.asarray(chunk.items.fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64)
    known: dict[str, KnownValues] = {}
    for key in dict.fromkeys(names):
        values, is_known = np.zeros(first.size, dtype=np.int64), np.zeros(first.size, dtype=bool)
        values[interval_of_item[names == key]] = items[names == key]
        is_known[interval_of_item[names == key]] = ~unknown[names == key]
        known[str(key)] = values, is_known
    return known
