# SPDX-License-Identifier: GPL-2.0-or-later
"""``/metrics``: the status of all boards for Prometheus, computed from the history, so that restarts change nothing.
The rules of packaging/prometheus/ use it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from fastenough.exchange.openmetrics import END, KIND, family, labelled
from fastenough.history import (
    QUANTILES,
    BoardCondition,
    BoardStatus,
    GroupKind,
    boards_after,
    groups_by_kind,
    has_more_boards,
    last_changes,
    last_noted,
)
from fastenough.history.tail import TAIL_KINDS
from fastenough.model import BadInput
from fastenough.web.selection import Query, filter_of, values_of
from fastenough.web.site import Site, page_in_parts

_TAIL_S = 400 * 86400


@dataclass(frozen=True)
class _Gauge:
    """A metric family with one sample, in s, for each board for which ``of`` returns a value."""

    name: str
    help: str
    of: Callable[[BoardStatus], float | None]


def _seconds(name: str) -> Callable[[BoardStatus], float | None]:
    def of(status: BoardStatus) -> float | None:
        value_ns: int | None = getattr(status, name)
        return None if value_ns is None else value_ns / 1e9

    return of


def _limit(status: BoardStatus) -> float | None:
    return None if status.board.limit_ns is None else status.board.limit_ns / 1e9


_GAUGES = (
    _Gauge("fastenough_board_seen_timestamp_seconds", "End of the newest interval.", lambda one: one.seen_s),
    _Gauge(
        "fastenough_board_maximum_5min_seconds", "Maximum latency of the newest five minutes.", _seconds("max_5min_ns")
    ),
    _Gauge("fastenough_board_maximum_24h_seconds", "Maximum latency of the last 24 hours.", _seconds("max_24h_ns")),
    _Gauge("fastenough_board_maximum_30d_seconds", "Maximum latency of the last 30 days.", _seconds("max_30d_ns")),
    _Gauge(
        "fastenough_board_maximum_ever_seconds",
        "All-time maximum latency: a lower bound on the worst case.",
        _seconds("max_ever_ns"),
    ),
    _Gauge(
        "fastenough_board_maximum_ever_timestamp_seconds",
        "Time of the all-time maximum.",
        lambda one: one.max_ever_at_s,
    ),
    _Gauge("fastenough_board_limit_seconds", "Latency limit.", _limit),
    _Gauge(
        "fastenough_board_above_limit_seconds",
        "Maximum latency of 30 days, if it exceeds a limit that must never be exceeded.",
        _seconds("above_ns"),
    ),
    _Gauge(
        "fastenough_board_silent_after_seconds",
        "Age of the newest interval above which the board counts as silent.",
        lambda one: one.silent_after_s or None,
    ),
    _Gauge(
        "fastenough_board_changed_timestamp_seconds",
        "Time of the last configuration change.",
        lambda one: one.changed_s,
    ),
)
_REFUSED = "fastenough_board_refused_recordings"
_INFO, _STATE = "fastenough_board_info", "fastenough_board_state"
_TAIL, _NOTED = "fastenough_board_tail_changed_timestamp_seconds", "fastenough_board_tail_noted_timestamp_seconds"
_GROUP_BOARDS, _GROUP_MAXIMUM = "fastenough_group_boards", "fastenough_group_maximum_30d_seconds"
_MOST_BOARDS = 500
"""Maximum number of boards with metrics of their own: 1 MB."""
_MOST_GROUPS = 100
"""Maximum number of groups of each kind with metrics; the largest ones."""
FAMILIES = (_INFO, _STATE, _TAIL, _NOTED, _REFUSED, _GROUP_BOARDS, _GROUP_MAXIMUM, *(gauge.name for gauge in _GAUGES))
"""The names of all samples."""


def _info(boards: list[BoardStatus]) -> Iterator[str]:
    yield from family(
        _INFO, "gauge", "1; properties of the board, its 30-day verdict and the verdict on its newest cycle."
    )
    for status in boards:
        board = status.board
        yield (
            _INFO
            + labelled(
                {
                    "board": board.name,
                    "rack": board.rack,
                    "arch": board.arch,
                    "model": board.model,
                    "kernel": board.kernel,
                    "preemption": board.preemption,
                    "configuration": board.configuration,
                    "verdict": status.verdict or "none",
                    "newest_cycle": status.cycle_verdict or "none",
                }
            )
            + " 1\n"
        )


def _states(boards: list[BoardStatus]) -> Iterator[str]:
    yield from family(_STATE, "gauge", "1 for the most urgent state of the board, 0 for all others.")
    for status in boards:
        for state in BoardCondition:
            yield f"{_STATE}{labelled({'board': status.board.name, 'state': state})} {int(status.state is state)}\n"


def _tails(site: Site, boards: set[str]) -> Iterator[str]:
    span = site.now_s - _TAIL_S, site.now_s + 1
    changed = last_changes(site.history, site.viewer, TAIL_KINDS, *span) if boards else {}
    noted = last_noted(site.history, site.viewer, *span) if boards else {}
    for name, text, times in (
        (_TAIL, "Time of the last change of the tail (the maxima of 12-hour cycles).", changed),
        (_NOTED, "Time at which the newest change of the tail was noted.", noted),
    ):
        yield from family(name, "gauge", text, "seconds")
        for board, at_s in sorted((board, at_s) for board, at_s in times.items() if board in boards):
            yield f"{name}{labelled({'board': board})} {at_s}\n"


def _refused(boards: list[BoardStatus]) -> Iterator[str]:
    yield from family(_REFUSED, "gauge", "Refused, damaged and incomplete recordings, first seen within 30 days.")
    for status in boards:
        yield f"{_REFUSED}{labelled({'board': status.board.name})} {status.refused}\n"


def _gauges(boards: list[BoardStatus]) -> Iterator[str]:
    for gauge in _GAUGES:
        yield from family(gauge.name, "gauge", gauge.help, "seconds")
        for status in boards:
            value = gauge.of(status)
            if value is not None:
                yield f"{gauge.name}{labelled({'board': status.board.name})} {value!r}\n"


def _groups(site: Site) -> Iterator[str]:
    by_kind = groups_by_kind(site.history, site.viewer, tuple(GroupKind), site.now_s)
    groups = [
        ({"kind": kind, "group": group.name}, group)
        for kind, of_kind in by_kind.items()
        for group in sorted(of_kind, key=lambda group: (-group.boards, group.name))[:_MOST_GROUPS]
    ]
    yield from family(_GROUP_BOARDS, "gauge", "Boards of a group by state.")
    for labels, group in groups:
        for state, count in group.conditions.items():
            yield f"{_GROUP_BOARDS}{labelled(labels | {'state': state})} {count}\n"
    yield from family(
        _GROUP_MAXIMUM, "gauge", "Maximum latency of 30 days at quantiles of the boards of a group.", "seconds"
    )
    for labels, group in groups:
        for percent, value_ns in zip(QUANTILES, group.max_30d_ns, strict=False):
            yield f"{_GROUP_MAXIMUM}{labelled(labels | {'quantile': f'{percent / 100:g}'})} {value_ns / 1e9!r}\n"


def _boards(site: Site, query: Query) -> list[BoardStatus]:
    """The boards of a group, or all boards if there are few; raises BadInput for too large a group."""
    values = values_of(query, ("group",))
    board_filter = filter_of(values)
    # asked first, since the exact status of so many costs half a second
    if not has_more_boards(site.history, site.viewer, board_filter, _MOST_BOARDS, site.now_s):
        return boards_after(site.history, site.viewer, board_filter, "", _MOST_BOARDS, site.now_s)
    if values:
        raise BadInput(f"group={values['group'][:40]} has more than {_MOST_BOARDS} boards; ask for a smaller group")
    return []


def metrics(site: Site, query: Query = ()) -> bytes:
    """Metrics of groups, and of each board if the site has few or the query names a group."""
    return b"".join(_metrics(site, query))


def _metrics(site: Site, query: Query = ()) -> Iterator[bytes]:
    boards = _boards(site, query)
    yield _text(_info(boards), _states(boards), _refused(boards), _gauges(boards))
    yield _text(_tails(site, {status.board.name for status in boards}))
    yield _text(_groups(site), [END])


def _text(*lines: Iterable[str]) -> bytes:
    return "".join(chain.from_iterable(lines)).encode()


PAGES = [page_in_parts("/metrics", KIND, _metrics, asks=True)]
