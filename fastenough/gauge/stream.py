# SPDX-License-Identifier: GPL-2.0-or-later
"""Raw samples from the gauge: binary frames among the text.  The protocol is in docs/gauge.md."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from fastenough.gauge.protocol import Damaged, crc16

_LONGEST_FRAME = 24
_MOST_FRAMES = 100_000
_FRAME_HEAD = struct.Struct("<cH")


def _unstuffed(block: bytes) -> bytes | None:
    """The payload of a COBS block, None where it is none."""
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
    """Raw samples: the number of the first one (16 bits, wraps), then 32-bit values as they came."""

    sequence: int
    samples: tuple[int, ...]


def parse_frame(block: bytes) -> Frame | None:
    """A binary frame without its delimiters, None where the bytes are no whole frame."""
    payload = _unstuffed(block)
    if payload is None or len(payload) < 9 or (len(payload) - 5) % 4 or payload[:1] != b"S":
        return None
    if crc16(payload[:-2]) != int.from_bytes(payload[-2:], "little"):
        return None
    _, sequence = _FRAME_HEAD.unpack(payload[:3])
    return Frame(sequence, struct.unpack(f"<{(len(payload) - 5) // 4}I", payload[3:-2]))


@dataclass
class Splitter:
    """Tells text from binary frames in what comes over the line; falls into step again by itself."""

    frames: list[Frame] = field(default_factory=list)
    _held: bytearray | None = None

    @property
    def torn(self) -> bool:
        """Whether something has come that may yet turn out to be a frame, or text with a zero in it."""
        return bool(self._held)

    def text(self, data: bytes) -> bytes:
        """The text among the bytes; frames are appended to ``frames``."""
        text = bytearray()
        for byte in data:
            if self._held is None:
                if byte:
                    text.append(byte)
                else:
                    self._held = bytearray()
            elif byte:
                self._held.append(byte)
                if len(self._held) > _LONGEST_FRAME:
                    text += self._held
                    self._held = None
            else:
                frame = parse_frame(bytes(self._held))
                if frame:
                    if len(self.frames) == _MOST_FRAMES:
                        raise Damaged("more raw samples arrive than were requested")
                    self.frames.append(frame)
                    self._held = None
                else:
                    text += self._held
                    self._held = bytearray()
        return bytes(text)


def latencies(frame: Frame) -> list[tuple[int, int]]:
    """Samples of RESPONSE as (series, ticks)."""
    return [(sample >> 31, sample & 0x7FFFFFFF) for sample in frame.samples]


def deviations(frame: Frame) -> list[int]:
    """Samples of PERIODIC as ticks off the period."""
    return [sample - (1 << 32) if sample >> 31 else sample for sample in frame.samples]
