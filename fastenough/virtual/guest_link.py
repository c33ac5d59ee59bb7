# SPDX-License-Identifier: GPL-2.0-or-later
"""The link to a guest: what the agent (agent.c) does there, as the ``Link`` that every board has."""

from __future__ import annotations

import contextlib
import errno
import os
import queue
import secrets
import signal
import socket
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from enum import IntEnum
from itertools import count
from pathlib import Path

from fastenough.link.base import BoardGone, Completed, Link, Process, Stalled
from fastenough.model import FastenoughError

_FRAME = struct.Struct("<III")
_NUMBER = struct.Struct("<I")
_CHUNK = 65536
_GRACE_S = 2.0
_KILL_MARGIN_S = 30.0
_GONE = "the virtual board is gone: its QEMU has ended"


class _Kind(IntEnum):
    INPUT = 0
    START = 1
    SIGNAL = 2
    KILL = 3
    STARTED = 4
    OUTPUT = 5
    ERRORS = 6
    EXITED = 7
    RESET = 8


class GuestProcess:
    """A command in the guest, with everything it starts."""

    def __init__(self, link: GuestLink, number: int, name: str) -> None:
        self._link = link
        self._number = number
        self._name = name
        self._output: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._errors: list[bytes] = []
        self._started = threading.Event()
        self._ended = threading.Event()
        self._pid = 0
        self._status: int | None = None

    @property
    def pid(self) -> int:
        self._started.wait(_KILL_MARGIN_S)
        return self._pid

    @property
    def running(self) -> bool:
        return not self._ended.is_set()

    def take(self, kind: int, content: bytes) -> None:
        """What the agent says of this command (called in the link's thread)."""
        if kind == _Kind.OUTPUT:
            self._output.put(content)
        elif kind == _Kind.ERRORS:
            self._errors.append(content)
        elif kind == _Kind.STARTED:
            self._pid = _NUMBER.unpack(content)[0]
            self._started.set()
        elif kind == _Kind.EXITED:
            self.end(_NUMBER.unpack(content)[0])

    def end(self, status: int | None) -> None:
        """It has ended; without a status the whole guest has."""
        self._status = status
        self._output.put(b"")
        self._started.set()
        self._ended.set()

    def lines(self, timeout_s: float | None = None) -> Iterator[bytes]:
        pending = b""
        while True:
            try:
                chunk = self._output.get(timeout=timeout_s)
            except queue.Empty as error:
                raise Stalled(f"{self._name} said nothing for {timeout_s:g} s") from error
            if not chunk:
                break
            *whole, pending = (pending + chunk).split(b"\n")
            for line in whole:
                yield line + b"\n"
        self._output.put(b"")
        if pending:
            yield pending

    def signal(self, number: int) -> None:
        if not self._ended.is_set():
            self._link.send(self._number, _Kind.SIGNAL, _NUMBER.pack(number))

    def wait(self, timeout_s: float | None = None) -> int:
        if not self._ended.wait(timeout_s):
            raise Stalled(f"{self._name} has not ended after {timeout_s:g} s")
        if self._status is None:
            raise BoardGone(_GONE)
        return self._status

    def stop(self) -> int:
        self.signal(signal.SIGTERM)
        try:
            return self.wait(_GRACE_S)
        except Stalled:
            self.kill()
            return self.wait(_KILL_MARGIN_S)

    def kill(self) -> None:
        """End it and everything it started; does not wait for that."""
        self._link.send(self._number, _Kind.KILL)

    def end_after(self, limit_s: float) -> None:
        """End it in so many seconds, unless it has ended by then."""
        timer = threading.Timer(limit_s, self._end_now)
        timer.daemon = True
        timer.start()

    def _end_now(self) -> None:
        if not self._ended.is_set():
            with contextlib.suppress(FastenoughError):
                self.kill()

    def stderr(self) -> bytes:
        return b"".join(self._errors)


class GuestLink:
    """A guest, as a board.  One link at a time; when it closes, everything it started in the guest ends.

    Raises Stalled when the agent has not answered within ``timeout_s``, FastenoughError when the guest is gone.
    """

    emulated = True
    near = False

    @property
    def raised(self) -> Link:
        return self

    def __init__(self, connection: socket.socket, name: str, timeout_s: float = 10.0) -> None:
        self.name = name
        self._connection = connection
        self._sending = threading.Lock()
        self._numbers = count(1)
        self._processes: dict[int, GuestProcess] = {}
        self._tools: dict[str, str] = {}
        self._gone = False
        self._begun = threading.Event()
        threading.Thread(target=self._receive, name="guest-link", daemon=True).start()
        self._begin(timeout_s)

    def run(self, argv: Sequence[str], timeout_s: float = 10.0, input: bytes = b"") -> Completed:
        deadline = time.monotonic() + timeout_s
        process = self._launch(argv, input, "")
        try:
            stdout = b"".join(process.lines(timeout_s))
            status = process.wait(max(0.1, deadline - time.monotonic()))
        except BaseException:
            with contextlib.suppress(FastenoughError):
                process.kill()
            raise
        if status == 127 and process.stderr() == f"{argv[0]}: No such file or directory\n".encode():
            raise FileNotFoundError(2, "no such command", argv[0])
        return Completed(status, stdout, process.stderr())

    def start(self, argv: Sequence[str], *, input: bytes = b"", scratch: str | None = None,
              limit_s: float = 0.0) -> Process:
        if self.which(argv[0]) is None:
            raise FileNotFoundError(2, "no such command", argv[0])
        process = self._launch(argv, input, scratch or "")
        if limit_s:
            process.end_after(limit_s)
        return process

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
            found = self.run(["which", tool]).text.strip()
            if not found:
                return None
            self._tools[tool] = found
        return self._tools[tool]

    def close(self) -> None:
        """Everything this link started ends with it."""
        self._gone = True
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    def send(self, number: int, kind: int, content: bytes = b"") -> None:
        """One frame to the agent; raises FastenoughError when the guest is gone."""
        try:
            with self._sending:
                self._connection.sendall(_FRAME.pack(number, kind, len(content)) + content)
        except OSError as error:
            raise BoardGone(_GONE) from error

    def _begin(self, timeout_s: float) -> None:
        """End what another bench left, and take nothing it should have got for ours."""
        self.send(0, _Kind.RESET)
        if not self._begun.wait(timeout_s):
            self.close()
            raise Stalled(f"{self.name} has not answered within {timeout_s:g} s: is another fastenough using it?")
        if self._gone:
            raise BoardGone(_GONE)

    def _launch(self, argv: Sequence[str], input: bytes, scratch: str) -> GuestProcess:
        number = next(self._numbers)
        process = GuestProcess(self, number, argv[0])
        self._processes[number] = process
        for begin in range(0, len(input), _CHUNK):
            self.send(number, _Kind.INPUT, input[begin:begin + _CHUNK])
        words = [word.encode() for word in (scratch, *argv)]
        self.send(number, _Kind.START, b"".join(word + b"\0" for word in words))
        if self._gone:
            process.end(None)
        return process

    def _receive(self) -> None:
        try:
            with self._connection.makefile("rb") as stream:
                while head := stream.read(_FRAME.size):
                    number, kind, length = _FRAME.unpack(head)
                    self._sort(number, kind, stream.read(length))
        except (OSError, ValueError, struct.error):
            pass
        self._gone = True
        self._begun.set()
        for process in list(self._processes.values()):
            process.end(None)

    def _sort(self, number: int, kind: int, content: bytes) -> None:
        if kind == _Kind.RESET:
            self._begun.set()
        if not self._begun.is_set():
            return
        process = self._processes.get(number)
        if process is None:
            return
        if kind == _Kind.EXITED:
            del self._processes[number]
        process.take(kind, content)


def connect_guest(path: Path, name: str) -> GuestLink:
    """The guest whose agent is on that socket; raises FastenoughError when it does not answer."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(path))
    except OSError as error:
        connection.close()
        raise BoardGone(_GONE) from error
    return GuestLink(connection, name)


def _os_error(done: Completed, path: str) -> OSError:
    """The OSError behind a tool's complaint, which ends in the system's own words."""
    said = done.stderr.decode(errors="replace").strip()
    number = next((number for number in errno.errorcode if said.endswith(os.strerror(number))), errno.EIO)
    return OSError(number, os.strerror(number), path)
