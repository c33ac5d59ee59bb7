# SPDX-License-Identifier: GPL-2.0-or-later
"""The pins of a guest on any machine: driving its inputs and receiving edges of its outputs."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from socket import socket
from typing import ClassVar, Protocol

from fastenough.link.base import Stalled

INPUT_LINE = 0
"""The guest's input, driven from outside."""
OUTPUT_LINE = 1
"""The guest's output, seen from outside."""
LINES = 8
_MOST_EDGES = 1 << 16


@dataclass(frozen=True)
class Edge:
    """A change of an output of the guest; the time is that of its reception (CLOCK_MONOTONIC)."""

    line: int
    level: int
    mono_ns: int


class Pins(ABC):
    """Drives the guest's inputs and receives the edges of its outputs.

    ``on_edge``, if given, is called in the receiving thread with every edge, before it is queued.
    """

    def __init__(self) -> None:
        self.on_edge: Callable[[Edge], None] | None = None
        self.counts: Counter[int] = Counter()
        self._edges: deque[Edge] = deque(maxlen=_MOST_EDGES)
        self._changed = threading.Condition()

    @abstractmethod
    def drive(self, line: int, level: int) -> int:
        """Set an input of the guest; returns the time at which QEMU had set it (CLOCK_MONOTONIC, ns)."""

    @abstractmethod
    def settle(self) -> None:
        """Wait until every edge of the guest has been received."""

    @abstractmethod
    def close(self) -> None:
        """Close the pins; the thread ends."""

    def wait(self, line: int, level: int, timeout_s: float) -> Edge:
        """The next edge of that line to that level; earlier edges are dropped.  Raises Stalled."""
        deadline_mono_s = time.monotonic() + timeout_s
        with self._changed:
            while True:
                while self._edges:
                    edge = self._edges.popleft()
                    if (edge.line, edge.level) == (line, level):
                        return edge
                if (
                    not self._changed.wait(max(0.0, deadline_mono_s - time.monotonic()))
                    and time.monotonic() >= deadline_mono_s
                ):
                    raise Stalled(f"output {line} did not become {level} within {timeout_s:g} s")

    def take(self) -> list[Edge]:
        """All edges since the last call (at most 65536)."""
        with self._changed:
            edges = list(self._edges)
            self._edges.clear()
            return edges

    def receive(self, line: int, level: int) -> None:
        """Queue an edge; called at a change of an output."""
        edge = Edge(line, level, time.monotonic_ns())
        if self.on_edge is not None:
            self.on_edge(edge)
        with self._changed:
            self.counts[edge.line] += 1
            self._edges.append(edge)
            self._changed.notify_all()


class Emulator(Protocol):
    """The interface of a QEMU process that pins require."""

    def connect(self, name: str, timeout_s: float) -> socket:
        """Connect to one of its sockets."""

    def find(self, kind: str) -> str:
        """The QOM path of its first device of that type."""


class PinPort(Protocol):
    """Access to the pins of a QEMU process: its arguments, with sockets in ``directory``, and opening the pins.

    ``chip`` is their label in the guest; ``modules``: modules that the guest needs for them, as folders of the
    module sources.
    """

    chip: ClassVar[str]
    modules: ClassVar[tuple[str, ...]]

    def __init__(self, directory: Path) -> None:
        """Prepare, before QEMU starts."""

    @property
    def arguments(self) -> list[str]:
        """Arguments for QEMU."""

    def open(self, emulator: Emulator) -> Pins:
        """Open the pins of a running QEMU; after closing they may be opened again."""

    def close(self) -> None:
        """Clean up after QEMU has ended."""
