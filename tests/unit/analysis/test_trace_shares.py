# SPDX-License-Identifier: GPL-2.0-or-later
"""A CPU of which each microsecond is known, told as the kernel's trace tells it: who had it is what was so."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

import pytest

from fastenough.analysis.trace import TraceKind, read_trace, shares

Who = tuple[TraceKind, str]
_BEGIN_NS = 10 * 10**9
_TASKS = (("swapper/3", 0, 120), ("rt-app", 11, 49), ("a b-c", 12, 120), ("ksoftirqd/3", 13, 120), ("x [1] y", 14, 120))
_KSOFTIRQD = _TASKS[3]
_LOCAL, _DEVICE, _TIMER = (
    (TraceKind.INTERRUPT, "local timer"),
    (TraceKind.INTERRUPT, "irq=5 eth0"),
    (TraceKind.TIMER, "tick"),
)
_SAID = {
    _LOCAL: ("local_timer_{}", "vector=236"),
    _DEVICE: ("irq_handler_{}", "irq=5 name=eth0"),
    _TIMER: ("hrtimer_expire_{}", "hrtimer=0 function=tick"),
}


@dataclass
class _Cpu:
    """``had``: who had each microsecond; ``above``: interrupts and timers, each within the one before it."""

    dice: random.Random
    task: tuple[str, int, int] = _TASKS[0]
    softirq: bool = False
    above: list[Who] = field(default_factory=list)
    had: list[Who] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def _on_top(self) -> Who:
        if self.above:
            return self.above[-1]
        if self.softirq and self.task == _KSOFTIRQD:
            return TraceKind.SOFTIRQ, "TIMER"
        return TraceKind.TASK, f"{self.task[0]}-{self.task[1]}" if self.task[1] else "idle"

    def passes(self, microseconds: int) -> None:
        self.had += [self._on_top()] * microseconds

    def _say(self, event: str, fields: str) -> None:
        self.lines.append(f"{self.task[0]:>16}-{self.task[1]:<7} [003] d..2. 10.{len(self.had):06d}: {event}: {fields}")

    def step(self) -> None:
        """Something that can happen next."""
        self.dice.choice((self._ends if self.above else self._switches, self._begins, self._soft))()

    def _ends(self) -> None:
        event, fields = _SAID[self.above.pop()]
        self._say(event.format("exit"), fields)

    def _begins(self) -> None:
        new = [one for one in (_LOCAL, _DEVICE) if one not in self.above] + [_TIMER] * (self.above[-1:] == [_LOCAL])
        if new:
            self.above.append(self.dice.choice(new))
            event, fields = _SAID[self.above[-1]]
            self._say(event.format("entry"), fields)

    def _switches(self) -> None:
        following = self.dice.choice([one for one in _TASKS if one != self.task])
        told = [
            f"{which}_comm={comm} {which}_pid={pid} {which}_prio={priority}"
            for which, (comm, pid, priority) in (("prev", self.task), ("next", following))
        ]
        self._say("sched_switch", f"{told[0]} prev_state=S ==> {told[1]}")
        self.task = following

    def _soft(self) -> None:
        if self.task == _KSOFTIRQD and not self.above:
            self._say("softirq_exit" if self.softirq else "softirq_entry", "vec=1 [action=TIMER]")
            self.softirq = not self.softirq


@pytest.mark.parametrize("seed", range(200))
def test_each_microsecond_counts_for_who_had_it(seed: int) -> None:
    cpu = _Cpu(random.Random(seed))
    cpu.step()
    for _ in range(60):
        cpu.passes(cpu.dice.choice((1, 2, 5, 30)))
        cpu.step()
    cpu.passes(20)
    told_us = int(cpu.lines[0].partition(" 10.")[2][:6])
    trace = read_trace("\n".join(cpu.lines).encode(), _BEGIN_NS + len(cpu.had) * 1000)
    first, last = sorted(cpu.dice.sample(range(told_us, len(cpu.had) + 1), 2))
    found = {
        (share.kind, share.name): share.ns // 1000
        for share in shares(trace, 3, _BEGIN_NS + first * 1000, _BEGIN_NS + last * 1000)
    }
    assert found == Counter(cpu.had[first:last])
