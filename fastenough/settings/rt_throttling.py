# SPDX-License-Identifier: GPL-2.0-or-later
"""How much of each second real-time tasks may take all together."""

from __future__ import annotations

from fastenough.link import Link
from fastenough.model import NotApplicable
from fastenough.settings.place import FilePlace
from fastenough.settings.setting import Requested, Setting, Step, integer

_FILE = "/proc/sys/kernel/sched_rt_runtime_us"


def _steps(link: Link, requested: Requested) -> list[Step]:
    runtime_us = integer("rt-throttling", requested, -1, 1_000_000_000)
    if not link.exists(_FILE):
        raise NotApplicable(f"{_FILE} is not there")
    return [(FilePlace(_FILE), str(runtime_us))]


SETTING = Setting("rt-throttling", "µs of each period (1 s) that real-time tasks may run; -1 for all of it", _steps,
                  files=(_FILE,))
