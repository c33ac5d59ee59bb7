# SPDX-License-Identifier: GPL-2.0-or-later
"""Recordings rebuilt from the rows of an archive: values over time, without facts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as arrow

from fastenough.fleet.board_rows import BoardRows, IntArray, integers
from fastenough.history.schema import NO_CPU
from fastenough.model import Role, Series
from fastenough.recording import Histogram, Recording
from fastenough.recording.aggregate import Aggregate
from fastenough.recording.head import Head, Instant, Tool
from fastenough.recording.histogram import add_sparse, bucket_index
from fastenough.recording.timeline import Course, Timeline, packed

COLUMNS = (
    "begin_ns",
    "end_ns",
    "series",
    "count",
    "lost",
    "missed",
    "min_ns",
    "max_ns",
    "sum_ns",
    "bucket_ns",
    "bucket_count",
)
_CORRECTED = "_corrected"
_ID = 0


def archived_parts(board: BoardRows) -> dict[int, list[tuple[Recording, Series]]]:
    """By CPU, a recording of each run with its series; NO_CPU for values of no CPU."""
    parts: dict[int, list[tuple[Recording, Series]]] = {}
    for cpu, rows in _runs_of(board.rows):
        recording = _recording(board.board, cpu, rows)
        parts.setdefault(cpu, []).append((recording, recording.series[0]))
    return parts


def _runs_of(rows: arrow.Table) -> Iterator[tuple[int, arrow.Table]]:
    """CPU and rows of each run, CPU and series; the rows are in the order of run, CPU and interval."""
    names = [rows.column(name).combine_chunks().dictionary_encode() for name in ("run", "series")]
    keys = np.stack([*(name.indices.to_numpy(zero_copy_only=False) for name in names), integers(rows.column("cpu"))])
    begins = np.flatnonzero(np.r_[True, (np.diff(keys) != 0).any(axis=0)])
    for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), rows.num_rows], strict=True):
        yield int(keys[-1, begin]), rows.slice(begin, end - begin)


def _recording(board: str, cpu: int, rows: arrow.Table) -> Recording:
    lowest, count, offsets = _buckets(rows)
    k = _scale(lowest)
    index = np.asarray(bucket_index(lowest, k))
    series = _series(str(rows.column("series")[0].as_py()), cpu, k, two_sided=bool((lowest < 0).any()))
    begin_ns, end_ns = integers(rows.column("begin_ns")), integers(rows.column("end_ns"))
    measured = integers(rows.column("count")) > 0
    covered_ns = int(np.maximum(end_ns - begin_ns, 0)[measured].sum())
    total = Histogram(k)
    if measured.any():
        minimum, maximum = (
            integers(rows.column("min_ns"))[measured].min(),
            integers(rows.column("max_ns"))[measured].max(),
        )
        total = Histogram(
            k, *add_sparse([index], [count]), int(minimum), int(maximum), int(integers(rows.column("sum_ns")).sum())
        )
    aggregate = Aggregate(
        totals={_ID: total},
        lost={_ID: int(integers(rows.column("lost")).sum())},
        missed={_ID: int(integers(rows.column("missed")).sum())},
        intervals=rows.num_rows,
        begin_mono_ns=int(begin_ns[0]),
        end_mono_ns=int(begin_ns[0]) + covered_ns,
        covered_ns={_ID: covered_ns},
    )
    return Recording(
        _head(board, str(rows.column("run")[0].as_py()), series, int(begin_ns[0])),
        (),
        (),
        None,
        aggregate=aggregate,
        over_time=lambda: _timeline(rows, k, (index, count, offsets)),
    )


def _buckets(rows: arrow.Table) -> tuple[IntArray, IntArray, IntArray]:
    """Least value and count of each bucket of all intervals, and the place of the first bucket of each interval."""
    lists = [rows.column(name).combine_chunks() for name in ("bucket_ns", "bucket_count")]
    lowest, count = (integers(column.flatten()) for column in lists)
    sizes = integers(lists[0].value_lengths())
    return lowest, count, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _scale(lowest: IntArray) -> int:
    """The least k of buckets with these lowest values: never finer than theirs, so that no value is understated.

    A lowest value has at most k + 1 significant bits; a negative one is the far end of its bucket.
    """
    edges = np.where(lowest < 0, 1 - lowest, lowest)
    edges = edges[edges > 0]
    if not edges.size:
        return 0
    _, bits = np.frexp((edges // (edges & -edges)).astype(np.float64))
    return int(bits.max()) - 1


def _series(name: str, cpu: int, k: int, *, two_sided: bool) -> Series:
    return Series(
        _ID,
        name,
        "ns",
        "monotonic",
        "",
        "",
        k,
        Role.VERDICT,
        two_sided=two_sided,
        corrected=name.partition(" ")[0].endswith(_CORRECTED),
        cpu=None if cpu == NO_CPU else cpu,
    )


def _head(board: str, run: str, series: Series, begin_ns: int) -> Head:
    return Head(
        tool=Tool("archive", ""),
        run_id=run,
        probe=series.name.partition("/")[0],
        implementation="",
        parameters={},
        series=(series,),
        settings=(),
        cost_ns={},
        interval_ns=0,
        begin=Instant(begin_ns, begin_ns),
        board=board,
    )


def _timeline(rows: arrow.Table, k: int, buckets: tuple[IntArray, IntArray, IntArray]) -> Timeline:
    index, count, offsets = buckets
    begin_ns, end_ns = integers(rows.column("begin_ns")), integers(rows.column("end_ns"))
    columns: dict[str, Any] = {name: integers(rows.column(name)) for name in ("count", "lost", "missed")}
    nothing = np.zeros(rows.num_rows, dtype=np.int64)
    course = Course(
        k=k,
        at=np.arange(rows.num_rows, dtype=np.int64),
        **columns,
        minimum=integers(rows.column("min_ns")),
        maximum=integers(rows.column("max_ns")),
        sum=integers(rows.column("sum_ns")).astype(np.float64),
        exceeded=nothing,
        runs=nothing,
        offsets=offsets,
        packed_index=packed(index),
        packed_count=packed(count),
    )
    return Timeline(begin_ns, end_ns, begin_ns, end_ns, {_ID: course}, {}, {})
