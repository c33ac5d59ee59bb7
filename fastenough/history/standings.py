# SPDX-License-Identifier: GPL-2.0-or-later
"""Boards: each by itself, and how all of them stand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection, RowMapping, Select, select

from fastenough import words
from fastenough.history.asking import about, seen_by
from fastenough.history.database import History
from fastenough.history.rings import Ring
from fastenough.history.rollups import DAY_S
from fastenough.history.rows import NOTHING, Board, SeriesOf, Standing, State, Viewer
from fastenough.history.schema import BOARD, HOUR_S, NOW, SERIES
from fastenough.model import Requirement

DAYS_SHOWN = 30
_SILENT_STEPS = 3
_FIRST = ("timer/wakeup_corrected", "monitor/expiry-to-return", "monitor/device-to-return", "monitor/expiry-to-running")
"""Of several series, the one that a board's maxima are of; judged ones come before all others."""


def board_of(history: History, viewer: Viewer, name: str) -> Board:
    """Raises UnknownBoard."""
    with about(history, viewer, name) as (connection, number):
        (known,) = _boards(connection, select(BOARD.c.id).where(BOARD.c.id == number))
    return known[0]


def standing_of(history: History, viewer: Viewer, name: str, now_s: int) -> Standing:
    """How one board stands; raises UnknownBoard."""
    with about(history, viewer, name) as (connection, number):
        (known,) = _boards(connection, select(BOARD.c.id).where(BOARD.c.id == number))
    return _standing(*known, now_s)


def standing(history: History, viewer: Viewer, now_s: int) -> list[Standing]:
    """All boards, those first that need attention, and then by name."""
    with history.reading() as connection:
        known = _boards(connection, seen_by(select(BOARD.c.id), viewer))
    return sorted((_standing(*one, now_s) for one in known), key=lambda one: (one.state.rank, one.board.name))


def main_series(connection: Connection) -> dict[int, int]:
    """By board, the number of the series that its maxima are of."""
    rows = connection.execute(select(NOW.c.board, SERIES).join(SERIES, NOW.c.series == SERIES.c.id)).mappings()
    return {row["board"]: row["id"] for row in sorted(rows, key=_importance, reverse=True)}


_Known = tuple[Board, RowMapping, RowMapping | None]
"""A board, its row, and its main series' row of ``now``."""


def _boards(connection: Connection, numbers: Select[tuple[int]]) -> list[_Known]:
    """Those that a question for numbers finds."""
    nows: dict[int, list[RowMapping]] = {}
    for now in connection.execute(select(NOW, SERIES).join(SERIES, NOW.c.series == SERIES.c.id).where(
            NOW.c.board.in_(numbers))).mappings():
        nows.setdefault(now["board"], []).append(now)
    rows = connection.execute(select(BOARD).where(BOARD.c.id.in_(numbers))).mappings()
    return [_board(row, nows.get(row["id"], [])) for row in rows]


def _importance(row: RowMapping) -> tuple[bool, int, str]:
    place = _FIRST.index(row["name"]) if row["name"] in _FIRST else len(_FIRST)
    return not row["judged"], place, row["name"]


def _board(row: RowMapping, nows: Sequence[RowMapping]) -> _Known:
    shown = json.loads(row["shown"])
    series = sorted(nows, key=_importance)
    board = Board(
        name=row["name"], rack=row["rack"], public=row["public"], cpus=shown.get("cpus", 0), arch=shown.get("arch", ""),
        model=shown.get("model", ""), kernel=shown.get("kernel", ""), preemption=shown.get("preemption", ""),
        configuration=row["configuration"], limit_ns=row["limit_ns"], facts=shown.get("facts", {}),
        series=tuple(SeriesOf(now["name"], now["judged"], now["from_event"], now["to_event"]) for now in series),
        main=series[0]["name"] if series else "", requirement=_requirement(row))
    return board, row, series[0] if series else None


def _requirement(row: RowMapping) -> Requirement | None:
    if row["requirement"]:
        return Requirement(**json.loads(row["requirement"]))
    return Requirement(row["limit_ns"]) if row["limit_ns"] else None


def _standing(board: Board, row: RowMapping, now: RowMapping | None, now_s: int) -> Standing:
    recent = _Recent.of(now, now_s)
    state, reason = _state(board, row, now, recent, now_s)
    return Standing(
        board, state, reason, now["seen_s"] if now else None,
        _known(now["max_5min_ns"] if now else NOTHING), _known(recent.day_ns), _known(recent.month_ns),
        _known(now["max_ever_ns"] if now else NOTHING),
        now["max_ever_at_s"] if now and now["max_ever_ns"] != NOTHING else None,
        tuple(_known(value) for value in recent.daily_ns), row["verdict"], row["verdict_reason"], row["changed_s"],
        recent.more_ns)


def _known(value: int) -> int | None:
    return None if value == NOTHING else value


@dataclass(frozen=True)
class _Recent:
    """Maxima of the last 24 hours, of the 30 days before those, of the last 30 days, and of each of these."""

    day_ns: int
    before_ns: int
    daily_ns: tuple[int, ...]

    @property
    def month_ns(self) -> int:
        return max(self.daily_ns)

    @property
    def more_ns(self) -> int | None:
        """How far the last 24 hours are above what was seen before; None where they are not."""
        return self.day_ns - self.before_ns if self.day_ns > self.before_ns > NOTHING else None

    @classmethod
    def of(cls, now: RowMapping | None, now_s: int) -> _Recent:
        if now is None:
            return cls(NOTHING, NOTHING, (NOTHING,) * DAYS_SHOWN)
        hours, days = Ring.of(now["hours"], now["newest_s"] // HOUR_S), Ring.of(now["days"], now["newest_s"] // DAY_S)
        hour, today, since = now_s // HOUR_S, now_s // DAY_S, now_s // HOUR_S - 24
        daily = days.at(np.arange(today - DAYS_SHOWN + 1, today + 1))
        before = np.concatenate((hours.at(np.arange(since * HOUR_S // DAY_S * 24, since + 1)),
                                 days.at(np.arange(today - DAYS_SHOWN - 1, since * HOUR_S // DAY_S))))
        return cls(int(hours.at(np.arange(since + 1, hour + 1)).max()), int(before.max()), tuple(daily.tolist()))


def _silence(now: RowMapping | None, now_s: int) -> str:
    """Why nothing can be said of what a board does now; empty where something can."""
    if now is None:
        return "it has not measured yet"
    ago_s = now_s - now["seen_s"]
    if abs(ago_s) <= _SILENT_STEPS * now["step_s"]:
        return ""
    lasted = words.duration(abs(ago_s) * 10**9)
    return (f"its last interval ended {lasted} ago" if ago_s > 0 else
            f"its clock is {lasted} ahead: when it measured last cannot be told")


def _state(board: Board, row: RowMapping, now: RowMapping | None, recent: _Recent,
           now_s: int) -> tuple[State, str]:
    """The most urgent of what is true, with why."""
    if row["verdict"] == State.FAIL:
        return State.FAIL, row["verdict_reason"]
    if recent.more_ns is not None:
        return State.NEW_MAXIMUM, (f"{words.latency(recent.day_ns)} within 24 hours; in the 30 days before none was "
                                   f"above {words.latency(recent.before_ns)}")
    if row["state"] in (State.LENT, State.DEAD):
        return State(row["state"]), row["reason"]
    if row["watched"] and (silence := _silence(now, now_s)):
        return State.SILENT, silence
    if row["changed_s"] is not None and now_s - DAY_S < row["changed_s"] <= now_s:
        return State.CHANGED, "its configuration changed within 24 hours"
    return (State.OK, "") if now is not None else (State.NO_DATA, "no run tells when its values were measured")
