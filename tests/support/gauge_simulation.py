# SPDX-License-Identifier: GPL-2.0-or-later
"""The gauge's firmware, for tests: in simulated time by scripts, or in real time on a pseudo-terminal."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import socket
import subprocess
import threading
import time
import tty
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.cli_calls import command_line
from tests.support.processes import eventually

ROOT = Path(__file__).resolve().parents[2]
HERTZ = 16_000_000
BOOT = "run 2000000"
SETTINGS = {"atmega328p": 4, "atmega32u4": 4, "atmega2560": 6}
"""Microcontroller to the histogram's k."""


@dataclass(frozen=True)
class Build:
    """Paths of the built firmware and of its simulators."""

    directory: Path

    def firmware(self, mcu: str) -> Path:
        return self.directory / "gauge" / "avr" / f"gauge-{mcu}.elf"

    @property
    def exact(self) -> Path:
        return self.directory / "gauge" / "sim" / "gauge-exact"

    @property
    def realtime(self) -> Path:
        return self.directory / "gauge" / "sim" / "gauge-realtime"

    def start(self, script: Sequence[str], mcu: str = "atmega328p") -> subprocess.Popen[str]:
        """Start the simulation with a script; it prints the replies."""
        process = subprocess.Popen(
            [str(self.exact), mcu, str(self.firmware(mcu))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        assert process.stdin
        process.stdin.write("\n".join([BOOT, *script, "cost"]) + "\n")
        process.stdin.close()
        process.stdin = None
        return process

    def play(self, script: Sequence[str], mcu: str = "atmega328p") -> Replies:
        return finish(self.start(script, mcu))


@dataclass
class Replies:
    """The printed replies: each as its lines, up to its end mark."""

    blocks: list[list[str]] = field(default_factory=list)

    def __getitem__(self, number: int) -> list[str]:
        return self.blocks[number]

    @property
    def seconds(self) -> float:
        """Simulated time."""
        return int(pairs(self.blocks[-1][-1])["cycles"]) / HERTZ


def finish(process: subprocess.Popen[str]) -> Replies:
    out, errors = process.communicate(timeout=280)
    assert process.returncode == 0, errors
    replies = Replies()
    block: list[str] = []
    for line in out.splitlines():
        block.append(line)
        if line.startswith(("ok", "error", "silence", "cycles=")):
            replies.blocks.append(block)
            block = []
    return replies


def pairs(line: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in line.split() if "=" in word)


def counters(reply: list[str]) -> dict[str, int]:
    """The numbers of a ``stats`` reply; names of a series' numbers end with its number."""
    numbers: dict[str, int] = {}
    for line in reply:
        values = pairs(line)
        series = values.pop("of_series", "")
        numbers |= {name + series: int(value) for name, value in values.items() if value.isdigit() and name != "lines"}
    return numbers


def rows(reply: list[str]) -> dict[tuple[int, int, str], int]:
    """Buckets of a ``take``, ``hist`` or ``truth`` reply, by series, magnitude's bucket and sign."""
    buckets = {}
    for line in reply:
        if line.startswith("b "):
            _, series, bucket, count = line.split()
            buckets[int(series), abs(int(bucket)), "-" if bucket.startswith("-") else ""] = int(count)
    return buckets


def grown(takes: Sequence[list[str]]) -> list[dict[tuple[int, int, str], int]]:
    """Increments of each ``take`` over the previous one; counts continue modulo 2^16."""
    before: dict[tuple[int, int, str], int] = {}
    increments = []
    for take in takes:
        now = rows(take)
        increments.append(
            {place: count - before.get(place, 0) for place, count in now.items() if count != before.get(place, 0)}
        )
        before = {place: count % 2**16 for place, count in now.items()}
    return increments


def statistics(reply: list[str]) -> dict[int, dict[str, str]]:
    """The exact statistics by series; series that are empty are left out."""
    by_series = {}
    for line in reply:
        values = pairs(line)
        if "series" in values and values["count"] != "0":
            by_series[int(values.pop("series"))] = values
    return by_series


def wrong_bins(reply: list[str], truth: list[str]) -> int:
    """How many samples are in a bucket where the truth has none for them."""
    reported, true = rows(reply), rows(truth)
    return sum(abs(reported.get(key, 0) - true.get(key, 0)) for key in reported.keys() | true.keys())


class Follower(threading.Thread):
    """A board on the pins of a real-time gauge that follows its input; it ignores the next ``deaf`` edges."""

    def __init__(self, path: Path) -> None:
        super().__init__(daemon=True)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(path))
        self.seen = 0
        self.answered = 0
        self.deaf = 0
        self.start()

    def run(self) -> None:
        with contextlib.suppress(OSError), self._socket.makefile("r") as lines:
            lines.readline()  # the level as it stands
            for line in lines:
                self.seen += 1
                if self.deaf:
                    self.deaf -= 1
                    continue
                self.answered += 1
                self.say(f"in {line.split()[1]} {time.monotonic_ns()}\n")

    def say(self, words: str) -> None:
        self._socket.sendall(words.encode())

    def hear(self, edges: int) -> None:
        """Wait for this many more edges, however slowly this machine simulates them."""
        expected = self.seen + edges
        assert eventually(lambda: self.seen >= expected, 120)

    def leave(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self.join()


@dataclass
class RealtimeGauge:
    """A simulated gauge that runs in real time."""

    process: subprocess.Popen[str]
    port: str
    pins: Path

    def end(self) -> dict[str, int]:
        """Stop it and return its counters."""
        self.process.terminate()
        out, _ = self.process.communicate(timeout=20)
        return {name: int(value) for name, value in pairs(out.splitlines()[-1]).items()}


@contextlib.contextmanager
def realtime_gauge(build: Build, directory: Path, before: Sequence[str] = ()) -> Iterator[RealtimeGauge]:
    """``before`` is put in front of its command, as to start it as another user."""
    pins, link = directory / "pins", directory / "gauge"
    process = subprocess.Popen(
        [
            *before,
            str(build.realtime),
            "--pins",
            str(pins),
            "--link",
            str(link),
            "atmega328p",
            str(build.firmware("atmega328p")),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout and process.stdout.readline().startswith("ready ")
        yield RealtimeGauge(process, str(link), pins)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def gauge_command(*words: str, before: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """``fastenough gauge`` with these words."""
    return command_line("gauge", *words, before=before)


class Impostor(threading.Thread):
    """Something else on a pseudo-terminal: each byte string that comes is answered as ``reply`` says."""

    def __init__(self, reply: Callable[[bytes], bytes]) -> None:
        super().__init__(daemon=True)
        self._ours, theirs = pty.openpty()
        tty.setraw(theirs)
        self._theirs = theirs
        self.port = os.ttyname(theirs)
        self._reply = reply
        self.start()

    def run(self) -> None:
        with contextlib.suppress(OSError):
            while data := os.read(self._ours, 1024):
                os.write(self._ours, self._reply(data))

    def unplug(self) -> None:
        os.close(self._theirs)
        os.close(self._ours)


class Relay:
    """A pseudo-terminal in front of a gauge's port: what passes, either way, is first what ``change`` makes of it.

    ``change`` is given at least a whole short line at a time, and in one thread.
    """

    def __init__(self, port: str, change: Callable[[bytes], bytes]) -> None:
        self._gauge = os.open(port, os.O_RDWR | os.O_NOCTTY)
        self._ours, self._theirs = pty.openpty()
        tty.setraw(self._theirs)
        os.set_blocking(self._ours, False)
        self._change = change
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._pass, daemon=True)

    def _pass(self) -> None:
        while not self._ended.is_set():
            for source in select.select([self._gauge, self._ours], [], [], 0.1)[0]:
                data = os.read(source, 4096)
                while select.select([source], [], [], 0.005)[0] and len(data) < 4096:
                    data += os.read(source, 4096)
                with contextlib.suppress(BlockingIOError):  # nobody reads any more
                    os.write(self._ours if source == self._gauge else self._gauge, self._change(data))

    def __enter__(self) -> str:
        self._thread.start()
        return os.ttyname(self._theirs)

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()
        for end in (self._gauge, self._ours, self._theirs):
            os.close(end)
