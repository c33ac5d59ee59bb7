# SPDX-License-Identifier: GPL-2.0-or-later
"""A lock on a file, and the process that holds it, as reported by the kernel.

The locks belong to the process (fcntl): the kernel reports the holder's id, and releases the lock when
the holder ends.  A process must not query the holder of a lock that it holds itself: closing the file releases it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import struct
from collections.abc import Iterator
from pathlib import Path

_FLOCK = struct.Struct("@hhqqi4x")
"""``struct flock`` as the kernel has it: type, whence, start, length, process."""


@contextlib.contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold the lock; raises BlockingIOError if another process holds it, OSError for a link."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def holder(path: Path) -> int | None:
    """The process that holds the lock, None if there is none (or none visible in this namespace)."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        answer = fcntl.fcntl(descriptor, fcntl.F_GETLK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    finally:
        os.close(descriptor)
    kind, _, _, _, pid = _FLOCK.unpack(answer)
    return pid if kind != fcntl.F_UNLCK and pid > 1 else None


def end_holder(path: Path, number: signal.Signals, timeout_s: float) -> bool:
    """Signal the holder, if there is one, and wait for its end; returns whether the lock is free.

    The handle is opened first and the holder queried again, so that it is not that of a process which got the
    same id later.
    """
    pid = holder(path)
    if pid is None:
        return True
    with contextlib.suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        try:
            if holder(path) == pid:
                signal.pidfd_send_signal(handle, number)
                select.select([handle], [], [], timeout_s)
        finally:
            os.close(handle)
    return holder(path) is None
