# SPDX-License-Identifier: GPL-2.0-or-later
"""Links to boards: nothing else in the bench touches a machine.  Boards open them (fastenough/board)."""

from __future__ import annotations

import sysconfig
from pathlib import Path

from fastenough.link.base import BoardGone, Completed, Link, Process, Stalled
from fastenough.link.bulk import read_matching
from fastenough.link.fake import FakeLink
from fastenough.link.local import LocalLink
from fastenough.model import NotApplicable

__all__ = ["BoardGone", "Completed", "FakeLink", "Link", "LocalLink", "Process", "Stalled", "find_probe",
           "read_matching"]

PROBE = "fastenough-probe"


def find_probe(link: Link | None = None) -> str:
    """Where the probe lies on the board: brought by its link, beside the program, built in a checkout, in PATH."""
    checkout = Path(__file__).resolve().parents[2]
    places = [Path(sysconfig.get_path("scripts")) / PROBE, checkout / "build" / "target" / "probe" / PROBE]
    board = link or LocalLink()
    if board.name == "local":
        for place in places:
            if place.is_file():
                return str(place)
    found = board.which(PROBE)
    if found is None:
        raise NotApplicable(f"{PROBE} is not there; build it: meson setup build && ninja -C build")
    return found
