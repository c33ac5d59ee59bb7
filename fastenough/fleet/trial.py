# SPDX-License-Identifier: GPL-2.0-or-later
"""Trial of a fleet on one machine: server, database, takers and simulated boards, until all intervals are stored.

    python -m fastenough.fleet.trial FOLDER ARCHIVE BOARDS INTERVAL_S FOR_S

ARCHIVE may be empty: the archive is then in FOLDER, which the caller removes.
Prints one JSON object per line: progress as ``{"progress": …}``, at the end the result.  Any of its processes may be
killed: it is started again."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from fastenough.farm.lab import free_ports
from fastenough.farm.postgres import ServerFolder
from fastenough.farm.trial import leave_network
from fastenough.fleet import tables
from fastenough.fleet.archive import FleetArchive
from fastenough.fleet.simulated import CPUS, MOST_PATIENCE_S, SimulatedBoard, simulated_boards
from fastenough.fleet.supervised_process import SupervisedProcess, Usage
from fastenough.history import History
from fastenough.model import FastenoughError, NotApplicable, Unavailable

TAKERS = 2
_BOARDS_EACH = 2500
"""Boards in one process; each needs a file descriptor there and one in the server."""
_GATHER_S = 1.0
_LOOK_S = 2.0
_STUCK_S = MOST_PATIENCE_S + 60.0
"""Time after the end without a newly stored interval; then the trial ends, and missing intervals are lost."""
_SERVER = """server_name: fastenough
listen: "127.0.0.1:{port}"
max_connections: 20000
jetstream {{ store_dir: "{folder}/stream" }}
mqtt {{ listen: "127.0.0.1:{mqtt}" }}
"""


@dataclass(frozen=True)
class Fleet:
    """Size of a trial: number of boards, length of their intervals, and for how long they publish."""

    boards: int
    interval_s: float
    for_s: float


@dataclass(frozen=True)
class FleetTrialResult:
    """Intervals, each of one CPU of one board: how many were ``published``, are ``stored`` in the database, are
    ``archived`` in the folder ``archive`` (empty if it is removed), and are ``lost``.

    ``parts``: CPU time, memory and restarts of each process.
    """

    published: int
    stored: int
    archived: int
    lost: int
    archive: str
    seconds: float
    parts: Mapping[str, Usage]


def _say(text: str) -> None:
    print(json.dumps({"progress": text}), flush=True)


def _server_tool() -> str:
    tool = shutil.which("nats-server")
    if tool is None:
        raise NotApplicable("nats-server is missing (apt-get install nats-server)")
    return tool


class FleetTrial:
    """A trial in a folder that is initially empty."""

    def __init__(self, folder: Path, fleet: Fleet, archive: Path | None = None) -> None:
        self.folder, self.fleet, self._kept = folder, fleet, archive is not None
        self.archive = FleetArchive(str(archive or folder / "archive"))
        self._port, self._mqtt = free_ports(2)
        self._database_folder: ServerFolder | None = None
        self._parts: list[SupervisedProcess] = []
        # each board begins within one interval
        self._begin_s = time.time()
        self._end_s = self._begin_s + fleet.for_s

    async def run(self) -> FleetTrialResult:
        """Run it; raises NotApplicable if a server is not installed, Unavailable if one does not start."""
        server, database = self._server(), self._database()
        first = [server, *database]
        keeping = [asyncio.ensure_future(part.supervise()) for part in first]
        try:
            history = await self._opened_history()
            later = [*self._takers(), *self._boards()]
            self._parts = [*first, *later]
            keeping += [asyncio.ensure_future(part.supervise()) for part in later]
            _say(f"{self.fleet.boards} boards publish to 127.0.0.1:{self._mqtt} (MQTT); database: {self.url}")
            await self._until_stored(history, keeping)
            return self._result(history)
        finally:
            for task in keeping:
                task.cancel()
            for part in reversed(self._parts or first):
                part.end()

    @property
    def usage(self) -> dict[str, Usage]:
        """CPU time, memory and restarts of each process so far."""
        return {part.name: replace(part.usage) for part in self._parts}

    def _server(self) -> SupervisedProcess:
        config = self.folder / "nats.conf"
        config.write_text(_SERVER.format(port=self._port, mqtt=self._mqtt, folder=self.folder))
        return SupervisedProcess("server", [_server_tool(), "-c", config], self.folder / "server.log")

    def _database(self) -> list[SupervisedProcess]:
        try:
            self._database_folder = ServerFolder.create(self.folder / "postgresql")
        except NotApplicable as reason:
            _say(f"using SQLite instead of PostgreSQL: {reason}")
            return []
        return [SupervisedProcess("database", self._database_folder.command, self.folder / "postgresql.log")]

    @property
    def url(self) -> str:
        """Of the database, for SQLAlchemy."""
        if self._database_folder is not None:
            return self._database_folder.url
        return f"sqlite:///{self.folder}/history.sqlite"

    async def _opened_history(self) -> History:
        """Wait until the database answers, and create the tables."""
        deadline = time.monotonic() + 60.0
        while True:
            try:
                return tables.opened(self.url)
            except Unavailable:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.5)

    def _takers(self) -> list[SupervisedProcess]:
        return [
            self._part(
                f"taker-{number}",
                "fastenough",
                "farm",
                "take",
                f"--nats=nats://127.0.0.1:{self._port}",
                f"--database={self.url}",
                f"--archive={self.archive.location}",
                f"--part={number}/{TAKERS}",
                f"--gather={_GATHER_S:g}s",
            )
            for number in range(1, TAKERS + 1)
        ]

    def _boards(self) -> list[SupervisedProcess]:
        return [
            self._part(
                f"boards-{nth}",
                "fastenough.fleet.simulated",
                "127.0.0.1",
                self._mqtt,
                self.folder / f"boards-{nth}.json",
                first,
                min(_BOARDS_EACH, self.fleet.boards - first),
                self.fleet.interval_s,
                self._begin_s,
                self._end_s,
            )
            for nth, first in enumerate(range(0, self.fleet.boards, _BOARDS_EACH))
        ]

    def _part(self, name: str, module: str, *arguments: object) -> SupervisedProcess:
        command = [sys.executable, "-P", "-m", module, *map(str, arguments)]
        return SupervisedProcess(name, command, self.folder / f"{name}.log")

    async def _until_stored(self, history: History, keeping: Sequence[asyncio.Future[None]]) -> None:
        before, new_s, said_s = -1, time.monotonic(), 0.0
        while True:
            for task in keeping:
                if task.done():
                    task.result()
            stored, now_s = await asyncio.to_thread(_stored, history), time.time()
            published = self._published(now_s)
            if stored != before:
                before, new_s = stored, time.monotonic()
            if now_s - said_s >= 10.0 or now_s > self._end_s:
                left_s = max(0.0, self._end_s - now_s)
                _say(f"published {published:,}, stored {max(stored, 0):,}; {left_s:.0f} s left")
                said_s = now_s
            if now_s > self._end_s and (stored >= published or time.monotonic() - new_s > _STUCK_S):
                return
            await asyncio.sleep(_LOOK_S)

    def _published(self, now_s: float) -> int:
        return _intervals(self._all_boards(), min(now_s, self._end_s))

    def _all_boards(self) -> list[SimulatedBoard]:
        return simulated_boards(0, self.fleet.boards, self.fleet.interval_s, self._begin_s)

    def _result(self, history: History) -> FleetTrialResult:
        published, stored = self._published(self._end_s), _stored(history)
        return FleetTrialResult(
            published,
            stored,
            self.archive.count(),
            published - stored,
            self.archive.location if self._kept else "",
            round(time.time() - self._begin_s, 1),
            self.usage,
        )


def _intervals(boards: Sequence[SimulatedBoard], until_s: float) -> int:
    return CPUS * sum(board.ended(until_s) for board in boards)


def _stored(history: History) -> int:
    """Number of single intervals in the database; -1 while it does not answer."""
    try:
        with history.reading() as connection:
            return tables.stored_intervals(connection)
    except Unavailable:
        return -1


if __name__ == "__main__":
    try:
        scratch, archive, boards, interval_s, for_s = sys.argv[1:]
        if os.geteuid() == 0:
            leave_network(_say)
        Path(scratch).chmod(0o711)  # PostgreSQL, which never runs as root, passes through
        fleet = Fleet(int(boards), float(interval_s), float(for_s))
        trial = FleetTrial(Path(scratch), fleet, Path(archive) if archive else None)
        print(json.dumps(asdict(asyncio.run(trial.run()))), flush=True)
    except FastenoughError as error:
        sys.exit(str(error))
