# SPDX-License-Identifier: GPL-2.0-or-later
"""Bringing the firmware onto an instrument, with avrdude."""

from __future__ import annotations

import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import serial

from fastenough.model import BadInput, FastenoughError, NotApplicable

_TOUCH_BAUD = 1200
_FLASH_S = 120.0


@dataclass(frozen=True)
class Board:
    """How a board takes firmware: its microcontroller, avrdude's names and speed."""

    mcu: str
    part: str
    programmer: str
    baud: int
    touch: bool = False
    """Its boot loader starts when the port is opened at 1200 baud and closed."""


BOARDS = {
    "uno": Board("atmega328p", "m328p", "arduino", 115_200),
    "nano": Board("atmega328p", "m328p", "arduino", 115_200),
    "nano-old": Board("atmega328p", "m328p", "arduino", 57_600),
    "mega2560": Board("atmega2560", "m2560", "wiring", 115_200),
    "leonardo": Board("atmega32u4", "m32u4", "avr109", 57_600, touch=True),
    "micro": Board("atmega32u4", "m32u4", "avr109", 57_600, touch=True),
}


def find_firmware(mcu: str) -> Path:
    """The image for a microcontroller: installed, or in a checkout's build; raises NotApplicable."""
    package = Path(__file__).resolve().parents[1]
    name = f"gauge-{mcu}.hex"
    for place in (package / "firmware" / name, package.parent / "build" / "gauge" / "avr" / name):
        if place.is_file():
            return place
    raise NotApplicable(f"{name} is not built; install gcc-avr and avr-libc, then: ninja -C build gauge")


def avrdude_command(board: Board, port: str, image: Path, dry_run: bool) -> list[str]:
    """The command that flashes; a dry run talks to the board and writes nothing."""
    return ["avrdude", "-q", "-p", board.part, "-c", board.programmer, "-P", port, "-b", str(board.baud), "-D",
            *(["-n"] if dry_run else []), "-U", f"flash:w:{image}:i"]


def _touch(port: str) -> None:
    try:
        serial.Serial(port, _TOUCH_BAUD).close()
    except (serial.SerialException, OSError) as error:
        raise BadInput(f"{port}: cannot be opened: {error}") from error
    time.sleep(2.0)


def flash(board: Board, port: str, image: Path, dry_run: bool = False) -> None:
    """Writes the image and reads it back; raises BadInput, NotApplicable or FastenoughError with avrdude's reason."""
    if shutil.which("avrdude") is None:
        raise NotApplicable("avrdude is not installed; run: sudo apt install avrdude")
    if not Path(port).exists():
        raise BadInput(f"{port}: no such port; plug the gauge in, or name its port (ls /dev/ttyACM* /dev/ttyUSB*)")
    if board.touch:
        _touch(port)
    try:
        done = subprocess.run(avrdude_command(board, port, image, dry_run), capture_output=True, text=True,
                              timeout=_FLASH_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise FastenoughError(f"{port}: avrdude did not come to an end; is it the right board?") from error
    if done.returncode:
        said = [line.strip() for line in done.stderr.splitlines() if "error" in line.lower() or "not in sync" in line]
        reason = said[0].removeprefix("avrdude: ") if said else f"status {done.returncode}"
        raise FastenoughError(f"{port}: flashing failed: {reason}; check the port and the kind of board")
