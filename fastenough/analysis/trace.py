# SPDX-License-Identifier: GPL-2.0-or-later
"""Read a trace of the kernel: tasks running on each CPU, interruptions, and wake-ups between tasks.

The text is that of tracefs' file ``trace``, whose times are exact to 1 µs, on CLOCK_MONOTONIC (settings/trace.py);
before it, how far back the buffer of each CPU reaches.  Unknown lines are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from itertools import pairwise

_LINE = re.compile(
    r" *(?P<comm>.*?)-(?P<pid>\d+) +\[(?P<cpu>\d+)\]\s+\S+\s+(?P<s>\d+)\.(?P<us>\d{6}): "
    r"(?P<event>\w+): ?(?P<fields>.*)"
)
_SWITCH = re.compile(
    r"prev_comm=(?P<comm>.*) prev_pid=(?P<pid>\d+) prev_prio=(?P<prio>-?\d+) prev_state=\S+ ==> "
    r"next_comm=(?P<next_comm>.*) next_pid=(?P<next_pid>\d+) next_prio=(?P<next_prio>-?\d+)"
)
_WAKING = re.compile(r"comm=(?P<comm>.*) pid=(?P<pid>\d+) prio=(?P<prio>-?\d+)")
_REACH = re.compile(r"## (?:per_cpu/cpu(?P<cpu>\d+)|oldest event ts: +(?P<s>\d+)\.(?P<us>\d{6}))")
_REAL_TIME_BELOW = 100


class TraceKind(IntEnum):
    """Users of a CPU.  Of several at once, a task never counts, but the one that began last, and of these the
    greatest."""

    TASK = 0
    SOFTIRQ = 1
    INTERRUPT = 2
    TIMER = 3


@dataclass(frozen=True)
class TracedTask:
    """``priority``: the kernel's own number, below 100 for real-time tasks; None: unknown."""

    comm: str
    pid: int
    priority: int | None = None

    @property
    def idle(self) -> bool:
        return self.pid == 0

    @property
    def real_time(self) -> bool:
        return self.priority is not None and self.priority < _REAL_TIME_BELOW

    @property
    def name(self) -> str:
        return "idle" if self.idle else f"{self.comm}-{self.pid}"


@dataclass(frozen=True)
class Slice:
    """A time slice of a CPU, in ns on CLOCK_MONOTONIC; ``task``: the task that ran or was interrupted."""

    kind: TraceKind
    cpu: int
    begin_ns: int
    end_ns: int
    name: str
    task: TracedTask


@dataclass(frozen=True)
class Waking:
    """A wake-up of a task, made on ``cpu``."""

    cpu: int
    at_ns: int
    task: TracedTask


@dataclass(frozen=True)
class Trace:
    """``known_ns``: begin of the trace of each CPU; of other CPUs nothing is known."""

    slices: tuple[Slice, ...]
    wakings: tuple[Waking, ...]
    known_ns: Mapping[int, int]
    end_ns: int

    def running(self, cpu: int, at_ns: int) -> Slice | None:
        """The slice of the task that ran on a CPU at a time; None: unknown."""
        return next(
            (
                part
                for part in reversed(self.slices)
                if part.kind is TraceKind.TASK and part.cpu == cpu and part.begin_ns <= at_ns <= part.end_ns
            ),
            None,
        )

    def waking(self, pid: int, before_ns: int) -> Waking | None:
        """The last wake-up of a task before a time."""
        return next(
            (waking for waking in reversed(self.wakings) if waking.task.pid == pid and waking.at_ns <= before_ns), None
        )

    def within(self, begin_ns: int, end_ns: int) -> list[Slice]:
        """The slices between two times, cut there, in order of time."""
        cut = [
            replace(part, begin_ns=max(part.begin_ns, begin_ns), end_ns=min(part.end_ns, end_ns))
            for part in self.slices
            if part.begin_ns < end_ns and part.end_ns > begin_ns
        ]
        return sorted(cut, key=lambda part: (part.begin_ns, part.kind))


@dataclass(frozen=True)
class Share:
    """CPU time of one user; ``kind`` None: unknown from the trace."""

    kind: TraceKind | None
    name: str
    ns: int
    times: int


def shares(trace: Trace, cpu: int, begin_ns: int, end_ns: int) -> list[Share]:
    """The CPU time of each user between two times, the greatest first.  Each moment counts once, so they sum to the
    whole.

    An interrupt's time is its own and not the task's that it interrupted; likewise a soft-IRQ's, while who runs it is
    not itself off the CPU.
    """
    slices = [part for part in trace.slices if part.cpu == cpu and part.begin_ns < end_ns and part.end_ns > begin_ns]
    edges = sorted(
        {
            begin_ns,
            end_ns,
            *(edge for part in slices for edge in (part.begin_ns, part.end_ns) if begin_ns < edge < end_ns),
        }
    )
    time_ns: dict[tuple[TraceKind | None, str], int] = {}
    times: dict[tuple[TraceKind | None, str], set[int]] = {}
    for begin, end in pairwise(edges):
        part = _on_top(slices, begin, end)
        user = (None, "not known") if part is None else (part.kind, part.name)
        time_ns[user] = time_ns.get(user, 0) + end - begin
        times.setdefault(user, set()).add(begin if part is None else part.begin_ns)
    user_shares = [Share(*user, ns, len(times[user])) for user, ns in time_ns.items()]
    return sorted(user_shares, key=lambda share: -share.ns)


def _on_top(slices: Iterable[Slice], begin_ns: int, end_ns: int) -> Slice | None:
    covering = [part for part in slices if part.begin_ns <= begin_ns and part.end_ns >= end_ns]
    ran = {part.task.pid for part in covering if part.kind is TraceKind.TASK}
    return max(
        (part for part in covering if part.kind is not TraceKind.SOFTIRQ or not ran or part.task.pid in ran),
        key=lambda part: (part.kind is not TraceKind.TASK, part.begin_ns, part.kind),
        default=None,
    )


# --- reading


def _vector(name: str) -> Callable[[str], str]:
    return lambda _: name


def _named(pattern: str) -> Callable[[str], str]:
    """A function that returns the match of a pattern in the fields of an event, or all fields without a match."""
    compiled = re.compile(pattern)

    def name(fields: str) -> str:
        match = compiled.search(fields)
        return fields if match is None else " ".join(match.groups())

    return name


_BEGINS: Mapping[str, tuple[TraceKind, Callable[[str], str]]] = {
    "irq_handler_entry": (TraceKind.INTERRUPT, _named(r"(irq=\d+) name=(.*)")),
    "local_timer_entry": (TraceKind.INTERRUPT, _vector("local timer")),
    "reschedule_entry": (TraceKind.INTERRUPT, _vector("reschedule IPI")),
    "call_function_entry": (TraceKind.INTERRUPT, _vector("function call IPI")),
    "call_function_single_entry": (TraceKind.INTERRUPT, _vector("function call IPI")),
    "ipi_entry": (TraceKind.INTERRUPT, _named(r"\((.*)\)")),
    "softirq_entry": (TraceKind.SOFTIRQ, _named(r"action=(\w+)")),
    "hrtimer_expire_entry": (TraceKind.TIMER, _named(r"function=(\S+)")),
}
_ENDS = {name.replace("entry", "exit"): kind for name, (kind, _) in _BEGINS.items()}


@dataclass
class _Reading:
    """The state while a trace is read; ``open_slices``: slices without an end, by CPU and kind."""

    slices: list[Slice] = field(default_factory=list)
    wakings: list[Waking] = field(default_factory=list)
    known_ns: dict[int, int] = field(default_factory=dict)
    now: dict[int, Slice] = field(default_factory=dict)
    open_slices: dict[tuple[int, TraceKind], list[Slice]] = field(default_factory=dict)
    first_ns: int | None = None
    end_ns: int = 0

    def line(self, match: re.Match[str]) -> None:
        cpu, at_ns = int(match["cpu"]), _ns(match)
        if self.first_ns is None:
            self.first_ns = at_ns
        self.end_ns = max(self.end_ns, at_ns)
        if cpu not in self.now:
            begin_ns = self.known_ns[cpu] = max(self.known_ns.get(cpu, 0), self.first_ns)
            self.now[cpu] = _task_slice(cpu, min(begin_ns, at_ns), TracedTask(match["comm"], int(match["pid"])))
        event, fields = match["event"], match["fields"]
        if event in _BEGINS:
            kind, name = _BEGINS[event]
            self.open_slices.setdefault((cpu, kind), []).append(
                Slice(kind, cpu, at_ns, at_ns, name(fields), self.now[cpu].task)
            )
        elif event in _ENDS:
            self._end(cpu, _ENDS[event], at_ns, event)
        elif event == "sched_switch" and (switch := _SWITCH.match(fields)):
            self._switch(cpu, at_ns, switch)
        elif event == "sched_waking" and (waking := _WAKING.match(fields)):
            self.wakings.append(Waking(cpu, at_ns, _task(waking)))

    def _end(self, cpu: int, kind: TraceKind, at_ns: int, event: str) -> None:
        """End a slice; the name of one that began before the trace is unknown."""
        open_slices = self.open_slices.get((cpu, kind))
        part = (
            open_slices.pop()
            if open_slices
            else Slice(kind, cpu, self.known_ns[cpu], at_ns, event.removesuffix("_exit"), self.now[cpu].task)
        )
        self.slices.append(replace(part, end_ns=at_ns))

    def _switch(self, cpu: int, at_ns: int, switch: re.Match[str]) -> None:
        """End the slice of a task, with its priority, which was unknown if the trace began with the task."""
        before = _task(switch)
        self.slices.append(replace(self.now[cpu], end_ns=at_ns, name=before.name, task=before))
        self.now[cpu] = _task_slice(
            cpu, at_ns, TracedTask(switch["next_comm"], int(switch["next_pid"]), int(switch["next_prio"]))
        )

    def trace(self) -> Trace:
        """The trace; slices without an end last until its end."""
        begun = [*self.now.values(), *(part for parts in self.open_slices.values() for part in parts)]
        slices = [*self.slices, *(replace(part, end_ns=self.end_ns) for part in begun)]
        return Trace(
            tuple(sorted(slices, key=lambda part: (part.begin_ns, part.kind))),
            tuple(self.wakings),
            {cpu: self.known_ns[cpu] for cpu in self.now},
            self.end_ns,
        )


def _ns(match: re.Match[str]) -> int:
    return int(match["s"]) * 1_000_000_000 + int(match["us"]) * 1000


def _task(match: re.Match[str]) -> TracedTask:
    return TracedTask(match["comm"], int(match["pid"]), int(match["prio"]))


def _task_slice(cpu: int, begin_ns: int, task: TracedTask) -> Slice:
    return Slice(TraceKind.TASK, cpu, begin_ns, begin_ns, task.name, task)


def read_trace(content: bytes, until_ns: int = 0) -> Trace:
    """A trace as the bench stores it beside a recording; empty without a known line.

    ``until_ns``: tracing was on at least until then, so that the last slices extend to it.
    """
    reading = _Reading(end_ns=until_ns)
    cpu = -1
    for line in content.decode(errors="replace").splitlines():
        if reach := _REACH.match(line):
            if reach["cpu"] is not None:
                cpu = int(reach["cpu"])
            else:
                reading.known_ns[cpu] = _ns(reach)
        elif match := _LINE.match(line):
            reading.line(match)
    return reading.trace()
