# SPDX-License-Identifier: GPL-2.0-or-later
"""The file that an RP2040 takes is what its ROM asks for, and gets there: the drive is a folder that goes like one."""

from __future__ import annotations

import contextlib
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastenough.gauge.flash import BOARDS, rp2040
from fastenough.model import FastenoughError
from tests.support.gauge_simulation import Build, gauge_command
from tests.support.rp2040_simulation import IMAGES

pytestmark = pytest.mark.untimed

INFO = "UF2 Bootloader v3.0\r\nModel: Raspberry Pi RP2\r\nBoard-ID: RPI-RP2\r\n"
BLOCK = struct.Struct("<8I476sI")


def image_of(build: Build, name: str = "rp2040") -> Path:
    return build.directory / "gauge" / "rp2040" / f"gauge-{name}.uf2"


def crc_bit_by_bit(data: bytes) -> int:
    """As the datasheet says it: polynomial 0x04C11DB7, the highest bit first, begun with ones."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1 ^ (0x04C11DB7 if crc >> 31 else 0)) & 0xFFFFFFFF
    return crc


@pytest.mark.parametrize("image", IMAGES)
def test_the_image_is_what_the_rom_asks_for(gauge_build: Build, image: str) -> None:
    file = image_of(gauge_build, image).read_bytes()
    program = b""
    for number, block in enumerate(BLOCK.iter_unpack(file)):
        *words, payload, end = block
        assert words == [
            0x0A324655,
            0x9E5D5157,
            0x2000,
            0x10000000 + 256 * number,
            256,
            number,
            len(file) // 512,
            0xE48BFF56,
        ]
        assert (end, payload[256:]) == (0x0AB16F30, bytes(220))
        program += payload[:256]
    built = image_of(gauge_build, image).with_suffix(".bin").read_bytes()
    assert program[:252] == built[:252]
    assert program[256:] == built[256:].ljust(len(program) - 256, b"\0")
    assert int.from_bytes(program[252:256], "little") == crc_bit_by_bit(program[:252])


@contextlib.contextmanager
def drive(folder: Path, restarts_at: int) -> Iterator[Path]:
    """What a board shows while it waits; it goes once a file of that size is there."""
    info = folder / "INFO_UF2.TXT"
    info.write_text(INFO)
    ended = threading.Event()

    def watch() -> None:
        while not ended.is_set():
            if any(path.stat().st_size >= restarts_at for path in folder.glob("*.uf2")):
                info.unlink()
                return
            time.sleep(0.02)

    board = threading.Thread(target=watch)
    board.start()
    try:
        yield folder
    finally:
        ended.set()
        board.join()


@pytest.mark.parametrize(("board", "name"), [("pico", IMAGES[0]), ("pico-pins", IMAGES[1])])
def test_the_file_is_copied_to_the_drive(gauge_build: Build, tmp_path: Path, board: str, name: str) -> None:
    image = image_of(gauge_build, name)
    with drive(tmp_path, image.stat().st_size) as there:
        dry = gauge_command("flash", board, str(there), "--dry-run")
        assert (dry.returncode, list(there.glob("*.uf2"))) == (0, []), dry.stderr
        done = gauge_command("flash", board, str(there))
    assert (done.returncode, done.stdout) == (0, f"{board} at {tmp_path}: firmware written\n"), done.stderr
    assert (tmp_path / image.name).read_bytes() == image.read_bytes()


def test_a_board_that_does_not_take_it_is_told_of(
    gauge_build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rp2040, "_RESTART_S", 0.3)
    with drive(tmp_path, 1 << 30) as there, pytest.raises(FastenoughError, match="did not restart"):
        BOARDS["pico"].flash(str(there), image_of(gauge_build))


def test_what_is_no_such_drive_is_refused(gauge_build: Build, tmp_path: Path) -> None:
    assert image_of(gauge_build).is_file()
    for there, why in ((tmp_path, "hold the button BOOTSEL"), (Path("/dev/null"), "hold the button BOOTSEL")):
        refused = gauge_command("flash", "pico", str(there))
        assert refused.returncode == 2 and why in refused.stderr and refused.stderr.count("\n") == 1
    (tmp_path / "INFO_UF2.TXT").write_text(INFO.replace("RPI-RP2", "SAMD21"))
    refused = gauge_command("flash", "pico", str(tmp_path))
    assert refused.returncode == 2 and "another board; expected: RPI-RP2" in refused.stderr
