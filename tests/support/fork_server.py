# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands of fastenough, forked from a process that has imported what earlier commands needed.

To import its modules takes a command up to a second of CPU, and tests call thousands of commands.  A forked command has
its own arguments, directory, environment, output and exit.  It shares with its server what a process has from its start
(``can_fork``): the effect of variables such as ``PYTHONUTF8``, the umask, limits and scheduling, and also its command
line in /proc.  It ends without taking its modules down, so errors that occur only then are not seen.

Run as a script with the number of a socket, this file is the server.  It takes one request at a time and ends with the
process that started it.  It is no child of that process: tests count their children.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

_MOST_BYTES = 1 << 17
_INTERPRETER = re.compile(r"PYTHON|LC_|LANG|TZ$|LD_|MALLOC_|O(PENBLAS|MP)_")


def _start_of(environment: Mapping[str, str]) -> tuple[object, ...]:
    """What a process has from its start: the variables that an interpreter or a library reads, and what it inherits."""
    read = {name: value for name, value in environment.items() if _INTERPRETER.match(name)}
    umask = re.search(r"^Umask:.*", Path("/proc/self/status").read_text(), re.MULTILINE)
    limits = Path("/proc/self/limits").read_text()
    scheduling = os.sched_getaffinity(0), os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0)
    return read, umask and umask[0], limits, scheduling


class ForkServer:
    """A process that forks commands; started in ``environment``."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._start = _start_of(environment)
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            subprocess.run(
                [sys.executable, "-P", __file__, str(theirs.fileno())],
                env=environment,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                check=True,
            )

    def close(self) -> None:
        """End the server, after its command."""
        self._control.close()

    def can_fork(self, environment: Mapping[str, str]) -> bool:
        """Whether a forked command would behave as one that is started now in this environment."""
        return _start_of(environment) == self._start

    def run(
        self, arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], timeout_s: float
    ) -> subprocess.CompletedProcess[bytes]:
        """Run one command; raises subprocess.TimeoutExpired, after which the server cannot be used any more."""
        files, written = zip(*(os.pipe() for _ in range(2)), strict=True)
        request = json.dumps([list(arguments), str(cwd), dict(environment)]).encode()
        try:
            socket.send_fds(self._control, [request], written)
        finally:
            for file in written:
                os.close(file)
        pid = self._number(None)
        pool = ThreadPoolExecutor()
        outputs = [pool.submit(_read, file) for file in files]
        pool.shutdown(wait=False)
        try:
            status = self._number(timeout_s)
        except BaseException as error:
            os.kill(pid, signal.SIGKILL)
            if isinstance(error, TimeoutError):
                raise subprocess.TimeoutExpired(["fastenough", *arguments], timeout_s) from None
            raise
        stdout, stderr = (output.result() for output in outputs)
        return subprocess.CompletedProcess(["fastenough", *arguments], status, stdout, stderr)

    def _number(self, timeout_s: float | None) -> int:
        self._control.settimeout(timeout_s)
        return int(self._control.recv(_MOST_BYTES))


def _read(file: int) -> bytes:
    with open(file, "rb") as stream:
        return stream.read()


def _report(file: int, known: set[str]) -> None:
    """Write the names of the modules that this command imported, in the order of their imports, as far as they fit."""
    os.set_blocking(file, False)  # the server waits for the end of this process
    os.write(file, " ".join(name for name in sys.modules if name not in known).encode())


def _reported(file: int) -> list[str]:
    """The names in the report of a command that has ended; none where a signal ended it."""
    os.set_blocking(file, False)  # processes that it left behind may hold the other end
    try:
        return os.read(file, _MOST_BYTES).decode().split()
    except BlockingIOError:
        return []
    finally:
        os.close(file)


def _import(names: Sequence[str]) -> None:
    for name in names:
        with contextlib.suppress(Exception):
            import_module(name)
    gc.freeze()  # a forked process does not copy what its garbage collector leaves alone


def _open_streams() -> None:
    """Open the standard streams anew: Python looks only then whether what they lead to can be positioned."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        former = getattr(sys, name)
        encoding, errors, lines = former.encoding, former.errors, former.line_buffering
        binary = open(number, former.buffer.mode, closefd=False)  # noqa: SIM115 - open until the command ends
        setattr(sys, name, io.TextIOWrapper(binary, encoding, errors, line_buffering=lines))


def _requests(control: socket.socket) -> Iterator[tuple[bytes, list[int]]]:
    """Requests with their two output files, until the tests have ended."""
    while True:
        request, files, _, _ = socket.recv_fds(control, _MOST_BYTES, 2)
        if not request:
            return
        yield request, files


def _next_command(control: socket.socket) -> Any:
    """Fork a command for each request; returns its request in a command's process, None in the server at the end."""
    for request, files in _requests(control):
        report, written = os.pipe()
        pid = os.fork()
        if pid == 0:
            for number, file in enumerate(files, 1):
                os.dup2(file, number)
            os.closerange(3, written)
            control.detach()
            atexit.register(_report, written, set(sys.modules))
            return json.loads(request)
        for file in (*files, written):
            os.close(file)
        control.send(str(pid).encode())
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        control.send(str(status).encode())
        _import(_reported(report))
    return None


def _end(code: object) -> NoReturn:
    """End as ``sys.exit(code)``, without taking down what was frozen, of which extension modules would complain."""
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]  # as multiprocessing ends the processes that it forks
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit((code or 0) & 0xFF)


def _main(control: socket.socket) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the tests, and with them the server
    command = None
    with contextlib.suppress(ConnectionError):  # from tests that ended without an answer
        command = _next_command(control)
    if command is None:
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    arguments, cwd, environment = command
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    _open_streams()
    main = import_module("fastenough.__main__")
    sys.argv[:] = [str(main.__file__), *arguments]
    try:
        main.main()
    except SystemExit as error:
        _end(error.code)
    _end(None)


if __name__ == "__main__" and not os.fork():
    _main(socket.socket(fileno=int(sys.argv[1])))
