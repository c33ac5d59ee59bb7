# SPDX-License-Identifier: GPL-2.0-or-later
"""What the gauge's lines and frames mean; no port here.  The protocol is in docs/gauge.md.

Times are integers in ticks of the instrument; ``Identity.tick_ps`` says how long a tick nominally is.
"""

from __future__ import annotations

import binascii
import struct
from dataclasses import dataclass, field

import numpy as np

from fastenough.model import FastenoughError
from fastenough.recording import Histogram

PROTOCOL = 1
_LONGEST_FRAME = 24
_FRAME_HEAD = struct.Struct("<cH")


class Damaged(FastenoughError):
    """A reply came in pieces or changed on its way."""


class Refused(FastenoughError):
    """The instrument understood and declined; the message is its own."""


def crc16(data: bytes) -> int:
    """CRC-16/XMODEM."""
    return binascii.crc_hqx(data, 0)


def with_crc(line: str) -> bytes:
    """A command or reply line as it goes over the wire, without line end."""
    return f"{line} *{crc16(line.encode()):04X}".encode()


def checked_text(line: bytes) -> str:
    """The text of a line that must carry its CRC; raises Damaged."""
    body, mark, said = line.rpartition(b" *")
    if not mark or len(said) != 4 or said != b"%04X" % crc16(body):
        raise Damaged(f"the line {line[:60]!r} did not come whole")
    return body.decode("ascii", errors="replace")


def pairs(line: str) -> dict[str, str]:
    """The ``key=value`` words of a line."""
    return dict(word.split("=", 1) for word in line.split() if "=" in word)


def numbers(line: str) -> dict[str, int]:
    """Those of them that are integers; raises Damaged for one that ought to be."""
    try:
        return {key: int(value) for key, value in pairs(line).items()}
    except ValueError as error:
        raise Damaged(f"the line {line[:60]!r} has something else where a number belongs") from error


def parse_reply(lines: list[str]) -> list[str]:
    """A reply without its end mark; raises Refused or Damaged.

    ``lines`` end with ``ok lines=N`` or ``error WHY``.
    """
    if lines and lines[-1].startswith("error "):
        raise Refused(lines[-1].removeprefix("error "))
    if not lines or lines[-1] != f"ok lines={len(lines) - 1}":
        raise Damaged(f"the reply's end mark {lines[-1] if lines else ''!r} does not fit its {len(lines) - 1} lines")
    return lines[:-1]


@dataclass(frozen=True)
class Identity:
    """Who answers: firmware version, microcontroller, tick and resolution of its histograms."""

    firmware: str
    mcu: str
    protocol: int
    tick_ps: int
    k: int
    bits: int

    @property
    def longest_ticks(self) -> int:
        """The longest latency or time-out it can measure."""
        return (1 << self.bits) - 1


def parse_identity(lines: list[str]) -> Identity:
    """From the reply to ``id``; raises Damaged when it is not one."""
    found = pairs(lines[0]) if lines else {}
    try:
        if found["gauge"] != "fastenough":
            raise Damaged(f"this is another instrument: {lines[0]!r}")
        return Identity(found["firmware"], found["mcu"], int(found["protocol"]), int(found["tick_ps"]),
                        int(found["k"]), int(found["bits"]))
    except (KeyError, ValueError) as error:
        raise Damaged(f"the identity {lines[:1]!r} cannot be understood") from error


def _bucket(line: str) -> tuple[int, int, int]:
    words = line.split()
    if len(words) != 4 or words[0] != "b":
        raise Damaged(f"{line[:60]!r} is no row of a histogram")
    try:
        return int(words[1]), int(words[2]), int(words[3])
    except ValueError as error:
        raise Damaged(f"{line[:60]!r} is no row of a histogram") from error


def _histogram(k: int, buckets: list[tuple[int, int]], exact: dict[str, int]) -> Histogram:
    buckets = sorted(buckets)
    index = np.array([bucket for bucket, _ in buckets], dtype=np.int64)
    count = np.array([number for _, number in buckets], dtype=np.int64)
    if int(count.sum()) != exact["count"]:
        raise Damaged(f"the rows of series {exact['series']} add up to {int(count.sum())}, it says {exact['count']}")
    if exact["count"] == 0:
        return Histogram(k)
    return Histogram(k, index, count, exact["min"], exact["max"], exact["sum"], exact["sum_sq"])


def parse_histograms(lines: list[str], k: int) -> dict[int, Histogram]:
    """Histogram by series, from the reply to ``take`` or ``hist``; raises Damaged where it contradicts itself."""
    buckets: dict[int, list[tuple[int, int]]] = {}
    found: dict[int, Histogram] = {}
    for line in lines:
        if line.startswith("b "):
            series, bucket, count = _bucket(line)
            buckets.setdefault(series, []).append((bucket, count))
        elif line.startswith("series="):
            exact = numbers(line)
            if not {"count", "min", "max", "sum", "sum_sq"} <= exact.keys():
                raise Damaged(f"{line[:60]!r} lacks a statistic")
            found[exact["series"]] = _histogram(k, buckets.pop(exact["series"], []), exact)
    if buckets:
        raise Damaged(f"series {sorted(buckets)} have rows but no statistics")
    return found


@dataclass(frozen=True)
class Counters:
    """What the instrument has counted since the start, for all and by series."""

    idle: bool
    common: dict[str, int]
    by_series: dict[int, dict[str, int]]

    def lost(self, series: int) -> int:
        """Samples that were taken and have no value: timed out, cut off by a storm of edges, shed, not kept."""
        counted = self.by_series.get(series, {})
        return sum(counted.get(name, 0) for name in (("lost", "unkept") if "lost" in counted else
                                                     ("timeouts", "cut", "unkept")))

    def stored(self, series: int) -> int:
        return self.by_series.get(series, {}).get("stored", 0)


def parse_counters(lines: list[str]) -> Counters:
    """From the reply to ``stats``."""
    if not lines or "state" not in pairs(lines[0]):
        raise Damaged(f"{lines[:1]!r} are no counters")
    common: dict[str, int] = {}
    by_series: dict[int, dict[str, int]] = {}
    for line in lines:
        counted = numbers(" ".join(word for word in line.split() if not word.startswith(("state=", "mode="))))
        if "of_series" in counted:
            by_series[counted.pop("of_series")] = counted
        else:
            common |= counted
    return Counters(pairs(lines[0])["state"] == "idle", common, by_series)


def _unstuffed(block: bytes) -> bytes | None:
    """The payload of a COBS block, None where it is none."""
    payload = bytearray()
    at = 0
    while at < len(block):
        code = block[at]
        if code == 0 or at + code > len(block):
            return None
        payload += block[at + 1:at + code]
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
