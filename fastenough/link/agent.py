# SPDX-License-Identifier: GPL-2.0-or-later
"""The link to a board on which our agent runs (target/agent), over any stream of bytes; see docs/agent.md."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import select
import threading
import time
from collections.abc import Sequence
from itertools import count

from fastenough.link.agent_frames import (
    FRAME,
    FRAME_MOST,
    GREETING,
    NO_PACE,
    NONCE_SIZE,
    NUMBER,
    VERSION,
    Kind,
    Pace,
    Stream,
)
from fastenough.link.agent_process import GRACE_S, AgentProcess
from fastenough.link.base import (
    MOST_OUTPUT,
    BoardGone,
    Completed,
    Flood,
    Link,
    Patience,
    Process,
    Stalled,
)
from fastenough.model import FastenoughError

_CHUNK = 65536
_AT_ONCE = select.PIPE_BUF
"""Bytes that a pipe which takes any takes at once."""
_SEND_S = 20.0
_SEND_BYTES_PER_S = 20_000
"""How long a board may take for a frame: so long, and at this pace."""
_NO_COMMAND = 127
_WHICH = (
    'case "$1" in */*) [ -x "$1" ] && echo "$1"; exit;; esac; IFS=:; '
    'for place in $PATH; do [ -f "$place/$1" ] && [ -x "$place/$1" ] && echo "$place/$1" && exit; done'
)


class AgentLink:
    """A board with our agent.  One link at a time per agent; when it closes, everything it started there ends.

    Raises Stalled when the agent has not answered within ``timeout_s``, BoardGone when it cannot be reached any more.
    ``command_s``: how long a command may be silent for which no other time is said.
    """

    near = False

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
        done = self.run(["cat", path])
        if done.status:
            raise _os_error(done, path)
        return done.stdout

    def write(self, path: str, content: bytes) -> None:
        done = self.run(["sh", "-c", 'cat >"$1"', "sh", path], input=content)
        if done.status:
            raise _os_error(done, path)

    def exists(self, path: str) -> bool:
        return self.run(["test", "-e", path]).status == 0

    def glob(self, pattern: str) -> list[str]:
        found = self.run(["sh", "-c", 'IFS=; for path in $1; do [ -e "$path" ] && echo "$path"; done', "sh", pattern])
        return sorted(found.text.splitlines())

    def scratch_name(self) -> str:
        return f"/var/tmp/fastenough-{secrets.token_hex(6)}"

    def which(self, tool: str) -> str | None:
        if tool not in self._tools:
            found = self.run(["sh", "-c", _WHICH, "sh", tool]).text.strip()
            if not found:
                return None
            self._tools[tool] = found
        return self._tools[tool]

    def close(self) -> None:
        """Everything this link started ends with it."""
        self._end(f"the link to {self.name} was closed")
        if self._receiver is not threading.current_thread():
            self._receiver.join(GRACE_S)

    def send(self, number: int, kind: int, content: bytes = b"") -> None:
        """One frame to the agent; raises BoardGone when it cannot be reached, or takes in too little in its time."""
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
        """Whether the transport takes something, or has ended, within a time."""
        poller = select.poll()
        poller.register(self._stream.writer, select.POLLOUT)
        return bool(poller.poll(max(0.0, left_s) * 1000))

    def _end(self, why: str) -> str:
        """End the transport, once; the reason is kept."""
        if not self._closing.is_set():
            self.gone = why or self._stream.why()
            self._closing.set()
            self._stream.end()
        return self.gone

    def _begin(self, timeout_s: float) -> None:
        """End what another bench left, and take nothing it should have got for ours."""
        self.send(0, Kind.RESET, NUMBER.pack(round(self._pace.patience_s * 1000)) + self._nonce)
        if not self._begun.wait(timeout_s):
            self.close()
            raise Stalled(f"{self.name} has not answered within {timeout_s:g} s: is another fastenough using it?")
        if self._closing.is_set():
            raise BoardGone(self.gone)

    def _ping(self) -> None:
        while not self._closing.wait(self._pace.ping_s):
            with contextlib.suppress(FastenoughError):
                self.send(0, Kind.PING)

    def _launch(self, argv: Sequence[str], input: bytes, scratch: str, limit_s: float) -> AgentProcess:
        content = NUMBER.pack(round(limit_s * 1000)) + b"".join(word.encode() + b"\0" for word in (scratch, *argv))
        if len(content) > FRAME_MOST or any("\0" in word for word in (scratch, *argv)):
            raise ValueError("the command is too long for one frame, or contains a NUL byte")
        number = next(self._numbers)
        process = AgentProcess(self, number, argv[0])
        self._processes[number] = process
        for begin in range(0, len(input), _CHUNK):
            self.send(number, Kind.INPUT, input[begin : begin + _CHUNK])
        self.send(number, Kind.START, content)
        if self._closing.is_set():
            process.end(None)
        return process

    def _receive(self) -> None:
        """Sort what comes, until the transport ends."""
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
        """Take every whole frame off the buffer; returns why the board is of no use, or nothing."""
        if not self._begun.is_set():
            self._greet(buffer)
            return ""
        while len(buffer) >= FRAME.size:
            number, kind, length = FRAME.unpack_from(buffer)
            if kind > max(Kind) or length > FRAME_MOST:
                return f"{self.name} is gone: its agent sent an invalid frame"
            if len(buffer) < FRAME.size + length:
                break
            content = bytes(buffer[FRAME.size : FRAME.size + length])
            del buffer[: FRAME.size + length]
            if kind == Kind.REFUSED:
                return f"{self.name} is gone: its agent refused {content.decode(errors='replace')}"
            self._sort(number, kind, content)
        return ""

    def _greet(self, buffer: bytearray) -> None:
        """Look for the agent's answer to our greeting: what stands before it was for another bench."""
        head = FRAME.pack(0, Kind.RESET, NONCE_SIZE + GREETING.size) + self._nonce
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
        if process is None or (kind in {Kind.STARTED, Kind.EXITED} and len(content) != NUMBER.size):
            return
        if kind == Kind.EXITED:
            del self._processes[number]
        process.take(kind, content)


def _os_error(done: Completed, path: str) -> OSError:
    """The OSError behind a tool's complaint, which ends in the system's own words."""
    said = done.stderr.decode(errors="replace").strip()
    number = next((number for number in errno.errorcode if said.endswith(os.strerror(number))), errno.EIO)
    return OSError(number, os.strerror(number), path)
