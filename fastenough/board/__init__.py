# SPDX-License-Identifier: GPL-2.0-or-later
"""Boards: one file per kind, one line here for each.  A board is a link and a way to boot."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from fastenough.board.base import (
    AS_BOOTED,
    DETERMINISTIC_KERNEL,
    Board,
    Booted,
    Wires,
    configuration_in,
    configuration_of,
    marks_in,
    require_configuration,
    valid_configuration_name,
)
from fastenough.model import BadInput

__all__ = [
    "AS_BOOTED",
    "BOARDS",
    "Board",
    "Booted",
    "Wires",
    "configuration_in",
    "configuration_of",
    "is_deterministic",
    "listed_configuration",
    "marks_in",
    "open_board",
    "require_configuration",
    "valid_configuration_name",
]

BOARDS = {
    "local": "fastenough.board.local:open_board",
    "virtual": "fastenough.board.virtual:open_board",
    "deterministic": "fastenough.board.deterministic:open_board",
    "ssh": "fastenough.board.ssh:open_board",
    "labgrid": "fastenough.board.labgrid:open_board",
}
"""By kind of board, the function that opens it, imported on use; it gets the text after the colon."""

_FORMS = "local, virtual[:KERNEL], deterministic[:KERNEL], ssh://[USER@]HOST[:PORT], labgrid:PLACE"


def is_deterministic(name: str) -> bool:
    """Whether the board of a name is a deterministic one."""
    return name.partition(":")[0] == "deterministic"


def listed_configuration(board: str, configuration: str) -> str:
    """Return the name of a configuration for lists: a deterministic board boots a kernel even as ``as-booted``."""
    if configuration != AS_BOOTED or not is_deterministic(board):
        return configuration
    return board.partition(":")[2] or DETERMINISTIC_KERNEL


def open_board(name: str) -> Board:
    """Return the board of a name such as ``local``, ``virtual:rt`` or ``ssh://user@host:22``; it is not booted yet.

    Raises BadInput for an unknown kind and for a name that the kind does not accept.
    """
    kind, colon, which = name.partition(":")
    if kind not in BOARDS or (colon and not which) or which.startswith("//") != (kind == "ssh"):
        raise BadInput(f"unknown board {name!r}; use one of {_FORMS}")
    module, function = BOARDS[kind].split(":")
    opener: Callable[[str], Board] = getattr(import_module(module), function)
    return opener(which.removeprefix("//"))
