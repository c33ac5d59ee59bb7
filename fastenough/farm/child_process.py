# SPDX-License-Identifier: GPL-2.0-or-later
"""Processes of a farm: they can import this package, and end when their parent ends."""

from __future__ import annotations

import ctypes
import os
import signal
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def end_with_parent() -> None:
    """Let the kernel kill this process when its parent process ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def python_path() -> str:
    """PYTHONPATH of a process that imports this package, wherever it is installed."""
    paths = (str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH"))
    return os.pathsep.join(dict.fromkeys(filter(None, paths)))
