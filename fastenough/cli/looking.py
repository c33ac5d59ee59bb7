# SPDX-License-Identifier: GPL-2.0-or-later
"""Access to a board without measuring on it."""

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
def accessed_board(board: str, configuration: str = AS_BOOTED) -> Iterator[tuple[Link, str]]:
    """A link to the board, and why sudo is not used on it, or an empty text.

    This machine needs no probe for that.
    """
    if board == LOCAL:
        yield _own_machine()
        return
    with open_board(board).boot(configuration) as booted:
        yield booted.link, ""


def _own_machine() -> tuple[Link, str]:
    """Through sudo if runs will use sudo; the text says why sudo is refused."""
    if os.geteuid() == 0:
        return LocalLink(), ""
    try:
        return (SudoLink() if may_sudo() else LocalLink()), ""
    except Untrusted as reason:
        return LocalLink(), str(reason)
