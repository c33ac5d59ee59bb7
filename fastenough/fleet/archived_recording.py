# SPDX-License-Identifier: GPL-2.0-or-later
"""Recordings rebuilt from the rows of an archive: values over time, without facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as arrow

from fastenough.analysis.merged import Part
from fastenough.fleet.archive import month_of
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
_LONGEST_NS = 2 * 3600 * 10**9
"""No interval is longer: the greatest --report of probes is 1 h."""
_CORRECTED = "_corrected"
_ID = 0


def archived_parts(board: BoardRows) -> dict[tuple[int, str], list[Part]]:
    """By CPU (NO_CPU for values of no CPU) and name of the series, each run of it.

    All runs of a series have the coarsest resolution that one of them may have, so that they can be merged.
    """
    runs: dict[tuple[int, str], list[arrow.Table]] = {}
    for cpu, rows in _runs_of(board.rows):
        runs.setdefault((cpu, str(rows.column("series")[0].as_py())), []).append(rows)
    return {(cpu, name): list(_parts(board.board, cpu, name, runs[cpu, name])) for cpu, name in sorted(runs)}


def missing_intervals(board: BoardRows) -> int:
    """Number of intervals that the archive does not have of the runs of a board.

    Intervals of a run are numbered from 0; those after the last archived one are unknown.  Those before the first one
    do not count if they may have been in an earlier month than all of the board: such months may have been removed.
    """
    runs = board.rows.column("run").combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
    cpu, interval, begin_ns, end_ns = map(board.numbers, ("cpu", "interval", "begin_ns", "end_ns"))
    oldest = month_of(int(begin_ns.min()) // 10**9)
    missing = 0
    begins = np.flatnonzero(np.r_[True, np.diff(runs) != 0])
    for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), runs.size], strict=True):
        first = begin + int(interval[begin:end].argmin())
        length_ns = int(end_ns[first] - begin_ns[first])
        may_be_removed = 0 < length_ns <= _LONGEST_NS and month_of(int(begin_ns[first] - length_ns) // 10**9) < oldest
        expected = int(interval[begin:end].max()) + 1 - (int(interval[first]) if may_be_removed else 0)
        missing += expected - int(np.unique(cpu[begin:end], return_counts=True)[1].min())
    return missing


def _runs_of(rows: arrow.Table) -> Iterator[tuple[int, arrow.Table]]:
    """CPU and rows of each run, CPU and series; the rows are in the order of run, CPU and interval."""
    names = [rows.column(name).combine_chunks().dictionary_encode() for name in ("run", "series")]
    keys = np.stack([*(name.indices.to_numpy(zero_copy_only=False) for name in names), integers(rows.column("cpu"))])
    begins = np.flatnonzero(np.r_[True, (np.diff(keys) != 0).any(axis=0)])
    for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), rows.num_rows], strict=True):
        yield int(keys[-1, begin]), rows.slice(begin, end - begin)


def _parts(board: str, cpu: int, name: str, runs: Sequence[arrow.Table]) -> Iterator[Part]:
    """The runs of a series.  A negative value in one of them makes all of them two-sided."""
    lowest = [_buckets(rows)[0] for rows in runs]
    k = min((scale for edges in lowest if (scale := _scale(edges)) is not None), default=0)
    series = _series(name, cpu, k, two_sided=any(bool((edges < 0).any()) for edges in lowest))
    for rows in runs:
        yield _recording(board, series, rows), series


def _recording(board: str, series: Series, rows: arrow.Table) -> Recording:
    lowest, count, offsets = _buckets(rows)
    k = series.k
    index = np.asarray(bucket_index(lowest, k))
    begin_ns, end_ns = integers(rows.column("begin_ns")), integers(rows.column("end_ns"))
    measured = integers(rows.column("count")) > 0
    covered_ns = int(_lengths_ns(begin_ns, end_ns)[measured].sum())
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


def _lengths_ns(begin_ns: IntArray, end_ns: IntArray) -> IntArray:
    """How long each interval of a run certainly was: at most its usual length, and 0 if that is unknown.

    Takers of earlier versions stored both ends by the board's clock, which may have been set in between.
    """
    lengths_ns = np.maximum(end_ns - begin_ns, 0)
    ascending = np.sort(lengths_ns[lengths_ns > 0])
    usual_ns = int(ascending[(ascending.size - 1) // 2]) if ascending.size else 0
    certain_ns: IntArray = np.minimum(lengths_ns, usual_ns if usual_ns <= _LONGEST_NS else 0)
    return certain_ns


def _buckets(rows: arrow.Table) -> tuple[IntArray, IntArray, IntArray]:
    """Least value and count of each bucket of all intervals, and the place of the first bucket of each interval."""
    lists = [rows.column(name).combine_chunks() for name in ("bucket_ns", "bucket_count")]
    lowest, count = (integers(column.flatten()) for column in lists)
    sizes = integers(lists[0].value_lengths())
    return lowest, count, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _scale(lowest: IntArray) -> int | None:
    """The least k of buckets with these lowest values: never finer than theirs, so that no value is understated.

    None: they would be the same for every k.

    A lowest value has at most k + 1 significant bits; a negative one is the far end of its bucket.
    """
    edges = np.where(lowest < 0, 1 - lowest, lowest)
    edges = edges[edges > 0]
    if not edges.size:
        return None
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
