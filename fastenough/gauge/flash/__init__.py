# SPDX-License-Identifier: GPL-2.0-or-later
"""Flashing the firmware of instruments: the common interface; each family has a module, listed here."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from fastenough.model import NotApplicable
from fastenough.registry import listed

__all__ = ["BOARDS", "Board", "find_firmware"]


class Board(Protocol):
    """A type of board that can be an instrument."""

    @property
    def image(self) -> str:
        """Path of its firmware below ``gauge/`` of the build, such as ``avr/gauge-atmega328p.hex``."""

    @property
    def build_needs(self) -> str:
        """The packages required to build it, for messages."""

    def flash(self, port: str, image: Path, dry_run: bool = False) -> None:
        """Write the image and read it back; a dry run connects to the board and writes nothing.

        Raises BadInput, NotApplicable or FastenoughError with the reason.
        """


def find_firmware(board: Board) -> Path:
    """The image for a board: installed, or in a checkout's build; raises NotApplicable."""
    package = Path(__file__).resolve().parents[2]
    name = Path(board.image).name
    for place in (package / "firmware" / name, package.parent / "build" / "gauge" / board.image):
        if place.is_file():
            return place
    raise NotApplicable(f"{name} is not built; install {board.build_needs}, then: ninja -C build gauge")


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
"""The boards that can be an instrument, by the name on the command line."""
