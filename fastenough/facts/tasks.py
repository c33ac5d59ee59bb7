# SPDX-License-Identifier: GPL-2.0-or-later
"""Existing tasks that may preempt the measured ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from fastenough.facts.fact import Fact, Inputs

STATS = "/proc/[0-9]*/task/[0-9]*/stat"
POLICIES = {0: "other", 1: "fifo", 2: "rr", 3: "batch", 5: "idle", 6: "deadline", 7: "ext"}
"""Scheduling policies by number (sched.h)."""
_PF_KTHREAD = 0x00200000
_REAL_TIME = {"fifo", "rr", "deadline"}


@dataclass(frozen=True)
class TaskStat:
    """A thread from /proc/PID/task/TID/stat (proc(5))."""

    tid: int
    comm: str
    policy: str
    priority: int

    @property
    def real_time(self) -> bool:
        return self.policy in _REAL_TIME


class TaskFact(TypedDict):
    """A thread with its scheduling policy and priority."""

    comm: str
    tid: int
    policy: str
    priority: int


def parse_task(text: str) -> TaskStat:
    """The thread of a stat line; raises ValueError or IndexError for an invalid one."""
    first, _, rest = text.rpartition(")")
    tid, _, comm = first.partition("(")
    fields = rest.split()
    return TaskStat(int(tid), comm, POLICIES.get(int(fields[38]), fields[38]), int(fields[37]))


def is_kernel_thread(text: str) -> bool:
    """Whether a stat line is that of a kernel thread."""
    return bool(int(text.rpartition(")")[2].split()[6]) & _PF_KTHREAD)


def all_tasks(inputs: Inputs) -> list[TaskStat]:
    """Every thread; the file of one that ended while it was read is empty."""
    return [parse_task(content) for _, content in inputs.matching(STATS) if content]


def _as_entry(task: TaskStat) -> TaskFact:
    return {"comm": task.comm, "tid": task.tid, "policy": task.policy, "priority": task.priority}


def _real_time(inputs: Inputs) -> list[TaskFact]:
    tasks = [task for task in all_tasks(inputs) if task.real_time]
    return [_as_entry(task) for task in sorted(tasks, key=lambda task: (-task.priority, task.comm, task.tid))]


def _interrupt_threads(inputs: Inputs) -> list[TaskFact]:
    """Threads that serve interrupts or timers: irq/N-name, ksoftirqd/N, ktimers/N and their like."""
    names = ("irq/", "ksoftirqd/", "ktimers/", "ktimersoftd/", "rcuc/", "rcub/", "rcu_preempt", "migration/")
    tasks = [task for task in all_tasks(inputs) if task.comm.startswith(names)]
    return [_as_entry(task) for task in sorted(tasks, key=lambda task: (task.comm, task.tid))]


FACTS = (
    Fact("real_time_tasks", _real_time, files=(STATS,), volatile=True),
    Fact("interrupt_threads", _interrupt_threads, files=(STATS,), volatile=True),
)
