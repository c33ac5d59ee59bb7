# SPDX-License-Identifier: GPL-2.0-or-later
"""Keeps a virtual bench running in the background, and ends it.

A bench has one directory.  Its keeper (``python -m fastenough.link.virtual.keeper``) holds a lock on the file
``keeper`` there, which also says its process id: the lock is free when it has ended, however it ended, and QEMU
ends with it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from fastenough.link.virtual.board import VirtualBoard
from fastenough.link.virtual.guest_link import GuestLink, connect_guest
from fastenough.link.virtual.module import build_module
from fastenough.link.virtual.packages import fetch
from fastenough.link.virtual.probe import build_probe, install
from fastenough.link.virtual.qemu import require_qemu
from fastenough.model import BadInput, FastenoughError, NotApplicable

_ERRORS = {kind.__name__: kind for kind in (FastenoughError, BadInput, NotApplicable)}
_DOWN_TIMEOUT_S = 15.0
_POLL_S = 0.05
_WATCH_S = 0.5


@dataclass(frozen=True)
class BenchState:
    """What runs: written once by the keeper when all of it is up."""

    kernel: str
    release: str
    pid: int
    qemu_pid: int
    boot_s: float
    restored: bool
    directory: str
    gauge: str | None
    """The simulated gauge's serial line; None when there is none, for ``gauge_reason``."""
    gauge_reason: str


def bench_directory() -> Path:
    """Where this user's virtual bench has its sockets and its state."""
    parent = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    return Path(parent) / f"fastenough-bench-{os.getuid()}"


@contextlib.contextmanager
def _held_lock(path: Path) -> Iterator[IO[str]]:
    """The keeper's lock; raises BlockingIOError while another process holds it."""
    with path.open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield lock


def keeper_pid(directory: Path) -> int | None:
    """The process that keeps a bench there, None when none does."""
    path = directory / "keeper"
    if not path.exists():
        return None
    try:
        with _held_lock(path):
            return None
    except BlockingIOError:
        return int(path.read_text() or 0)


def bench_state() -> BenchState | None:
    """What runs, None when nothing does (or it is still on its way up)."""
    directory = bench_directory()
    state = directory / "state.json"
    if keeper_pid(directory) is None or not state.is_file():
        return None
    return BenchState(**json.loads(state.read_text()))


def up(kernel: str, snapshot: bool = True) -> BenchState:
    """Fetch, build, boot and wire; returns when all of it runs, on its own.

    Raises BadInput when one runs already or the kernel is unknown, NotApplicable where a tool is missing, and
    FastenoughError when the guest does not come up; nothing is left running then.
    """
    directory = bench_directory()
    running = keeper_pid(directory)
    if running is not None:
        raise BadInput(f"a virtual bench is running already (process {running}); end it with: fastenough bench down")
    require_qemu()
    build_module(fetch(kernel))
    build_probe()
    _clear(directory)
    keeper = subprocess.Popen(
        [sys.executable, "-m", "fastenough.link.virtual.keeper", str(directory), kernel, str(int(snapshot))],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, text=True)
    assert keeper.stdout is not None
    assert keeper.stderr is not None
    try:
        said, complaint = keeper.stdout.read(), keeper.stderr.read()
    except BaseException:
        keeper.terminate()
        keeper.wait()
        raise
    if not said:
        raise FastenoughError(f"the bench's keeper failed: {(complaint.splitlines() or ['it does not say why'])[-1]}")
    answer = json.loads(said)
    if "error" in answer:
        keeper.wait()
        raise _ERRORS[answer["kind"]](answer["error"])
    return BenchState(**answer)


def down() -> bool:
    """End the bench and remove what it left, also after a crash; False when there was nothing."""
    directory = bench_directory()
    pid = keeper_pid(directory)
    was_there = directory.exists()
    for number in (signal.SIGTERM, signal.SIGKILL):
        if pid is None:
            break
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        pid = _wait_for_end(directory)
    _clear(directory)
    return was_there


def _wait_for_end(directory: Path) -> int | None:
    deadline = time.monotonic() + _DOWN_TIMEOUT_S
    while (pid := keeper_pid(directory)) is not None and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    return pid


def _clear(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)


def open_virtual(which: str) -> GuestLink:
    """The board of the running bench; ``which`` may name the kernel that it must be running."""
    state = bench_state()
    wanted = which or "stock"
    if state is None:
        raise BadInput(f"no virtual bench is running; start one with: fastenough bench up --kernel {wanted}")
    if which and state.kernel != which:
        raise BadInput(f"the virtual bench runs kernel {state.kernel}, not {which}; "
                       f"change it with: fastenough bench down; fastenough bench up --kernel {which}")
    return connect_guest(Path(state.directory) / "agent.sock", f"virtual:{state.kernel}")


def _keep(directory: Path, kernel: str, snapshot: bool) -> None:
    with VirtualBoard(kernel, snapshot=snapshot, directory=directory) as board:
        install(board.link)
        board.link.close()
        gauge, gauge_reason = _wired_gauge(board)
        state = BenchState(kernel, board.kernel.release, os.getpid(), board.qemu.pid, round(board.boot_s, 3),
                           board.was_restored, str(directory), gauge, gauge_reason)
        text = json.dumps(asdict(state))
        (directory / "state.json").write_text(text)
        print(text, flush=True)
        _let_go_of_terminal()
        while board.qemu.is_running:
            time.sleep(_WATCH_S)


def _wired_gauge(board: VirtualBoard) -> tuple[str | None, str]:
    """The gauge's serial line, or why there is none: a board without a gauge is still a board."""
    try:
        return board.wire_gauge().terminal, ""
    except NotApplicable as reason:
        return None, str(reason)


def _let_go_of_terminal() -> None:
    """Whoever waits for the end of our output need not wait for the end of the bench."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    os.close(nowhere)


def main(argv: list[str]) -> int:
    """The keeper itself; its first and only line of output is the state or the error."""
    directory = Path(argv[1])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        directory.mkdir(mode=0o700)
        with _held_lock(directory / "keeper") as lock:
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            _keep(directory, argv[2], argv[3] == "1")
    except (FileExistsError, BlockingIOError):
        print(json.dumps({"kind": "BadInput", "error": "another virtual bench is just starting"}), flush=True)
        return 1
    except FastenoughError as error:
        print(json.dumps({"kind": type(error).__name__, "error": str(error)}), flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
