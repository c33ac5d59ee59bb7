# SPDX-License-Identifier: GPL-2.0-or-later
"""Pack a program for the flash into a UF2 file for the board, with the CRC that the chip's ROM checks."""

import sys
import zlib
from pathlib import Path

FLASH = 0x10000000
SECOND_STAGE = 252
"""Size of the second-stage boot loader in bytes; its CRC follows it."""
PAYLOAD = 256
MAGIC = (0x0A324655, 0x9E5D5157, 0x0AB16F30)
FLAG_FAMILY_ID = 0x2000
RP2040 = 0xE48BFF56


def reversed_bits(value: int, bits: int) -> int:
    """The lowest bits of a number in reverse order."""
    return int(f"{value:0{bits}b}"[::-1], 2)


def crc(data: bytes) -> int:
    """CRC-32/MPEG-2: highest bit first, initial value of ones, no final inversion."""
    return reversed_bits(zlib.crc32(bytes(reversed_bits(byte, 8) for byte in data)) ^ 0xFFFFFFFF, 32)


def words(*values: int) -> bytes:
    return b"".join(value.to_bytes(4, "little") for value in values)


def blocks(image: bytes) -> bytes:
    count = -(-len(image) // PAYLOAD)
    output = b""
    for number in range(count):
        at = number * PAYLOAD
        output += words(*MAGIC[:2], FLAG_FAMILY_ID, FLASH + at, PAYLOAD, number, count, RP2040)
        output += image[at : at + PAYLOAD].ljust(476, b"\0") + words(MAGIC[2])
    return output


program, packed = map(Path, sys.argv[1:])
image = program.read_bytes()
packed.write_bytes(blocks(image[:SECOND_STAGE] + words(crc(image[:SECOND_STAGE])) + image[SECOND_STAGE + 4 :]))
