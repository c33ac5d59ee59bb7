# SPDX-License-Identifier: GPL-2.0-or-later
"""Places of settings: a file of the kernel, a task's scheduling parameters, the bench's CPUs; values are text."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, TypedDict

from fastenough.facts.memory import chosen
from fastenough.facts.tasks import is_kernel_thread, parse_task
from fastenough.link import Link
from fastenough.model import FastenoughError

_FLAGS = {"other": "-o", "fifo": "-f", "rr": "-r", "batch": "-b", "idle": "-i"}
_RESET = "SCHED_RESET_ON_FORK"
BENCH = "bench"
LINE_THREAD = "fasten"
"""Begin of the name of the interrupt thread that serves an input of a task; the kernel truncates the rest."""
_CPUS_ALLOWED = "Cpus_allowed_list:"


class PlaceGone(FastenoughError):
    """The place no longer exists, so there is nothing to restore."""


PlaceEntry = Mapping[str, str | int]
"""A place in the journal: its ``kind``, and what identifies it there."""


class PlaceLabel(TypedDict, total=False):
    """The thread or the CPU that a setting in a recording belongs to, if it belongs to one."""

    thread: str
    cpu: int


class Place(Protocol):
    """One value on the board.  ``label`` and ``suffix`` (of the name) identify it in recordings."""

    def read(self, link: Link) -> str: ...

    def write(self, link: Link, value: str) -> None: ...

    def entry(self) -> PlaceEntry:
        """Return the journal's description of this place."""

    def label(self) -> PlaceLabel: ...

    @property
    def suffix(self) -> str: ...


@dataclass(frozen=True)
class FilePlace:
    """A file below /proc or /sys; where it lists the possible values, the current one is in brackets.

    ``dependent``: path of a file whose number the kernel forgets when this one changes; empty: none.
    """

    path: str
    cpu: int | None = None
    suffix: str = ""
    dependent: str = ""

    def read(self, link: Link) -> str:
        try:
            text = link.read(self.path).decode(errors="replace").strip()
        except FileNotFoundError as error:
            raise PlaceGone(f"{self.path} no longer exists") from error
        return chosen(text) or text

    def write(self, link: Link, value: str) -> None:
        link.write(self.path, value.encode())

    def entry(self) -> PlaceEntry:
        return {"kind": "file", "path": self.path}

    def label(self) -> PlaceLabel:
        return {} if self.cpu is None else {"cpu": self.cpu}

    def __str__(self) -> str:
        return self.path


@dataclass(frozen=True)
class TaskPlace:
    """A task's policy and priority, as ``fifo:50``, with ``:reset`` where its children start as ordinary tasks.

    ``start_ticks`` distinguishes the task from a later one with the same number.  ``recorded_name``: its name in
    recordings, if its own name and number differ from run to run.
    """

    tid: int
    start_ticks: int
    comm: str
    recorded_name: str = ""

    def read(self, link: Link) -> str:
        self._check(link)
        try:
            text = link.read(f"/proc/{self.tid}/stat").decode(errors="replace")
        except OSError as error:
            raise PlaceGone(f"task {self.tid} ({self.comm}) has ended") from error
        task = parse_task(text)
        reset = ":reset" if not is_kernel_thread(text) and self._resets_children(link) else ""
        return f"{task.policy}:{task.priority}{reset}"

    def _resets_children(self, link: Link) -> bool:
        """Ask chrt, since no file of the kernel has this flag; kernel threads have no children."""
        return _RESET in link.run(["chrt", "-p", str(self.tid)]).text

    def write(self, link: Link, value: str) -> None:
        self._check(link)
        policy, priority, *reset = value.split(":")
        command = ["chrt", *(["-R"] if reset else []), _FLAGS[policy], "-p", priority, str(self.tid)]
        completed = link.run(command)
        if completed.status != 0:
            raise OSError(1, completed.stderr.decode(errors="replace").strip() or "refused")

    def _check(self, link: Link) -> None:
        if start_ticks(link, self.tid) != self.start_ticks:
            raise PlaceGone(f"task {self.tid} ({self.comm}) has ended")

    def entry(self) -> PlaceEntry:
        return {"kind": "task", "tid": self.tid, "start_ticks": self.start_ticks, "comm": self.comm}

    def label(self) -> PlaceLabel:
        return {"thread": self.recorded_name or f"{self.comm} ({self.tid})"}

    @property
    def suffix(self) -> str:
        return ""

    def __str__(self) -> str:
        return f"task {self.tid} ({self.comm})"


@dataclass(frozen=True)
class CpusPlace:
    """The CPUs that all threads of the bench may use, as the kernel lists them; ``start_ticks`` as of a task.

    Where threads have different CPUs, there is no single value, and they are not changed.
    """

    pid: int
    start_ticks: int

    def read(self, link: Link) -> str:
        self._check(link)
        cpu_lists = set()
        for path in link.glob(f"/proc/{self.pid}/task/[0-9]*/status"):
            with suppress(OSError):
                cpu_lists.add(_cpus_allowed(link.read(path).decode(errors="replace")))
        return " or ".join(sorted(cpu_lists))

    def write(self, link: Link, value: str) -> None:
        self._check(link)
        completed = link.run(["taskset", "-acp", value, str(self.pid)])
        if completed.status != 0:
            raise OSError(1, completed.stderr.decode(errors="replace").strip() or "refused")

    def _check(self, link: Link) -> None:
        if start_ticks(link, self.pid) != self.start_ticks:
            raise PlaceGone(f"the bench (process {self.pid}) has ended")

    def entry(self) -> PlaceEntry:
        return {"kind": "cpus", "pid": self.pid, "start_ticks": self.start_ticks}

    def label(self) -> PlaceLabel:
        """Without the process number, which differs in each run."""
        return {"thread": BENCH}

    @property
    def suffix(self) -> str:
        return ""

    def __str__(self) -> str:
        return f"the CPUs of the bench (process {self.pid})"


def _cpus_allowed(status: str) -> str:
    return next(line.partition(":")[2].strip() for line in status.splitlines() if line.startswith(_CPUS_ALLOWED))


def start_ticks(link: Link, tid: int) -> int | None:
    """Return when a task started, in ticks since boot; None if there is no such task."""
    try:
        text = link.read(f"/proc/{tid}/stat").decode(errors="replace")
    except OSError:
        return None
    return int(text.rpartition(")")[2].split()[19])
