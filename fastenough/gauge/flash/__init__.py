# SPDX-License-Identifier: GPL-2.0-or-later
"""Bringing the firmware onto an instrument: a file for each family, and its line here."""

from fastenough.gauge.flash.board import Board, find_firmware
from fastenough.registry import listed

BOARDS: dict[str, Board] = {
    name: board
    for family in listed(
        __name__,
        "BOARDS",
        (
            "avr",
            "rp2040",
        ),
    )
    for name, board in family.items()
}
"""The boards that can be an instrument, by the name a person types."""

__all__ = ["BOARDS", "Board", "find_firmware"]
