# SPDX-License-Identifier: GPL-2.0-or-later
"""Links to boards: nothing else in the bench touches a machine.  Boards open them (fastenough/board)."""

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
"""Programs for boards: the folder of target/ where each is built, and how."""


def find_probe(link: Link | None = None) -> str:
    """Where the probe lies on the board; raises NotApplicable."""
    return find_program(PROBE, link or LocalLink())


def find_program(name: str, board: Link) -> str:
    """Where a program lies on the board: brought by its link, beside the bench, built in a checkout, in PATH."""
    folder, advice = _BUILD[name]
    checkout = Path(__file__).resolve().parents[2]
    places = [Path(sysconfig.get_path("scripts")) / name, checkout / "build" / "target" / folder / name]
    if board.name == "local":
        for place in places:
            if place.is_file():
                return str(place)
    found = board.which(name)
    if found is None:
        raise NotApplicable(f"{name} is not installed; {advice}")
    return found
