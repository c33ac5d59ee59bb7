# SPDX-License-Identifier: GPL-2.0-or-later
"""Raw samples from the gauge: binary frames between the text (docs/gauge.md)."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from fastenough.gauge.protocol import Damaged, crc16

_LONGEST_FRAME = 24
_MOST_FRAMES = 100_000
_FRAME_HEAD = struct.Struct("<cH")


def _cobs_decode(block: bytes) -> bytes | None:
    """The payload of a COBS block; None if it is invalid."""
    payload = bytearray()
    at = 0
    while at < len(block):
        code = block[at]
        if code == 0 or at + code > len(block):
            return None
        payload += block[at + 1 : at + code]
        at += code
        if at < len(block):
            payload.append(0)
    return bytes(payload)


@dataclass(frozen=True)
class Frame:
    """Raw samples: the sequence number of the first (16 bits, wraps), and 32-bit values as sent."""

    sequence: int
    samples: tuple[int, ...]


def parse_frame(block: bytes) -> Frame | None:
    """Parse a binary frame without its delimiters; None if it is invalid."""
    payload = _cobs_decode(block)
    if payload is None or len(payload) < 9 or (len(payload) - 5) % 4 or payload[:1] != b"S":
        return None
    if crc16(payload[:-2]) != int.from_bytes(payload[-2:], "little"):
        return None
    _, sequence = _FRAME_HEAD.unpack(payload[:3])
    return Frame(sequence, struct.unpack(f"<{(len(payload) - 5) // 4}I", payload[3:-2]))


@dataclass
class Splitter:
    """Separates text and binary frames of the serial line; resynchronises after errors."""

    frames: list[Frame] = field(default_factory=list)
    _block: bytearray | None = None

    @property
    def pending(self) -> bool:
        """True if bytes were received that may become a frame, or text with a zero byte."""
        return bool(self._block)

    def text(self, data: bytes) -> bytes:
        """The text among the bytes; frames are appended to ``frames``."""
        text = bytearray()
        for byte in data:
            if self._block is None:
                if byte:
                    text.append(byte)
                else:
                    self._block = bytearray()
            elif byte:
                self._block.append(byte)
                if len(self._block) > _LONGEST_FRAME:
                    text += self._block
                    self._block = None
            else:
                frame = parse_frame(bytes(self._block))
                if frame:
                    if len(self.frames) == _MOST_FRAMES:
                        raise Damaged("more raw samples arrive than were requested")
                    self.frames.append(frame)
                    self._block = None
                else:
                    text += self._block
                    self._block = bytearray()
        return bytes(text)


def latencies(frame: Frame) -> list[tuple[int, int]]:
    """The samples of RESPONSE as (series, ticks)."""
    return [(sample >> 31, sample & 0x7FFFFFFF) for sample in frame.samples]


def deviations(frame: Frame) -> list[int]:
    """The samples of PERIODIC as deviations from the period in ticks."""
    return [sample - (1 << 32) if sample >> 31 else sample for sample in frame.samples]
