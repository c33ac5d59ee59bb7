# SPDX-License-Identifier: GPL-2.0-or-later
"""Maxima over time: of a board by CPU, and of all boards.  Both come from the rows of whole hours."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import func, select

from fastenough.history.asking import about, seen_by, series_number
from fastenough.history.database import History
from fastenough.history.hours import HourMaxima
from fastenough.history.rows import NOTHING, Maxima, Viewer, Worst
from fastenough.history.schema import BOARD, HOUR, HOUR_S, STEP_S
from fastenough.history.standings import main_series

FINE_S = 31 * 86400
"""Up to so long a range is answered in steps of five minutes, a longer one in hours."""


def maxima(  # noqa: PLR0917 - every question: who asks, of what, and when
    history: History, viewer: Viewer, name: str, series: str, begin_s: int, end_s: int
) -> Maxima:
    """Five-minute maxima, or hourly ones of more than 31 days; raises UnknownBoard."""
    step_s = STEP_S if end_s - begin_s <= FINE_S else HOUR_S
    first, last = begin_s // HOUR_S * HOUR_S, -(-end_s // HOUR_S) * HOUR_S
    with about(history, viewer, name) as (connection, board):
        rows = connection.execute(
            select(HOUR.c.begin_s, HOUR.c.maxima).where(
                HOUR.c.board == board,
                HOUR.c.series == series_number(connection, series),
                HOUR.c.begin_s >= first,
                HOUR.c.begin_s < last,
            )
        ).all()
    per_hour = HOUR_S // STEP_S
    fine: dict[int, NDArray[np.int64]] = {}
    which, cpus, values = HourMaxima.unpacked([data for _, data in rows])
    places = np.array([(at_s - first) // HOUR_S for at_s, _ in rows], dtype=np.int64)
    for cpu in np.unique(cpus).tolist():
        fine[cpu] = np.full(((last - first) // HOUR_S, per_hour), NOTHING, dtype=np.int64)
        fine[cpu][places[which[cpus == cpu]]] = values[cpus == cpu]
    each = {cpu: hours.ravel() if step_s == STEP_S else hours.max(axis=1) for cpu, hours in fine.items()}
    times = np.arange(first, last, step_s, dtype=np.int64)
    within = (times + step_s > begin_s) & (times < end_s)
    return Maxima(times[within], step_s, {cpu: values[within] for cpu, values in each.items()})


def worst(history: History, viewer: Viewer, begin_s: int, end_s: int, step_s: int = HOUR_S) -> Worst:
    """Every board's maxima in steps of whole hours, of its main series; boards that measured nothing in the range are
    there too.  The database finds the greatest of each step: a year of all boards is millions of hours."""
    first = begin_s // HOUR_S * HOUR_S
    steps = -(-(end_s - first) // step_s)
    place = (HOUR.c.begin_s - first) // step_s
    with history.reading() as connection:
        names = {number: name for number, name in connection.execute(seen_by(select(BOARD.c.id, BOARD.c.name), viewer))}
        main = main_series(connection)
        rows = connection.execute(
            select(HOUR.c.board, HOUR.c.series, place, func.max(HOUR.c.max_ns))
            .where(
                HOUR.c.begin_s >= first, HOUR.c.begin_s < first + steps * step_s, HOUR.c.series.in_(set(main.values()))
            )
            .group_by(HOUR.c.board, HOUR.c.series, place)
        ).all()
    found = {name: np.full(steps, NOTHING, dtype=np.int64) for name in sorted(names.values())}
    for board, series, at, max_ns in rows:
        if board in names and main.get(board) == series:
            found[names[board]][at] = max_ns
    return Worst(first + step_s * np.arange(steps, dtype=np.int64), found)


def latest(history: History, viewer: Viewer, end_s: int, steps: int) -> dict[str, list[int | None]]:
    """The newest five-minute maxima of every board, oldest first, of all CPUs and the main series; None where nothing
    was measured."""
    first = (end_s - steps * STEP_S) // STEP_S * STEP_S + STEP_S
    with history.reading() as connection:
        names = {number: name for number, name in connection.execute(seen_by(select(BOARD.c.id, BOARD.c.name), viewer))}
        main = main_series(connection)
        rows = connection.execute(
            select(HOUR.c.board, HOUR.c.series, HOUR.c.begin_s, HOUR.c.maxima).where(
                HOUR.c.begin_s > first - HOUR_S, HOUR.c.begin_s <= end_s, HOUR.c.series.in_(set(main.values()))
            )
        ).all()
    found: dict[str, list[int | None]] = {name: [None] * steps for name in names.values()}
    for board, series, begin_s, data in rows:
        if board in names and main.get(board) == series:
            hour = np.max(list(HourMaxima.of(data).of_cpu.values()), axis=0).tolist()
            for place, value in enumerate(hour, (begin_s - first) // STEP_S):
                if 0 <= place < steps and value != NOTHING:
                    found[names[board]][place] = value
    return found
