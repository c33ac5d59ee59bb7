# SPDX-License-Identifier: GPL-2.0-or-later
"""What the processor prefers where it chooses its frequency itself."""

from __future__ import annotations

from fastenough.link import Link
from fastenough.model import BadInput, NotApplicable
from fastenough.settings.place import FilePlace
from fastenough.settings.setting import Requested, Setting, Step

_FILES = "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/energy_performance_preference"


def _steps(link: Link, requested: Requested) -> list[Step]:
    paths = link.glob(_FILES)
    if not paths:
        raise NotApplicable("the processor chooses no frequency by itself here (no energy_performance_preference)")
    available = link.read(paths[0].replace("preference", "available_preferences")).decode().split()
    if requested not in available:
        raise BadInput(f"setting energy-preference = {requested!r} cannot be: write one of {', '.join(available)}")
    return [(FilePlace(path, cpu=int(path.split("/")[5][3:])), str(requested)) for path in paths]


SETTING = Setting("energy-preference", "what a processor prefers that chooses its frequency, such as performance",
                  _steps, files=(_FILES,))
