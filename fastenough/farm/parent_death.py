# SPDX-License-Identifier: GPL-2.0-or-later
"""End a process when its parent ends."""

from __future__ import annotations

import ctypes
import signal

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def end_with_parent() -> None:
    """Let the kernel kill this process when its parent process ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
