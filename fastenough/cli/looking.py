# SPDX-License-Identifier: GPL-2.0-or-later
"""Looking at a board without measuring on it: this machine also where there is no probe."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from fastenough.board import AS_BOOTED, open_board
from fastenough.cli.privileges import LOCAL
from fastenough.files import Untrusted
from fastenough.link import Link, LocalLink
from fastenough.link.sudo import SudoLink, may_sudo


@contextmanager
def looked_at(board: str, configuration: str = AS_BOOTED) -> Iterator[tuple[Link, str]]:
    """The board, and why sudo is not used there where it could be.

    This machine is looked at also where there is no probe, without which it could not be booted to be measured.
    """
    if board == LOCAL:
        yield _own_machine()
        return
    with open_board(board).boot(configuration) as booted:
        yield booted.link, ""


def _own_machine() -> tuple[Link, str]:
    """Through sudo where it will be measured so; and why not, where root is not to run our files."""
    if os.geteuid() == 0:
        return LocalLink(), ""
    try:
        return (SudoLink() if may_sudo() else LocalLink()), ""
    except Untrusted as reason:
        return LocalLink(), str(reason)
