# SPDX-License-Identifier: GPL-2.0-or-later
"""The way from a board's ring to the archive, on loopback: a NATS server, the publisher, and takers in a thread."""

from __future__ import annotations

import asyncio
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pyarrow import parquet
from sqlalchemy import select

from fastenough.farm.lab import free_ports
from fastenough.fleet import tables
from fastenough.fleet.archive import FleetArchive
from fastenough.fleet.chunk import SHARDS
from fastenough.fleet.simulated import SimulatedBoard
from fastenough.fleet.stream import ChunkStream
from fastenough.fleet.taker import Shard, Taker
from fastenough.history import History
from fastenough.model import Unavailable
from tests.support.processes import eventually

_GATHER_S = 0.1


@dataclass
class WrittenRing:
    """A ring as a board's service writes it."""

    folder: Path

    def add(self, serial: int, board: SimulatedBoard, first: int, count: int) -> Path:
        """Append intervals to the recording of a board's run; its head is written first."""
        path = self.folder / f"{serial:010}-{board.run}.jsonl"
        lines = [board.interval(number) for number in range(first, first + count)]
        with path.open("ab") as stream:
            stream.write(b"".join([*([] if first else [board.head()]), *lines]))
        return path


@dataclass
class Bus:
    """A NATS server that can be killed and started again, with the takers' store.  ``security``: lines of its MQTT."""

    folder: Path
    security: str = ""
    said: list[str] = field(default_factory=list)
    _process: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        self.port, self.mqtt = free_ports(2)
        self.history: History = tables.opened(f"sqlite:///{self.folder}/history.sqlite")
        self.archive = FleetArchive(str(self.folder / "archive"))
        (self.folder / "nats.conf").write_text(
            f'server_name: test\nlisten: "127.0.0.1:{self.port}"\njetstream {{ store_dir: "{self.folder}/stream" }}\n'
            f'mqtt {{ listen: "127.0.0.1:{self.mqtt}"\n{self.security} }}\n'
        )

    def start(self) -> None:
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(["nats-server", "-c", self.folder / "nats.conf"], stdout=log, stderr=log)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    async def take(self) -> None:
        while True:
            with suppress(Unavailable):
                stream = await ChunkStream.opened(f"nats://127.0.0.1:{self.port}")
                try:
                    shards = [Shard(self.history, self.archive, shard) for shard in range(SHARDS)]
                    await Taker(stream, shards, _GATHER_S, self.said.append).run()
                finally:
                    await stream.close()
            await asyncio.sleep(_GATHER_S)

    def keys(self) -> list[tuple[str, int, int]]:
        """Run, CPU and interval of each row of the archive."""
        paths = list((self.folder / "archive").rglob("*.parquet"))
        rows = [row for path in paths for row in parquet.read_table(path).to_pylist()]
        return sorted((row["run"], row["cpu"], row["interval"]) for row in rows)

    def stored(self, runs: dict[str, range], cpus: Sequence[int]) -> bool:
        """Whether exactly these intervals are stored, each once, within a minute."""
        wanted = sorted((run, cpu, number) for run, numbers in runs.items() for cpu in cpus for number in numbers)
        return eventually(lambda: self.keys() == wanted, 60)

    def machine(self) -> tuple[int, str]:
        """Of the only board: its lost intervals, and why it is quarantined."""
        with self.history.reading() as connection:
            row = connection.execute(select(tables.MACHINE.c.lost, tables.MACHINE.c.quarantine)).one()
        return int(row[0]), str(row[1])


@contextmanager
def taking(bus: Bus) -> Iterator[None]:
    """Takers of all shards in a thread."""
    loop = asyncio.new_event_loop()
    task = loop.create_task(bus.take())

    def run() -> None:
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(task)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        loop.close()


@contextmanager
def running_bus(folder: Path, security: str = "") -> Iterator[Bus]:
    """A started server, and takers of all shards in a thread."""
    bus = Bus(folder, security)
    bus.start()
    try:
        with taking(bus):
            yield bus
    finally:
        bus.kill()
        bus.history.close()


class MqttServer(Protocol):
    """A server with its port for boards, in a folder."""

    folder: Path
    mqtt: int


@contextmanager
def publishing(
    program: Path, bus: MqttServer, ring: Path, machine: str, *options: str
) -> Iterator[subprocess.Popen[str]]:
    """The publisher of a board; killed at the end, when no sanitizer may have said a word."""
    ident = bus.folder / f"machine-{machine}"
    ident.write_text(f"{machine}\n")
    words = f"--server=127.0.0.1 --port={bus.mqtt} --ring={ring} --machine-id={ident} --type=tested".split()
    with (bus.folder / "publisher.log").open("a+") as log:
        process = subprocess.Popen([program, *words, *options], stderr=log, stdout=subprocess.DEVNULL, text=True)
        try:
            yield process
            assert process.poll() is None, process.returncode
        finally:
            process.kill()
            process.wait()
            log.seek(0)
            assert "Sanitizer" not in (said := log.read()) and "runtime error" not in said, said
