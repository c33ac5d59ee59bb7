# SPDX-License-Identifier: GPL-2.0-or-later
"""A command on a board, as the bench has it in hand."""

from __future__ import annotations

import contextlib
import queue
import signal
import threading
from collections.abc import Iterator
from typing import Protocol

from fastenough.link.agent_frames import NUMBER, Kind
from fastenough.link.base import MOST_LINE, BoardGone, Flood, Patience, Stalled, lines_of
from fastenough.model import FastenoughError

KILL_MARGIN_S = 40.0
"""How long the agent may take to end a tree of processes that stay in the kernel."""
GRACE_S = 2.0
_UNREAD_MOST = 256 << 20
"""Bytes of output that are kept for a reader who does not come for them."""
_OF_A_FRAME = 128
"""Bytes of memory that a frame takes, however short it is."""
_ERRORS_MOST = 256
"""Frames of standard error that are kept."""


class Sender(Protocol):
    """The link that a command was started over."""

    @property
    def gone(self) -> str: ...

    def send(self, number: int, kind: int, content: bytes = b"") -> None: ...


class AgentProcess:
    """A command on the board, with everything it starts."""

    def __init__(self, link: Sender, number: int, name: str) -> None:
        self._link = link
        self._number = number
        self._name = name
        self._output: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._taken = 0
        self._read = 0
        self._overrun = False
        self._errors: list[bytes] = []
        self._started = threading.Event()
        self._ended = threading.Event()
        self._pid = 0
        self._status: int | None = None

    @property
    def pid(self) -> int:
        self._started.wait(KILL_MARGIN_S)
        return self._pid

    @property
    def running(self) -> bool:
        return not self._ended.is_set()

    def take(self, kind: int, content: bytes) -> None:
        """What the agent says of this command (called in the link's thread)."""
        if kind == Kind.OUTPUT:
            self._take_output(content)
        elif kind == Kind.ERRORS:
            if len(self._errors) < _ERRORS_MOST:
                self._errors.append(content)
        elif kind == Kind.STARTED:
            self._pid = NUMBER.unpack(content)[0]
            self._started.set()
        elif kind == Kind.EXITED:
            self.end(NUMBER.unpack(content)[0])

    def _take_output(self, content: bytes) -> None:
        if self._overrun:
            return
        self._taken += len(content) + _OF_A_FRAME
        if self._taken - self._read <= _UNREAD_MOST:
            self._output.put(content)
            return
        self._overrun = True
        self._output.put(b"")
        threading.Thread(target=self._end_now, daemon=True).start()

    def end(self, status: int | None) -> None:
        """It has ended; without a status the whole board has."""
        self._status = status
        self._output.put(b"")
        self._started.set()
        self._ended.set()

    def chunks(self, patience: Patience) -> Iterator[bytes]:
        """Standard output as it comes."""
        while True:
            try:
                chunk = self._output.get(timeout=patience.left_s)
            except queue.Empty:
                raise patience.stalled() from None
            if not chunk:
                break
            self._read += len(chunk) + _OF_A_FRAME
            patience.take(len(chunk))
            yield chunk
        self._output.put(b"")
        if self._overrun:
            raise Flood(f"{self._name} was stopped: more than {_UNREAD_MOST >> 20} MB of its output were not read")

    def lines(self, timeout_s: float | None = None) -> Iterator[bytes]:
        patience = Patience(self._name, timeout_s, MOST_LINE)
        return lines_of(self.chunks(patience), patience)

    def abandon(self) -> None:
        """End it, and keep nothing of what it still says."""
        self._overrun = True
        self._output = queue.SimpleQueue()
        self._output.put(b"")
        self._end_now()

    def signal(self, number: int) -> None:
        if not self._ended.is_set():
            self._link.send(self._number, Kind.SIGNAL, NUMBER.pack(number))

    def wait(self, timeout_s: float | None = None) -> int:
        if not self._ended.wait(timeout_s):
            raise Stalled(f"{self._name} has not ended after {timeout_s:g} s")
        if self._status is None:
            raise BoardGone(self._link.gone)
        return self._status

    def stop(self) -> int:
        self.signal(signal.SIGTERM)
        try:
            return self.wait(GRACE_S)
        except Stalled:
            self.kill()
            return self.wait(KILL_MARGIN_S)

    def kill(self) -> None:
        """End it and everything it started; does not wait for that."""
        self._link.send(self._number, Kind.KILL)

    def _end_now(self) -> None:
        with contextlib.suppress(FastenoughError):
            self.kill()

    def stderr(self) -> bytes:
        return b"".join(self._errors)
