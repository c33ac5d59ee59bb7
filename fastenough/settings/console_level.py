# SPDX-License-Identifier: GPL-2.0-or-later
"""Which messages of the kernel are printed to its consoles."""

from __future__ import annotations

from fastenough.link import Link
from fastenough.model import NotApplicable
from fastenough.settings.place import FilePlace
from fastenough.settings.setting import Requested, Setting, Step, integer

_FILE = "/proc/sys/kernel/printk"


def _steps(link: Link, requested: Requested) -> list[Step]:
    """The file has four levels; that of the consoles is the first."""
    level = integer("console-level", requested, 1, 15)
    if not link.exists(_FILE):
        raise NotApplicable(f"{_FILE} is not there")
    _, *others = link.read(_FILE).decode(errors="replace").split()
    return [(FilePlace(_FILE), "\t".join([str(level), *others]))]


SETTING = Setting(
    "console-level", "messages of the kernel below this level are printed to its consoles", _steps, files=(_FILE,)
)
