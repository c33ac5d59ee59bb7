# SPDX-License-Identifier: GPL-2.0-or-later
"""Query parameters of pages and streams of many boards: filters, order and page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlencode

from fastenough.history import (
    BoardCondition,
    BoardFilter,
    BoardOrder,
    BoardSort,
    BoardStatus,
    GroupKind,
    board_page,
    board_statuses,
    board_totals,
    totals_of,
)
from fastenough.model import BadInput
from fastenough.web.site import STALE_S, Site

MOST_ON_PAGE = 50
"""Maximum number of boards per page; smaller farms have one page."""
VERDICTS = ("PASS", "FAIL", "INCONCLUSIVE", "BROKEN", "none")
_MOST_TEXT = 200
_MOST_PAGE = 10**6
_MOST_US = 10**12
Query = tuple[tuple[str, str], ...]


def values_of(query: Query, known: tuple[str, ...]) -> dict[str, str]:
    """Non-empty values by name; raises BadInput for an unknown name, and for a name that occurs twice."""
    values: dict[str, str] = {}
    for name, value in query:
        if name not in known:
            raise BadInput(f"unknown parameter {name[:40]!r}; use {', '.join(known)}")
        if name in values:
            raise BadInput(f"{name} is stated twice; state it once")
        if len(value) > _MOST_TEXT or not value.isprintable():
            raise BadInput(f"{name} has more than {_MOST_TEXT} characters, or one that cannot be printed")
        values[name] = value
    return {name: value for name, value in values.items() if value}


def integer(values: Mapping[str, str], name: str, usual: int, most: int) -> int:
    """An integer from 1 to ``most``, by default ``usual``; raises BadInput."""
    text = values.get(name, str(usual))
    if not (text.isascii() and text.isdecimal() and len(text) <= 20 and 1 <= int(text) <= most):
        raise BadInput(f"{name}={text[:40]} is not a number from 1 to {most}")
    return int(text)


_FILTERS = ("q", "group", "state", "verdict", "within")
_KNOWN = ("page", "sort", "board", *_FILTERS)


def filter_of(values: Mapping[str, str]) -> BoardFilter:
    """The filter of these values; raises BadInput for an invalid one."""
    return BoardFilter(
        name=values.get("board", ""),
        text=values.get("q", ""),
        group=_group(values.get("group", "")),
        state=_state(values.get("state", "")),
        verdict=_verdict(values.get("verdict", "")),
        within_ns=_within(values.get("within", "")),
    )


def kind_of(name: str) -> GroupKind:
    """The kind of group of this name; raises BadInput for an unknown one."""
    if name not in list(GroupKind):
        raise BadInput(f"{name[:40]!r} is no kind of group; use one of {', '.join(GroupKind)}")
    return GroupKind(name)


def _group(text: str) -> tuple[GroupKind, str] | None:
    if not text:
        return None
    kind, colon, name = text.partition(":")
    if not colon:
        raise BadInput(f"group={text[:40]} has no kind; write it as kernel:6.12")
    return kind_of(kind), name


def _state(text: str) -> BoardCondition | None:
    try:
        return BoardCondition(text) if text else None
    except ValueError:
        raise BadInput(f"state={text[:40]} is not a state; use one of {', '.join(BoardCondition)}") from None


def _verdict(text: str) -> str:
    if text and text not in VERDICTS:
        raise BadInput(f"verdict={text[:40]} is no verdict; use one of {', '.join(VERDICTS)}")
    return text


def _within(text: str) -> int | None:
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= _MOST_US:
        raise BadInput(f"within={text[:40]} is not a latency in µs")
    return round(value * 1000)


def _within_text(within_ns: int | None) -> str:
    """The number of µs that `_within` reads as this latency."""
    if within_ns is None:
        return ""
    return f"{within_ns // 1000}.{within_ns % 1000:03}".rstrip("0").rstrip(".")


def _order(text: str) -> BoardOrder:
    name = text.removeprefix("-")
    if text and name not in list(BoardSort):
        raise BadInput(
            f"sort={text[:40]} is no order; use one of {', '.join(BoardSort)}, with - before it to reverse it"
        )
    return BoardOrder(BoardSort(name), descending=text != name) if text else BoardOrder()


@dataclass(frozen=True)
class Selection:
    """One page of the boards that pass a filter, in an order.  ``page``: from 1 on."""

    wanted: BoardFilter = field(default_factory=BoardFilter)
    order: BoardOrder = field(default_factory=BoardOrder)
    page: int = 1

    @classmethod
    def of(cls, query: Query) -> Selection:
        """The selection of a query; raises BadInput for an invalid one."""
        values = values_of(query, _KNOWN)
        return cls(filter_of(values), _order(values.get("sort", "")), integer(values, "page", 1, _MOST_PAGE))

    @property
    def values(self) -> dict[str, str]:
        """Its query parameters, without those that have their default."""
        board_filter = self.wanted
        values = {
            "q": board_filter.text,
            "board": board_filter.name,
            "group": ":".join(board_filter.group) if board_filter.group else "",
            "state": str(board_filter.state or ""),
            "verdict": board_filter.verdict,
            "within": _within_text(board_filter.within_ns),
            "sort": "" if self.order == BoardOrder() else "-" * self.order.descending + self.order.sort,
            "page": "" if self.page == 1 else str(self.page),
        }
        return {name: value for name, value in values.items() if value}

    @property
    def query(self) -> str:
        """Its query string with the '?'; empty for all boards."""
        return f"?{urlencode(self.values)}" if self.values else ""

    def on_page(self, page: int) -> str:
        return replace(self, page=page).query or "?page=1"

    def sorted_by(self, name: str) -> str:
        """The query after a click on a column: ascending, or descending if it was ascending."""
        sort = BoardSort(name)
        again = self.order == BoardOrder(sort)
        return replace(self, order=BoardOrder(sort, descending=again), page=1).query or "?page=1"

    def direction(self, name: str) -> str:
        """Direction of a column, as in ``aria-sort``; empty if boards are not sorted by it."""
        if self.order.sort != name:
            return ""
        return "descending" if self.order.descending else "ascending"

    def in_state(self, state: BoardCondition) -> str:
        return replace(self, wanted=replace(self.wanted, state=state), page=1).query


@dataclass(frozen=True)
class ChosenBoards:
    """One page of boards.  ``whole``: whether these are all boards.

    ``conditions``: number of boards on all pages by condition; ``newest_s``: end of their newest interval.
    """

    selection: Selection
    whole: bool
    boards: tuple[BoardStatus, ...]
    conditions: Mapping[BoardCondition, int]
    newest_s: int | None

    @property
    def total(self) -> int:
        return sum(self.conditions.values())

    @property
    def pages(self) -> int:
        return max(1, -(-self.total // MOST_ON_PAGE))

    @property
    def names(self) -> list[str] | None:
        """Names of the boards; None for all boards."""
        return None if self.whole else [status.board.name for status in self.boards]


def chosen(site: Site, selection: Selection) -> ChosenBoards:
    """The boards of a selection.  A published site shows all boards on one page, because it has no server.

    Raises BadInput for a page after the last one.
    """
    totals = board_totals(site.history, site.viewer, selection.wanted, site.now_s, STALE_S)
    if not site.served or (selection == Selection() and totals.boards <= MOST_ON_PAGE):
        boards = board_statuses(site.history, site.viewer, site.now_s)
        return ChosenBoards(selection, True, tuple(boards), totals_of(boards), _newest_s(site, boards))
    first = (selection.page - 1) * MOST_ON_PAGE
    if first and first >= totals.boards:
        raise BadInput(f"page={selection.page}: there are fewer pages")
    span = first, first + MOST_ON_PAGE
    page = board_page(site.history, site.viewer, selection.wanted, selection.order, span, site.now_s)
    return ChosenBoards(selection, False, tuple(page), totals.conditions, totals.newest_s)


def _newest_s(site: Site, boards: list[BoardStatus]) -> int | None:
    """End of the newest interval, without boards whose clock is ahead unless all are."""
    seen_s = [status.seen_s for status in boards if status.seen_s is not None]
    return max([at_s for at_s in seen_s if at_s <= site.now_s + STALE_S] or seen_s, default=None)
