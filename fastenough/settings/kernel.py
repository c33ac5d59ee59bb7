# SPDX-License-Identifier: GPL-2.0-or-later
"""Settings of the running kernel: one integer in one file each (a table), and three that are words or levels."""

from __future__ import annotations

import re

from fastenough.link import Link
from fastenough.model import BadInput, NotApplicable
from fastenough.settings.place import FilePlace
from fastenough.settings.setting import Requested, Setting, Step, integer, number_in

_INTEGERS = (
    # name, summary, file, lowest and highest value
    (
        "rt-throttling",
        "CPU time of real-time tasks in each period (1 s), in µs; -1: no limit",
        "/proc/sys/kernel/sched_rt_runtime_us",
        -1,
        1_000_000_000,
    ),
    ("timer-migration", "1: timers of an idle CPU may move; 0: they stay", "/proc/sys/kernel/timer_migration", 0, 1),
    ("numa-balancing", "1: automatic NUMA balancing; 0: off", "/proc/sys/kernel/numa_balancing", 0, 1),
    ("swappiness", "how readily the kernel swaps, 0 to 200", "/proc/sys/vm/swappiness", 0, 200),
    ("page-merging", "1: merge equal pages (KSM); 0: merge no more", "/sys/kernel/mm/ksm/run", 0, 1),
    ("compaction", "proactive memory compaction, 0 to 100", "/proc/sys/vm/compaction_proactiveness", 0, 100),
    ("stat-interval", "seconds between updates of memory statistics", "/proc/sys/vm/stat_interval", 1, 86400),
    ("nmi-watchdog", "1: hard-lockup (NMI) watchdog; 0: off", "/proc/sys/kernel/nmi_watchdog", 0, 1),
    ("soft-watchdog", "1: soft-lockup watchdog on each CPU; 0: off", "/proc/sys/kernel/soft_watchdog", 0, 1),
    (
        "split-lock-penalty",
        "1: slow down tasks that take split locks; 0: only log them",
        "/proc/sys/kernel/split_lock_mitigate",
        0,
        1,
    ),
)

_CONSOLE_LEVEL = "/proc/sys/kernel/printk"
_HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"
_HUGE_PAGE_MODES = ("always", "madvise", "never")
_PREEMPTION = "/sys/kernel/debug/sched/preempt"


def _console_level(link: Link, requested: Requested) -> list[Step]:
    """Replace the first of the file's four levels, which is that of the consoles."""
    level = integer("console-level", requested, 1, 15)
    if not link.exists(_CONSOLE_LEVEL):
        raise NotApplicable(f"this kernel has no {_CONSOLE_LEVEL}")
    _, *others = link.read(_CONSOLE_LEVEL).decode(errors="replace").split()
    return [(FilePlace(_CONSOLE_LEVEL), "\t".join([str(level), *others]))]


def _huge_pages(link: Link, requested: Requested) -> list[Step]:
    if requested not in _HUGE_PAGE_MODES:
        modes = ", ".join(_HUGE_PAGE_MODES)
        raise BadInput(f"setting transparent-huge-pages = {requested!r} is not valid; use one of {modes}")
    if not link.exists(_HUGE_PAGES):
        raise NotApplicable("the kernel has no transparent huge pages (CONFIG_TRANSPARENT_HUGEPAGE is off)")
    return [(FilePlace(_HUGE_PAGES), str(requested))]


def _preemption(link: Link, requested: Requested) -> list[Step]:
    try:
        models = re.findall(r"\w+", link.read(_PREEMPTION).decode(errors="replace"))
    except OSError as error:
        raise NotApplicable(f"{_PREEMPTION} is not readable (no PREEMPT_DYNAMIC, or debugfs not mounted)") from error
    if requested not in models:
        raise BadInput(f"setting preemption = {requested!r} is not supported by this kernel; use {', '.join(models)}")
    return [(FilePlace(_PREEMPTION), str(requested))]


SETTINGS = (
    *(number_in(*row) for row in _INTEGERS),
    Setting("transparent-huge-pages", "always, madvise or never", _huge_pages, files=(_HUGE_PAGES,)),
    Setting(
        "console-level", "print kernel messages below this level to the consoles", _console_level, (_CONSOLE_LEVEL,)
    ),
    Setting(
        "preemption", "preemption model of a dynamic kernel: full, lazy, voluntary or none", _preemption, (_PREEMPTION,)
    ),
)
