# SPDX-License-Identifier: GPL-2.0-or-later
"""Which CPUs the bench itself runs on; what it starts, the probe and its load, may use all that it could use before."""

from __future__ import annotations

import os

from fastenough.facts.cpu import cpu_list, cpus_of, list_form
from fastenough.link import Link
from fastenough.model import BadInput, NotApplicable
from fastenough.settings.place import CpusPlace, start_ticks
from fastenough.settings.setting import Requested, Setting, Step


def _steps(link: Link, requested: Requested) -> list[Step]:
    try:
        wanted = set(cpu_list(str(requested)))
    except ValueError:
        wanted = set()
    if not wanted or wanted - set(cpus_of(link, "online")):
        raise BadInput(f'setting housekeeping = {requested!r} cannot be: write CPUs in use, such as "0" or "0,2-3"')
    if link.name != "local":
        raise NotApplicable("the bench is not on the board")
    if link.which("taskset") is None:
        raise NotApplicable("taskset is not there: apt-get install util-linux")
    return [(CpusPlace(os.getpid(), start_ticks(link, os.getpid()) or 0), list_form(wanted))]


SETTING = Setting("housekeeping", "the CPUs that the bench itself runs on", _steps)
