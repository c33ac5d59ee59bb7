# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of a board: whether it is fast enough, and the changes that explain why not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from fastenough.analysis.bounds import unseen_rate
from fastenough.analysis.measures import CONFIDENCE
from fastenough.history import (
    BoardChange,
    BoardInfo,
    BoardStatus,
    LatencyEvent,
    RefusedRecording,
    RunSpan,
    bands,
    board_status,
    changes,
    distribution,
    events,
    newest_events,
    refusals,
)
from fastenough.history.schema import NO_CPU
from fastenough.store.conclusions import Conclusion
from fastenough.web.rendering import as_json, page_with_json
from fastenough.web.site import JSON, Page, Site, conclusions_of
from fastenough.web.spans import SPANS, USUAL

MOST_EVENTS = 20
MOST_CHANGES = 20
MOST_RUNS = 8
MOST_UNDATED = 50
MOST_CONCLUSIONS = 20
MOST_REFUSED = 20
_MOST_IN_JSON = 500
_YEAR_S = 365 * 86400
_MONTH_S = 30 * 86400


@dataclass(frozen=True)
class Mark:
    """A fact of the system that matters to latency.  ``good`` None: a fact, and neither."""

    good: bool | None
    text: str


@dataclass(frozen=True)
class RateBound:
    """Upper bound on the rate of disturbances above the maximum ``max_ns``: one in ``every`` activations.

    ``n``: activations of the CPU with the fewest since ``begin_s``: when the configuration ``changed``, or 30 days ago.
    """

    begin_s: int
    changed: bool
    n: int
    max_ns: int
    every: int
    confidence: float


@dataclass(frozen=True)
class BoardView:
    """``events``, ``changes``, ``runs`` and ``conclusions``: newest first.  ``greatest``: the greatest event of the
    year, unless it is among the newest."""

    newest_s: int | None
    status: BoardStatus
    rate_bound: RateBound | None
    marks: tuple[Mark, ...]
    spans: tuple[str, ...]
    usual: str
    events: tuple[LatencyEvent, ...]
    greatest: tuple[LatencyEvent, ...]
    changes: tuple[BoardChange, ...]
    runs: tuple[RunSpan, ...]
    conclusions: tuple[Conclusion, ...]
    refused: tuple[RefusedRecording, ...]

    @property
    def board(self) -> BoardInfo:
        return self.status.board

    @property
    def worst_cpu(self) -> int | None:
        """The CPU of the greatest latency of 30 days, if an event has it."""
        known_events = (*self.events, *self.greatest)
        return next((event.cpu for event in known_events if event.value_ns == self.status.max_30d_ns), None)


_SHORTENS: dict[str, Callable[[str], bool]] = {
    "governor": lambda value: value == "performance",
    "hypervisor": lambda value: False,
    "clock source": lambda value: value not in ("hpet", "acpi_pm", "jiffies"),
    "isolcpus": bool,
}
"""Facts that affect latency: whether a value shortens it."""


def _marks(board: BoardInfo) -> Iterator[Mark]:
    """Facts of the system that affect latency; none without a profile."""
    if board.preemption:
        real_time = "rt" in board.preemption.lower().split("-")
        yield Mark(real_time, board.preemption if real_time else f"preemption {board.preemption}")
    for fact, value in board.facts.items():
        yield Mark(_SHORTENS[fact](value) if fact in _SHORTENS else None, f"{fact} {value}")
    if board.facts and "isolcpus" not in board.facts:
        yield Mark(False, "no isolcpus")


def _rate_bound(site: Site, status: BoardStatus) -> RateBound | None:
    """None where values are missing: lost ones, those of a CPU without data, and those in another archive."""
    if status.seen_s is None:
        return None
    month_s = status.seen_s - _MONTH_S
    begin_s = max(month_s, status.changed_s or 0)
    plot = distribution(site.history, site.viewer, status.board.name, status.board.main, begin_s, status.seen_s)
    maxima_ns = [cpu.max_ns for cpu in plot.cpus.values() if cpu.max_ns is not None]
    n = min((cpu.n for cpu in plot.cpus.values()), default=0)
    unmeasured = NO_CPU not in plot.cpus and len(plot.cpus) < status.board.cpus
    if n == 0 or not maxima_ns or plot.missing or plot.lost or unmeasured:
        return None
    return RateBound(begin_s, begin_s > month_s, n, max(maxima_ns), int(1 / unseen_rate(n, CONFIDENCE)), CONFIDENCE)


def view(site: Site, name: str) -> BoardView:
    one = board_status(site.history, site.viewer, name, site.now_s)
    end_s = site.now_s + 1
    question = site.history, site.viewer, name, end_s - _YEAR_S, end_s
    newest, greatest = newest_events(*question, most=MOST_EVENTS), events(*question, most=1)
    return BoardView(
        one.seen_s,
        one,
        _rate_bound(site, one),
        tuple(_marks(one.board)),
        tuple(SPANS),
        USUAL,
        tuple(newest),
        tuple(one for one in greatest if one not in newest),
        tuple(changes(*question)[:MOST_CHANGES]),
        _newest(site, name, bands(*question)),
        tuple(islice((one for one in conclusions_of(site) if one.board == name), MOST_CONCLUSIONS)),
        tuple(refusals(site.history, site.viewer, name, MOST_REFUSED)),
    )


def _newest(site: Site, name: str, dated: list[RunSpan]) -> tuple[RunSpan, ...]:
    """The newest runs; undated ones, such as imported runs, last."""
    undated = bands(site.history, site.viewer, name, 0, 1)
    return (*dated[: -MOST_RUNS - 1 : -1], *undated[: -MOST_UNDATED - 1 : -1])


def _events_json(site: Site, name: str) -> bytes:
    """The greatest events of a year as JSON."""
    end_s = site.now_s + 1
    question = site.history, site.viewer, name, end_s - _YEAR_S, end_s
    return as_json({"events": events(*question, most=_MOST_IN_JSON), "changes": changes(*question)})


PAGES = [
    *page_with_json("/board/{name}/", "board.html.j2", view),
    Page("/board/{name}/events.json", JSON, _events_json),
]
