# SPDX-License-Identifier: GPL-2.0-or-later
"""Finding a place again that the journal speaks of: one line here for each kind.

The journal is a file, so it is not believed: only what a setting of fastenough can have noted is put back.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from fastenough.link import Link
from fastenough.settings.instance import InstancePlace
from fastenough.settings.kernel_module import ModulePlace
from fastenough.settings.pin import PinPlace
from fastenough.settings.place import CpusPlace, FilePlace, Place, TaskPlace

_KERNELS_OWN = ("/proc/", "/sys/")
_MOST_VALUE = 1 << 15


class Unusable(ValueError):
    """An entry that no setting can have noted; nothing was done with it."""


def _text(entry: Mapping[str, Any], name: str, pattern: str) -> str:
    value = entry.get(name)
    if not isinstance(value, str) or not re.fullmatch(pattern, value, re.DOTALL):
        raise Unusable(f"its {name} cannot be {ascii(value)[:80]}")
    return value


def _number(entry: Mapping[str, Any], name: str, least: int) -> int:
    value = entry.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 1 << 63:
        raise Unusable(f"its {name} cannot be {ascii(value)[:80]}")
    return value


def is_among(path: str, patterns: Sequence[str]) -> bool:
    """Whether a path matches a pattern component by component: a star does not cross a slash."""
    parts = path.split("/")
    return not {".", ".."} & set(parts) and any(
        len(parts) == pattern.count("/") + 1 and all(map(fnmatchcase, parts, pattern.split("/")))
        for pattern in patterns
    )


def _file(entry: Mapping[str, Any], link: Link, files: Sequence[str]) -> FilePlace:
    path = _text(entry, "path", r"/[^\0]*")
    if not is_among(path, files):
        raise Unusable(f"no setting writes {ascii(path)[:200]}")
    resolved = os.path.realpath(path) if link.name == "local" else path
    if not resolved.startswith(_KERNELS_OWN):
        raise Unusable(f"{ascii(path)[:200]} leads to {ascii(resolved)[:200]}, outside of /proc and /sys")
    return FilePlace(path)


def _task(entry: Mapping[str, Any], link: Link, files: Sequence[str]) -> TaskPlace:
    return TaskPlace(_number(entry, "tid", 1), _number(entry, "start_ticks", 0), _text(entry, "comm", r"[^\0]{0,64}"))


def _cpus(entry: Mapping[str, Any], link: Link, files: Sequence[str]) -> CpusPlace:
    return CpusPlace(_number(entry, "pid", 1), _number(entry, "start_ticks", 0))


def _pin(entry: Mapping[str, Any], link: Link, files: Sequence[str]) -> PinPlace:
    return PinPlace(_number(entry, "number", 0), _text(entry, "name", r"[^\0]{0,200}"))


def _module(entry: Mapping[str, Any], link: Link, files: Sequence[str]) -> ModulePlace:
    return ModulePlace(_text(entry, "name", r"\w{1,64}"))


def _trace(entry: Mapping[str, Any], link: Link, files: Sequence[str]) -> InstancePlace:
    return InstancePlace()


KINDS: Mapping[str, tuple[Callable[[Mapping[str, Any], Link, Sequence[str]], Place], str]] = {
    "file": (_file, rf"[^\0]{{0,{_MOST_VALUE}}}"),
    "task": (_task, r"(other|fifo|rr|batch|idle):\d{1,2}(:reset)?"),
    "cpus": (_cpus, r"\d[\d,-]{0,4000}"),
    "pin": (_pin, "in|out"),
    "module": (_module, "absent"),
    "trace": (_trace, "absent"),
}
"""How a kind of place is found again, and what its original value can have been."""


def noted(entry: Mapping[str, Any], link: Link, files: Sequence[str]) -> tuple[Place, str]:
    """The place an entry of the journal speaks of and its original value.

    ``files``: patterns of what settings write.  Raises Unusable.
    """
    place = entry["place"]
    kind = place.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise Unusable(f"there is no kind of place called {ascii(kind)[:80]}")
    make, values = KINDS[kind]
    return make(place, link, files), _text(entry, "original", values)
