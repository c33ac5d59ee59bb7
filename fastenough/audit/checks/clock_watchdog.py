# SPDX-License-Identifier: GPL-2.0-or-later
"""The timer that compares the TSC with another clock, on all CPUs in turn."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.checks.scheduler import release
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, boot, costs, fine

_NO_WATCHDOG = ("reliable", "nowatchdog")
_TRUSTED_SINCE, _TRUSTED_FLAGS, _TRUSTED_NODES = (5, 17), frozenset(("constant_tsc", "nonstop_tsc", "tsc_adjust")), 2
"""From this release on, the kernel starts no watchdog where the processor has all these flags and there are no more
nodes of memory (arch/x86/kernel/tsc.c, check_system_tsc_reliable)."""


def _trusted(facts: Facts) -> bool:
    nodes = facts.get("numa")
    return (
        release(facts) >= _TRUSTED_SINCE
        and set(facts.need("cpu", "flags")) >= _TRUSTED_FLAGS
        and nodes is not None
        and len(nodes) <= _TRUSTED_NODES
    )


def _look(facts: Facts) -> Seen:
    if not facts.x86 or str(facts.need("clocksource")) != "tsc":
        return fine("the clock source is not the TSC of x86")
    if facts.arguments.get("tsc") in _NO_WATCHDOG or "tsc_reliable" in facts.need("cpu", "flags"):
        return fine("the TSC is trusted: no timer compares it with another clock")
    if _trusted(facts):
        return fine("the kernel trusts the TSC of such a processor: no timer compares it with another clock")
    return costs("a timer compares the TSC with another clock every 0.5 s, on each CPU in turn", boot("tsc=reliable"))


CHECKS = (
    Check(
        "clock-watchdog",
        "watchdog of the TSC",
        Group.TIMERS,
        Severity.LOW,
        _look,
        why="The timer runs on isolated CPUs too. Where it is held up, the kernel may declare the TSC unstable and "
        "change to a clock that costs 1 µs and more to read.",
        source="kernel: Documentation/admin-guide/kernel-parameters.txt, tsc; tuned, profile realtime",
        elsewhere="a TSC that really drifts is not noticed",
    ),
)
