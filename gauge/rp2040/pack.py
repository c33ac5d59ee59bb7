# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes the file that a board takes (UF2) of a program for its flash, with the CRC that the chip's ROM asks for."""

import sys
import zlib
from pathlib import Path

FLASH = 0x10000000
SECOND_STAGE = 252
"""Bytes at the beginning, over which the CRC behind them is taken."""
PAYLOAD = 256
MAGIC = (0x0A324655, 0x9E5D5157, 0x0AB16F30)
FAMILY_NAMED = 0x2000
RP2040 = 0xE48BFF56


def turned(value: int, bits: int) -> int:
    return int(f"{value:0{bits}b}"[::-1], 2)


def crc(data: bytes) -> int:
    """CRC-32 with the highest bit first, begun with ones and not inverted at the end."""
    return turned(zlib.crc32(bytes(turned(byte, 8) for byte in data)) ^ 0xFFFFFFFF, 32)


def words(*values: int) -> bytes:
    return b"".join(value.to_bytes(4, "little") for value in values)


def blocks(image: bytes) -> bytes:
    count = -(-len(image) // PAYLOAD)
    made = b""
    for number in range(count):
        at = number * PAYLOAD
        made += words(*MAGIC[:2], FAMILY_NAMED, FLASH + at, PAYLOAD, number, count, RP2040)
        made += image[at : at + PAYLOAD].ljust(476, b"\0") + words(MAGIC[2])
    return made


program, packed = map(Path, sys.argv[1:])
image = program.read_bytes()
packed.write_bytes(blocks(image[:SECOND_STAGE] + words(crc(image[:SECOND_STAGE])) + image[SECOND_STAGE + 4 :]))
