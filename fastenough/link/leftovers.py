# SPDX-License-Identifier: GPL-2.0-or-later
"""Cleanup after killed guards: processes of their trees, and scratch directories."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from fastenough.link.guard import TREE, start_ticks

_MARK = re.compile(rf"(?:\A|\0){TREE}=(\d{{1,10}}):(\d{{1,20}})(?:\0|\Z)".encode())
_SCRATCH = re.compile(r"fastenough-[0-9a-f]{12}")
_PATIENCE_S = 10.0
_RETRY_S = 0.02


def scratch_parent() -> Path:
    """Return the parent of scratch directories, usually on a disk rather than in memory."""
    return Path("/var/tmp") if os.access("/var/tmp", os.W_OK) else Path(tempfile.gettempdir())


def _is_ours(process: Path) -> bool:
    status = (process / "status").read_text(errors="replace")
    users = next(line.split()[1:] for line in status.splitlines() if line.startswith("Uid:"))
    return set(users) == {str(os.getuid())}


def _is_marked(process: Path) -> bool | None:
    """Return whether its environment has the mark of a dead guard; None during its exec, which shows no environment.

    Process ids of another PID namespace are not comparable: the result is then False.
    """
    if (process / "ns" / "pid").readlink() != Path("/proc/self/ns/pid").readlink():
        return False
    environment = (process / "environ").read_bytes()
    if not environment and not (process / "cmdline").read_bytes():
        (process / "exe").readlink()  # raises OSError for a task without a program: a kernel thread, or an ended one
        return None
    mark = _MARK.search(environment)
    return mark is not None and start_ticks(int(mark[1])) != int(mark[2])


def _is_left(process: Path, guard: int | None) -> bool | None:
    """Return whether its guard is dead: by the session of ``guard``, which is known to be dead, or by the mark.

    The first process of a namespace that ``guard`` created is in its session, and ends after all others in there.
    """
    if not _is_ours(process):
        return False
    return True if guard is not None and os.getsid(int(process.name)) == guard else _is_marked(process)


def _left(guard: int | None) -> Iterator[tuple[int, bool | None]]:
    """Yield a pidfd of each process that a dead guard left, or may have left.

    The process is checked after opening the pidfd, which excludes a later process of the same id.
    """
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, StopIteration):
            file = os.pidfd_open(int(process.name))
            try:
                if (left := _is_left(process, guard)) is not False:
                    yield file, left
            finally:
                os.close(file)


def _kill_and_poll(file: int, left: bool | None) -> bool:
    """Kill a process that is known to be left; return whether it has ended.

    The first process of a namespace ends with everything in there.
    """
    if left:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(file, signal.SIGKILL)
    poller = select.poll()
    poller.register(file, select.POLLIN)
    return bool(poller.poll(0))


def _end_processes(guard: int | None) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        if sum(not _kill_and_poll(file, left) for file, left in _left(guard)) == 0:
            return
        time.sleep(_RETRY_S)


def _remove_scratch(folder: Path) -> None:
    """Remove the directory unless its guard runs, which then holds the lock."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(file).st_uid == os.geteuid() and os.path.samestat(os.fstat(file), folder.lstat()):
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(file)


def clear(guard: int | None = None) -> None:
    """End the processes and remove the directories of dead guards, including ``guard``."""
    _end_processes(guard)
    for folder in scratch_parent().glob("fastenough-*"):
        if _SCRATCH.fullmatch(folder.name):
            with contextlib.suppress(OSError):
                _remove_scratch(folder)
