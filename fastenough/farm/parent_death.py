# SPDX-License-Identifier: GPL-2.0-or-later
"""Processes that end with whoever started them, however that ends."""

from __future__ import annotations

import ctypes
import signal

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def end_with_parent() -> None:
    """The kernel kills this process when the one that started it has ended."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
