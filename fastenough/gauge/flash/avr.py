# SPDX-License-Identifier: GPL-2.0-or-later
"""AVR boards, with avrdude."""

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
class AvrBoard:
    """How avrdude flashes a board: microcontroller, avrdude's part and programmer, baud rate."""

    mcu: str
    part: str
    programmer: str
    baud: int
    touch: bool = False
    """Its boot loader starts when the port is opened at 1200 baud and closed."""
    build_needs: str = "gcc-avr and avr-libc"

    @property
    def image(self) -> str:
        return f"avr/gauge-{self.mcu}.hex"

    def flash(self, port: str, image: Path, dry_run: bool = False) -> None:
        """Write the image and read it back; raises BadInput, NotApplicable or FastenoughError with the reason."""
        if shutil.which("avrdude") is None:
            raise NotApplicable("avrdude is not installed; run: sudo apt install avrdude")
        if not Path(port).exists():
            raise BadInput(f"{port}: no such port; plug in the gauge, or name its port (ls /dev/ttyACM* /dev/ttyUSB*)")
        if self.touch:
            _touch(port)
        try:
            process = subprocess.run(
                self._avrdude(port, image, dry_run), capture_output=True, text=True, timeout=_FLASH_S, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise FastenoughError(f"{port}: avrdude did not finish; check the kind of board") from error
        if process.returncode:
            raise FastenoughError(f"{port}: flashing failed: {_reason(process)}; check the port and the kind of board")

    def _avrdude(self, port: str, image: Path, dry_run: bool) -> list[str]:
        return [
            "avrdude",
            "-q",
            "-p",
            self.part,
            "-c",
            self.programmer,
            "-P",
            port,
            "-b",
            str(self.baud),
            "-D",
            *(["-n"] if dry_run else []),
            "-U",
            f"flash:w:{image}:i",
        ]


BOARDS = {
    "uno": AvrBoard("atmega328p", "m328p", "arduino", 115_200),
    "nano": AvrBoard("atmega328p", "m328p", "arduino", 115_200),
    "nano-old": AvrBoard("atmega328p", "m328p", "arduino", 57_600),
    "mega2560": AvrBoard("atmega2560", "m2560", "wiring", 115_200),
    "leonardo": AvrBoard("atmega32u4", "m32u4", "avr109", 57_600, touch=True),
    "micro": AvrBoard("atmega32u4", "m32u4", "avr109", 57_600, touch=True),
}


def _touch(port: str) -> None:
    try:
        serial.Serial(port, _TOUCH_BAUD).close()
    except (serial.SerialException, OSError) as error:
        raise BadInput(f"{port}: cannot be opened: {error}") from error
    time.sleep(2.0)


def _reason(process: subprocess.CompletedProcess[str]) -> str:
    errors = [line.strip() for line in process.stderr.splitlines() if "error" in line.lower() or "not in sync" in line]
    return errors[0].removeprefix("avrdude: ") if errors else f"status {process.returncode}"
