# SPDX-License-Identifier: GPL-2.0-or-later
"""Processes of a trial: each is started again when it ends, and its CPU time and memory are measured."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fastenough.link.guard import descendants
from fastenough.model import FastenoughError
from fastenough.words import output_lines

_AGAIN_S = 0.5
_END_S = 10.0
_SAMPLE_S = 0.5
_EARLY_S = 2.0
_MOST_EARLY = 10


@dataclass
class Usage:
    """Use of a process and its children: CPU time, greatest proportional memory, and number of restarts."""

    cpu_s: float = 0.0
    memory_mib: float = 0.0
    restarts: int = 0


@dataclass
class SupervisedProcess:
    """A process that is started again whenever it ends."""

    name: str
    command: Sequence[str | Path]
    log: Path
    usage: Usage = field(default_factory=Usage)
    process: subprocess.Popen[bytes] | None = None
    _cpu_ticks: dict[int, int] = field(default_factory=dict)

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                list(map(str, self.command)), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.log.parent
            )

    async def supervise(self) -> None:
        """Start the process whenever it has ended; raises FastenoughError if it repeatedly ends at once."""
        self.start()
        early, started_s = 0, time.monotonic()
        while True:
            await asyncio.sleep(_SAMPLE_S)
            self._sample()
            if self.process is not None and self.process.poll() is not None:
                early = early + 1 if time.monotonic() - started_s < _EARLY_S else 0
                if early == _MOST_EARLY:
                    last = (output_lines(self.log.read_bytes()) or ["nothing"])[-1]
                    raise FastenoughError(f"{self.name} does not start; its last output: {last}")
                await asyncio.sleep(_AGAIN_S)
                self.usage.restarts += 1
                self.start()
                started_s = time.monotonic()

    def _sample(self) -> None:
        if self.process is None:
            return
        memory_kib = 0
        for pid in [self.process.pid, *descendants(self.process.pid)]:
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                self._cpu_ticks[pid] = int(fields[11]) + int(fields[12])
                memory_kib += _proportional_kib(pid)
            except (OSError, IndexError, ValueError):
                continue  # it has just ended
        self.usage.cpu_s = sum(self._cpu_ticks.values()) / os.sysconf("SC_CLK_TCK")
        self.usage.memory_mib = max(self.usage.memory_mib, memory_kib / 1024)

    def end(self) -> None:
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _proportional_kib(pid: int) -> int:
    """Memory of a process; shared memory is divided among the processes that share it."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    return 0
