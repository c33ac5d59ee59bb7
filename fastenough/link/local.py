# SPDX-License-Identifier: GPL-2.0-or-later
"""The bench's own machine, with the user's privileges or through sudo.

With sudo, root measures and makes settings; all else is the user's: the bench stays the user's process, so that store,
journal and report belong to the user, and root writes into no folder of theirs.  Root runs Python in isolated mode with
the guard's file, and below it the command.
"""

from __future__ import annotations

import contextlib
import errno
import glob as globbing
import math
import os
import secrets
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from fastenough.files import require_trusted
from fastenough.link import guard, leftovers
from fastenough.link.base import (
    MOST_LINE,
    MOST_OUTPUT,
    Completed,
    Flood,
    Link,
    Patience,
    Process,
    Stalled,
    split_lines,
)
from fastenough.model import FastenoughError

_STOP_MARGIN_S = 30.0
"""How long a killed tree may stay in the kernel (a sync in flight) before it is an error."""
_SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin"
"""Folders of servers such as sshd, which Debian omits from the PATH of an ordinary user, who may run them."""
_CPUS = ",".join(map(str, sorted(os.sched_getaffinity(0))))
"""CPUs that this process was started with; its children may use them even if it is bound to others (housekeeping)."""
_LOOK_S = 1.0
"""Interval of the checks whether sudo was stopped."""


class LocalProcess:
    """A command under its guard, which ends the tree when the bench dies (``guard.py``).

    ``through``: a command such as sudo that starts the guard; its standard input is then the lifeline.
    """

    def __init__(
        self, argv: Sequence[str], input: bytes, scratch: str | None, limit_s: float, through: Sequence[str] = ()
    ) -> None:
        self.name = Path(argv[0]).name
        self._through = bool(through)
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as this object
        lifeline, self._lifeline = os.pipe()
        with tempfile.TemporaryFile() as stdin:
            stdin.write(input)
            stdin.seek(0)
            held = 0 if through else lifeline
            self._popen = subprocess.Popen(
                [
                    *through,
                    sys.executable,
                    "-I",
                    "-S",
                    guard.__file__,
                    str(held),
                    str(limit_s),
                    scratch or "",
                    _CPUS,
                    *argv,
                ],
                stdin=lifeline if through else stdin,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                bufsize=0,
                pass_fds=() if through else (lifeline,),
                start_new_session=True,
            )
        os.close(lifeline)

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def running(self) -> bool:
        return self._popen.poll() is None

    def lines(self, timeout_s: float | None = None) -> Iterator[bytes]:
        patience = Patience(self.name, timeout_s, MOST_LINE)
        return split_lines(self.chunks(patience), patience)

    def chunks(self, patience: Patience) -> Iterator[bytes]:
        """Yield standard output as it arrives."""
        assert self._popen.stdout is not None
        stream = self._popen.stdout.fileno()
        poller = select.poll()
        poller.register(stream, select.POLLIN | select.POLLHUP)
        while True:
            if not self._ready(poller, patience.left_s):
                raise patience.stalled()
            chunk = os.read(stream, 1 << 20)
            if not chunk:
                return
            patience.take(len(chunk))
            self._require_few_errors()
            yield chunk

    def _require_few_errors(self) -> None:
        """Raise Flood if standard error exceeds its limit."""
        if os.fstat(self._stderr.fileno()).st_size > MOST_OUTPUT:
            raise Flood(f"{self.name} wrote more than {MOST_OUTPUT >> 20} MB to standard error")

    def signal(self, number: int) -> None:
        """Send a signal through the lifeline; it reaches the guard even if sudo was killed."""
        if self._lifeline >= 0:
            with contextlib.suppress(BrokenPipeError):
                os.write(self._lifeline, bytes([number]))

    def wait(self, timeout_s: float | None = None) -> int:
        try:
            status = self._wait_through(timeout_s) if self._through else self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired as error:
            raise Stalled(f"{self.name} has not ended after {timeout_s:g} s") from error
        self._close()
        if status < 0 and self._through:
            self._drain()
        elif status < 0:
            leftovers.clear(self._popen.pid)
        return status if status >= 0 else 128 - status

    def _continue(self) -> None:
        """Continue a stopped sudo: it stops when the guard is stopped, and then holds back the output."""
        with contextlib.suppress(OSError):
            if self._through and Path(f"/proc/{self._popen.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T":
                self._popen.send_signal(signal.SIGCONT)

    def _ready(self, poller: select.poll, timeout_s: float | None) -> bool:
        """Return whether data or the end can be read within the time."""
        deadline = time.monotonic() + (math.inf if timeout_s is None else timeout_s)
        while True:
            left_s = deadline - time.monotonic()
            if poller.poll(max(0.0, min(_LOOK_S, left_s)) * 1000):
                return True
            if left_s <= _LOOK_S:
                return False
            self._continue()

    def _wait_through(self, timeout_s: float | None) -> int:
        deadline = time.monotonic() + (math.inf if timeout_s is None else timeout_s)
        while True:
            self._continue()
            try:
                return self._popen.wait(max(0.0, min(_LOOK_S, deadline - time.monotonic())))
            except subprocess.TimeoutExpired:
                if time.monotonic() >= deadline:
                    raise

    def _drain(self) -> None:
        """Wait until the tree has closed its output: sudo was killed, while the guard continues."""
        assert self._popen.stdout is not None
        stream = self._popen.stdout.fileno()
        deadline = time.monotonic() + guard.GRACE_S + _STOP_MARGIN_S
        while (left_s := deadline - time.monotonic()) > 0:
            if select.select([stream], [], [], left_s)[0] and not os.read(stream, 1 << 20):
                return
        raise Stalled(f"{self.name} has not ended, though its guard was killed")

    def stop(self) -> int:
        self.signal(signal.SIGTERM)
        return self.wait(guard.GRACE_S + _STOP_MARGIN_S)

    def stderr(self) -> bytes:
        return os.pread(self._stderr.fileno(), 1 << 20, 0)

    def _close(self) -> None:
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1


class LocalLink:
    """Link to the bench's own machine."""

    name = "local"
    near = True
    own_directory = None

    @property
    def raised(self) -> Link:
        return self

    def run(self, argv: Sequence[str], timeout_s: float = 10.0, input: bytes = b"") -> Completed:
        process = self._start_process(argv, input, None, 0.0)
        patience = Patience(process.name, timeout_s, MOST_OUTPUT)
        try:
            stdout = b"".join(process.chunks(patience))
            status = process.wait(max(0.1, patience.left_s or 0.0))
        except BaseException:
            process.stop()
            raise
        return Completed(status, stdout, process.stderr())

    def start(
        self, argv: Sequence[str], *, input: bytes = b"", scratch: str | None = None, limit_s: float = 0.0
    ) -> Process:
        return self._start_process(argv, input, scratch, limit_s)

    def _start_process(self, argv: Sequence[str], input: bytes, scratch: str | None, limit_s: float) -> LocalProcess:
        if self.which(argv[0]) is None:
            raise FileNotFoundError(2, "no such command", argv[0])
        if scratch is not None:
            leftovers.clear()
        return LocalProcess(argv, input, scratch, limit_s)

    def read(self, path: str) -> bytes:
        return Path(path).read_bytes()

    def write(self, path: str, content: bytes) -> None:
        file = os.open(path, os.O_WRONLY | os.O_CLOEXEC | (0 if Path(path).exists() else os.O_CREAT), 0o644)
        try:
            if os.write(file, content) != len(content):
                raise FastenoughError(f"{path}: only part of the value was written")
        finally:
            os.close(file)

    def exists(self, path: str) -> bool:
        return Path(path).exists()

    def glob(self, pattern: str) -> list[str]:
        return sorted(globbing.glob(pattern))  # noqa: PTH207 - several times as fast as Path.glob

    def scratch_name(self) -> str:
        return f"{leftovers.scratch_parent()}/fastenough-{secrets.token_hex(6)}"

    def which(self, tool: str) -> str | None:
        return shutil.which(tool) or shutil.which(tool, path=_SYSTEM_PATH)


_SUDO = ("sudo", "-n", "--")
_TIMEOUT_S = 10.0
_WRITE = 'printf %s "$2" >"$1"'


class _Root(LocalLink):
    """Commands and writes with root privileges, and reads of what only root may read, such as debugfs."""

    def _start_process(self, argv: Sequence[str], input: bytes, scratch: str | None, limit_s: float) -> LocalProcess:
        program = self.which(argv[0])
        if program is None:
            raise FileNotFoundError(2, "no such command", argv[0])
        if input:
            raise ValueError("standard input is taken by the lifeline")
        for path in (sys.executable, f"{sys.prefix}/pyvenv.cfg", guard.__file__, program):
            require_trusted(path)
        return LocalProcess([program, *argv[1:]], b"", scratch, limit_s, through=_SUDO)

    def read(self, path: str) -> bytes:
        try:
            return super().read(path)
        except PermissionError:
            if not self.exists(path):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from None
            return self._run_on(path, ["cat", "--", path]).stdout

    def exists(self, path: str) -> bool:
        try:
            Path(path).stat()
        except PermissionError:
            return self.run(["test", "-e", path], _TIMEOUT_S).status == 0
        except OSError:
            return False
        return True

    def write(self, path: str, content: bytes) -> None:
        self._run_on(path, ["sh", "-c", _WRITE, "sh", path, content.decode()])

    def _run_on(self, path: str, argv: Sequence[str]) -> Completed:
        """Run a command on a file; raise OSError with its last line if it fails."""
        done = self.run(argv, _TIMEOUT_S)
        if done.status:
            lines = done.stderr.decode(errors="replace").strip().splitlines() or ["refused"]
            raise OSError(errno.EPERM, lines[-1].removeprefix(f"{argv[0]}: "), path)
        return done


class SudoLink(LocalLink):
    """The local board of a user whom sudo does not ask for a password."""

    @property
    def raised(self) -> Link:
        return _Root()


def may_sudo() -> bool:
    """Return whether sudo runs commands as root without asking for a password.

    Raises Untrusted if it does, but another user could have changed a file that root would run.
    """
    if shutil.which(_SUDO[0]) is None:
        return False
    try:
        return all(
            link.run(command, _TIMEOUT_S).status == 0
            for link, command in ((LocalLink(), [*_SUDO, "true"]), (_Root(), ["true"]))
        )
    except Stalled:
        return False
