# SPDX-License-Identifier: GPL-2.0-or-later
"""Which CPUs the bench itself runs on; what it starts, the probe and its load, may use all that it could use before."""

from __future__ import annotations

from pathlib import Path

from fastenough.facts.cpu import cpu_list, list_form
from fastenough.link import Link
from fastenough.model import BadInput, NotApplicable
from fastenough.settings.place import CpusPlace, start_ticks
from fastenough.settings.setting import Requested, Setting, Step


def _steps(link: Link, requested: Requested) -> list[Step]:
    try:
        wanted = set(cpu_list(str(requested)))
    except ValueError:
        wanted = set()
    if not wanted or wanted - set(cpu_list(link.read("/sys/devices/system/cpu/online").decode())):
        raise BadInput(f"setting housekeeping = {requested!r} cannot be: write CPUs in use, such as \"0\" or \"0,2-3\"")
    if link.name != "local":
        raise NotApplicable("the bench is not on the board")
    if link.which("taskset") is None:
        raise NotApplicable("taskset is not there: apt-get install util-linux")
    threads = sorted(int(thread.name) for thread in Path("/proc/self/task").iterdir())
    began = ((thread, start_ticks(link, thread)) for thread in threads)
    return [(CpusPlace(tid, ticks), list_form(wanted)) for tid, ticks in began if ticks is not None]


SETTING = Setting("housekeeping", "the CPUs that the bench itself runs on", _steps)
