# SPDX-License-Identifier: GPL-2.0-or-later
"""Finding tasks whose priority is to be changed."""

from __future__ import annotations

from collections.abc import Callable

from fastenough.facts.tasks import Task, parse_task
from fastenough.link import Link
from fastenough.model import NotApplicable
from fastenough.settings.place import TaskPlace

_STATS = "/proc/[0-9]*/task/[0-9]*/stat"


def find_tasks(link: Link, wanted: Callable[[Task], bool]) -> list[tuple[TaskPlace, Task]]:
    """Every task that ``wanted`` holds for; raises NotApplicable where priorities cannot be changed."""
    if link.which("chrt") is None:
        raise NotApplicable("chrt is not there: apt-get install util-linux")
    found = []
    for path in link.glob(_STATS):
        try:
            text = link.read(path).decode(errors="replace")
        except OSError:
            continue
        task = parse_task(text)
        if wanted(task):
            found.append((TaskPlace(task.tid, int(text.rpartition(")")[2].split()[19]), task.comm), task))
    return found
