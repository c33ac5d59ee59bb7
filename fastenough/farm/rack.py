# SPDX-License-Identifier: GPL-2.0-or-later
"""A simulated rack on loopback: a power switch with an HTTP interface, and boards that record while they have power.

    python -m fastenough.farm.rack RACK.json

Each board has a serial console, and a probe that writes a ring of real recordings of this machine, which are not
evidence about a board.  ``PUT /relay/N/value`` switches board N, like labgrid's back end ``rest``; ``GET`` reads its
state.  ``POST /fault/N`` with an entry of `FAULTS` makes a board faulty.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from fastenough.farm.child_process import end_with_parent

FAULTS = ("none", "dead", "hang", "switch")
"""``dead``: the board does not start at power-on.  ``hang``: it stops and does not start again.  ``switch``: its relay
does not answer until it is repaired."""
_LOOK_S = 0.1


@dataclass(frozen=True)
class Slot:
    """A place in the rack: the port of its console, and the folder of its ring."""

    console: int
    ring: str


@dataclass(frozen=True)
class Rack:
    """``probe``: the command that records, to which ``--ring=…`` is added; ``boot_s``: from power on until it runs."""

    switch: int
    probe: tuple[str, ...]
    boot_s: float
    slots: tuple[Slot, ...]


@dataclass
class _Board:
    slot: Slot
    rack: Rack
    on: bool = False
    fault: str = "none"
    switched: int = 0
    service: asyncio.subprocess.Process | None = None
    listeners: set[asyncio.StreamWriter] = field(default_factory=set)
    booting: asyncio.Task[None] | None = None

    async def power(self, on: bool) -> None:
        self.switched += 1
        if on == self.on:
            return
        self.on = on
        if on:
            self.booting = asyncio.ensure_future(self._boot())
            return
        if self.booting is not None:
            self.booting.cancel()
        if self.service is not None:
            with contextlib.suppress(ProcessLookupError):
                self.service.kill()
            await self.service.wait()
            self.service = None

    async def _boot(self) -> None:
        if self.fault == "dead":
            return
        self._say(b"U-Boot (simulated)\r\nStarting kernel ...\r\n")
        await asyncio.sleep(self.rack.boot_s)
        if self.fault == "hang":
            self._say(b"Kernel panic (simulated)\r\n")
            return
        self.service = await asyncio.create_subprocess_exec(
            *self.rack.probe,
            f"--ring={self.slot.ring}",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            preexec_fn=end_with_parent,
        )
        self._say(b"board login: ")

    def ail(self, fault: str) -> None:
        self.fault = fault
        if fault == "hang" and self.service is not None:
            self.service.send_signal(signal.SIGSTOP)

    def _say(self, line: bytes) -> None:
        for listener in self.listeners:
            listener.write(line)

    async def console(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.listeners.add(writer)
        with contextlib.suppress(OSError):
            while await reader.read(4096):
                pass
        self.listeners.discard(writer)
        writer.close()


async def _repaired(board: _Board, reader: asyncio.StreamReader) -> None:
    """Wait until the relay answers again; raises ConnectionResetError if its client has gone before."""
    while board.fault == "switch" and not reader.at_eof():
        await asyncio.sleep(_LOOK_S)
    if reader.at_eof():
        raise ConnectionResetError("nobody waits for the answer any more")


async def _switch(boards: Sequence[_Board], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One request."""
    with contextlib.suppress(ValueError, IndexError, OSError, asyncio.IncompleteReadError):
        method, path, _ = (await reader.readline()).decode().split()
        length = 0
        while (line := await reader.readline()).strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        body = (await reader.readexactly(min(length, 4096))).decode()
        _, resource, number, *_ = path.split("/")
        board = boards[int(number)]
        if method == "POST" and resource == "fault" and body in FAULTS:
            board.ail(body)
        elif method == "PUT":
            if board.fault == "switch":
                await _repaired(board, reader)
            await board.power(body == "1")
        content = (
            json.dumps({"on": board.on, "switched": board.switched}) if resource == "fault" else str(int(board.on))
        )
        writer.write(
            f"HTTP/1.1 200 OK\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n{content}".encode()
        )
        await writer.drain()
    writer.close()


async def serve(rack: Rack) -> None:
    """Until it is ended; boards have no power at first."""
    boards = [_Board(slot, rack) for slot in rack.slots]
    servers = [await asyncio.start_server(board.console, "127.0.0.1", board.slot.console) for board in boards]
    servers.append(await asyncio.start_server(lambda r, w: _switch(boards, r, w), "127.0.0.1", rack.switch))
    await asyncio.gather(*(server.serve_forever() for server in servers))


def rack_text(rack: Rack) -> str:
    return json.dumps(asdict(rack))


def _read(text: str) -> Rack:
    document = json.loads(text)
    return Rack(
        document["switch"],
        tuple(document["probe"]),
        document["boot_s"],
        tuple(Slot(**slot) for slot in document["slots"]),
    )


if __name__ == "__main__":
    asyncio.run(serve(_read(Path(sys.argv[1]).read_text())))
