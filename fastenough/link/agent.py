# SPDX-License-Identifier: GPL-2.0-or-later
"""The link to a board on which the agent runs (target/agent), over any stream of bytes.

docs/agent.md defines the protocol; target/agent/frames.h is its other implementation.
"""

from __future__ import annotations

import contextlib
import errno
import os
import queue
import secrets
import select
import signal
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import count
from pathlib import Path
from typing import Protocol

from fastenough.link.base import (
    MOST_LINE,
    MOST_OUTPUT,
    BoardGone,
    Completed,
    Flood,
    Link,
    Patience,
    Process,
    Stalled,
    split_lines,
)
from fastenough.model import FastenoughError

VERSION = 1
FRAME = struct.Struct("<III")
NUMBER = struct.Struct("<I")
GREETING = struct.Struct("<III")
"""Version, process id and user id of the agent."""
NONCE_SIZE = 16
FRAME_MOST = 131072


class FrameKind(IntEnum):
    INPUT = 0
    START = 1
    SIGNAL = 2
    KILL = 3
    STARTED = 4
    OUTPUT = 5
    ERRORS = 6
    EXITED = 7
    RESET = 8
    PING = 9
    REFUSED = 10


@dataclass(frozen=True)
class Stream:
    """Both directions of a transport.

    ``end``: end reads and writes of both descriptors at once; ``free``: then close them; ``why``: return a sentence
    with the reason why the board cannot be reached any more.
    """

    reader: int
    writer: int
    end: Callable[[], None]
    free: Callable[[], None]
    why: Callable[[], str]


@dataclass(frozen=True)
class Pace:
    """Time limits by which both sides detect a silent transport; 0 for a transport that always reports its end.

    The bench sends a ping every ``ping_s``; it gives up after ``silence_s`` without data.  The agent gives up after
    ``patience_s`` without data, and then ends everything it has started.
    """

    ping_s: float = 0.0
    silence_s: float = 0.0
    patience_s: float = 0.0


NO_PACE = Pace()
"""For a transport that reports its end itself."""


KILL_MARGIN_S = 40.0
"""How long the agent may take to end a process tree that stays in the kernel."""
GRACE_S = 2.0
_UNREAD_MOST = 256 << 20
"""Upper limit for the unread output [bytes] of a command."""
_OF_A_FRAME = 128
"""Memory [bytes] of a frame beside its content."""
_ERRORS_MOST = 256
"""Upper limit for the stored frames of standard error."""


class Sender(Protocol):
    """The link over which a command was started."""

    @property
    def gone(self) -> str: ...

    def send(self, number: int, kind: int, content: bytes = b"") -> None: ...


class AgentProcess:
    """A command on the board, with everything it starts (see ``Process``)."""

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
        """Handle a frame of this command (called in the link's thread)."""
        if kind == FrameKind.OUTPUT:
            self._take_output(content)
        elif kind == FrameKind.ERRORS:
            if len(self._errors) < _ERRORS_MOST:
                self._errors.append(content)
        elif kind == FrameKind.STARTED:
            self._pid = NUMBER.unpack(content)[0]
            self._started.set()
        elif kind == FrameKind.EXITED:
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
        """Note the end of the command; without a status, that of the board."""
        self._status = status
        self._output.put(b"")
        self._started.set()
        self._ended.set()

    def chunks(self, patience: Patience) -> Iterator[bytes]:
        """Yield standard output as it arrives."""
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
        return split_lines(self.chunks(patience), patience)

    def abandon(self) -> None:
        """End the command and drop its remaining output."""
        self._overrun = True
        self._output = queue.SimpleQueue()
        self._output.put(b"")
        self._end_now()

    def signal(self, number: int) -> None:
        if not self._ended.is_set():
            self._link.send(self._number, FrameKind.SIGNAL, NUMBER.pack(number))

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
        """Kill the command and everything it started; return at once."""
        self._link.send(self._number, FrameKind.KILL)

    def _end_now(self) -> None:
        with contextlib.suppress(FastenoughError):
            self.kill()

    def stderr(self) -> bytes:
        return b"".join(self._errors)


_CHUNK = 65536
_AT_ONCE = select.PIPE_BUF
"""Bytes that a writable pipe accepts at once."""
_SEND_S = 20.0
_SEND_BYTES_PER_S = 20_000
"""Time limit for a frame: a constant, and its length at a minimum rate."""
_GREET_AGAIN_S = 0.5
_MOST_LIMIT_MS = (1 << 32) - 1
"""Longest time limit of a command, 49.7 days; for a longer one, none is sent: its tree ends with the link."""
_NO_COMMAND = 127
_WHICH = (
    'case "$1" in */*) [ -x "$1" ] && echo "$1"; exit;; esac; IFS=:; '
    'for place in $PATH; do [ -f "$place/$1" ] && [ -x "$place/$1" ] && echo "$place/$1" && exit; done'
)


class AgentLink:
    """A board with the agent.  An agent serves one link at a time; when the link closes, everything it started ends.

    Raises Stalled if the agent does not answer within ``timeout_s``, BoardGone if it cannot be reached any more.
    ``command_s``: default time limit of a command without output.
    """

    near = False
    own_directory: Path | None = None

    def __init__(
        self, stream: Stream, name: str, *, pace: Pace = NO_PACE, timeout_s: float = 10.0, command_s: float = 10.0
    ) -> None:
        self.name = name
        self.gone = ""
        self._stream = stream
        self._pace = pace
        self._command_s = command_s
        self._sending = threading.Lock()
        self._numbers = count(1)
        self._processes: dict[int, AgentProcess] = {}
        self._tools: dict[str, str] = {}
        self._closing = threading.Event()
        self._begun = threading.Event()
        self._nonce = secrets.token_bytes(NONCE_SIZE)
        self.agent_pid = self.user = 0
        self._receiver = threading.Thread(target=self._receive, name="agent-link", daemon=True)
        self._receiver.start()
        self._begin(timeout_s)
        if pace.ping_s:
            threading.Thread(target=self._ping, name="agent-ping", daemon=True).start()

    @property
    def raised(self) -> Link:
        return self

    def run(self, argv: Sequence[str], timeout_s: float | None = None, input: bytes = b"") -> Completed:
        patience = Patience(argv[0], self._command_s if timeout_s is None else timeout_s, MOST_OUTPUT)
        process = self._launch(argv, input, "", 0.0)
        try:
            stdout = b"".join(process.chunks(patience))
            status = process.wait(max(0.1, patience.left_s or 0.0))
        except Flood as error:
            process.abandon()
            raise BoardGone(self._end(f"{self.name} is gone: {error}")) from error
        except BaseException:
            process.abandon()
            raise
        if status == _NO_COMMAND and process.stderr() == f"{argv[0]}: No such file or directory\n".encode():
            raise FileNotFoundError(2, "no such command", argv[0])
        return Completed(status, stdout, process.stderr())

    def start(
        self, argv: Sequence[str], *, input: bytes = b"", scratch: str | None = None, limit_s: float = 0.0
    ) -> Process:
        if self.which(argv[0]) is None:
            raise FileNotFoundError(2, "no such command", argv[0])
        return self._launch(argv, input, scratch or "", limit_s)

    def read(self, path: str) -> bytes:
        done = self.run(["sh", "-c", 'LC_ALL=C exec cat "$1"', "sh", path])
        if done.status:
            raise _os_error(done, path)
        return done.stdout

    def write(self, path: str, content: bytes) -> None:
        done = self.run(["sh", "-c", 'export LC_ALL=C; cat >"$1"', "sh", path], input=content)
        if done.status:
            raise _os_error(done, path)

    def exists(self, path: str) -> bool:
        return self.run(["test", "-e", path]).status == 0

    def glob(self, pattern: str) -> list[str]:
        listing = self.run(["sh", "-c", 'IFS=; for path in $1; do [ -e "$path" ] && echo "$path"; done', "sh", pattern])
        return sorted(listing.text.splitlines())

    def scratch_name(self) -> str:
        return f"/var/tmp/fastenough-{secrets.token_hex(6)}"

    def which(self, tool: str) -> str | None:
        if tool not in self._tools:
            path = self.run(["sh", "-c", _WHICH, "sh", tool]).text.strip()
            if not path:
                return None
            self._tools[tool] = path
        return self._tools[tool]

    def close(self) -> None:
        """Close the link; everything it started ends."""
        self._end(f"the link to {self.name} was closed")
        if self._receiver is not threading.current_thread():
            self._receiver.join(GRACE_S)

    def send(self, number: int, kind: int, content: bytes = b"") -> None:
        """Send one frame to the agent; raise BoardGone if it cannot be reached or does not accept the frame in time."""
        left = memoryview(FRAME.pack(number, kind, len(content)) + content)
        with self._sending:
            limit_s = _SEND_S + len(left) / _SEND_BYTES_PER_S
            deadline = time.monotonic() + limit_s
            try:
                while left:
                    if self._closing.is_set():
                        raise BoardGone(self.gone)
                    if not self._has_room(deadline - time.monotonic()):
                        raise BoardGone(
                            self._end(
                                f"{self.name} is gone: a frame of {len(content)} bytes was not accepted "
                                f"within {limit_s:.0f} s"
                            )
                        )
                    left = left[os.write(self._stream.writer, left[:_AT_ONCE]) :]
            except OSError as error:
                raise BoardGone(self._end("")) from error

    def _has_room(self, left_s: float) -> bool:
        """Return whether the transport accepts data, or has ended, within a time."""
        poller = select.poll()
        poller.register(self._stream.writer, select.POLLOUT)
        return bool(poller.poll(max(0.0, left_s) * 1000))

    def _end(self, why: str) -> str:
        """End the transport, once; return the reason."""
        if not self._closing.is_set():
            self.gone = why or self._stream.why()
            self._closing.set()
            self._stream.end()
        return self.gone

    def _begin(self, timeout_s: float) -> None:
        """Reset the agent: end the processes of another bench, and discard the data for it.

        A guest's port discards what arrives while the agent opens it again after another bench; the greeting is
        therefore repeated until it is answered.  Further answers concern no command and are ignored.
        """
        greeting = NUMBER.pack(round(self._pace.patience_s * 1000)) + self._nonce
        deadline = time.monotonic() + timeout_s
        self.send(0, FrameKind.RESET, greeting)
        while not self._begun.wait(min(_GREET_AGAIN_S, max(0.0, deadline - time.monotonic()))):
            if time.monotonic() >= deadline:
                self.close()
                raise Stalled(f"{self.name} has not answered within {timeout_s:g} s: is another fastenough using it?")
            self.send(0, FrameKind.RESET, greeting)
        if self._closing.is_set():
            raise BoardGone(self.gone)

    def _ping(self) -> None:
        while not self._closing.wait(self._pace.ping_s):
            with contextlib.suppress(FastenoughError):
                self.send(0, FrameKind.PING)

    def _launch(self, argv: Sequence[str], input: bytes, scratch: str, limit_s: float) -> AgentProcess:
        limit_ms = round(limit_s * 1000)
        content = NUMBER.pack(limit_ms if limit_ms <= _MOST_LIMIT_MS else 0) + b"".join(
            argument.encode() + b"\0" for argument in (scratch, *argv)
        )
        if len(content) > FRAME_MOST or any("\0" in argument for argument in (scratch, *argv)):
            raise ValueError("the command is too long for one frame, or contains a NUL byte")
        number = next(self._numbers)
        process = AgentProcess(self, number, argv[0])
        self._processes[number] = process
        for begin in range(0, len(input), _CHUNK):
            self.send(number, FrameKind.INPUT, input[begin : begin + _CHUNK])
        self.send(number, FrameKind.START, content)
        if self._closing.is_set():
            process.end(None)
        return process

    def _receive(self) -> None:
        """Receive frames until the transport ends."""
        buffer = bytearray()
        poller = select.poll()
        poller.register(self._stream.reader, select.POLLIN | select.POLLHUP)
        why = ""
        while not why and not self._closing.is_set():
            if not poller.poll(self._pace.silence_s * 1000 if self._pace.silence_s else None):
                why = f"{self.name} is gone: no data for {self._pace.silence_s:g} s"
                break
            try:
                chunk = os.read(self._stream.reader, 1 << 18)
            except OSError:
                break
            if not chunk:
                break
            buffer += chunk
            why = self._take(buffer)
        self._end(why)
        self._begun.set()
        for process in list(self._processes.values()):
            process.end(None)
        with self._sending:
            self._stream.free()

    def _take(self, buffer: bytearray) -> str:
        """Remove and handle every whole frame of the buffer; return why the board is unusable, or an empty text."""
        if not self._begun.is_set():
            self._greet(buffer)
            return ""
        while len(buffer) >= FRAME.size:
            number, kind, length = FRAME.unpack_from(buffer)
            if kind > max(FrameKind) or length > FRAME_MOST:
                return f"{self.name} is gone: its agent sent an invalid frame"
            if len(buffer) < FRAME.size + length:
                break
            content = bytes(buffer[FRAME.size : FRAME.size + length])
            del buffer[: FRAME.size + length]
            if kind == FrameKind.REFUSED:
                return f"{self.name} is gone: its agent refused {content.decode(errors='replace')}"
            self._sort(number, kind, content)
        return ""

    def _greet(self, buffer: bytearray) -> None:
        """Look for the agent's answer to this greeting; data before it was for another bench."""
        head = FRAME.pack(0, FrameKind.RESET, NONCE_SIZE + GREETING.size) + self._nonce
        at = buffer.find(head)
        if at < 0:
            del buffer[: -len(head)]
        elif len(buffer) >= at + len(head) + GREETING.size:
            version, self.agent_pid, self.user = GREETING.unpack_from(buffer, at + len(head))
            del buffer[: at + len(head) + GREETING.size]
            if version != VERSION:
                self._end(f"{self.name} runs an agent of version {version}, expected {VERSION}")
            self._begun.set()
            self._take(buffer)

    def _sort(self, number: int, kind: int, content: bytes) -> None:
        process = self._processes.get(number)
        if process is None or (kind in {FrameKind.STARTED, FrameKind.EXITED} and len(content) != NUMBER.size):
            return
        if kind == FrameKind.EXITED:
            del self._processes[number]
        process.take(kind, content)


def _os_error(done: Completed, path: str) -> OSError:
    """Return the OSError in a tool's message, which ends with the system's own text in the locale C."""
    message = done.stderr.decode(errors="replace").strip()
    number = next((number for number in errno.errorcode if message.endswith(os.strerror(number))), errno.EIO)
    return OSError(number, os.strerror(number), path)
