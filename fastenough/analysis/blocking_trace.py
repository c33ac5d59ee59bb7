# SPDX-License-Identifier: GPL-2.0-or-later
"""Read the terms of the composed bound from a trace of the kernel, as text (docs/bound.md).

Needs the events preempt_disable, preempt_enable, irq_disable, irq_enable (preemptirq), sched_switch, and the entry and
exit of interrupts; the flags column shows whether rescheduling was requested.  No event marks the entry of the
scheduler, so a section with preemption off counts as scheduling if it contains a switch.  A call of the scheduler
without a switch counts as another section, which can only lengthen the bound.

The idle task always has preemption off, but delays no task by that: preemption counts as on there.  It polls whether
to schedule.  Rescheduling therefore counts as requested from the first time interrupts are enabled after a wake-up to
the last time before the switch, and as scheduling from then on.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from fastenough.analysis.composed_bound import Blocking, Interrupt
from fastenough.model import BadInput

_TASK = r"\s*.{1,60}?-(?P<pid>\d{1,9})\s+(?:\([ \d-]{1,9}\)\s+)?"
_AT = r"\s+(?P<s>\d{1,9})\.(?P<part>\d{6}|\d{9}):\s+(?P<event>\w+):\s*(?P<rest>.*)"
_FULL = re.compile(_TASK + r"\[(?P<cpu>\d{1,5})\]\s+(?P<flags>\S{1,20})" + _AT, re.ASCII)
"""An event line in the text format of the kernel."""
_LATENCY = re.compile(_TASK + r"(?P<cpu>\d{1,4})(?P<flags>[.a-zA-Z#]\S{3,7})" + _AT, re.ASCII)
"""A line of ``trace-cmd report -l``: the flags follow the CPU."""
_NO_FLAGS = re.compile(_TASK + r"\[\d{1,5}\]" + _AT, re.ASCII)
_LOST = re.compile(
    r"\[(?:LOST )?(?:\d+ )?EVENTS?(?: DROPPED)?\]|\bCPU \d+ buffer started|"
    r"\b(?:overrun|dropped events|missed events|lost events):\s*[1-9]|"
    r"\b[1-9]\d* (?:events? )?(?:lost|dropped|missed)\b|\b(?:lost|dropped|missed) [1-9]\d* events?",
    re.IGNORECASE | re.ASCII,
)
"""How the kernel (``CPU:1 [LOST 5 EVENTS]``) and trace-cmd (``CPU:7 [204600 EVENTS DROPPED]``, its statistics) say that
events are missing.  The kernel marks where the buffer of a CPU starts only after an overrun."""
_WRITTEN = re.compile(r"# entries-in-buffer/entries-written: (\d{1,18})/(\d{1,18})\b", re.ASCII)
_PRIORITY = r"(-?\d{1,4})"
"""A number of the kernel: -1 for tasks with a deadline."""
_NEXT = re.compile(rf"next_pid=(\d{{1,9}}) next_prio={_PRIORITY}|==> .{{0,40}}?:(\d{{1,9}}) \[{_PRIORITY}\]")
_PREVIOUS = re.compile(rf"prev_prio={_PRIORITY} |:\d{{1,9}} \[{_PRIORITY}\] \S+ ==> ")
_WOKEN = re.compile(
    rf"pid=(\d{{1,9}}) prio={_PRIORITY} .*?target_cpu=(\d{{1,5}})|:(\d{{1,9}}) \[{_PRIORITY}\].*? CPU:(\d{{1,5}})"
)
_INTERRUPT = re.compile(
    r"(irq_handler|local_timer|reschedule|call_function|call_function_single|irq_work|"
    r"thermal_apic|threshold_apic|deferred_error_apic|error_apic|spurious_apic|x86_platform_ipi|ipi)_(entry|exit)"
)
_RESCHEDULE_FLAGS = "NnBb"
"""Flags of a trace that request rescheduling at once, not at the next tick."""
_CONTEXT_COLUMNS = {4: 2, 5: 2, 7: 3, 8: 3}
"""Index of the flag of interrupts, by the number of flag columns in the text format of the kernel.  PREEMPT_RT patches
of older kernels put ``need-resched-lazy`` before it; a preemption depth may need two columns."""
_INTERRUPT_FLAGS = "shH"
"""Flags of a trace in an interrupt or soft interrupt."""
_HARD_FLAGS = "hH"
"""Flags of a trace in an interrupt that is no soft one."""
_IDLE = 0
"""PID of the idle task of each CPU."""
_LOWEST_REAL_TIME = 99
"""Kernel priorities: a lower number is more urgent; from 100 on there is no real-time policy."""
_MOST_CPUS = 4096
_MOST_NESTED = 16
"""Interrupts within each other."""


@dataclass(frozen=True)
class _Event:
    pid: int
    cpu: int
    asked: bool
    context: str
    at_ns: int
    name: str
    rest: str


@dataclass(frozen=True)
class TracedCpu:
    """Terms and observations of one CPU.

    ``observed_ns``: longest time from the wake-up of a real-time task to its switch, with no other task of its priority
    or above running or queued; None: no such wake-up.  ``resolution_ns``: of the clock of the trace; it is added to the
    reading of each term.  ``traced_ns``: length of the trace.
    """

    cpu: int
    blocking: Blocking
    interrupts: tuple[Interrupt, ...]
    sections: int
    switches: int
    observed_ns: int | None
    wakeups: int
    resolution_ns: int
    traced_ns: int


@dataclass
class _Cpu:
    """State of one CPU while its events are read.  Times are instants unless the name denotes a duration.

    ``outside``: an event came outside interrupts.  ``idle``: its idle task runs, and no interrupt.
    """

    cpu: int
    seen: int = 0
    irqs_off: bool = False
    preemption_off: bool = False
    known: bool = False
    begin: int | None = None
    to_schedule: int | None = None
    unaware: int | None = None
    asked: int | None = None
    switched: bool = False
    idle_until: int | None = None
    taken_ns: int = 0
    taken_at: dict[str, int] = field(default_factory=dict)
    open_interrupts: list[tuple[str, int, int]] = field(default_factory=list)
    interrupts: list[Interrupt] = field(default_factory=list)
    outside: bool = False
    idle: bool = False
    known_kinds: set[str] = field(default_factory=set)
    cut: dict[str, tuple[str, int]] = field(default_factory=dict)
    longest: dict[str, int] = field(default_factory=dict)
    sections: int = 0
    switches: int = 0
    running: int = 120
    waiting: dict[int, tuple[int, int]] = field(default_factory=dict)
    waited: list[int] = field(default_factory=list)

    def mark(self, name: str) -> None:
        """Count interrupts of this part from here on."""
        self.taken_at[name] = self.taken_ns

    def lasted(self, name: str, begin: int, end: int) -> None:
        """Record the length of a part that has ended, less its interrupts."""
        self.longest[name] = max(self.longest.get(name, 0), end - begin - (self.taken_ns - self.taken_at[name]))


def traced_cpus(lines: Iterable[str]) -> tuple[TracedCpu, ...]:
    """The terms of each CPU in a trace.

    Raises BadInput if the text is no trace, has lost events or lacks required ones, or if its time goes backwards,
    which would shorten a section.
    """
    cpus: dict[int, _Cpu] = {}
    resolution_ns = 1
    first_ns: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        match = _FULL.match(line[:1000]) or _LATENCY.match(line[:1000])
        if match is None:
            _require_harmless(number, line[:1000])
            continue
        if len(match["part"]) == 6:
            resolution_ns = 1000
        event = _event(match)
        first_ns[event.name] = min(first_ns.get(event.name, event.at_ns), event.at_ns)
        _follow(cpus, event)
    _require(first_ns)
    end_ns = max(cpu.seen for cpu in cpus.values())
    for cpu in cpus.values():
        _count_cut_parts(cpu, first_ns, end_ns)
    traced_ns = end_ns - min(first_ns.values())
    return tuple(
        _traced_cpu(cpu, resolution_ns, traced_ns) for _, cpu in sorted(cpus.items()) if cpu.sections or cpu.longest
    )


def _require_harmless(number: int, line: str) -> None:
    """Raise BadInput for a line that reports lost events or missing flags."""
    written = _WRITTEN.match(line)
    if _LOST.search(line) or (written is not None and int(written[1]) < int(written[2])):
        raise BadInput(
            f"line {number}: the trace has lost events, and with them perhaps the longest; record it "
            "again with a larger buffer"
        )
    if _NO_FLAGS.match(line):
        raise BadInput(f"line {number}: the events have no flags column; write the text with trace-cmd report -t -l")


def _event(match: re.Match[str]) -> _Event:
    at_ns = int(match["s"]) * 10**9 + int(match["part"].ljust(9, "0"))
    cpu = int(match["cpu"])
    if cpu >= _MOST_CPUS:
        raise BadInput(f"CPU {cpu}: CPU number out of range; not a kernel trace")
    flags = match["flags"]
    column = _CONTEXT_COLUMNS.get(len(flags)) if match.re is _FULL else 2
    if column is None:
        raise BadInput(f"an event has {len(flags)} columns of flags, '{flags}'; supported are 4, 5, 7 and 8 columns")
    return _Event(
        int(match["pid"]), cpu, flags[1] in _RESCHEDULE_FLAGS, flags[column], at_ns, match["event"], match["rest"]
    )


def _require(names: Collection[str]) -> None:
    for needed in ("preempt_disable", "preempt_enable", "irq_disable", "irq_enable", "sched_switch"):
        if needed not in names:
            raise BadInput(
                f"the trace has no event {needed}: record preemptirq:*, sched:sched_switch, "
                "sched:sched_wakeup, irq:* and irq_vectors:* on a kernel that has them (docs/bound.md)"
            )
    for half in ("entry", "exit"):
        if not any((match := _INTERRUPT.fullmatch(name)) and match[2] == half for name in names):
            raise BadInput(
                f"the trace has no {half} of an interrupt, and without them the bound is too short: record "
                "irq:*, irq_vectors:* and ipi:* (docs/bound.md)"
            )


def clock_error_ns(resolution_ns: int) -> int:
    """Maximum error of the time between two events: none of a clock in ns."""
    return resolution_ns if resolution_ns > 1 else 0


def _traced_cpu(cpu: _Cpu, resolution_ns: int, traced_ns: int) -> TracedCpu:
    off_ns = clock_error_ns(resolution_ns)

    def term(name: str) -> int:
        return max(0, cpu.longest[name]) + off_ns if name in cpu.longest else 0

    blocking = Blocking(term("poid"), term("paie"), term("psd"), term("dst"))
    interrupts = tuple(replace(interrupt, took_ns=interrupt.took_ns + off_ns) for interrupt in cpu.interrupts)
    return TracedCpu(
        cpu.cpu,
        blocking,
        interrupts,
        cpu.sections,
        cpu.switches,
        max(cpu.waited, default=None),
        len(cpu.waited),
        resolution_ns,
        traced_ns,
    )


def _count_cut_parts(cpu: _Cpu, first_ns: Mapping[str, int], end_ns: int) -> None:
    """Count what the begin or the end of the trace cuts with the length that is in the trace.

    ``first_ns``: time of the first event of each name.  From the first ``_disable`` of any CPU on, each is recorded.
    """
    while cpu.open_interrupts:
        _leave(cpu, end_ns)
    if cpu.begin is not None and not cpu.idle:
        _section_lasted(cpu, cpu.begin, end_ns)
    for kind, (term, until_ns) in cpu.cut.items():
        begin_ns = first_ns[f"{kind}_disable"]
        taken_ns = sum(each.took_ns for each in cpu.interrupts if begin_ns <= each.at_ns < until_ns)
        cpu.longest[term] = max(cpu.longest.get(term, 0), until_ns - begin_ns - taken_ns)


# --- following one CPU


def _follow(cpus: dict[int, _Cpu], event: _Event) -> None:
    cpu = cpus.setdefault(event.cpu, _Cpu(event.cpu))
    if event.at_ns < cpu.seen:
        raise BadInput(
            f"the times of CPU {event.cpu} go back by {cpu.seen - event.at_ns} ns at {event.name}: its "
            "clock was set, or lines are out of order; record it with the clock mono"
        )
    cpu.seen = event.at_ns
    if event.pid == _IDLE:
        cpu.known_kinds.add("preempt")
    interrupt = _INTERRUPT.fullmatch(event.name)
    if event.name in _STEPS:
        _STEPS[event.name](cpu, event)
    elif interrupt is not None:
        _interrupt(cpu, event, interrupt[1], enters=interrupt[2] == "entry")
    elif event.name == "sched_wakeup":
        _require_known_interrupt(cpu, event)
        _wakeup(cpus, event)
    cpu.outside |= event.context not in _HARD_FLAGS
    cpu.idle = event.pid == _IDLE and event.context not in _INTERRUPT_FLAGS


def _require_known_interrupt(cpu: _Cpu, event: _Event) -> None:
    """An interrupt that wakes a task must be in the trace, unless it began before it."""
    if event.context in _HARD_FLAGS and cpu.outside and not cpu.open_interrupts:
        raise BadInput(
            f"CPU {cpu.cpu}: an interrupt that is not in the trace woke a task; without it the bound is too short: "
            "record irq:*, irq_vectors:* and ipi:* (docs/bound.md)"
        )


def _begin(cpu: _Cpu, event: _Event) -> None:
    if not cpu.irqs_off and not cpu.preemption_off:
        cpu.begin = event.at_ns
        cpu.mark("poid")


def _irqs_off(cpu: _Cpu, event: _Event) -> None:
    cpu.known_kinds.add("irq")
    _begin(cpu, event)
    if event.pid == _IDLE and not cpu.irqs_off:
        cpu.to_schedule, cpu.unaware = cpu.idle_until, None
        cpu.taken_at["psd"] = cpu.taken_at.get("idle", cpu.taken_ns)
    cpu.irqs_off = True
    if cpu.to_schedule is not None and cpu.unaware is None:
        cpu.unaware = event.at_ns
        cpu.mark("dst")


def _irqs_on(cpu: _Cpu, event: _Event) -> None:
    _cut_by_begin(cpu, event, "irq")
    cpu.irqs_off = False
    if not cpu.switched:
        cpu.unaware = None
    if event.pid == _IDLE and event.context in _INTERRUPT_FLAGS:
        cpu.preemption_off = True
    elif event.pid == _IDLE:
        cpu.preemption_off, cpu.idle_until = False, event.at_ns
        cpu.mark("idle")
        _request_lasted(cpu, event)
    _end(cpu, event)


def _cut_by_begin(cpu: _Cpu, event: _Event, kind: str) -> None:
    """Record a part that ends here and began before the trace; none of an idle CPU, which may have been offline."""
    if kind not in cpu.known_kinds and event.pid != _IDLE:
        cpu.cut[kind] = ("psd" if cpu.switched else "poid", event.at_ns)
    cpu.known_kinds.add(kind)


def _request_lasted(cpu: _Cpu, event: _Event) -> None:
    if cpu.asked is not None:
        cpu.lasted("paie", cpu.asked, event.at_ns)


def _preemption_off(cpu: _Cpu, event: _Event) -> None:
    cpu.known_kinds.add("preempt")
    _request_lasted(cpu, event)
    cpu.asked = None
    _begin(cpu, event)
    cpu.preemption_off, cpu.to_schedule, cpu.unaware = True, event.at_ns, None
    cpu.mark("psd")


def _preemption_on(cpu: _Cpu, event: _Event) -> None:
    _cut_by_begin(cpu, event, "preempt")
    cpu.preemption_off = False
    _end(cpu, event)


def _end(cpu: _Cpu, event: _Event) -> None:
    """Classify the section that ends where both are on again.  The first one may have begun before the trace: it counts
    with the length that is in the trace, but not as a section."""
    if cpu.irqs_off or cpu.preemption_off:
        return
    begin, first = cpu.begin, not cpu.known
    cpu.known, cpu.begin = True, None
    if begin is not None:
        cpu.sections += not first
        _section_lasted(cpu, begin, event.at_ns)
    cpu.switched, cpu.to_schedule, cpu.unaware = False, None, None
    if event.asked and cpu.asked is None:
        cpu.asked = event.at_ns
        cpu.mark("paie")


def _section_lasted(cpu: _Cpu, begin: int, end: int) -> None:
    if cpu.switched:
        _scheduled(cpu, begin, end)
    else:
        cpu.lasted("poid", begin, end)


def _scheduled(cpu: _Cpu, begin: int, end: int) -> None:
    """A section with a switch: scheduling begins where preemption was last disabled; before that is another part."""
    start = cpu.to_schedule
    if start is None:
        return
    cpu.lasted("psd", start, end)
    if cpu.unaware is not None:
        cpu.lasted("dst", cpu.unaware, end)
    if begin < start:
        before_ns = start - begin - (cpu.taken_at["psd"] - cpu.taken_at["poid"])
        cpu.longest["poid"] = max(cpu.longest.get("poid", 0), before_ns)


def _interrupt(cpu: _Cpu, event: _Event, kind: str, *, enters: bool) -> None:
    if enters:
        number = re.match(r"irq=(\d+)", event.rest)
        cpu.open_interrupts.append((f"{kind} {number[1]}" if number else kind, event.at_ns, cpu.taken_ns))
        if len(cpu.open_interrupts) > _MOST_NESTED:
            raise BadInput(
                f"CPU {cpu.cpu}: {_MOST_NESTED} interrupts without an end; record the exit of interrupts, too"
            )
    elif cpu.open_interrupts:
        _leave(cpu, event.at_ns)


def _leave(cpu: _Cpu, at_ns: int) -> None:
    """End the innermost interrupt."""
    name, began, taken_before_ns = cpu.open_interrupts.pop()
    took_ns = at_ns - began - (cpu.taken_ns - taken_before_ns)
    cpu.taken_ns += took_ns
    cpu.interrupts.append(Interrupt(name, began, took_ns))


def _switch(cpu: _Cpu, event: _Event) -> None:
    match = _NEXT.search(event.rest)
    if match is None:
        raise BadInput(f"sched_switch without a next task: '{event.rest[:60]}'; not a kernel trace")
    pid, priority = (int(match[place] or match[place + 2]) for place in (1, 2))
    previous = _PREVIOUS.search(event.rest)
    if not cpu.switches and previous is not None:
        running = int(previous[1] or previous[2])
        cpu.waiting = {other: waiting for other, waiting in cpu.waiting.items() if waiting[1] < running}
    cpu.switches += 1
    cpu.switched, cpu.running, cpu.asked = True, priority, None
    cpu.preemption_off = True
    if pid in cpu.waiting:
        cpu.waited.append(event.at_ns - cpu.waiting.pop(pid)[0])
    cpu.waiting = {other: waiting for other, waiting in cpu.waiting.items() if waiting[1] < priority}


def _wakeup(cpus: dict[int, _Cpu], event: _Event) -> None:
    """Handle the wake-up of a real-time task that precedes all tasks of its CPU."""
    match = _WOKEN.search(event.rest)
    if match is None:
        return
    pid, priority, target_cpu = (int(match[place] or match[place + 3]) for place in (1, 2, 3))
    target = cpus.setdefault(target_cpu, _Cpu(target_cpu)) if target_cpu < _MOST_CPUS else None
    if target is None or priority > _LOWEST_REAL_TIME or priority >= target.running:
        return
    if all(priority < other for _, other in target.waiting.values()):
        target.waiting = {pid: (event.at_ns, priority)}


_STEPS = {
    "irq_disable": _irqs_off,
    "irq_enable": _irqs_on,
    "preempt_disable": _preemption_off,
    "preempt_enable": _preemption_on,
    "sched_switch": _switch,
}
