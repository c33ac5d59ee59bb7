# SPDX-License-Identifier: GPL-2.0-or-later
"""Settings of task priorities: interrupt and timer threads, other real-time tasks, and the bench itself."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from fastenough.facts.tasks import TaskStat, parse_task
from fastenough.link import Link, read_matching
from fastenough.model import NotApplicable
from fastenough.settings.place import BENCH, LINE_THREAD, TaskPlace
from fastenough.settings.setting import Requested, Setting, Step, integer

_STATS = "/proc/[0-9]*/task/[0-9]*/stat"
_NOT_LOWERED = ("migration/", "cpuhp/", "idle_inject/")
"""Kernel threads that are in a scheduling class of their own, or whose priority the kernel depends on."""
_TIMER_THREADS = ("ktimers/", "ktimersoftd/", "sirq-timer/")
"""Names in current kernels with PREEMPT_RT, in 4.x and in 2.6."""


def find_tasks(link: Link, selects: Callable[[TaskStat], bool]) -> list[tuple[TaskPlace, TaskStat]]:
    """Return every task for which ``selects`` is true; raise NotApplicable where chrt is not installed."""
    if link.which("chrt") is None:
        raise NotApplicable("chrt is not installed: apt-get install util-linux")
    tasks = []
    for content in read_matching(link, [_STATS]).values():
        text = content.decode(errors="replace")
        with suppress(ValueError, IndexError):  # it ended meanwhile, and its file is empty
            task = parse_task(text)
            if selects(task):
                tasks.append((TaskPlace(task.tid, int(text.rpartition(")")[2].split()[19]), task.comm), task))
    return tasks


def _rt_ceiling(link: Link, requested: Requested) -> list[Step]:
    highest = integer("rt-ceiling", requested, 1, 99)
    bench_pid = os.getpid() if link.name == "local" else None

    def too_high(task: TaskStat) -> bool:
        movable = task.tid != bench_pid and not task.comm.startswith(_NOT_LOWERED)
        return movable and task.policy in ("fifo", "rr") and task.priority > highest

    return [(place, f"{task.policy}:{highest}") for place, task in find_tasks(link, too_high)]


def _irq_threads(link: Link, requested: Requested) -> list[Step]:
    number, _, name = str(requested).partition(":")
    priority = integer("irq-threads", number, 1, 99)
    tasks = find_tasks(link, lambda task: task.comm.startswith("irq/") and name in task.comm)
    if not tasks:
        condition = f" with {name!r} in its name" if name else ""
        raise NotApplicable(f"there is no interrupt thread{condition} (neither PREEMPT_RT nor threadirqs)")
    return [(_named(place), f"fifo:{priority}") for place, _ in tasks]


def _named(place: TaskPlace) -> TaskPlace:
    """Return the place of an interrupt thread; the number of that of an input differs from run to run."""
    is_of_input = place.comm.partition("-")[2].startswith(LINE_THREAD)
    return replace(place, recorded_name=LINE_THREAD) if is_of_input else place


def _timer_threads(link: Link, requested: Requested) -> list[Step]:
    priority = integer("timer-threads", requested, 1, 99)
    tasks = find_tasks(link, lambda task: task.comm.startswith(_TIMER_THREADS))
    if not tasks:
        raise NotApplicable("this kernel has no timer threads (some kernels with PREEMPT_RT have them)")
    return [(place, f"fifo:{priority}") for place, _ in tasks]


def _control_priority(link: Link, requested: Requested) -> list[Step]:
    """Child processes of the bench start with ordinary priority."""
    priority = integer("control-priority", requested, 1, 99)
    if link.name != "local":
        raise NotApplicable("the bench does not run on the board")
    return [
        (replace(place, recorded_name=BENCH), f"fifo:{priority}:reset")
        for place, _ in find_tasks(link, lambda task: task.tid == os.getpid())
    ]


SETTINGS = (
    Setting("rt-ceiling", "highest priority of other real-time tasks", _rt_ceiling),
    Setting("irq-threads", 'priority of interrupt threads; "99:gpio": of those with gpio in their name', _irq_threads),
    Setting("timer-threads", "priority of the timer soft-interrupt threads", _timer_threads),
    Setting("control-priority", "real-time priority of the bench itself", _control_priority),
)
