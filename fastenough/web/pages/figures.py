# SPDX-License-Identifier: GPL-2.0-or-later
"""The data of a board's figures as JSON, CSV and Parquet."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, TypedDict

from fastenough.history import (
    NOTHING,
    BoardChange,
    BoardInfo,
    Buckets,
    Distribution,
    LatencyEvent,
    MaximaSeries,
    bands,
    board_of,
    changes,
    distribution,
    events,
    heat,
    maxima,
    ridge,
)
from fastenough.history.histograms import Integers
from fastenough.history.results import MissingSpan, RidgeRow
from fastenough.model import BadInput
from fastenough.report.formats import csv_lines
from fastenough.web.rendering import as_json
from fastenough.web.site import CSV, JSON, PARQUET, Page, Site
from fastenough.web.spans import coarser, drawable_step, span_of
from fastenough.words import iso

Query = Sequence[tuple[str, str]]
Rows = list[list[Any]]
"""A table, its header first."""

_HEAT_COLUMNS = 300
_RIDGE_MONTHS = 18
_RIDGE_ROWS = 40
_MOST_SELECTED_EVENTS = 200
_SECONDS = re.compile(r"[0-9]{1,12}")
_LAST_S = 253399622399
"""The end of November 9999: no date can state the begin of the month after December."""
_LONGEST_S = 20 * 366 * 86400


def _main(site: Site, name: str) -> BoardInfo:
    return board_of(site.history, site.viewer, name)


def _of_range(site: Site, board: BoardInfo, begin_s: int, end_s: int, step_s: int) -> MaximaSeries:
    fine = maxima(site.history, site.viewer, board.name, board.main, begin_s, end_s)
    return coarser(fine, step_s)


def _of_span(site: Site, name: str, span: str) -> tuple[BoardInfo, MaximaSeries]:
    board, chosen = _main(site, name), span_of(span)
    return board, _of_range(site, board, *chosen.until(site.now_s), chosen.step_s)


def _without_nothing(values: Any) -> list[int | None]:
    return [None if value == NOTHING else value for value in values.tolist()]


class _MaximaDocument(TypedDict):
    """Maxima of a board over a range, by CPU and step; None where nothing was measured.  ``bands``: begin, end, load,
    configuration and id of each run."""

    board: str
    series: str
    begin_s: int
    end_s: int
    step_s: int
    limit_ns: int | None
    times_s: list[int]
    cpus: dict[str, list[int | None]]
    bands: list[list[int | str]]
    changes: list[BoardChange]


def _maxima_document(
    site: Site, board: BoardInfo, maxima_series: MaximaSeries, begin_s: int, end_s: int
) -> _MaximaDocument:
    question = site.history, site.viewer, board.name, begin_s, end_s
    return {
        "board": board.name,
        "series": board.main,
        "begin_s": begin_s,
        "end_s": end_s,
        "step_s": maxima_series.step_s,
        "limit_ns": board.limit_ns,
        "times_s": maxima_series.times_s.tolist(),
        "cpus": {str(cpu): _without_nothing(values) for cpu, values in sorted(maxima_series.values_ns.items())},
        "bands": [[band.begin_s, band.end_s, band.load, band.configuration, band.run] for band in bands(*question)],
        "changes": [change for change in changes(*question) if change.kind == "configuration"],
    }


def _maxima_json(site: Site, name: str, span: str) -> bytes:
    board, series = _of_span(site, name, span)
    return as_json(_maxima_document(site, board, series, *span_of(span).until(site.now_s)))


def _maxima_rows(site: Site, name: str, span: str) -> Rows:
    _, series = _of_span(site, name, span)
    columns = [_without_nothing(values) for _, values in sorted(series.values_ns.items())]
    header = ["begin_utc", "step_s", *(f"cpu{cpu}_max_ns" for cpu in sorted(series.values_ns))]
    return [
        header,
        *([iso(at_s), series.step_s, *row] for at_s, *row in zip(series.times_s.tolist(), *columns, strict=True)),
    ]


def _parquet(rows: Rows) -> bytes:
    import pyarrow as pa  # noqa: PLC0415 - half a second, which no page waits for
    import pyarrow.parquet as pq  # noqa: PLC0415

    out, (header, *body) = io.BytesIO(), rows
    pq.write_table(pa.table({title: [row[place] for row in body] for place, title in enumerate(header)}), out)
    return out.getvalue()


def _as_tables(pattern: str, rows: Callable[..., Rows]) -> list[Page]:
    """The same rows as CSV and as Parquet."""
    return [
        Page(f"{pattern}.csv", CSV, lambda site, **named: csv_lines(rows(site, **named))),
        Page(f"{pattern}.parquet", PARQUET, lambda site, **named: _parquet(rows(site, **named))),
    ]


class _BucketsDocument(TypedDict):
    """The counts of one CPU by bucket."""

    lower_ns: Integers
    upper_ns: Integers
    count: Integers
    n: int
    max_ns: int | None


class MissingDocument(TypedDict):
    """Times with missing values.  ``query``: SQL that reads them from the archive of takers; empty if they are in the
    store of another farm."""

    begin_s: int
    end_s: int
    query: str


def _archive_query(board: str, span: MissingSpan) -> str:
    """The intervals of a board in the archive of takers, for DuckDB.

    ``ARCHIVE`` stands for the location of the archive, without the query of a URL such as ``?region=REGION``.  The
    span is within one month.  A name is quoted as SQL text.
    """
    month, name = f"{datetime.fromtimestamp(span.begin_s, UTC):%Y-%m}", board.replace("'", "''")
    return (
        "SELECT make_timestamp(begin_ns // 1000) AS begin_utc, cpu, series, count, lost, missed, max_ns\n"
        f"FROM read_parquet('ARCHIVE/type=*/month={month}/*/*.parquet')\n"
        f"WHERE board = '{name}' AND begin_ns >= {span.begin_s}000000000 AND begin_ns < {span.end_s}000000000\n"
        "ORDER BY begin_ns, cpu"
    )


def _missing(board: str, spans: Sequence[MissingSpan]) -> list[MissingDocument]:
    return [
        {
            "begin_s": span.begin_s,
            "end_s": span.end_s,
            "query": _archive_query(board, span) if span.in_fleet_archive else "",
        }
        for span in spans
    ]


class DistributionDocument(TypedDict):
    """Data of a latency plot, by CPU."""

    begin_s: int
    end_s: int
    limit_ns: int | None
    missing: list[MissingDocument]
    cpus: dict[str, _BucketsDocument]


def _buckets(buckets: Buckets) -> _BucketsDocument:
    return {
        "lower_ns": buckets.lower_ns,
        "upper_ns": buckets.upper_ns,
        "count": buckets.count,
        "n": buckets.n,
        "max_ns": buckets.max_ns,
    }


def distribution_document(plot: Distribution, board: BoardInfo) -> DistributionDocument:
    return {
        "begin_s": plot.begin_s,
        "end_s": plot.end_s,
        "limit_ns": board.limit_ns,
        "missing": _missing(board.name, plot.missing),
        "cpus": {str(cpu): _buckets(buckets) for cpu, buckets in sorted(plot.cpus.items())},
    }


def _distribution_of(site: Site, name: str, span: str) -> tuple[BoardInfo, Distribution]:
    board = _main(site, name)
    return board, distribution(site.history, site.viewer, name, board.main, *span_of(span).until(site.now_s))


def _distribution_json(site: Site, name: str, span: str) -> bytes:
    board, plot = _distribution_of(site, name, span)
    return as_json(distribution_document(plot, board))


def _distribution_rows(site: Site, name: str, span: str) -> Rows:
    _, plot = _distribution_of(site, name, span)
    rows = [
        [cpu, *row]
        for cpu, buckets in sorted(plot.cpus.items())
        for row in zip(buckets.lower_ns.tolist(), buckets.upper_ns.tolist(), buckets.count.tolist(), strict=True)
    ]
    return [["cpu", "lower_ns", "upper_ns", "count"], *rows]


def _sparse(rows: Any) -> list[list[int]]:
    """Each row as [place, count, place, count, …] of its non-zero values."""
    return [[number for place in row.nonzero()[0].tolist() for number in (place, int(row[place]))] for row in rows]


class _HeatDocument(TypedDict):
    """Counts by time and latency.  ``columns``: of each step, bucket and count in turn, without zeros."""

    begin_s: int
    end_s: int
    times_s: list[int]
    step_s: int
    lower_ns: list[int]
    upper_ns: list[int]
    columns: list[list[int]]
    missing: list[MissingDocument]


def _heat(site: Site, name: str, span: str) -> _HeatDocument:
    """Counts of all CPUs; steps that share a column are added."""
    board, chosen = _main(site, name), span_of(span)
    begin_s, end_s = chosen.until(site.now_s)
    cells = heat(site.history, site.viewer, name, board.main, begin_s, end_s)
    steps_per_column = max(1, -(-cells.times_s.size // _HEAT_COLUMNS))
    begins = range(0, cells.times_s.size, steps_per_column)
    columns = [cells.count[at : at + steps_per_column].sum(axis=0) for at in begins]
    return {
        "begin_s": begin_s,
        "end_s": end_s,
        "times_s": [int(cells.times_s[at]) for at in begins],
        "step_s": cells.step_s * steps_per_column,
        "lower_ns": cells.lower_ns.tolist(),
        "upper_ns": cells.upper_ns.tolist(),
        "columns": _sparse(columns),
        "missing": _missing(board.name, cells.missing),
    }


def _heat_json(site: Site, name: str, span: str) -> bytes:
    return as_json(_heat(site, name, span))


_COUNTED = ["begin_utc", "step_s", "lower_ns", "upper_ns", "count"]


def _heat_rows(site: Site, name: str, span: str) -> Rows:
    """A row for each bucket of a step that has a value."""
    document = _heat(site, name, span)
    return [
        _COUNTED,
        *(
            [iso(at_s), document["step_s"], document["lower_ns"][place], document["upper_ns"][place], count]
            for at_s, column in zip(document["times_s"], document["columns"], strict=True)
            for place, count in zip(column[::2], column[1::2], strict=True)
        ),
    ]


class _RidgeRow(TypedDict):
    """The counts of one or more successive cycles by bucket."""

    begin_s: int
    lower_ns: list[int]
    upper_ns: list[int]
    count: list[int]
    max_ns: int | None


class _RidgeDocument(TypedDict):
    """Rows of ``cycles`` cycles of ``cycle_s`` each, the oldest first."""

    cycle_s: int
    cycles: int
    rows: list[_RidgeRow]
    limit_ns: int | None


def _ridge(site: Site, name: str) -> _RidgeDocument:
    """The cycles of a board; successive cycles are added if there are more than ``_RIDGE_ROWS``."""
    board = _main(site, name)
    cycles = ridge(site.history, site.viewer, name, board.main, _RIDGE_MONTHS)
    cycles_per_row = max(1, -(-len(cycles.rows) // _RIDGE_ROWS))
    rows = [_merged(cycles.rows[at : at + cycles_per_row]) for at in range(0, len(cycles.rows), cycles_per_row)]
    return {"cycle_s": cycles.cycle_s, "cycles": cycles_per_row, "rows": rows, "limit_ns": board.limit_ns}


def _ridge_json(site: Site, name: str) -> bytes:
    return as_json(_ridge(site, name))


def _ridge_rows(site: Site, name: str) -> Rows:
    document = _ridge(site, name)
    return [
        _COUNTED,
        *(
            [iso(row["begin_s"]), document["cycle_s"] * document["cycles"], *bucket]
            for row in document["rows"]
            for bucket in zip(row["lower_ns"], row["upper_ns"], row["count"], strict=True)
        ),
    ]


def _merged(rows: Sequence[RidgeRow]) -> _RidgeRow:
    counts: dict[tuple[int, int], int] = {}
    for row in rows:
        buckets = row.buckets
        for lower, upper, count in zip(
            buckets.lower_ns.tolist(), buckets.upper_ns.tolist(), buckets.count.tolist(), strict=True
        ):
            counts[lower, upper] = counts.get((lower, upper), 0) + count
    edges = sorted(counts)
    return {
        "begin_s": rows[0].begin_s,
        "lower_ns": [lower for lower, _ in edges],
        "upper_ns": [upper for _, upper in edges],
        "count": [counts[edge] for edge in edges],
        "max_ns": max((row.buckets.max_ns for row in rows if row.buckets.max_ns is not None), default=None),
    }


def _second(query: Query, name: str) -> int:
    """A second in the query; raises BadInput."""
    text = dict(query).get(name, "")
    if not _SECONDS.fullmatch(text) or int(text) > _LAST_S:
        raise BadInput(f"{name} is missing or invalid; give whole seconds since 1970, such as {name}=1790000000")
    return int(text)


def with_maximum(
    site: Site, board: BoardInfo, series: MaximaSeries, latency_events: Sequence[LatencyEvent]
) -> list[LatencyEvent]:
    """Events of a range, preceded by its maximum if that is not the value of an event, as in the middle of a run."""
    worst = series.worst_ns
    greatest = int(worst.max(initial=NOTHING))
    if greatest == NOTHING or any(
        event.series == board.main and event.value_ns >= greatest for event in latency_events
    ):
        return list(latency_events)
    place = int(worst.argmax())
    at_s = int(series.times_s[place])
    cpu = next(cpu for cpu, values in series.values_ns.items() if values[place] == greatest)
    runs = bands(site.history, site.viewer, board.name, at_s, at_s + series.step_s)
    return [
        LatencyEvent(
            at_s,
            "maximum",
            board.main,
            None if cpu < 0 else cpu,
            greatest,
            "",
            runs[-1].run if runs else "",
            new_maximum=False,
        ),
        *latency_events,
    ]


def _selection(site: Site, name: str, query: Query) -> bytes:
    """The data of a selected range, as JSON; only a server can answer it."""
    board = _main(site, name)
    begin_s, end_s = _second(query, "begin"), _second(query, "end")
    if not begin_s < end_s <= begin_s + _LONGEST_S:
        raise BadInput("invalid range; end must be after begin, and the range at most 20 years")
    question = site.history, site.viewer, name, begin_s, end_s
    all_maxima = maxima(site.history, site.viewer, name, board.main, begin_s, end_s)
    series = coarser(all_maxima, drawable_step(end_s - begin_s, all_maxima.step_s))
    plot = distribution(site.history, site.viewer, name, board.main, begin_s, end_s)
    return as_json(
        {
            **_maxima_document(site, board, series, begin_s, end_s),
            "changes": changes(*question),
            "events": with_maximum(site, board, all_maxima, events(*question, most=_MOST_SELECTED_EVENTS)),
            "distribution": distribution_document(plot, board),
        }
    )


_AT = "/board/{name}/"
PAGES = [
    Page(_AT + "maxima-{span}.json", JSON, _maxima_json),
    *_as_tables(_AT + "maxima-{span}", _maxima_rows),
    Page(_AT + "heat-{span}.json", JSON, _heat_json),
    *_as_tables(_AT + "heat-{span}", _heat_rows),
    Page(_AT + "distribution-{span}.json", JSON, _distribution_json),
    *_as_tables(_AT + "distribution-{span}", _distribution_rows),
    Page(_AT + "ridge.json", JSON, _ridge_json),
    *_as_tables(_AT + "ridge", _ridge_rows),
    Page(_AT + "selection.json", JSON, _selection, asks=True, published=False),
]
