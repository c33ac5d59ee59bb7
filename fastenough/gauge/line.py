# SPDX-License-Identifier: GPL-2.0-or-later
"""The gauge's serial line: commands and their replies, limited in time and length."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import serial

from fastenough.gauge.protocol import (
    MAX_LINE_LENGTH,
    MAX_LINES,
    Damaged,
    Refused,
    checked_text,
    parse_reply,
    with_crc,
)
from fastenough.gauge.stream import Frame, Splitter
from fastenough.model import BadInput, FastenoughError

BAUD = 500_000
_WRITE_S = 5.0
_EXCHANGE_S = 10.0
"""Maximum time of a complete reply."""
_QUIET_S = 0.1
_DISCARD_S = 2.0
_ATTEMPTS = 5

Parsed = TypeVar("Parsed")


class GaugeLost(FastenoughError):
    """The instrument was disconnected or stopped replying."""


class _Silent(GaugeLost):
    """The instrument is connected but no longer answers."""


def _open(port: str) -> serial.Serial:
    try:
        return serial.Serial(port, BAUD, timeout=0.02, write_timeout=_WRITE_S, exclusive=True)
    except serial.SerialException as error:
        text = str(error)
        if not Path(port).exists():
            raise BadInput(
                f"{port}: no such port; plug in the gauge, or name its port (ls /dev/ttyACM* /dev/ttyUSB*)"
            ) from error
        if "ermission" in text:
            raise BadInput(f"{port}: no permission; join the group that owns it: sudo adduser $USER dialout") from error
        if "exclusively lock" in text:
            raise BadInput(f"{port}: another program uses it; stop that program first") from error
        raise BadInput(f"{port}: cannot be opened as a serial port: {text}") from error
    except (ValueError, OSError) as error:
        raise BadInput(f"{port}: cannot be opened as a serial port: {error}") from error


class Line:
    """A serial port or pseudo-terminal, opened exclusively.  ``repeated_requests``: number of damaged replies."""

    silence_s = 5.0
    """A gauge that sends nothing for this time is lost."""

    def __init__(self, port: str) -> None:
        self.port = port
        self.repeated_requests = 0
        self._splitter = Splitter()
        self._serial = _open(port)
        self._text = bytearray()

    def close(self) -> None:
        with contextlib.suppress(serial.SerialException, OSError):
            self._serial.close()

    @property
    def has_partial_input(self) -> bool:
        """True if bytes were received that are not yet a complete line."""
        return bool(self._text) or self._splitter.pending

    def frames(self) -> list[Frame]:
        """The frames of raw samples received so far; text between replies is discarded."""
        self._read_more()
        self._text.clear()
        frames, self._splitter.frames = self._splitter.frames, []
        return frames

    def _read_more(self) -> bool:
        """True if text was received; raw samples alone do not show that a reply continues."""
        try:
            data = self._serial.read(max(1, self._serial.in_waiting))
        except (serial.SerialException, OSError, TypeError) as error:
            raise GaugeLost(f"{self.port}: the gauge has disappeared; was it unplugged?") from error
        text = self._splitter.text(data)
        self._text += text
        return bool(text)

    def _next_line(self, silence_s: float, limit: float) -> bytes:
        """Read the input before the clock: this program may have been stopped meanwhile."""
        last_input = time.monotonic()
        while b"\n" not in self._text and len(self._text) <= MAX_LINE_LENGTH:
            received = self._read_more()
            now = time.monotonic()
            if not received and now > last_input + silence_s:
                raise _Silent(f"{self.port}: the gauge no longer replies; unplug it and plug it in again")
            if received and now > limit and b"\n" not in self._text:
                raise Damaged(f"{self.port}: the reply is not terminated")
            last_input = now if received else last_input
        line, _, rest = bytes(self._text).partition(b"\n")
        self._text = bytearray(rest)
        if len(line) > MAX_LINE_LENGTH:
            raise Damaged(f"{self.port}: a line that begins with {line[:20]!r} is not terminated")
        return line.rstrip(b"\r")

    def discard_input(self, limit_s: float = _DISCARD_S) -> None:
        """Discard input until none arrives for a while."""
        last_input = begun = time.monotonic()
        while time.monotonic() < min(last_input + _QUIET_S, begun + limit_s):
            if self._read_more():
                last_input = time.monotonic()
            self._text.clear()

    def _send(self, command: str) -> None:
        self._text.clear()
        try:
            self._serial.write(with_crc(command) + b"\n")
        except (serial.SerialException, OSError) as error:
            raise GaugeLost(f"{self.port}: the gauge has disappeared; was it unplugged?") from error

    def exchange(self, command: str, silence_s: float | None = None, whole_s: float = _EXCHANGE_S) -> list[str]:
        """One command and its whole reply; raises Refused, Damaged or GaugeLost."""
        self._send(command)
        limit = time.monotonic() + whole_s
        lines: list[str] = []
        damage: Damaged | None = None
        while not lines or not lines[-1].startswith(("ok ", "error ")):
            if len(lines) > MAX_LINES or time.monotonic() > limit:
                raise Damaged(f"{self.port}: the reply to '{command}' is not terminated")
            try:
                lines.append(checked_text(self._next_line(silence_s or self.silence_s, limit)))
            except Damaged as error:
                damage = error
                lines.append("")
            except _Silent:
                if not lines and not self.has_partial_input:
                    raise
                damage = damage or Damaged(f"{self.port}: the reply to '{command}' is incomplete")
                break
        if damage:
            raise damage
        return parse_reply(lines)

    def request(
        self, command: str, parse: Callable[[list[str]], Parsed], before_retry: Callable[[], None] | None = None
    ) -> Parsed:
        """The reply to a command, parsed; a damaged reply is requested again, after ``before_retry``."""
        for attempt in range(_ATTEMPTS):
            try:
                return parse(self.exchange(command))
            except Refused as error:
                if attempt == _ATTEMPTS - 1 or not error.command_damaged:
                    raise
            except Damaged as error:
                if attempt == _ATTEMPTS - 1:
                    raise Damaged(
                        f"{self.port}: {_ATTEMPTS} replies in a row were damaged; check the cable; {error}"
                    ) from error
            self.repeated_requests += 1
            self.discard_input()
            if before_retry is not None:
                before_retry()
        raise AssertionError("unreachable")
