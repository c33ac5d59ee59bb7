# SPDX-License-Identifier: GPL-2.0-or-later
"""The gauge, by its serial port: identify, calibrate, start, read, stop."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

import serial

from fastenough.link.gauge_calibration import (
    Calibration,
    HostClock,
    Reading,
    SelfTest,
    fit,
    from_pps,
    host_ppm,
    parse_self_test,
)
from fastenough.link.gauge_calibration import described as known
from fastenough.link.gauge_ports import serial_of
from fastenough.link.gauge_protocol import (
    PROTOCOL,
    Counters,
    Damaged,
    Frame,
    Identity,
    Refused,
    Splitter,
    checked_text,
    numbers,
    parse_counters,
    parse_histograms,
    parse_identity,
    parse_reply,
    with_crc,
)
from fastenough.model import BadInput, FastenoughError
from fastenough.recording import Histogram

BAUD = 500_000
_BOOT_S = 4.0
"""Opening the port resets most boards, whose boot loader then waits for a while."""
_REPLY_S = 5.0
_ATTEMPTS = 3
_READINGS = 400
"""Of the clock, in one calibration; round trips vary, and the quickest tell most."""


class GaugeLost(FastenoughError):
    """The instrument has gone or fallen silent in the middle of things."""


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

    def read_clock(self) -> Reading:
        """Its ticks, and the host's clock before and after."""
        before_ns = time.monotonic_ns()
        ticks = numbers(self.ask("time")[0])["ticks"]
        return Reading(ticks, before_ns, time.monotonic_ns())

    def calibrate(self, seconds: float) -> Calibration:
        """Compares the clocks over so many seconds; nothing else is asked meanwhile."""
        host_at_begin = HostClock.now()
        readings = [self.read_clock()]
        end_ns = readings[0].before_ns + round(seconds * 1e9)
        while (left_ns := end_ns - time.monotonic_ns()) > 0:
            time.sleep(min(left_ns / 1e9, seconds / _READINGS))
            readings.append(self.read_clock())
        return fit(readings, host_ppm(host_at_begin, HostClock.now()))

    def calibrate_by_pps(self, seconds: float) -> Calibration:
        """Compares the clock with pulses on the input, one a second, over so many seconds."""
        second = round(1e12 / self.identity.tick_ps)
        self.start_periodic(second, self.identity.longest_ticks)
        time.sleep(seconds)
        self.stop()
        return from_pps(self.take()[0], second)

    def self_test(self) -> SelfTest:
        """Needs a wire from output to input, and no board."""
        return parse_self_test(self.ask("selftest"))


def describe(gauge: Gauge, calibration: Calibration | None, self_test: SelfTest | None) -> dict[str, Any]:
    """The instrument as a recording's head names it; null for what was not done."""
    identity = gauge.identity
    described: dict[str, Any] = {"name": f"fastenough gauge {identity.firmware} on {identity.mcu}", "port": gauge.port}
    described |= asdict(identity)
    return described | {"serial": serial_of(gauge.port), "calibration": known(calibration),
                        "self_test": known(self_test)}
