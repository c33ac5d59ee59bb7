# SPDX-License-Identifier: GPL-2.0-or-later
"""All boards: which of them needs attention?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fastenough.history import (
    NOTHING,
    BoardCondition,
    BoardStatus,
    GroupKind,
    group_names,
    numbers_by_urgency,
    statuses_by_number,
    worst,
)
from fastenough.report.formats import csv_lines
from fastenough.web.rendering import as_json, page_with_json
from fastenough.web.selection import VERDICTS, Query, Selection, chosen
from fastenough.web.site import CSV, JSON, Page, Site, page_in_parts
from fastenough.web.spans import SPANS, span_of

_URGENT = (
    BoardCondition.DEAD,
    BoardCondition.FAIL,
    BoardCondition.NEW_MAXIMUM,
    BoardCondition.ABOVE,
    BoardCondition.SILENT,
    BoardCondition.REFUSED,
    BoardCondition.CHANGED,
    BoardCondition.NOT_JUDGED,
)

_MOST_CHOICES = 50
"""Names of one kind of group in the form; more are on the page of groups."""
_ROWS_AT_ONCE = 500
"""Boards in one part of the table."""


@dataclass(frozen=True)
class Count:
    """Number of boards that need attention for one reason."""

    state: BoardCondition
    shape: str
    boards: int


@dataclass(frozen=True)
class OverviewView:
    """``counts``: number of boards by reason for attention, the most urgent first.  ``boards``: those on ``page`` of
    ``pages``, of ``total``, by urgency and name or in the requested order.  ``groups``: names by kind, for the
    filter."""

    newest_s: int | None
    counts: tuple[Count, ...]
    kernels: tuple[str, ...]
    archs: tuple[str, ...]
    racks: tuple[str, ...]
    states: tuple[str, ...]
    verdicts: tuple[str, ...]
    spans: tuple[str, ...]
    boards: tuple[BoardStatus, ...]
    whole: bool
    total: int
    page: int
    pages: int
    groups: Mapping[GroupKind, tuple[str, ...]]
    selection: Selection


def _named(names: list[str]) -> tuple[str, ...]:
    return tuple(sorted({name for name in names if name}))


def overview(site: Site, query: Query = ()) -> OverviewView:
    """The boards that a query chooses; raises BadInput for one that means nothing."""
    selected = chosen(site, Selection.of(query))
    statuses = selected.boards
    return OverviewView(
        selected.newest_s,
        tuple(
            Count(state, state.shape, selected.conditions[state]) for state in _URGENT if state in selected.conditions
        ),
        _named([status.board.kernel for status in statuses]),
        _named([status.board.arch for status in statuses]),
        _named([status.board.rack for status in statuses]),
        _named([str(status.state) for status in statuses]) if selected.whole else tuple(BoardCondition),
        _named([status.verdict or "none" for status in statuses]) if selected.whole else VERDICTS,
        tuple(SPANS),
        statuses,
        selected.whole,
        selected.total,
        selected.selection.page,
        selected.pages,
        {} if selected.whole else group_names(site.history, site.viewer, _MOST_CHOICES),
        selected.selection,
    )


_HEADER = (
    "state",
    "board",
    "rack",
    "arch",
    "kernel",
    "max_5min_ns",
    "max_24h_ns",
    "max_30d_ns",
    "max_ever_ns",
    "limit_ns",
    "verdict",
    "seen_s",
)


def _table(site: Site) -> Iterator[bytes]:
    numbers = numbers_by_urgency(site.history, site.viewer, site.now_s)
    yield csv_lines([_HEADER])
    for first in range(0, len(numbers), _ROWS_AT_ONCE):
        some = numbers[first : first + _ROWS_AT_ONCE]
        yield csv_lines(map(_row, statuses_by_number(site.history, site.viewer, some, site.now_s)))


def _row(status: BoardStatus) -> tuple[object, ...]:
    return (
        str(status.state),
        status.board.name,
        status.board.rack,
        status.board.arch,
        status.board.kernel,
        status.max_5min_ns,
        status.max_24h_ns,
        status.max_30d_ns,
        status.max_ever_ns,
        status.board.limit_ns,
        status.verdict,
        status.seen_s,
    )


def _heat(site: Site, span: str, query: Query = ()) -> bytes:
    """Maxima over a span of the boards that a query chooses, at most some 360 steps."""
    length_s = span_of(span).length_s
    selected = chosen(site, Selection.of(query))
    step_s = max(3600, length_s // 360 // 3600 * 3600)
    end_s = -(-site.now_s // step_s) * step_s
    begin_s = end_s - length_s // step_s * step_s
    cells = worst(site.history, site.viewer, begin_s, end_s, step_s, selected.names)
    values = {
        board: [None if value == NOTHING else value for value in values.tolist()]
        for board, values in sorted(cells.values_ns.items())
    }
    limits = {status.board.name: status.board.limit_ns for status in selected.boards}
    return as_json({"begin_s": begin_s, "step_s": step_s, "boards": values, "limits_ns": limits})


PAGES = [
    *page_with_json("/", "overview.html.j2", overview, asks=True, menu="All boards"),
    page_in_parts("/boards.csv", CSV, _table),
    Page("/heat-{span}.json", JSON, _heat, asks=True),
]
