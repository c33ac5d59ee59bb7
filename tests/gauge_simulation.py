# SPDX-License-Identifier: GPL-2.0-or-later
"""The gauge's firmware in simulated time, for tests: scripts in, replies out."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HERTZ = 16_000_000
BOOT = "run 2000000"
SETTINGS = {"atmega328p": 4, "atmega32u4": 4, "atmega2560": 6}
"""Microcontroller to the histogram's k."""


@dataclass(frozen=True)
class Build:
    """Where the built firmware and its simulators are."""

    directory: Path

    def firmware(self, mcu: str) -> Path:
        return self.directory / "gauge" / "avr" / f"gauge-{mcu}.elf"

    @property
    def exact(self) -> Path:
        return self.directory / "gauge" / "sim" / "gauge-exact"

    @property
    def paced(self) -> Path:
        return self.directory / "gauge" / "sim" / "gauge-paced"

    def start(self, script: Sequence[str], mcu: str = "atmega328p") -> subprocess.Popen[str]:
        """The simulation, given a script; its answer is what it prints."""
        process = subprocess.Popen([str(self.exact), mcu, str(self.firmware(mcu))], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
        assert process.stdin
        process.stdin.write("\n".join([BOOT, *script, "cost"]) + "\n")
        process.stdin.close()
        process.stdin = None
        return process

    def play(self, script: Sequence[str], mcu: str = "atmega328p") -> Replies:
        return finish(self.start(script, mcu))


@dataclass
class Replies:
    """What was printed: each reply up to its end mark, as lines."""

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
    """The numbers of a ``stats`` reply; those of one series get its number behind their name."""
    found: dict[str, int] = {}
    for line in reply:
        values = pairs(line)
        series = values.pop("lost_series", "")
        found |= {name + series: int(value) for name, value in values.items() if value.isdigit() and name != "lines"}
    return found


def rows(reply: list[str]) -> dict[tuple[int, int, str], int]:
    """Buckets of a ``take``, ``hist`` or ``truth`` reply, by series, magnitude's bucket and sign."""
    found = {}
    for line in reply:
        if line.startswith("b "):
            _, series, bucket, count = line.split()
            found[int(series), abs(int(bucket)), "-" if bucket.startswith("-") else ""] = int(count)
    return found


def statistics(reply: list[str]) -> dict[int, dict[str, str]]:
    """The exact statistics by series; series that are empty are left out."""
    found = {}
    for line in reply:
        values = pairs(line)
        if "series" in values and values["count"] != "0":
            found[int(values.pop("series"))] = values
    return found


def wrong_bins(reply: list[str], truth: list[str]) -> int:
    """How many samples are in a bucket where the truth has none for them."""
    said, true = rows(reply), rows(truth)
    return sum(abs(said.get(key, 0) - true.get(key, 0)) for key in said.keys() | true.keys())
