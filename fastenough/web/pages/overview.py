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
    found = board_statuses(site.history, site.viewer, site.now_s)
    counts = [Count(state, state.shape, sum(one.state is state for one in found)) for state in _URGENT]
    seen_s = [one.seen_s for one in found if one.seen_s is not None]
    known_s = [at_s for at_s in seen_s if at_s <= site.now_s + STALE_S] or seen_s  # one clock ahead is not news of all
    return OverviewView(
        max(known_s, default=None),
        tuple(count for count in counts if count.boards),
        _named([one.board.kernel for one in found]),
        _named([one.board.arch for one in found]),
        _named([one.board.rack for one in found]),
        _named([one.state.value for one in found]),
        _named([one.verdict or "none" for one in found]),
        tuple(SPANS),
        tuple(found),
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
                    one.state.value,
                    one.board.name,
                    one.board.rack,
                    one.board.arch,
                    one.board.kernel,
                    one.max_5min_ns,
                    one.max_24h_ns,
                    one.max_30d_ns,
                    one.max_ever_ns,
                    one.board.limit_ns,
                    one.verdict,
                    one.seen_s,
                )
                for one in board_statuses(site.history, site.viewer, site.now_s)
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
