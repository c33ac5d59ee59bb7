# SPDX-License-Identifier: GPL-2.0-or-later
"""Boards that publish recordings of the monitor, whose wake-ups have known causes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb

from fastenough.fleet.archive import ArchiveRow, EventRow, FleetArchive, PartPlace
from fastenough.fleet.chunk import Chunk, shard_of
from fastenough.recording.building import line_bytes
from tests.support.fleet_archive import BEGIN_NS, HOUR_NS
from tests.support.fleet_shard import BEGIN_S, board
from tests.support.monitor_recordings import CULPRIT, Watched, lines
from tests.support.recordings import WALL_NS

_LATE = {name: CULPRIT[name] for name in ("task", "task_pid", "task_policy", "task_priority")}
CULPRITS: Mapping[str | None, Mapping[str, Any]] = {
    "task kworker/0:1": CULPRIT,
    "interrupt eth0": {**CULPRIT, "interrupt": "eth0", "interrupt_ns": 10**9},
    "idle state C6": {**_LATE, "waited_for": "swapper/0", "waited_for_pid": 0, "idle_state": "C6"},
    None: _LATE,
}
"""By cause, as the monitor names it: a culprit with this cause."""


@dataclass(frozen=True)
class CausedRun:
    """A recording of a monitor of a board; in each interval one wake-up is longer than the others, for one cause."""

    number: int
    cause: str | None
    intervals: int = 4
    late: int = 0
    extra: tuple[tuple[str, Any], ...] = ()

    @property
    def machine(self) -> str:
        """Machine id of the board; all are of the shard of `ShardBench`."""
        digest = hashlib.md5(f"caused board {self.number}".encode(), usedforsecurity=False).hexdigest()
        return f"{board().machine[0]}{digest[1:]}"

    @property
    def run(self) -> str:
        return f"caused-{self.number}-{self.late}"

    @cached_property
    def lines(self) -> tuple[dict[str, Any], ...]:
        """Those of the recording."""
        plan = Watched(
            self.run,
            intervals=self.intervals,
            per_interval=20,
            culprit={**CULPRITS[self.cause], **dict(self.extra)},
            head={"boot_id": f"{self.number:08x}-0000-4000-8000-000000000000"},
            begin_ns=int(BEGIN_S) * 10**9 - WALL_NS + self.late * 10**9,
            seed=self.number + 1,
        )
        return tuple(lines(plan))

    @property
    def latencies_ns(self) -> list[int]:
        """Of each long wake-up, in the order of time."""
        ways = [series["id"] for series in self.lines[0]["series"] if series["name"] == "expiry-to-return"]
        return [line["value"] for line in self.lines if line["type"] == "event" and line["series"] in ways]

    def chunk(self, first: int, count: int) -> Chunk:
        """Some intervals with the events before them, as the publisher sends them."""
        body: list[bytes] = []
        at = 0
        for line in self.lines[1:-1]:
            if first <= at < first + count:
                body.append(line_bytes(line))
            at += line["type"] == "interval"
        return Chunk(self.machine, "panel", self.run, first, first, line_bytes(self.lines[0]), tuple(body))


def event(board: str, cause: str | None, latency_ns: int, at: tuple[str, int, int] = ("run", 0, 0)) -> EventRow:
    """The row of an event; ``at``: run, CPU and hour."""
    run, cpu, hour = at
    at_ns = BEGIN_NS + hour * HOUR_NS + HOUR_NS // 2
    culprit = json.dumps(CULPRITS.get(cause, CULPRIT))
    station, task = "runnable-to-running", "robot"
    series = "monitor/expiry-to-return"
    return EventRow(board, run, cpu, hour, 0, at_ns, at_ns, series, latency_ns, station, task, cause, 50_000, culprit)


def write_events(folder: Path, rows: Iterable[tuple[str, ArchiveRow]], events: Iterable[tuple[str, EventRow]]) -> Path:
    """An archive of these rows and events, each with its type of board, in one part for each shard."""
    archive, intervals, caused = FleetArchive(str(folder)), list(rows), list(events)
    for shard in sorted({shard_of(row.board) for _, row in intervals}):
        archive.write(
            PartPlace(shard, 0, 1),
            [(kind, row) for kind, row in intervals if shard_of(row.board) == shard],
            [(kind, row) for kind, row in caused if shard_of(row.board) == shard],
        )
    return folder


def seen_causes(folder: Path) -> Iterator[tuple[Any, ...]]:
    """Cause and latency of each event, as a reader sees the archive that knows nothing of us."""
    with duckdb.connect() as engine:
        engine.execute(
            f"SELECT board, run, interval, cause, latency_ns FROM read_parquet('{folder}/_events/**/*.events', "
            "hive_partitioning = true) ORDER BY ALL"
        )
        yield from engine.fetchall()
