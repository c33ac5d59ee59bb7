# SPDX-License-Identifier: GPL-2.0-or-later
"""Links to boards: the only access of the bench to a machine.  Boards (fastenough/board) open them."""

from __future__ import annotations

import sysconfig
from pathlib import Path

from fastenough.link.base import BoardGone, Completed, Link, Process, Stalled, read_matching
from fastenough.link.fake import FakeLink
from fastenough.link.local import LocalLink
from fastenough.model import NotApplicable

__all__ = [
    "INJECTOR",
    "MONITOR",
    "BoardGone",
    "Completed",
    "FakeLink",
    "Link",
    "LocalLink",
    "Process",
    "Stalled",
    "find_probe",
    "find_program",
    "read_matching",
]

PROBE = "fastenough-probe"
MONITOR = "fastenough-monitor"
INJECTOR = "fastenough-inject"
_BUILD = {
    PROBE: ("probe", "build it: meson setup build && ninja -C build"),
    MONITOR: ("monitor", "build it: make monitor (which needs clang, libbpf-dev and bpftool)"),
    INJECTOR: ("monitor/inject", "build it: make monitor (which needs clang, libbpf-dev and bpftool)"),
}
"""Programs for boards: the folder of target/ in which each is built, and how to build it."""


def find_probe(link: Link | None = None) -> str:
    """Return the path of the probe on the board; raise NotApplicable if it is not installed."""
    return find_program(PROBE, link or LocalLink())


def find_program(name: str, board: Link) -> str:
    """Return the path of a program on the board; raise NotApplicable if it is not installed."""
    folder, advice = _BUILD[name]
    checkout = Path(__file__).resolve().parents[2]
    candidates = [Path(sysconfig.get_path("scripts")) / name, checkout / "build" / "target" / folder / name]
    if board.name == "local":
        for candidate in candidates:
            if candidate.is_file():
                return str(candidate)
    path = board.which(name)
    if path is None:
        raise NotApplicable(f"{name} is not installed; {advice}")
    return path
