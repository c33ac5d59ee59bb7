# SPDX-License-Identifier: GPL-2.0-or-later
"""Simulated boards that publish, many in one process.  Their values are computed from the numbers of board and
interval, so that only the answers of takers must survive when the process is killed.

    python -m fastenough.fleet.simulated HOST PORT STATE FIRST COUNT INTERVAL_S BEGIN_S END_S"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from aiomqtt import Client, MqttError

from fastenough.files import replace_whole
from fastenough.fleet.chunk import Chunk, order_topic, ring_topic, stored_of
from fastenough.model import BadInput
from fastenough.recording.histogram import Histogram

CPUS = 2
"""CPUs of each simulated board."""
_K = 4
_PERIOD_NS = 1_000_000
_VALUES = 200
"""Number of values of an interval; real boards have more, in the same buckets."""
_MOST_INTERVALS = 32
"""Most intervals in one chunk."""
_EVENT_EVERY = 8
"""Intervals from one recorded event of a board to the next."""
_CULPRITS: tuple[dict[str, str | int], ...] = (
    {"waited_for": "kworker/0:1", "waited_for_pid": 17},
    {"interrupt": "eth0"},
    {"waited_for": "swapper/0", "waited_for_pid": 0, "idle_state": "C6"},
    {},
)
"""Those of a board's events, by its number; the last one contains no cause."""
_PATIENCE_S = 20.0
"""Time without an answer after which a board publishes again what is not stored; doubled each time."""
MOST_PATIENCE_S = 320.0
"""Longest such time.  If it were constant, slow or disconnected takers would get ever more repetitions."""
_SERIES = {
    "unit": "ns",
    "clock": "monotonic",
    "from": "due time, on a grid of one interval",
    "to": "first reading of the clock after the sleep",
    "k": _K,
    "role": "verdict",
    "two_sided": False,
    "corrected": False,
    "relative": False,
    "period_ns": _PERIOD_NS,
}


def _line(content: object) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"


@dataclass(frozen=True)
class SimulatedBoard:
    """A board with two CPUs and one endless run, which began at ``begin_s`` (wall clock).

    Its interval ``n`` ends ``offset_s + (n + 1) * interval_s`` after that.  ``watched``: it records events with a
    cause, as if the monitor ran beside it.
    """

    number: int
    interval_s: float
    begin_s: float
    offset_s: float
    watched: bool = False

    @property
    def machine(self) -> str:
        return hashlib.md5(f"simulated board {self.number}".encode(), usedforsecurity=False).hexdigest()

    @property
    def run(self) -> str:
        return f"{datetime.fromtimestamp(self.begin_s, UTC):%Y%m%dT%H%M%SZ}-{self.machine[:8]}"

    def ended(self, now_s: float) -> int:
        """Number of intervals that have ended."""
        return max(0, int((now_s - self.begin_s - self.offset_s) // self.interval_s))

    def head(self) -> bytes:
        begin_ns = self._wall_ns(0)
        return _line(
            {
                "type": "head",
                "format": "fastenough-recording",
                "version": 2,
                "tool": {"name": "fastenough-probe", "version": "simulated"},
                "run_id": self.run,
                "probe": "timer",
                "implementation": "linux-user",
                "parameters": {"interval_ns": _PERIOD_NS},
                "series": [{"id": cpu, "name": "wakeup", "cpu": cpu, **_SERIES} for cpu in range(CPUS)],
                "settings": [],
                "cost": {"clock_read_ns": 20.0, "record_ns": 5.0},
                "interval_ns": round(self.interval_s * 1e9),
                "begin": {"mono_ns": begin_ns, "wall_ns": begin_ns},
                "boot_id": f"{self.machine[:8]}-0000-4000-8000-{self.machine[8:20]}",
                "marks": ["emulated"],
            }
        )

    def interval(self, number: int) -> bytes:
        begin_ns, end_ns = self._wall_ns(number), self._wall_ns(number + 1)
        return _line(
            {
                "type": "interval",
                "seq": number,
                "begin": {"mono_ns": begin_ns, "wall_ns": begin_ns},
                "end": {"mono_ns": end_ns, "wall_ns": end_ns},
                "series": [_series(cpu, values) for cpu, values in enumerate(self._values(number))],
                "counters": {},
            }
        )

    def events(self, number: int) -> tuple[bytes, ...]:
        """The events before an interval: in some, the maximum of CPU 0, with the cause of this board."""
        if not self.watched or number % _EVENT_EVERY:
            return ()
        at_ns, value = self._wall_ns(number + 1), int(self._values(number)[0].max())
        culprit = {"task": "simulated", "task_pid": 1, **_CULPRITS[self.number % len(_CULPRITS)]}
        if "interrupt" in culprit:
            culprit["interrupt_ns"] = value
        at = {"mono_ns": at_ns, "wall_ns": at_ns}
        event = {"type": "event", "kind": "max", "at": at, "series": 0, "cpu": 0, "value": value, "culprit": culprit}
        return (_line(event),)

    def _values(self, number: int) -> list[np.ndarray[tuple[int], np.dtype[np.int64]]]:
        """The values of each CPU in an interval."""
        draw = np.random.default_rng((self.number, number))
        return [draw.lognormal(9.2, 0.4, size=_VALUES).astype(np.int64) for _ in range(CPUS)]

    def chunk(self, first: int, count: int, oldest: int | None = None) -> Chunk:
        """A chunk of ``count`` intervals; ``oldest``: the oldest one the board still holds (default: first)."""
        numbers = range(first, first + count)
        lines = tuple(line for number in numbers for line in (*self.events(number), self.interval(number)))
        oldest = first if oldest is None else oldest
        return Chunk(self.machine, "simulated", self.run, first, oldest, self.head(), lines)

    def _wall_ns(self, number: int) -> int:
        return round((self.begin_s + self.offset_s + number * self.interval_s) * 1e9)


def _series(cpu: int, values: np.ndarray[tuple[int], np.dtype[np.int64]]) -> dict[str, object]:
    held = Histogram.from_values(values, _K)
    return {
        "id": cpu,
        "count": held.total,
        "lost": 0,
        "missed": 0,
        "min": held.minimum,
        "max": held.maximum,
        "sum": held.sum,
        "sum_sq": str(held.sum_sq),
        "buckets": np.column_stack((held.index, held.count)).tolist(),
    }


@dataclass
class Publishing:
    """Progress of a board: number of intervals ``stored``, as answers confirm, and ``sent``, as published."""

    board: SimulatedBoard
    stored: int = 0
    sent: int = 0
    answered_s: float = field(default_factory=time.monotonic)
    again_s: float = 0.0
    patience_s: float = _PATIENCE_S

    def next_chunk(self, ended: int) -> Chunk | None:
        """The chunk to publish now, or None."""
        if self.sent > self.stored and time.monotonic() - self.answered_s > self.patience_s:
            self.sent, self.answered_s = self.stored, time.monotonic()
            self._wait_longer()
        count = min(ended - self.sent, _MOST_INTERVALS)
        if count <= 0:
            return None
        if self.sent == self.stored:
            self.answered_s = time.monotonic()
        chunk = self.board.chunk(self.sent, count, self.stored)
        self.sent += count
        return chunk

    def answer(self, payload: bytes) -> None:
        """Process a taker's answer.  If it confirms nothing new, an earlier chunk is missing; one gap may cause several
        such answers."""
        try:
            stored = stored_of(payload)
        except BadInput:
            return
        if stored.run != self.board.run:
            return
        now_s = time.monotonic()
        if stored.next > self.stored:
            self.answered_s = now_s
            if stored.next >= self.sent:
                self.patience_s = _PATIENCE_S
        elif stored.next < self.sent and now_s > self.again_s:
            # each repetition is answered as well: without a growing pause, every answer would cause the next one
            self.sent, self.again_s = self.stored, now_s + self.patience_s
            self._wait_longer()
        self.stored = max(self.stored, stored.next)
        self.sent = max(self.sent, self.stored)

    def _wait_longer(self) -> None:
        self.patience_s = min(2 * self.patience_s, MOST_PATIENCE_S)


class Boards:
    """Boards of one process, each with its own connection.  ``state``: file that survives the process."""

    def __init__(self, boards: Sequence[SimulatedBoard], state: Path, end_s: float) -> None:
        self._state, self._end_s = state, end_s
        known: dict[str, int] = json.loads(state.read_bytes()) if state.exists() else {}
        self._all = [Publishing(board, *(2 * [known.get(board.machine, 0)])) for board in boards]

    async def run(self, host: str, port: int) -> None:
        """Publish until the process is ended; boards that have published everything wait for answers."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._keep())
            for publishing in self._all:
                group.create_task(self._connected(publishing, host, port))

    async def _keep(self) -> None:
        while True:
            replace_whole(
                self._state,
                json.dumps({publishing.board.machine: publishing.stored for publishing in self._all}).encode(),
            )
            await asyncio.sleep(1.0)

    async def _connected(self, publishing: Publishing, host: str, port: int) -> None:
        while True:
            try:
                async with Client(host, port, identifier=publishing.board.machine, timeout=30.0) as client:
                    await client.subscribe(order_topic(publishing.board.machine), qos=0)
                    publishing.sent = publishing.stored  # messages in transit may be lost
                    async with asyncio.TaskGroup() as group:
                        group.create_task(self._publish(publishing, client))
                        group.create_task(_listen(publishing, client))
            except* (MqttError, OSError):
                await asyncio.sleep(1.0)

    async def _publish(self, publishing: Publishing, client: Client) -> None:
        while True:
            chunk = publishing.next_chunk(publishing.board.ended(min(time.time(), self._end_s)))
            if chunk is None:
                await asyncio.sleep(0.5)
            else:
                await client.publish(ring_topic(chunk.machine), chunk.packed(), qos=1)


async def _listen(publishing: Publishing, client: Client) -> None:
    async for message in client.messages:
        if isinstance(message.payload, bytes):
            publishing.answer(message.payload)


def simulated_boards(first: int, count: int, interval_s: float, begin_s: float) -> list[SimulatedBoard]:
    """Boards whose intervals end at times that are evenly spread."""
    return [
        SimulatedBoard(number, interval_s, begin_s, interval_s * ((number * 0.6180339887) % 1.0), watched=True)
        for number in range(first, first + count)
    ]


async def _main(argv: Sequence[str]) -> None:
    host, port, state, first, count, interval_s, begin_s, end_s = argv
    boards = simulated_boards(int(first), int(count), float(interval_s), float(begin_s))
    await Boards(boards, Path(state), float(end_s)).run(host, int(port))


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1:]))
