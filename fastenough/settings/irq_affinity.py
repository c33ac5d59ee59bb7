# SPDX-License-Identifier: GPL-2.0-or-later
"""Which CPUs serve interrupts."""

from __future__ import annotations

from fastenough.facts.cpu import cpu_list, cpus_of, list_form
from fastenough.link import Link
from fastenough.model import BadInput, NotApplicable
from fastenough.settings.place import FilePlace
from fastenough.settings.setting import Requested, Setting, Step

_FILES = "/proc/irq/[0-9]*/smp_affinity_list"


def _steps(link: Link, requested: Requested) -> list[Step]:
    try:
        wanted = set(cpu_list(str(requested)))
    except ValueError:
        wanted = set()
    online = set(cpus_of(link, "online"))
    if not wanted or wanted - online:
        raise BadInput(f'setting irq-affinity = {requested!r} cannot be: write CPUs in use, such as "0" or "0,2-3"')
    paths = link.glob(_FILES)
    if not paths:
        raise NotApplicable("the kernel lets no affinities be set (no /proc/irq/*/smp_affinity_list)")
    return [(FilePlace(path, suffix=f" {path.split('/')[3]}"), list_form(wanted)) for path in paths]


SETTING = Setting("irq-affinity", "the CPUs that serve every interrupt that can be moved", _steps, files=(_FILES,))
