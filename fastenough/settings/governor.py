# SPDX-License-Identifier: GPL-2.0-or-later
"""Who chooses the CPU's frequency."""

from __future__ import annotations

from fastenough.link import Link
from fastenough.model import BadInput, NotApplicable
from fastenough.settings.place import FilePlace
from fastenough.settings.setting import Requested, Setting, Step

_FILES = "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor"


def _steps(link: Link, requested: Requested) -> list[Step]:
    paths = link.glob(_FILES)
    if not paths:
        raise NotApplicable("the kernel scales no frequencies here (no cpufreq driver)")
    available = link.read(paths[0].replace("scaling_governor", "scaling_available_governors")).decode().split()
    if requested not in available:
        raise BadInput(f"setting governor = {requested!r} cannot be: write one of {', '.join(available)}")
    return [(FilePlace(path, cpu=int(path.split("/")[5][3:])), str(requested)) for path in paths]


SETTING = Setting("governor", "the frequency governor of every CPU, such as performance", _steps,
                  files=(_FILES,))
