# SPDX-License-Identifier: GPL-2.0-or-later
"""The gauge, by its serial port: identify, calibrate, start, read, stop.  The protocol is in docs/gauge.md.

Times are integers in ticks of the instrument; ``Identity.tick_ps`` says how long a tick nominally is.
"""

from __future__ import annotations

import binascii
import contextlib
import json
import struct
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import serial

from fastenough.model import BadInput, FastenoughError
from fastenough.recording import Histogram

BAUD = 500_000
PROTOCOL = 1
_BOOT_S = 4.0
"""Opening the port resets most boards, whose boot loader then waits for a while."""
_REPLY_S = 5.0
_ATTEMPTS = 3
_LONGEST_FRAME = 24
_FRAME_HEAD = struct.Struct("<cH")


class GaugeLost(FastenoughError):
    """The instrument has gone or fallen silent in the middle of things."""


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


@dataclass(frozen=True)
class Calibration:
    """The instrument's clock against this host's (CLOCK_MONOTONIC): measured length of a tick.

    The uncertainty is that of when the two readings were taken: half their round trips, over the time between.
    """

    tick_ps: float
    uncertainty_ppm: float
    seconds: float

    def off_ppm(self, nominal_ps: int) -> float:
        return (self.tick_ps / nominal_ps - 1) * 1e6


@dataclass(frozen=True)
class SelfTest:
    """What the instrument measures of itself with a wire from output to input, in ticks by series."""

    passed: bool
    minimum: dict[int, int]
    maximum: dict[int, int]


def read_self_test(path: Path) -> SelfTest:
    """A self-test kept as JSON (``fastenough gauge selftest --json``); raises BadInput."""
    try:
        kept = json.loads(path.read_text())
        by_series = [{int(series): int(ticks) for series, ticks in kept[name].items()}
                     for name in ("minimum", "maximum")]
        return SelfTest(bool(kept["passed"]), *by_series)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"{path}: no self-test; make one: fastenough gauge selftest --json >{path}") from error


def _open(port: str) -> serial.Serial:
    try:
        return serial.Serial(port, BAUD, timeout=0.02, write_timeout=_REPLY_S, exclusive=True)
    except serial.SerialException as error:
        text = str(error)
        if not Path(port).exists():
            raise BadInput(f"{port}: no such port; plug the gauge in, or name its port (ls /dev/ttyACM* /dev/ttyUSB*)"
                           ) from error
        if "ermission" in text:
            raise BadInput(f"{port}: no permission; join the group that owns it: sudo adduser $USER dialout") from error
        if "exclusively lock" in text:
            raise BadInput(f"{port}: another program is using it; end that first") from error
        raise BadInput(f"{port}: cannot be opened as a serial port: {text}") from error
    except (ValueError, OSError) as error:
        raise BadInput(f"{port}: cannot be opened as a serial port: {error}") from error


class Gauge:
    """An instrument on a serial port (or pseudo-terminal); use it in a ``with`` statement."""

    def __init__(self, port: str) -> None:
        self.port = port
        self._line = _open(port)
        self._splitter = Splitter()
        self._text = bytearray()
        try:
            self.identity = self._identify()
        except BaseException:
            self._line.close()
            raise

    def __enter__(self) -> Gauge:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        with contextlib.suppress(serial.SerialException, OSError):
            self._line.close()

    def _identify(self) -> Identity:
        heard = False
        limit = time.monotonic() + _BOOT_S
        while time.monotonic() < limit:
            try:
                identity = parse_identity(self._exchange("id", 0.5))
            except Damaged:
                heard = True
            except Refused as error:
                raise BadInput(f"{self.port}: what answers is no gauge of ours: {error}") from error
            except GaugeLost:
                heard = heard or bool(self._text)
            else:
                if identity.protocol != PROTOCOL:
                    raise BadInput(f"{self.port}: the gauge's firmware {identity.firmware} speaks protocol "
                                   f"{identity.protocol}, this program {PROTOCOL}; run: fastenough gauge flash")
                return identity
        if heard:
            raise BadInput(f"{self.port}: something answers, but not intelligibly at {BAUD} baud; is it a gauge? "
                           "if so, run: fastenough gauge flash")
        raise BadInput(f"{self.port}: nothing answers; is it the gauge's port? if so, run: fastenough gauge flash")

    def _read_more(self) -> None:
        try:
            data = self._line.read(max(1, self._line.in_waiting))
        except (serial.SerialException, OSError, TypeError) as error:
            raise GaugeLost(f"{self.port}: the gauge is gone; was it unplugged?") from error
        self._text += self._splitter.text(data)

    def _next_line(self, limit: float) -> bytes:
        while b"\n" not in self._text:
            if time.monotonic() > limit:
                raise GaugeLost(f"{self.port}: the gauge has fallen silent; unplug it and plug it in again")
            self._read_more()
        line, _, rest = bytes(self._text).partition(b"\n")
        self._text = bytearray(rest)
        return line.rstrip(b"\r")

    def _exchange(self, command: str, reply_s: float) -> list[str]:
        """One command and its whole reply; raises Refused, Damaged or GaugeLost."""
        self._text.clear()
        try:
            self._line.write(with_crc(command) + b"\n")
        except (serial.SerialException, OSError) as error:
            raise GaugeLost(f"{self.port}: the gauge is gone; was it unplugged?") from error
        lines: list[str] = []
        damage: Damaged | None = None
        while not lines or not lines[-1].startswith(("ok ", "error ")):
            try:
                lines.append(checked_text(self._next_line(time.monotonic() + reply_s)))
            except Damaged as error:
                damage = error
            except GaugeLost:
                if damage is None:
                    raise
                break
        if damage:
            raise damage
        return parse_reply(lines)

    def ask(self, command: str) -> list[str]:
        """The reply to a command that may be repeated when it was damaged on the way."""
        for attempt in range(_ATTEMPTS):
            try:
                return self._exchange(command, _REPLY_S)
            except Refused as error:
                if "damaged" not in str(error) or attempt == _ATTEMPTS - 1:
                    raise
            except Damaged:
                if attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable")

    def start_response(self, min_ticks: int, max_ticks: int, timeout_ticks: int, seed: int | None = None) -> None:
        """Stimuli after random waits; raises Refused."""
        seeded = "" if seed is None else f" seed={seed}"
        self.ask(f"response min={min_ticks} max={max_ticks} timeout={timeout_ticks}{seeded}")

    def start_periodic(self, period_ticks: int, timeout_ticks: int) -> None:
        """Deviations of falling edges from their period; raises Refused."""
        self.ask(f"periodic period={period_ticks} timeout={timeout_ticks}")

    def stop(self) -> None:
        """Ends the measurement; a cycle begun is completed, so wait until ``counters().idle``."""
        self.ask("stop")

    def counters(self) -> Counters:
        return parse_counters(self.ask("stats"))

    def take(self) -> dict[int, Histogram]:
        """The histograms since the last take; when this raises Damaged, what they held is lost."""
        return parse_histograms(self._exchange("take", _REPLY_S), self.identity.k)

    def stream(self, on: bool) -> None:
        """Raw samples too, from now on, or no more."""
        self.ask(f"stream {'on' if on else 'off'}")

    def frames(self, seconds: float) -> Iterator[Frame]:
        """Frames of raw samples as they come, for so long."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            self._read_more()
            while self._splitter.frames:
                yield self._splitter.frames.pop(0)

    def _ticks(self) -> tuple[int, int, int]:
        """Ticks, and the host's clock before and after."""
        before_ns = time.monotonic_ns()
        ticks = numbers(self.ask("time")[0])["ticks"]
        return ticks, before_ns, time.monotonic_ns()

    def _quickest_ticks(self) -> tuple[int, int, int]:
        return min((self._ticks() for _ in range(5)), key=lambda reading: reading[2] - reading[1])

    def calibrate(self, seconds: float) -> Calibration:
        """Compares the clocks over so many seconds; nothing else is asked meanwhile."""
        first, first_before, first_after = self._quickest_ticks()
        time.sleep(seconds)
        last, last_before, last_after = self._quickest_ticks()
        elapsed_ns = (last_before + last_after - first_before - first_after) / 2
        doubt_ns = (last_after - last_before + first_after - first_before) / 2
        return Calibration(elapsed_ns * 1000 / (last - first), doubt_ns / elapsed_ns * 1e6, elapsed_ns / 1e9)

    def self_test(self) -> SelfTest:
        """Needs a wire from output to input, and no board."""
        lines = self.ask("selftest")
        exact = [numbers(line) for line in lines if line.startswith("series=")]
        return SelfTest(any(line.startswith("selftest=pass") for line in lines),
                        {found["series"]: found["min"] for found in exact if found["count"]},
                        {found["series"]: found["max"] for found in exact if found["count"]})


def describe(gauge: Gauge, calibration: Calibration | None, self_test: SelfTest | None) -> dict[str, Any]:
    """The instrument as a recording's head names it; null for what was not done."""
    identity = gauge.identity
    described: dict[str, Any] = {"name": f"fastenough gauge {identity.firmware} on {identity.mcu}", "port": gauge.port}
    described |= asdict(identity)
    described["calibration"] = asdict(calibration) if calibration else None
    described["self_test"] = asdict(self_test) if self_test else None
    return described
