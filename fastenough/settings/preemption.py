# SPDX-License-Identifier: GPL-2.0-or-later
"""The preemption model of a kernel built with PREEMPT_DYNAMIC."""

from __future__ import annotations

import re

from fastenough.link import Link
from fastenough.model import BadInput, NotApplicable
from fastenough.settings.place import FilePlace
from fastenough.settings.setting import Requested, Setting, Step

_FILE = "/sys/kernel/debug/sched/preempt"


def _steps(link: Link, requested: Requested) -> list[Step]:
    try:
        models = re.findall(r"\w+", link.read(_FILE).decode(errors="replace"))
    except OSError as error:
        raise NotApplicable(f"{_FILE} cannot be read (no PREEMPT_DYNAMIC, or debugfs is not mounted)") from error
    if requested not in models:
        raise BadInput(f"setting preemption = {requested!r} is not offered by this kernel: use {', '.join(models)}")
    return [(FilePlace(_FILE), str(requested))]


SETTING = Setting(
    "preemption", "the preemption model of a dynamic kernel: full, lazy, voluntary or none", _steps, files=(_FILE,)
)
