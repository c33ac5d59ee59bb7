# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether the kernel joins pages into huge ones behind a task's back."""

from __future__ import annotations

from fastenough.link import Link
from fastenough.model import BadInput, NotApplicable
from fastenough.settings.place import FilePlace
from fastenough.settings.setting import Requested, Setting, Step

_FILE = "/sys/kernel/mm/transparent_hugepage/enabled"
_VALUES = ("always", "madvise", "never")


def _steps(link: Link, requested: Requested) -> list[Step]:
    if requested not in _VALUES:
        raise BadInput(f"setting transparent-huge-pages = {requested!r} cannot be: write one of {', '.join(_VALUES)}")
    if not link.exists(_FILE):
        raise NotApplicable("the kernel has no transparent huge pages (CONFIG_TRANSPARENT_HUGEPAGE is off)")
    return [(FilePlace(_FILE), str(requested))]


SETTING = Setting("transparent-huge-pages", "always, madvise or never", _steps, files=(_FILE,))
