# SPDX-License-Identifier: GPL-2.0-or-later
"""Bringing the firmware onto an instrument: a file for each family, and its line here."""

from fastenough.gauge.flash import avr
from fastenough.gauge.flash.board import Board, find_firmware

BOARDS: dict[str, Board] = {
    **avr.BOARDS,
}
"""The boards that can be an instrument, by the name a person types."""

__all__ = ["BOARDS", "Board", "find_firmware"]
