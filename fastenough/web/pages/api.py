# SPDX-License-Identifier: GPL-2.0-or-later
"""``/api/v1``: boards, groups, and the events, changes and runs of a board, for programs; described by
``/api/openapi.json``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastenough.history import (
    QUANTILES,
    BoardCondition,
    BoardStatus,
    GroupKind,
    bands,
    board_groups,
    board_of,
    board_status,
    boards_after,
    changes,
    newest_events,
)
from fastenough.web.addresses import path_part
from fastenough.web.api import Operation, Parameter, openapi
from fastenough.web.rendering import as_json
from fastenough.web.selection import VERDICTS, filter_of, integer, kind_of
from fastenough.web.site import JSON, Page, Site

MOST = 1000
_USUAL = 100
_MOST_PASSED = 100_000
_YEAR_S = 365 * 86400
Values = Mapping[str, str]


@dataclass(frozen=True)
class Board:
    """``id``: its name as part of an address.  Times are seconds since 1970 (UTC); null: not measured, or no limit."""

    id: str
    name: str
    type: str
    site: str
    rack: str
    arch: str
    model: str
    kernel: str
    configuration: str
    state: BoardCondition
    reason: str
    verdict: str
    limit_ns: int | None
    max_5min_ns: int | None
    max_24h_ns: int | None
    max_30d_ns: int | None
    max_ever_ns: int | None
    seen_s: int | None


@dataclass(frozen=True)
class Boards:
    """``next``: the cursor of the next page, null on the last one."""

    boards: tuple[Board, ...]
    next: str | None


@dataclass(frozen=True)
class Group:
    """``states``: number of boards by state.  ``max_30d_ns``: maxima of its boards by percent of the boards."""

    name: str
    boards: int
    states: Mapping[str, int]
    max_30d_ns: Mapping[str, int]


@dataclass(frozen=True)
class Groups:
    """By name."""

    groups: tuple[Group, ...]
    next: str | None


@dataclass(frozen=True)
class Event:
    """A notable latency.  ``cpu`` null: of no CPU."""

    at_s: int
    kind: str
    series: str
    cpu: int | None
    value_ns: int
    culprit: str
    run: str
    new_maximum: bool


@dataclass(frozen=True)
class Events:
    """Of a year, the newest first."""

    events: tuple[Event, ...]
    next: str | None


@dataclass(frozen=True)
class Change:
    """A change between two runs, or of the tail of the latencies."""

    at_s: int
    kind: str
    key: str
    was: str
    now: str
    run: str


@dataclass(frozen=True)
class Changes:
    """Of a year, the newest first."""

    changes: tuple[Change, ...]
    next: str | None


@dataclass(frozen=True)
class Run:
    """``id``: its name in the store."""

    id: str
    begin_s: int
    end_s: int
    load: str
    configuration: str


@dataclass(frozen=True)
class Runs:
    """Of a year, the newest first."""

    runs: tuple[Run, ...]
    next: str | None


def _board(status: BoardStatus) -> Board:
    board = status.board
    return Board(
        path_part(board.name),
        board.name,
        board.type,
        board.site,
        board.rack,
        board.arch,
        board.model,
        board.kernel,
        board.configuration,
        status.state,
        status.reason,
        status.verdict,
        board.limit_ns,
        status.max_5min_ns,
        status.max_24h_ns,
        status.max_30d_ns,
        status.max_ever_ns,
        status.seen_s,
    )


def _limit(values: Values) -> int:
    return integer(values, "limit", _USUAL, MOST)


def _passed(values: Values) -> int:
    """Number of entries on the previous pages."""
    return integer(values, "cursor", 1, _MOST_PASSED) if "cursor" in values else 0


def _cut(entries: Sequence[Any], values: Values) -> tuple[Sequence[Any], str | None]:
    """One page of the entries, and the cursor of the next page."""
    first, after = _passed(values), _passed(values) + _limit(values)
    return entries[first:after], str(after) if len(entries) > after else None


def _boards(site: Site, values: Values) -> Boards:
    limit = _limit(values)
    statuses = boards_after(
        site.history, site.viewer, filter_of(values), values.get("cursor", ""), limit + 1, site.now_s
    )
    more = statuses[limit - 1].board.name if len(statuses) > limit else None
    return Boards(tuple(_board(status) for status in statuses[:limit]), more)


def _groups(site: Site, values: Values) -> Groups:
    groups, more = _cut(
        board_groups(site.history, site.viewer, kind_of(values.get("by", GroupKind.KERNEL)), site.now_s), values
    )
    return Groups(
        tuple(
            Group(
                group.name,
                group.boards,
                {str(state): count for state, count in group.conditions.items()},
                {str(percent): value for percent, value in zip(QUANTILES, group.max_30d_ns, strict=False)},
            )
            for group in groups
        ),
        more,
    )


def _one_board(site: Site, name: str, values: Values) -> Board:
    return _board(board_status(site.history, site.viewer, name, site.now_s))


def _span(site: Site) -> tuple[int, int]:
    return site.now_s + 1 - _YEAR_S, site.now_s + 1


def _events(site: Site, name: str, values: Values) -> Events:
    first, limit = _passed(values), _limit(values)
    # whether one is a new maximum takes queries of its own: not for those on the pages before
    newest = newest_events(site.history, site.viewer, name, *_span(site), most=limit + 1, first=first)
    rows = tuple(
        Event(
            event.at_s, event.kind, event.series, event.cpu, event.value_ns, event.culprit, event.run, event.new_maximum
        )
        for event in newest[:limit]
    )
    return Events(rows, str(first + limit) if len(newest) > limit else None)


def _changes(site: Site, name: str, values: Values) -> Changes:
    entries, more = _cut(changes(site.history, site.viewer, name, *_span(site)), values)
    return Changes(
        tuple(Change(change.at_s, change.kind, change.key, change.was, change.now, change.run) for change in entries),
        more,
    )


def _runs(site: Site, name: str, values: Values) -> Runs:
    entries, more = _cut(bands(site.history, site.viewer, name, *_span(site))[::-1], values)
    return Runs(tuple(Run(run.run, run.begin_s, run.end_s, run.load, run.configuration) for run in entries), more)


def _visible(site: Site, name: str) -> object:
    return board_of(site.history, site.viewer, name)


_LIMIT = Parameter(
    "limit", "Entries on one page.", {"type": "integer", "minimum": 1, "maximum": MOST, "default": _USUAL}
)
_CURSOR = Parameter("cursor", "The field `next` of the page before.", {"type": "string"})
_FILTERS = (
    Parameter("q", "Part of a name, kernel, model or group.", {"type": "string", "maxLength": 200}),
    Parameter("group", "Kind and name, such as kernel:6.12.0-rt2.", {"type": "string"}),
    Parameter("state", "State of the boards.", {"enum": [str(one) for one in BoardCondition]}),
    Parameter("verdict", "Verdict on the boards.", {"enum": list(VERDICTS)}),
    Parameter("within", "Greatest maximum of 30 days, in µs.", {"type": "number", "minimum": 0}),
)
_BY = Parameter("by", "Kind of group.", {"enum": [str(one) for one in GroupKind], "default": "kernel"})


def _of_board(part: str, summary: str, answer: type, make: Callable[..., Any]) -> Operation:
    return Operation(f"/board/{{name}}/{part}", summary, answer, make, (_LIMIT, _CURSOR), _visible)


OPERATIONS = (
    Operation("/boards", "Boards, by name.", Boards, _boards, (*_FILTERS, _LIMIT, _CURSOR)),
    Operation("/groups", "Groups with the distribution over their boards.", Groups, _groups, (_BY, _LIMIT, _CURSOR)),
    Operation("/board/{name}", "One board.", Board, _one_board, (), _visible),
    _of_board("events", "Notable latencies.", Events, _events),
    _of_board("changes", "Changes of configuration and tail.", Changes, _changes),
    _of_board("runs", "Runs.", Runs, _runs),
)


def _openapi(site: Site) -> bytes:
    return as_json(openapi(OPERATIONS))


PAGES = [*(one.page for one in OPERATIONS), Page("/api/openapi.json", JSON, _openapi, published=False)]
