# SPDX-License-Identifier: GPL-2.0-or-later
"""Boards with an RP2040: in the boot loader they are a drive, which flashes a file that is copied there."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from fastenough.model import BadInput, FastenoughError

_INFO = "INFO_UF2.TXT"
_RESTART_S = 20.0
_STEP_S = 0.1


@dataclass(frozen=True)
class DriveBoard:
    """A board that checks each block of the file and restarts with the new firmware after the last one."""

    image: str
    board_id: str
    """The Board-ID of its drive."""
    build_needs: str = "gcc-arm-none-eabi and libnewlib-arm-none-eabi"

    def flash(self, port: str, image: Path, dry_run: bool = False) -> None:
        """Copy the image to the drive and wait until the drive disappears; the drive cannot be read back."""
        drive = Path(port)
        try:
            info = (drive / _INFO).read_text(errors="replace")
            device = drive.stat().st_dev
        except OSError as error:
            raise BadInput(
                f"{port}: not the drive of a board in its boot loader; hold the button BOOTSEL while "
                f"you plug it in, and name the folder where the drive {self.board_id} is mounted"
            ) from error
        if f"Board-ID: {self.board_id}" not in info.splitlines():
            raise BadInput(f"{port}: the drive of another board; expected: {self.board_id}")
        if not dry_run:
            self._write(drive, device, image)

    def _write(self, drive: Path, device: int, image: Path) -> None:
        try:
            with (drive / image.name).open("wb") as file:
                file.write(image.read_bytes())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:  # a board with the complete file may restart before it is closed
            if _is_there(drive, device):
                raise FastenoughError(f"{drive}: cannot be written: {error.strerror}") from error
        until = time.monotonic() + _RESTART_S
        while _is_there(drive, device):
            if time.monotonic() > until:
                raise FastenoughError(
                    f"{drive}: the board did not restart, so {image.name} was not flashed; unplug it and try again"
                )
            time.sleep(_STEP_S)


def _is_there(drive: Path, device: int) -> bool:
    """True while the drive exists; after its removal cached files may remain visible, but not its device."""
    try:
        mounted = (drive / _INFO).exists()
    except OSError:
        return False
    return mounted and (os.major(device) == 0 or Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").exists())


BOARDS = {
    "pico": DriveBoard("rp2040/gauge-rp2040.uf2", "RPI-RP2"),
    "pico-pins": DriveBoard("rp2040/gauge-rp2040-pins.uf2", "RPI-RP2"),
}
"""By the serial line of the firmware: the USB plug, or two pins with an adapter."""
