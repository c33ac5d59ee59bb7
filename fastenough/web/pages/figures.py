# SPDX-License-Identifier: GPL-2.0-or-later
"""What a board's figures are drawn of, as files: the same numbers for the browser, a spreadsheet and a program."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from typing import Any

from fastenough.history import (
    NOTHING,
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
_LAST_S = 253402300799
"""No instant after the year 9999 can be said."""
_LONGEST_S = 20 * 366 * 86400


def _main(site: Site, name: str) -> BoardInfo:
    return board_of(site.history, site.viewer, name)


def _of_range(site: Site, board: BoardInfo, begin_s: int, end_s: int, step_s: int) -> MaximaSeries:
    found = maxima(site.history, site.viewer, board.name, board.main, begin_s, end_s)
    return coarser(found, step_s)


def _of_span(site: Site, name: str, span: str) -> tuple[BoardInfo, MaximaSeries]:
    board, chosen = _main(site, name), span_of(span)
    return board, _of_range(site, board, *chosen.until(site.now_s), chosen.step_s)


def _without_nothing(values: Any) -> list[int | None]:
    return [None if value == NOTHING else value for value in values.tolist()]


def _maxima_facts(
    site: Site, board: BoardInfo, maxima_series: MaximaSeries, begin_s: int, end_s: int
) -> dict[str, Any]:
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
    board, found = _of_span(site, name, span)
    return as_json(_maxima_facts(site, board, found, *span_of(span).until(site.now_s)))


def _maxima_rows(site: Site, name: str, span: str) -> Rows:
    _, found = _of_span(site, name, span)
    columns = [_without_nothing(values) for _, values in sorted(found.values_ns.items())]
    header = ["begin_utc", "step_s", *(f"cpu{cpu}_max_ns" for cpu in sorted(found.values_ns))]
    return [
        header,
        *([iso(at_s), found.step_s, *row] for at_s, *row in zip(found.times_s.tolist(), *columns, strict=True)),
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


def _buckets(found: Buckets) -> dict[str, Any]:
    return {
        "lower_ns": found.lower_ns,
        "upper_ns": found.upper_ns,
        "count": found.count,
        "n": found.n,
        "max_ns": found.max_ns,
    }


def distribution_facts(plot: Distribution, limit_ns: int | None) -> dict[str, Any]:
    """What a latency plot is drawn of."""
    return {
        "begin_s": plot.begin_s,
        "end_s": plot.end_s,
        "limit_ns": limit_ns,
        "elsewhere_s": plot.elsewhere_s,
        "cpus": {str(cpu): _buckets(buckets) for cpu, buckets in sorted(plot.cpus.items())},
    }


def _distribution_of(site: Site, name: str, span: str) -> tuple[BoardInfo, Distribution]:
    board = _main(site, name)
    return board, distribution(site.history, site.viewer, name, board.main, *span_of(span).until(site.now_s))


def _distribution_json(site: Site, name: str, span: str) -> bytes:
    board, found = _distribution_of(site, name, span)
    return as_json(distribution_facts(found, board.limit_ns))


def _distribution_rows(site: Site, name: str, span: str) -> Rows:
    _, found = _distribution_of(site, name, span)
    rows = [
        [cpu, *row]
        for cpu, one in sorted(found.cpus.items())
        for row in zip(one.lower_ns.tolist(), one.upper_ns.tolist(), one.count.tolist(), strict=True)
    ]
    return [["cpu", "lower_ns", "upper_ns", "count"], *rows]


def _sparse(rows: Any) -> list[list[int]]:
    """Of each row, [place, count, place, count, …] of what is not zero."""
    return [[number for place in row.nonzero()[0].tolist() for number in (place, int(row[place]))] for row in rows]


def _heat(site: Site, name: str, span: str) -> dict[str, Any]:
    """Counts by time and latency, all CPUs; of several steps in one column the counts are added."""
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
        "elsewhere_s": cells.elsewhere_s,
    }


def _heat_json(site: Site, name: str, span: str) -> bytes:
    return as_json(_heat(site, name, span))


_COUNTED = ["begin_utc", "step_s", "lower_ns", "upper_ns", "count"]


def _heat_rows(site: Site, name: str, span: str) -> Rows:
    """A row for each bucket of a step in which something was seen."""
    found = _heat(site, name, span)
    return [
        _COUNTED,
        *(
            [iso(at_s), found["step_s"], found["lower_ns"][place], found["upper_ns"][place], count]
            for at_s, column in zip(found["times_s"], found["columns"], strict=True)
            for place, count in zip(column[::2], column[1::2], strict=True)
        ),
    ]


def _ridge(site: Site, name: str) -> dict[str, Any]:
    """Cycles, the oldest first; where there are more than can be drawn, those that follow each other are added."""
    board = _main(site, name)
    found = ridge(site.history, site.viewer, name, board.main, _RIDGE_MONTHS)
    each = max(1, -(-len(found.rows) // _RIDGE_ROWS))
    rows = [_added(found.rows[at : at + each]) for at in range(0, len(found.rows), each)]
    return {"cycle_s": found.cycle_s, "cycles": each, "rows": rows, "limit_ns": board.limit_ns}


def _ridge_json(site: Site, name: str) -> bytes:
    return as_json(_ridge(site, name))


def _ridge_rows(site: Site, name: str) -> Rows:
    found = _ridge(site, name)
    return [
        _COUNTED,
        *(
            [iso(row["begin_s"]), found["cycle_s"] * found["cycles"], *bucket]
            for row in found["rows"]
            for bucket in zip(row["lower_ns"], row["upper_ns"], row["count"], strict=True)
        ),
    ]


def _added(rows: Sequence[Any]) -> dict[str, Any]:
    """Several cycles as one: counts by bucket."""
    counts: dict[tuple[int, int], int] = {}
    for row in rows:
        one = row.buckets
        for lower, upper, count in zip(one.lower_ns.tolist(), one.upper_ns.tolist(), one.count.tolist(), strict=True):
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
    """A second that was asked for; raises BadInput."""
    said = dict(query).get(name, "")
    if not _SECONDS.fullmatch(said) or int(said) > _LAST_S:
        raise BadInput(f"{name} is missing or invalid; give whole seconds since 1970, such as {name}=1790000000")
    return int(said)


def with_maximum(
    site: Site, board: BoardInfo, seen: MaximaSeries, latency_events: Sequence[LatencyEvent]
) -> list[LatencyEvent]:
    """Events of a range.  If none of them has its maximum, as in the middle of a run, the maximum is put before
    them."""
    worst = seen.worst_ns
    greatest = int(worst.max(initial=NOTHING))
    if greatest == NOTHING or any(one.series == board.main and one.value_ns >= greatest for one in latency_events):
        return list(latency_events)
    place = int(worst.argmax())
    at_s = int(seen.times_s[place])
    cpu = next(cpu for cpu, values in seen.values_ns.items() if values[place] == greatest)
    runs = bands(site.history, site.viewer, board.name, at_s, at_s + seen.step_s)
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
    seen = coarser(all_maxima, drawable_step(end_s - begin_s, all_maxima.step_s))
    plot = distribution(site.history, site.viewer, name, board.main, begin_s, end_s)
    return as_json(
        {
            **_maxima_facts(site, board, seen, begin_s, end_s),
            "changes": changes(*question),
            "events": with_maximum(site, board, all_maxima, events(*question, most=_MOST_SELECTED_EVENTS)),
            "distribution": distribution_facts(plot, board.limit_ns),
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
