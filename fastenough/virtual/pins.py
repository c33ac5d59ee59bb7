# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest's pins, whatever machine it is: what drives its inputs and sees its outputs change."""

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
_KEPT = 1 << 16


@dataclass(frozen=True)
class Edge:
    """An output of the guest changed; the time is when the bench read of it (CLOCK_MONOTONIC)."""

    line: int
    level: int
    mono_ns: int


class Pins(ABC):
    """Drives the guest's inputs and sees its outputs change.

    ``on_edge``, when given, is called in the draining thread with every edge, before it is kept.
    """

    def __init__(self) -> None:
        self.on_edge: Callable[[Edge], None] | None = None
        self.counts: Counter[int] = Counter()
        self._edges: deque[Edge] = deque(maxlen=_KEPT)
        self._changed = threading.Condition()

    @abstractmethod
    def drive(self, line: int, level: int) -> int:
        """Set an input of the guest; returns when QEMU had taken it (CLOCK_MONOTONIC, ns)."""

    @abstractmethod
    def settle(self) -> None:
        """Until every edge that the guest has made has been heard."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the pins; the thread ends."""

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

    def heard(self, line: int, level: int) -> None:
        """An output changed just now."""
        edge = Edge(line, level, time.monotonic_ns())
        if self.on_edge is not None:
            self.on_edge(edge)
        with self._changed:
            self.counts[edge.line] += 1
            self._edges.append(edge)
            self._changed.notify_all()


class Emulator(Protocol):
    """What pins need of the QEMU that they are in."""

    def connect(self, name: str, timeout_s: float) -> socket:
        """One of its sockets."""

    def find(self, kind: str) -> str:
        """The path of its first device of that type."""


class PinPort(Protocol):
    """How pins come out of one QEMU: what it is started with in ``directory``, and who then opens them.

    ``chip`` is their label, as the guest sees it; ``modules``: what the guest needs for them, folders of our module's
    sources.
    """

    chip: ClassVar[str]
    modules: ClassVar[tuple[str, ...]]

    def __init__(self, directory: Path) -> None:
        """Before QEMU starts."""

    @property
    def words(self) -> list[str]:
        """For QEMU's command line."""

    def open(self, emulator: Emulator) -> Pins:
        """The pins of a QEMU that runs, until they are closed; then they may be opened again."""

    def close(self) -> None:
        """Leave nothing behind when QEMU has ended."""
