# SPDX-License-Identifier: GPL-2.0-or-later
"""Notes on runs with intervals ahead of this machine's clock: the refused intervals, and those the board may drop."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass

from sqlalchemy import Connection, and_, delete, select

from fastenough.fleet.chunk import Chunk
from fastenough.fleet.tables import AHEAD
from fastenough.history.database import put
from fastenough.history.intervals import AHEAD_S

_MOST_RUNS = 200
"""Runs of one machine that are noted; without these notes, boards publish their intervals again."""


@dataclass(frozen=True)
class AheadPart:
    """Intervals of a run that are ahead of this machine's clock.

    ``next``, ``least_ns``: the number after the last refused interval, and the earliest time of those; 0: none.
    ``dropped``: of a run that the history does not have, the number before which the board may drop all intervals.
    """

    next: int = 0
    least_ns: int = 0
    dropped: int = 0


def is_board_on_time(chunk: Chunk, now_s: float) -> bool:
    """Whether the board's clock agreed with this machine's when it published, so that both are right."""
    return chunk.now_ns is not None and abs(chunk.now_ns / 1e9 - now_s) <= AHEAD_S


class AheadRuns:
    """The notes on all runs of some machines, in one transaction."""

    def __init__(self, connection: Connection, machines: Collection[str]) -> None:
        self._connection = connection
        rows = connection.execute(select(AHEAD).where(AHEAD.c.machine.in_(machines))).mappings()
        self._parts = {
            (row["machine"], row["run"]): AheadPart(row["next"], row["least_ns"], row["dropped"]) for row in rows
        }
        self._stored = dict(self._parts)

    def part(self, chunk: Chunk) -> AheadPart:
        """The note on a chunk's run."""
        return self._parts.get((chunk.machine, chunk.run), AheadPart())

    def note(self, chunk: Chunk, part: AheadPart) -> None:
        """Replace the note on a chunk's run."""
        self._parts.pop((chunk.machine, chunk.run), None)
        if part == AheadPart():
            return
        others = [key for key in self._parts if key[0] == chunk.machine]
        if len(others) >= _MOST_RUNS:
            for key in others:
                del self._parts[key]
        self._parts[chunk.machine, chunk.run] = part

    def finish(self) -> None:
        """Write what changed."""
        for machine, run in self._stored.keys() - self._parts.keys():
            self._connection.execute(delete(AHEAD).where(and_(AHEAD.c.machine == machine, AHEAD.c.run == run)))
        changed = {key: part for key, part in self._parts.items() if self._stored.get(key) != part}
        put(
            self._connection,
            AHEAD,
            [{"machine": machine, "run": run, **asdict(part)} for (machine, run), part in changed.items()],
        )
