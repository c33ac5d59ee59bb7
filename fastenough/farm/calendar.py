# SPDX-License-Identifier: GPL-2.0-or-later
"""When the plans of a board are due, as a pure function of time; and the wall clock of the bench, which may be set.

All times are UTC, so that no day has 23 or 25 hours."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from pathlib import Path

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY_S = 86400.0
_MOST_STEPS = 1000
"""Number of multiples of ``every_s`` among which the longest pause is searched, if they are longer than a day."""
_AT = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")


@dataclass(frozen=True)
class Dates:
    """Every ``every_s`` from ``at_s`` after midnight on, on these days of the week (0: Monday)."""

    every_s: float
    days: frozenset[int] = frozenset(range(7))
    at_s: float = 0.0

    def latest(self, now_s: float) -> float | None:
        """Due time of the newest cycle that has begun, in seconds since 1970; None if it is not due on its days."""
        if self.every_s > _DAY_S:
            first = self.at_s
            due_s = first + (now_s - first) // self.every_s * self.every_s
        else:
            midnight = (now_s - self.at_s) // _DAY_S * _DAY_S + self.at_s
            due_s = midnight + (now_s - midnight) // self.every_s * self.every_s
        return due_s if datetime.fromtimestamp(due_s, UTC).weekday() in self.days else None

    @property
    def longest_pause_s(self) -> float:
        """Longest time between two due times."""
        if self.every_s <= _DAY_S:
            to_next = max(next(more for more in range(1, 8) if (day + more) % 7 in self.days) for day in self.days)
            return (to_next - 1) * _DAY_S + self.every_s
        return _longest_pause_s(self)


@cache
def _longest_pause_s(dates: Dates) -> float:
    """The longest pause of dates that are more than a day apart; it takes a millisecond, and boards share dates."""
    steps = [step for step in range(_MOST_STEPS) if dates.latest(dates.at_s + step * dates.every_s) is not None]
    return max((later - step for step, later in pairwise(steps)), default=1) * dates.every_s


@dataclass(frozen=True)
class ScheduledPlan:
    """A plan's file, and when it is due."""

    file: Path
    dates: Dates


@dataclass(frozen=True)
class DueCycle:
    """A cycle that is due: which plan, and since when."""

    file: Path
    since_s: float


def parse_dates(every_s: float, days: Sequence[str], at: str) -> Dates:
    """Raises ValueError that says how to fix it."""
    if every_s < 1 or (every_s < _DAY_S and _DAY_S % every_s):
        raise ValueError('every must divide a day, or be longer than one; write every = "12h"')
    unknown = next((day for day in days if day not in DAYS), None)
    if unknown is not None:
        raise ValueError(f"days: unknown day {unknown!r}; use {', '.join(DAYS)}")
    time_of_day = _AT.fullmatch(at)
    if time_of_day is None:
        raise ValueError(f'at = {at[:20]!r} is not a time of day; use HH:MM in UTC, such as at = "06:00"')
    return Dates(
        every_s,
        frozenset(map(DAYS.index, days)) or frozenset(range(7)),
        int(time_of_day[1]) * 3600.0 + int(time_of_day[2]) * 60.0,
    )


def due(plans: Sequence[ScheduledPlan], now_s: float) -> DueCycle | None:
    """Return the plan whose cycle began last, None if no plan is due."""
    cycles = [DueCycle(plan.file, since_s) for plan in plans if (since_s := plan.dates.latest(now_s)) is not None]
    return max(cycles, key=lambda cycle: cycle.since_s, default=None)


_SET_S = 1.0
"""Larger steps between two readings mean that the clock was set; NTP slewing stays below."""


@dataclass
class BenchClock:
    """Reads the wall clock and detects when it was set, by comparison with the monotonic clock."""

    wall_s: Callable[[], float] = time.time
    steady_s: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._ahead_s = self.wall_s() - self.steady_s()

    def read(self) -> tuple[float, float]:
        """Return the time, and by how much the clock was set since the last reading (0 if it was not set)."""
        now_s = self.wall_s()
        ahead_s = now_s - self.steady_s()
        was_set_s = ahead_s - self._ahead_s
        self._ahead_s = ahead_s
        return now_s, was_set_s if abs(was_set_s) >= _SET_S else 0.0
