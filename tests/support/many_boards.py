# SPDX-License-Identifier: GPL-2.0-or-later
"""A history of thousands of boards, written as rows: what takers would have stored of them at the end."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from sqlalchemy import insert, update

from fastenough.history import BoardCondition, History, refresh_summaries, requirement_text
from fastenough.history.packed_maxima import DAYS, HOURS, MaximaRing
from fastenough.history.schema import BOARD, NOW, SERIES, STEP_S, SUMMARY
from fastenough.model import Requirement

END_S = 1_789_992_000
KERNELS = ("6.1.0-rt5", "6.6.0-rt15", "6.12.0-rt2")
SITES = ("graz", "linz", "vienna", "wels")
LIMIT_NS = 100_000
_DAY_S = 86400


def name_of(number: int) -> str:
    return f"gateway-{number:05d}"


def make_boards(history: History, count: int, *, private_every: int = 0, refresh: bool = True) -> None:
    """Boards that all measured until `END_S`, but every 100th, which is silent; of 30 days nothing but maxima.

    The maximum of 30 days of board ``n`` is ``20_000 + 10 * n`` ns.  ``private_every``: so often one is not public.
    """
    with history.writing() as connection:
        number = connection.execute(
            insert(SERIES)
            .values(name="timer/wakeup_corrected", for_verdict=True, from_event="due", to_event="running")
            .returning(SERIES.c.id)
        ).scalar_one()
        for first in range(0, count, 1000):
            numbers = range(first, min(first + 1000, count))
            connection.execute(insert(BOARD), [_board(n, private_every) for n in numbers])
            connection.execute(insert(NOW), [_now(n, number) for n in numbers])
    while refresh and refresh_summaries(history, END_S):
        pass


def _board(n: int, private_every: int) -> dict[str, Any]:
    facts = {"cpus": 2, "arch": "aarch64", "model": f"Model {n % 7}", "kernel": KERNELS[n % 3], "preemption": "rt"}
    return {
        "id": n + 1,
        "name": name_of(n),
        "rack": str(n // 40),
        "type": f"type-{n % 5}",
        "site": SITES[n % 4],
        "public": not private_every or n % private_every != 0,
        "is_declared": True,
        "limit_ns": LIMIT_NS,
        "due_s": STEP_S,
        "display_facts": json.dumps(facts),
        "verdict": "PASS" if n % 10 else "",
        "judged_by": requirement_text(Requirement(LIMIT_NS)) if n % 10 else "",
    }


def _now(n: int, series: int) -> dict[str, Any]:
    most = 20_000 + 10 * n
    seen_s = END_S - (7200 if n % 100 == 0 else 0)
    hours, days = MaximaRing.empty(HOURS), MaximaRing.empty(DAYS)
    hour, day = seen_s // 3600, seen_s // _DAY_S
    return {
        "board": n + 1,
        "series": series,
        "seen_s": seen_s,
        "step_s": STEP_S,
        "newest_s": seen_s,
        "max_5min_ns": most - 5,
        "max_ever_ns": most,
        "max_ever_at_s": seen_s - 3 * _DAY_S,
        "hours": hours.laid(np.arange(hour - 30, hour + 1), np.full(31, most - 1)).data,
        "days": days.laid(np.arange(day - 20, day + 1), np.full(21, most)).data,
    }


def set_condition(history: History, number: int, condition: BoardCondition) -> None:
    """As a farm would declare it; the summary follows."""
    with history.writing() as connection:
        connection.execute(update(BOARD).where(BOARD.c.id == number + 1).values(state=str(condition), reason="why"))
        connection.execute(update(SUMMARY).where(SUMMARY.c.board == number + 1).values(at_s=0))
    refresh_summaries(history, END_S)
