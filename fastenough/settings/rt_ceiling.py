# SPDX-License-Identifier: GPL-2.0-or-later
"""Lowers the real-time tasks that were there before, so that they do not come before what is measured."""

from __future__ import annotations

import os

from fastenough.facts.tasks import Task
from fastenough.link import Link
from fastenough.settings.setting import Requested, Setting, Step, integer
from fastenough.settings.tasks import find_tasks

_KERNELS_OWN = ("migration/", "cpuhp/", "idle_inject/")
"""Of a scheduling class of their own, or must run when they must."""


def _steps(link: Link, requested: Requested) -> list[Step]:
    highest = integer("rt-ceiling", requested, 1, 99)
    own = os.getpid() if link.name == "local" else None

    def too_high(task: Task) -> bool:
        movable = task.tid != own and not task.comm.startswith(_KERNELS_OWN)
        return movable and task.policy in ("fifo", "rr") and task.priority > highest

    return [(place, f"{task.policy}:{highest}") for place, task in find_tasks(link, too_high)]


SETTING = Setting("rt-ceiling", "the highest priority real-time tasks that were there before may keep", _steps)
