# SPDX-License-Identifier: GPL-2.0-or-later
"""What guards leave that were killed themselves: processes of their trees, and scratch directories."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
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
    """A directory on a disk, as a rule, rather than in memory."""
    return Path("/var/tmp") if os.access("/var/tmp", os.W_OK) else Path(tempfile.gettempdir())


def _is_ours(process: Path) -> bool:
    """Of this user and in this PID namespace; the numbers of another one mean nothing here."""
    status = (process / "status").read_text(errors="replace")
    users = next(line.split()[1:] for line in status.splitlines() if line.startswith("Uid:"))
    same_namespace = (process / "ns" / "pid").readlink() == Path("/proc/self/ns/pid").readlink()
    return set(users) == {str(os.getuid())} and same_namespace


def _is_left(process: Path, guard: int | None) -> bool:
    """Whether its guard is dead: by the mark in its environment, or by the session of ``guard``, known to be dead."""
    if not _is_ours(process):
        return False
    pid = int(process.name)
    if guard is not None and os.getsid(pid) == guard:
        return True
    mark = _MARK.search((process / "environ").read_bytes())
    return mark is not None and start_ticks(int(mark[1])) != int(mark[2])


def _left(guard: int | None) -> Iterator[int]:
    """A pidfd of each process that a dead guard left; looked at after opening it, so that it is no later one."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, StopIteration):
            file = os.pidfd_open(int(process.name))
            try:
                if _is_left(process, guard):
                    yield file
            finally:
                os.close(file)


def _end_processes(guard: int | None) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        found = 0
        for file in _left(guard):
            signal.pidfd_send_signal(file, signal.SIGKILL)
            found += 1
        if not found:
            return
        time.sleep(_RETRY_S)


def _remove_scratch(folder: Path) -> None:
    """Remove it unless its guard lives, which then holds its lock."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(file).st_uid == os.geteuid() and os.path.samestat(os.fstat(file), folder.lstat()):
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(file)


def clear(guard: int | None = None) -> None:
    """End and remove what is left of guards that are dead, ``guard`` among them."""
    _end_processes(guard)
    for folder in scratch_parent().glob("fastenough-*"):
        if _SCRATCH.fullmatch(folder.name):
            with contextlib.suppress(OSError):
                _remove_scratch(folder)
