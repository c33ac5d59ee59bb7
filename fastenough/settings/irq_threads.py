# SPDX-License-Identifier: GPL-2.0-or-later
"""Raises the threads that serve interrupts, where the kernel serves them in threads."""

from __future__ import annotations

from fastenough.link import Link
from fastenough.model import NotApplicable
from fastenough.settings.setting import Requested, Setting, Step, integer
from fastenough.settings.tasks import find_tasks


def _steps(link: Link, requested: Requested) -> list[Step]:
    wanted, _, named = str(requested).partition(":")
    priority = integer("irq-threads", wanted, 1, 99)
    found = find_tasks(link, lambda task: task.comm.startswith("irq/") and named in task.comm)
    if not found:
        which = f" with {named!r} in its name" if named else ""
        raise NotApplicable(f"no interrupt is served by a thread{which} (neither PREEMPT_RT nor threadirqs)")
    return [(place, f"fifo:{priority}") for place, _ in found]


SETTING = Setting("irq-threads", 'priority of interrupt threads; "99:gpio" for those with gpio in their name', _steps)
