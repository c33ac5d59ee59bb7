# SPDX-License-Identifier: GPL-2.0-or-later
"""What all families of instruments have in common: a kind of board has an image, and a way to take it."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from fastenough.model import NotApplicable


class Board(Protocol):
    """A kind of board that can be an instrument."""

    @property
    def image(self) -> str:
        """Where its firmware lies, below ``gauge/`` of the build: ``avr/gauge-atmega328p.hex``."""

    @property
    def build_needs(self) -> str:
        """The packages that build it, for people."""

    def flash(self, port: str, image: Path, dry_run: bool = False) -> None:
        """Writes the image and reads it back; a dry run talks to the board and writes nothing.

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
