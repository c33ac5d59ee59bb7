# SPDX-License-Identifier: GPL-2.0-or-later
"""A gauge written from docs/gauge.md alone, on a pseudo-terminal: its truth is what it was told to measure.

It shares no line with the bench.  Faults of the line and of the instrument are injected by what a test passes in.
"""

from __future__ import annotations

import os
import pty
import random
import select
import threading
import time
import tty
from collections.abc import Callable
from dataclasses import dataclass

K, BITS, TICK_PS = 4, 24, 62_500


def crc(data: bytes) -> int:
    """CRC-16/XMODEM, bit by bit."""
    value = 0
    for byte in data:
        value ^= byte << 8
        for _ in range(8):
            value = (value << 1 ^ 0x1021 if value & 0x8000 else value << 1) & 0xFFFF
    return value


def bucket(value: int, k: int) -> int:
    """docs/format.md: magnitudes below 2^(k+1) are their own bucket, then 2^k buckets an octave."""
    magnitude = abs(value)
    shift = max(0, magnitude.bit_length() - 1 - k)
    index = (shift << k) + (magnitude >> shift)
    return -index if value < 0 else index


def frame(sequence: int, samples: list[int]) -> bytes:
    payload = b"S" + (sequence % 65536).to_bytes(2, "little")
    payload += b"".join((sample % 2**32).to_bytes(4, "little") for sample in samples)
    payload += crc(payload).to_bytes(2, "little")
    stuffed = b"".join(bytes([len(run) + 1]) + run for run in payload.split(b"\0"))
    return b"\0" + stuffed + b"\0"


@dataclass
class Faults:
    """What becomes of replies, of what the bench says, and of frames; ``before_reply`` is told each command."""

    out: Callable[[bytes], bytes] = lambda data: data
    into: Callable[[bytes], bytes] = lambda data: data
    frames: Callable[[bytes], bytes] = lambda data: data
    before_reply: Callable[[str], None] = lambda command: None


class PaperGauge(threading.Thread):
    """Measures ``draw(rng)`` so many times a second once it is started; ``truth`` has each value by series."""

    def __init__(
        self,
        draw: Callable[[random.Random], int],
        rate: float = 500,
        faults: Faults | None = None,
        true_tick_ps: float = TICK_PS,
    ) -> None:
        super().__init__(daemon=True)
        self.ours, self._theirs = pty.openpty()
        tty.setraw(self._theirs)
        self.port = os.ttyname(self._theirs)
        self.faults = faults or Faults()
        self._draw, self._rate, self._random = draw, rate, random.Random(1)
        self._true_tick_ps = true_tick_ps
        self._ending = threading.Event()
        self._input = b""
        self.commands: list[str] = []
        self.truth: dict[int, list[int]] = {0: [], 1: []}
        self.reset()
        self.start()

    def reset(self) -> None:
        """As its button does."""
        self._power = time.monotonic_ns()
        self.mode, self._streaming = "none", False
        self.asked: dict[str, int] = {}
        self._running = False
        self._begin()

    def halt(self) -> None:
        """Stops measuring, unasked; whatever command comes next sends what is held."""
        self._running = False
        time.sleep(0.05)
        self._flush()

    def silence_board(self) -> None:
        """The board makes no further edge; once the time-out has passed, a period is lost."""
        self._silent_since = time.monotonic()

    def _time_out(self) -> None:
        timeout_s = self.asked["timeout"] * TICK_PS / 1e12
        self._lost = int(time.monotonic() - self._silent_since > timeout_s)

    def _begin(self) -> None:
        self._silent_since, self._lost = 0.0, 0
        self._begun, self._made, self._sequence, self._takes = time.monotonic(), 0, 0, 0
        self._held: list[int] = []
        self._rows: dict[tuple[int, int], int] = {}
        self._shown: dict[int, list[int]] = {0: [], 1: []}
        self._new: dict[int, list[int]] = {0: [], 1: []}
        self._stored = {0: 0, 1: 0}

    def close(self) -> None:
        self._ending.set()
        self.join()
        os.close(self.ours)
        os.close(self._theirs)

    def ticks(self) -> int:
        return round((time.monotonic_ns() - self._power) * 1000 / self._true_tick_ps)

    def _put(self, data: bytes) -> None:
        while data and not self._ending.is_set():
            if select.select([], [self.ours], [], 0.05)[1]:
                data = data[os.write(self.ours, data[:1024]) :]

    def run(self) -> None:
        while not self._ending.is_set():
            if self._running:
                self._measure()
            if select.select([self.ours], [], [], 0.002)[0]:
                self._input += self.faults.into(os.read(self.ours, 4096))
                *lines, self._input = self._input.split(b"\n")
                for line in lines:
                    self._obey(line)

    def _measure(self) -> None:
        if self._silent_since:
            self._time_out()
            return
        while self._made < (time.monotonic() - self._begun) * self._rate:
            series = self._made % 2 if self.mode == "response" else 0
            value = self._draw(self._random)
            self._made += 1
            self._new[series].append(value)
            self._stored[series] += 1
            self.truth[series].append(value)
            self._held.append(value | series << 31 if self.mode == "response" else value)
            if len(self._held) == 4:
                self._flush()

    def _flush(self) -> None:
        if self._held and self._streaming:
            self._put(self.faults.frames(frame(self._sequence, self._held)))
        self._sequence += len(self._held)
        self._held = []

    def _obey(self, line: bytes) -> None:
        body, _, said = line.rstrip(b"\r").rpartition(b" *")
        text = body.decode("ascii", "replace")
        self.commands.append(text)
        self.faults.before_reply(text)
        if said != b"%04X" % crc(body):
            lines = ["error damaged line"]
        else:
            given = dict(word.split("=") for word in text.split()[1:] if "=" in word)
            found = self._reply(text.split()[0], given, text)
            lines = [*found, f"ok lines={len(found)}"] if found is not None else ["error bad number"]
        self._put(self.faults.out(b"".join(f"{line} *{crc(line.encode()):04X}\r\n".encode() for line in lines)))

    def _reply(self, name: str, given: dict[str, str], text: str) -> list[str] | None:
        if name == "id":
            return [
                f"gauge=fastenough firmware=1.0 mcu=atmega328p protocol=3 tick_ps={TICK_PS} k={K} bits={BITS} "
                "stack_free=30 simulated=0"
            ]
        if name == "time":
            return [f"ticks={self.ticks()}"]
        if name in ("response", "periodic"):
            self.mode, self._running = name, True
            self.asked = {key: int(value) for key, value in given.items()}
            self._begin()
            self.truth = {0: [], 1: []}
        elif name == "stop":
            self._flush()
            self._running = False
        elif name == "stream":
            self._streaming = text.endswith("on")
        elif name == "stats":
            return self._stats()
        elif name == "take":
            return self._take(given)
        return []

    def _stats(self) -> list[str]:
        lost = f"{'lost' if self.mode == 'periodic' else 'timeouts'}={self._lost}"
        state = "running" if self._running else "idle"
        return [
            f"state={state} mode={self.mode} ticks={self.ticks()} stream_dropped=0",
            *(f"of_series={series} stored={self._stored[series]} {lost}" for series in self._series()),
        ]

    def _series(self) -> tuple[int, ...]:
        return (0, 1) if self.mode == "response" else (0,)

    def _take(self, given: dict[str, str]) -> list[str] | None:
        number = int(given.get("n", (self._takes + 1) % 256))
        if number == (self._takes + 1) % 256:
            self._takes = number
            self._rows = {place: count % 65536 for place, count in self._rows.items()}
            self._shown = {0: [], 1: []}
        elif number != self._takes:
            return None
        for series, values in self._new.items():
            self._shown[series] += values
            for value in values:
                place = series, bucket(value, K)
                self._rows[place] = self._rows.get(place, 0) + 1
        self._new = {0: [], 1: []}
        return [
            f"take={number}",
            *(f"b {series} {at} {count}" for (series, at), count in self._rows.items() if count),
            *map(self._statistics, self._series()),
        ]

    def _statistics(self, series: int) -> str:
        values = self._shown[series]
        least, most = (min(values), max(values)) if values else (0, 0)
        return (
            f"series={series} count={len(values)} min={least} max={most} sum={sum(values)} "
            f"sum_sq={sum(value * value for value in values)}"
        )
