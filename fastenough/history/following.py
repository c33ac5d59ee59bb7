# SPDX-License-Identifier: GPL-2.0-or-later
"""A history that keeps up with its store, where no farm does that."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from fastenough.history.archive import close_months
from fastenough.history.database import History
from fastenough.history.ingest import Caught, catch_up
from fastenough.history.rollups import DAY_S
from fastenough.store import Store


@dataclass
class Following:
    """Called again and again: takes what is new of the store, and closes old months once a day."""

    history: History
    store: Store
    wall_s: Callable[[], float] = time.time
    _closed_day: int = field(default=-1, init=False)

    def __call__(self) -> Caught:
        caught, now_s = catch_up(self.history, self.store), int(self.wall_s())
        if now_s // DAY_S != self._closed_day:
            close_months(self.history, now_s)
            self._closed_day = now_s // DAY_S
        return caught
