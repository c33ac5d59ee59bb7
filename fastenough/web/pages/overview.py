# SPDX-License-Identifier: GPL-2.0-or-later
"""All boards: which of them needs attention?"""

from __future__ import annotations

from dataclasses import dataclass

from fastenough.history import NOTHING, BoardCondition, BoardStatus, board_statuses, worst
from fastenough.report.formats import csv_lines
from fastenough.web.rendering import as_json, page_with_json
from fastenough.web.site import CSV, JSON, STALE_S, Page, Site
from fastenough.web.spans import SPANS, span_of

_URGENT = (
    BoardCondition.DEAD,
    BoardCondition.FAIL,
    BoardCondition.NEW_MAXIMUM,
    BoardCondition.ABOVE,
    BoardCondition.SILENT,
    BoardCondition.REFUSED,
    BoardCondition.CHANGED,
)


@dataclass(frozen=True)
class Count:
    """So many boards need attention for one reason."""

    state: BoardCondition
    shape: str
    boards: int


@dataclass(frozen=True)
class OverviewView:
    """``counts``: of what needs attention, the most urgent first.  ``boards``: likewise, then by name."""

    newest_s: int | None
    counts: tuple[Count, ...]
    kernels: tuple[str, ...]
    archs: tuple[str, ...]
    racks: tuple[str, ...]
    states: tuple[str, ...]
    verdicts: tuple[str, ...]
    spans: tuple[str, ...]
    boards: tuple[BoardStatus, ...]


def _named(names: list[str]) -> tuple[str, ...]:
    return tuple(sorted({name for name in names if name}))


def overview(site: Site) -> OverviewView:
    statuses = board_statuses(site.history, site.viewer, site.now_s)
    counts = [Count(state, state.shape, sum(status.state is state for status in statuses)) for state in _URGENT]
    seen_s = [status.seen_s for status in statuses if status.seen_s is not None]
    known_s = [at_s for at_s in seen_s if at_s <= site.now_s + STALE_S] or seen_s  # one clock ahead is not news of all
    return OverviewView(
        max(known_s, default=None),
        tuple(count for count in counts if count.boards),
        _named([status.board.kernel for status in statuses]),
        _named([status.board.arch for status in statuses]),
        _named([status.board.rack for status in statuses]),
        _named([status.state.value for status in statuses]),
        _named([status.verdict or "none" for status in statuses]),
        tuple(SPANS),
        tuple(statuses),
    )


def _table(site: Site) -> bytes:
    header = (
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
    return csv_lines(
        [
            header,
            *(
                (
                    status.state.value,
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
                for status in board_statuses(site.history, site.viewer, site.now_s)
            ),
        ]
    )


def _heat(site: Site, span: str) -> bytes:
    """Every board's maxima over a span, at most some 360 steps."""
    chosen = span_of(span)
    step_s = max(3600, chosen.length_s // 360 // 3600 * 3600)
    end_s = -(-site.now_s // step_s) * step_s
    begin_s = end_s - chosen.length_s // step_s * step_s
    found = worst(site.history, site.viewer, begin_s, end_s, step_s)
    values = {
        board: [None if value == NOTHING else value for value in values.tolist()]
        for board, values in sorted(found.values_ns.items())
    }
    limits = {one.board.name: one.board.limit_ns for one in board_statuses(site.history, site.viewer, site.now_s)}
    return as_json({"begin_s": begin_s, "step_s": step_s, "boards": values, "limits_ns": limits})


PAGES = [
    *page_with_json("/", "overview.html.j2", overview, menu="All boards"),
    Page("/boards.csv", CSV, _table),
    Page("/heat-{span}.json", JSON, _heat),
]
