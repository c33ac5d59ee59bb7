# SPDX-License-Identifier: GPL-2.0-or-later
"""A running load: start, observation, proof, and end in any case."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Protocol, Self

from fastenough import words
from fastenough.link import Link, Process, Stalled
from fastenough.loads.load import Load
from fastenough.loads.proof import Stretches, UsageSample, look, prove, used
from fastenough.loads.tools import CopiedTools, bring, require_tools
from fastenough.model import NotApplicable
from fastenough.recording.head import LoadProof, LoadStated, LoadUse
from fastenough.words import output_lines

_MARGIN_S = 120
"""Time after the planned end at which a load ends by itself if it is not stopped."""
_COUNTER_S = 5.0
_LOOK_S = 0.2
_FROM_FOLDER = 'PATH=$1:$PATH; shift; exec "$@"'


@dataclass(frozen=True)
class TimeLimit:
    """The time after which a command ends by itself.  ``text``: its part of the command line."""

    text: str
    seconds: float


_TIME_LIMITED = re.compile(
    r"(?:\A|[\s/])(?:stress(?:-ng)? [^;&|]*?(?P<option>--timeout[ =]|-t ?)"
    r"|(?P<tool>timeout )(?:-[ks] [^-\s]\S* |-\S+ )*)"
    r"(?P<number>\d{1,9}(?:\.\d{1,9})?)(?P<unit>[smhd]?)(?=[\s;&|]|\Z)"
)
_UNITS_S = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_AT_TIME_LIMIT = (0, 124)
"""Exit statuses at the time limit, of stress-ng and of timeout(1)."""


def time_limit_of(command: Sequence[str]) -> TimeLimit | None:
    """Return the time limit in a command line of stress-ng, stress or timeout(1), also of a shell; None without one."""
    match = _TIME_LIMITED.search(" ".join(command))
    if match is None or not float(match["number"]):
        return None
    text = f"{match['option'] or match['tool']}{match['number']}{match['unit']}"
    return TimeLimit(text, float(match["number"]) * _UNITS_S[match["unit"]])


def _last_line(process: Process) -> str:
    lines = output_lines(process.stderr())
    return f": {lines[-1]}" if lines else ""


class StartedLoad(Protocol):
    """Context in which a load runs beside the measurements."""

    def head(self) -> LoadStated:
        """Return the entry in the head of the recording."""

    def warm_up(self, seconds: float, sleep: Callable[[float], bool]) -> None:
        """Let the load run for a time before the measurement; ``sleep`` returns whether to continue."""

    def begin(self) -> None:
        """Start of the measurement: earlier use of resources does not count."""

    def follow(self) -> Callable[[], LoadUse | None]:
        """Return a function that returns the use of the load since its last call, None if it is unknown."""

    def proof(self) -> LoadProof:
        """Return the use of resources since ``begin``, and whether it proves that the load ran."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


class RunningLoad:
    """Context manager: the load runs inside, and all of its processes and files are removed at the end."""

    def __init__(self, link: Link, load: Load, cpus: int, planned_s: float) -> None:
        require_tools(link, load)
        self._link = link
        self._load = load
        self._cpus = cpus
        self._planned_s = planned_s
        self._limit_s = int(planned_s + load.start_s) + _MARGIN_S
        self._scratches = [link.scratch_name() for _ in load.commands]
        self.command_lines = load.command_lines(cpus, self._scratches, self._limit_s)
        self._counter = load.counter_line(cpus, self._scratches, self._limit_s)
        self._brought: CopiedTools | None = None
        self._processes: list[Process] = []
        self._started_mono_s = 0.0
        self._before: UsageSample | None = None
        self._seen: UsageSample | None = None
        self._stretches: Stretches | None = None
        self._look_again_s = 0.0

    def head(self) -> LoadStated:
        """The entry in the head of the recording."""
        brought = f"; brought by the bench: {self._brought.names}" if self._brought else ""
        return LoadStated(
            self._load.name,
            tuple(map(tuple, self.command_lines)),
            self._load.source + brought,
            self._load.bounds(self._cpus, self._limit_s),
        )

    def __enter__(self) -> Self:
        try:
            self._brought = bring(self._link, self._load, self._limit_s)
            self._try()
            self._started_mono_s = time.monotonic()
            for command, scratch in zip(self.command_lines, self._scratches, strict=True):
                self._processes.append(
                    self._link.start(self._with_tools(command), scratch=scratch, limit_s=self._limit_s + 10)
                )
        except FileNotFoundError as error:
            self.stop()
            raise NotApplicable(f"load {self._load.name} requires {error.filename}, which is not installed") from error
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _try(self) -> None:
        """Raises NotApplicable with the output of the trial if the load cannot run."""
        if not self._load.trial:
            return
        done = self._link.run(self._with_tools(self._load.trial))
        if done.status:
            lines = output_lines(done.stderr) or [f"its trial exited with status {done.status}"]
            raise NotApplicable(f"load {self._load.name} cannot run here: {lines[-1]}")

    def _with_tools(self, command: Sequence[str]) -> list[str]:
        return ["sh", "-c", _FROM_FOLDER, "sh", self._brought.folder, *command] if self._brought else list(command)

    def _look(self, whole: bool = True) -> UsageSample:
        """A sample of the load; ``whole``: with all expected quantities, otherwise only those cheap to read."""
        sample = look(self._link, [process.pid for process in self._processes], time.monotonic(), with_bytes=whole)
        return replace(sample, counted=self._count()) if whole and self._counter else sample

    def _count(self) -> int | None:
        """The number printed by the load's counter; None if it prints none."""
        try:
            return int(self._link.run(self._with_tools(self._counter), _COUNTER_S).stdout.split()[-1])
        except (OSError, ValueError, IndexError, Stalled):
            return None

    def warm_up(self, seconds: float, sleep: Callable[[float], bool]) -> None:
        """Wait for a time, and until all processes of the load exist; ``sleep`` returns whether to continue."""
        if sleep(seconds):
            self.await_processes(sleep)

    def await_processes(self, sleep: Callable[[float], bool]) -> None:
        """Wait for the expected number of processes; ``sleep`` returns whether to continue.

        If they do not start in time, or a command ends, the proof reports it.
        """
        end_s = time.monotonic() + self._load.start_s
        while not self._is_whole() and time.monotonic() < end_s and sleep(_LOOK_S):
            pass

    def _is_whole(self) -> bool:
        """Whether the wait is over."""
        return self._look(whole=False).workers() >= self._load.expects.processes_on(self._cpus) or not all(
            process.running for process in self._processes
        )

    def begin(self) -> None:
        """Start of the measurement: earlier use of resources does not count."""
        self._before = self._seen = self._look()
        self._stretches = Stretches(self._load, self._cpus, self._before)

    def follow(self) -> Callable[[], LoadUse | None]:
        """A function that returns the use of the load since its last call, at first since ``begin``.

        It returns None without processes, or without a newer sample: see ``_watched``.
        """
        last: UsageSample | None = None

        def use() -> LoadUse | None:
            nonlocal last
            before = last or self._before
            if not self._processes or before is None:
                return None
            sample = self._watched()
            if sample is before:
                return None
            last = sample
            return used(before, sample)

        return use

    def _watched(self) -> UsageSample:
        """A sample for one interval; some of them also end a stretch.

        After a sample, no other is taken for as long as it took, and all callers get that one: on a slow board
        full of processes sampling is expensive, and must not fall behind.
        """
        assert self._stretches is not None and self._seen is not None, "begin() comes first"
        begin_s = time.monotonic()
        if begin_s >= self._look_again_s:
            due = self._stretches.due(begin_s)
            self._seen = self._look(whole=due)
            if due:
                self._stretches.take(self._seen)
            end_s = time.monotonic()
            self._look_again_s = end_s + (end_s - begin_s)
        return self._seen

    def proof(self) -> LoadProof:
        """Use of resources since ``begin``, and whether it proves that the load ran."""
        assert self._before is not None and self._stretches is not None, "begin() comes first"
        proof = prove(self._load.name, self._load.expects, self._cpus, self._before, self._look())
        ended = [
            f"{command[0]} of load {self._load.name} exited too early" + self._cause(command, process)
            for command, process in zip(self.command_lines, self._processes, strict=True)
            if not process.running
        ]
        reasons = (*proof.reasons, *self._stretches.reasons(), *ended)
        return replace(proof, ran=not reasons, reasons=reasons)

    def _cause(self, command: Sequence[str], process: Process) -> str:
        """Return why a process has ended: its own time limit, or else its last error output; empty if unknown."""
        limit, run_s = time_limit_of(command), time.monotonic() - self._started_mono_s
        if limit is None or limit.seconds > run_s or process.wait(0.0) not in _AT_TIME_LIMIT:
            return _last_line(process)
        return (
            f": its time limit of {words.duration(limit.seconds * 1e9)} ({limit.text}) is shorter than the run, which "
            f"takes {words.duration(max(self._planned_s, run_s) * 1e9)}; use {{limit_s}} for the time limit"
        )

    def stop(self) -> None:
        """Stop all processes at once; returns when none is left."""
        for process in self._processes:
            process.signal(signal.SIGTERM)
        while self._processes:
            self._processes.pop().stop()
        if self._brought is not None:
            self._brought.holder.stop()
            self._brought = None
