# SPDX-License-Identifier: GPL-2.0-or-later
"""Raises the threads that run timers, where the kernel runs them in threads of their own."""

from __future__ import annotations

from fastenough.link import Link
from fastenough.model import NotApplicable
from fastenough.settings.setting import Requested, Setting, Step, integer
from fastenough.settings.tasks import find_tasks

_NAMES = ("ktimers/", "ktimersoftd/", "sirq-timer/")
"""PREEMPT_RT of today, of the 4.x years, and of the 2.6 years."""


def _steps(link: Link, requested: Requested) -> list[Step]:
    priority = integer("timer-threads", requested, 1, 99)
    found = find_tasks(link, lambda task: task.comm.startswith(_NAMES))
    if not found:
        raise NotApplicable("no thread of its own runs timers here (some PREEMPT_RT kernels have one)")
    return [(place, f"fifo:{priority}") for place, _ in found]


SETTING = Setting("timer-threads", "priority of the timer soft-IRQ threads", _steps)
