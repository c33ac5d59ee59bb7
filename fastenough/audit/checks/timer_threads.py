# SPDX-License-Identifier: GPL-2.0-or-later
"""The threads that run timers of PREEMPT_RT."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, costs, done, fine

_NAMES = ("ktimers/", "ktimersoftd/")
_LOW = 50


def _look(facts: Facts) -> Seen:
    if not facts.real_time_kernel:
        return fine("timers run in the interrupt itself (not PREEMPT_RT)")
    threads = [each for each in facts.interrupt_threads() if str(each["comm"]).startswith(_NAMES)]
    if not threads:
        return fine("this kernel has none of its own")
    low = min(int(each["priority"]) for each in threads)
    if low >= _LOW:
        return fine(f"their priority is {low} or more")
    return costs(f"their priority is {low}", done("chrt -f -p 99 each ktimers/N", ("timer-threads", "99")))


CHECK = Check(
    "timer-threads",
    "threads that run timers",
    Group.TIMERS,
    Severity.MEDIUM,
    _look,
    why="Timers that do not end in the hard interrupt (signals, itimers, timerfd of ordinary tasks) end when this "
    "thread runs, behind every real-time task of higher priority.",
    source="Brown and Martin, section 3.6; kernel: kernel/softirq.c",
    elsewhere="what other timers do comes before real-time tasks",
)
