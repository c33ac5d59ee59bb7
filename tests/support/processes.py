# SPDX-License-Identifier: GPL-2.0-or-later
"""Helpers of tests: finding processes that should be gone, and running a bench that will be killed."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def with_words(*words: str) -> list[int]:
    """Processes whose command line holds all of these words (parts of it, anywhere)."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if all(word in line for word in words):
            found.append(int(path.parent.name))
    return found


def living_with(mark: str) -> list[int]:
    """Processes that have this in their environment, which each got from who started it, and have not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (path / "environ").read_bytes() and not ended(int(path.name)):
                found.append(int(path.name))
        except OSError:
            continue
    return found


def running(command: str) -> list[int]:
    """Processes that have this command line, word by word; none on its way there by fork and exec."""
    words = command.split()
    return [pid for pid in with_words(*words) if _command_line(pid) == words]


def _command_line(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def ended(pid: int) -> bool:
    """Whether it has let go of all that it had, be it reaped or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def eventually(holds: Callable[[], object], timeout_s: float = 60.0) -> bool:
    """Whether something comes to hold within the time: ``holds`` returns a true value.

    The time is for a machine that stands still for seconds.
    """
    deadline = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def recorded(path: Path, intervals: int = 1) -> bool:
    """Whether a recording on its way has so many intervals."""
    try:
        return path.read_bytes().count(b'"type":"interval"') >= intervals
    except FileNotFoundError:
        return False


def start_bench(script: str, *arguments: str) -> subprocess.Popen[str]:
    """A bench in a process of its own, running a piece of Python; it prints what the test waits for."""
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def rights(pid: int) -> list[tuple[int, int, int]]:
    """Of each thread: the capabilities that it may use, those it has in effect, and whether it can get no others."""
    fields = ("CapPrm", "CapEff", "NoNewPrivs")
    said = [
        dict(line.split(":", 1) for line in (task / "status").read_text().splitlines())
        for task in Path(f"/proc/{pid}/task").iterdir()
    ]
    return [(int(one[fields[0]], 16), int(one[fields[1]], 16), int(one[fields[2]])) for one in said]
