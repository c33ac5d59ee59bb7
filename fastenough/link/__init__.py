# SPDX-License-Identifier: GPL-2.0-or-later
"""Links to boards: one file per kind, one line here for each.  Nothing else in the bench touches a machine."""

from __future__ import annotations

import sysconfig
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from fastenough.link.base import BoardGone, Completed, Link, Process, Stalled
from fastenough.link.bulk import read_matching
from fastenough.link.fake import FakeLink
from fastenough.link.local import LocalLink
from fastenough.link.ssh import SshLink
from fastenough.model import BadInput, NotApplicable

__all__ = ["BoardGone", "Completed", "FakeLink", "Link", "LocalLink", "Process", "Stalled", "find_probe", "open_link",
           "read_matching"]

LINKS = {
    "local": "fastenough.link.local:open_local",
    "virtual": "fastenough.virtual.keeper:open_virtual",
    "ssh": "fastenough.board.ssh:open_link",
}
"""Kind of link to the function that opens it, loaded only when used; it takes what follows the colon."""

PROBE = "fastenough-probe"


def open_link(name: str) -> Link:
    """The board of that name: ``KIND`` or ``KIND:WHICH``; raises BadInput for an unknown kind."""
    kind, _, which = name.partition(":")
    if kind not in LINKS:
        raise BadInput(f"no board is called {name!r}; use one of {', '.join(LINKS)}")
    module, function = LINKS[kind].split(":")
    opener: Callable[[str], Link] = getattr(import_module(module), function)
    return opener(which)


def find_probe(link: Link | None = None) -> str:
    """Where the probe lies on the board: brought by its link, beside the program, built in a checkout, in PATH."""
    checkout = Path(__file__).resolve().parents[2]
    places = [Path(sysconfig.get_path("scripts")) / PROBE, checkout / "build" / "target" / "probe" / PROBE]
    board = link or LocalLink()
    if isinstance(board, SshLink):
        return PROBE
    if board.name == "local":
        for place in places:
            if place.is_file():
                return str(place)
    found = board.which(PROBE)
    if found is None:
        raise NotApplicable(f"{PROBE} is not there; build it: meson setup build && ninja -C build")
    return found
