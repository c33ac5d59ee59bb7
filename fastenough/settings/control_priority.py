# SPDX-License-Identifier: GPL-2.0-or-later
"""The bench's own priority, high enough to keep control of a loaded board; what it starts stays ordinary."""

from __future__ import annotations

import os
from dataclasses import replace

from fastenough.link import Link
from fastenough.model import NotApplicable
from fastenough.settings.place import BENCH
from fastenough.settings.setting import Requested, Setting, Step, integer
from fastenough.settings.tasks import find_tasks


def _steps(link: Link, requested: Requested) -> list[Step]:
    priority = integer("control-priority", requested, 1, 99)
    if link.name != "local":
        raise NotApplicable("the bench is not on the board")
    return [
        (replace(place, called=BENCH), f"fifo:{priority}:reset")
        for place, _ in find_tasks(link, lambda task: task.tid == os.getpid())
    ]


SETTING = Setting("control-priority", "the bench's own real-time priority", _steps)
