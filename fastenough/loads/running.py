# SPDX-License-Identifier: GPL-2.0-or-later
"""A load at work: started, watched, proven and ended, whatever happens in between."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Self

from fastenough.link import Link, Process
from fastenough.loads.load import TOOL_PACKAGES, Load
from fastenough.loads.proof import Sample, look, prove, used
from fastenough.model import NotApplicable
from fastenough.recording.head import LoadProof, LoadStated, LoadUse

_MARGIN_S = 120
"""How long after the planned end a load ends by itself, should nobody end it."""


def require_tools(link: Link, load: Load) -> None:
    """Raises NotApplicable, saying how to fix it, where the board lacks a tool."""
    for tool in load.tools:
        if link.which(tool) is None:
            fix = f"apt-get install {TOOL_PACKAGES[tool]}" if tool in TOOL_PACKAGES else "install it"
            raise NotApplicable(f"load {load.name} needs {tool}, which is not there: {fix}")


def _last_words(process: Process) -> str:
    said = process.stderr().decode(errors="replace").strip().splitlines()
    return f": {said[-1]}" if said else ""


class RunningLoad:
    """Use as a context: the load runs inside, and nothing of it is left outside."""

    def __init__(self, link: Link, load: Load, cpus: int, planned_s: float) -> None:
        require_tools(link, load)
        self._link = link
        self._load = load
        self._cpus = cpus
        self._limit_s = int(planned_s) + _MARGIN_S
        self._scratches = [link.scratch_name() for _ in load.commands]
        self.command_lines = load.command_lines(cpus, self._scratches, self._limit_s)
        self._processes: list[Process] = []
        self._before: Sample | None = None

    def head(self) -> LoadStated:
        """What the recording's head says of it."""
        return LoadStated(self._load.name, tuple(map(tuple, self.command_lines)), self._load.source,
                          self._load.bounds(self._cpus, self._limit_s))

    def __enter__(self) -> Self:
        try:
            for command, scratch in zip(self.command_lines, self._scratches, strict=True):
                self._processes.append(self._link.start(command, scratch=scratch, limit_s=self._limit_s + 10))
        except FileNotFoundError as error:
            self.stop()
            raise NotApplicable(f"load {self._load.name} needs {error.filename}, which is not there") from error
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.stop()

    def _look(self, with_bytes: bool = True) -> Sample:
        return look(self._link, [process.pid for process in self._processes], time.monotonic(), with_bytes=with_bytes)

    def begin(self) -> None:
        """The probe starts now: what the load consumed before does not count."""
        self._before = self._look()

    def follow(self) -> Callable[[], LoadUse | None]:
        """Whoever asks what it returns is told what the load has consumed since ``begin``, or since he asked last.

        None where it has no processes.
        """
        last: Sample | None = None

        def use() -> LoadUse | None:
            nonlocal last
            before = last or self._before
            if not self._processes or before is None:
                return None
            last = self._look(with_bytes=False)
            return used(before, last)

        return use

    def proof(self) -> LoadProof:
        """What the load has consumed since ``begin``, and whether that shows that it ran."""
        assert self._before is not None, "begin() comes first"
        proof = prove(self._load.name, self._load.expects, self._cpus, self._before, self._look())
        ended = [f"{command[0]} of load {self._load.name} ended too early" + _last_words(process)
                 for command, process in zip(self.command_lines, self._processes, strict=True) if not process.running]
        return replace(proof, ran=False, reasons=(*proof.reasons, *ended)) if ended else proof

    def stop(self) -> None:
        """End every process, all at once; returns when none is left."""
        for process in self._processes:
            process.signal(signal.SIGTERM)
        while self._processes:
            self._processes.pop().stop()
