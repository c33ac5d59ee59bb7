# SPDX-License-Identifier: GPL-2.0-or-later
"""The guest's pins, over QEMU's qtest socket.

QEMU stops the guest while a reply waits to be read: a thread of its own drains the socket, always.
"""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass

from fastenough.link.base import Stalled
from fastenough.model import BadInput, FastenoughError

CHIP = "9030000.pl061"
"""Label of the chip, as the guest sees it."""
INPUT_LINE = 0
"""The guest's input, driven from outside."""
OUTPUT_LINE = 1
"""The guest's output, seen from outside."""
_LINES = 8
_POWER_KEY_LINE = 3
_KEPT = 1 << 16


@dataclass(frozen=True)
class Edge:
    """An output of the guest changed; the time is when the bench read of it (CLOCK_MONOTONIC)."""

    line: int
    level: int
    mono_ns: int


class Pins:
    """Drives the guest's inputs and sees its outputs change.

    ``on_edge``, when given, is called in the draining thread with every edge, before it is kept.
    """

    def __init__(self, connection: socket.socket, device: str, on_edge: Callable[[Edge], None] | None = None) -> None:
        self._connection = connection
        self._device = device
        self.on_edge = on_edge
        self.counts: Counter[int] = Counter()
        self._edges: deque[Edge] = deque(maxlen=_KEPT)
        self._changed = threading.Condition()
        self._replies: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._asking = threading.Lock()
        self._thread = threading.Thread(target=self._drain, name="pins", daemon=True)
        self._thread.start()
        self._ask(f"irq_intercept_out {device}")

    def drive(self, line: int, level: int) -> int:
        """Set an input of the guest; returns when QEMU had taken it (CLOCK_MONOTONIC, ns)."""
        if not 0 <= line < _LINES or line == _POWER_KEY_LINE:
            raise BadInput(f"the virtual board has no free input line {line}; choose 0 to 2 or 4 to 7")
        self._ask(f"set_irq_in {self._device} unnamed-gpio-in {line} {int(bool(level))}")
        return time.monotonic_ns()

    def wait(self, line: int, level: int, timeout_s: float) -> Edge:
        """The next edge of that line to that level; edges before it are forgotten.  Raises Stalled."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while True:
                while self._edges:
                    edge = self._edges.popleft()
                    if (edge.line, edge.level) == (line, level):
                        return edge
                if not self._changed.wait(max(0.0, deadline - time.monotonic())) and time.monotonic() >= deadline:
                    raise Stalled(f"output {line} did not become {level} within {timeout_s:g} s")

    def take(self) -> list[Edge]:
        """Every edge kept since the last look (at most 65536)."""
        with self._changed:
            edges = list(self._edges)
            self._edges.clear()
            return edges

    def settle(self) -> None:
        """Until every edge that the guest has made has been heard: the reply to a question comes behind them."""
        self._ask("endianness")

    def close(self) -> None:
        """Let go of the pins; the thread ends."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    def _ask(self, command: str) -> None:
        with self._asking:
            try:
                self._connection.sendall(command.encode() + b"\n")
                reply = self._replies.get(timeout=20.0)
            except (OSError, queue.Empty) as error:
                raise FastenoughError("the virtual board's pins do not answer: its QEMU is gone or stuck") from error
        if reply is None or not reply.startswith("OK"):
            raise FastenoughError(f"QEMU refused {command!r}: {reply or 'it is gone'}")

    def _drain(self) -> None:
        try:
            with self._connection.makefile("r", encoding="ascii") as stream:
                for line in stream:
                    self._sort(line.split())
        except (OSError, ValueError):
            pass
        self._replies.put(None)

    def _sort(self, words: list[str]) -> None:
        if words[:1] != ["IRQ"]:
            self._replies.put(" ".join(words))
            return
        edge = Edge(int(words[2]), int(words[1] == "raise"), time.monotonic_ns())
        if self.on_edge is not None:
            self.on_edge(edge)
        with self._changed:
            self.counts[edge.line] += 1
            self._edges.append(edge)
            self._changed.notify_all()
