# SPDX-License-Identifier: GPL-2.0-or-later
"""The timer that compares the TSC with another clock, on all CPUs in turn."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, boot, costs, fine

_NO_WATCHDOG = ("reliable", "nowatchdog")


def _look(facts: Facts) -> Seen:
    if not facts.x86 or str(facts.need("clocksource")) != "tsc":
        return fine("the clock source is not the TSC of x86")
    if facts.arguments.get("tsc") in _NO_WATCHDOG or "tsc_reliable" in facts.need("cpu", "flags"):
        return fine("the TSC is trusted: no timer compares it with another clock")
    return costs("a timer compares the TSC with another clock every 0.5 s, on each CPU in turn", boot("tsc=reliable"))


CHECKS = (
    Check("clock-watchdog", "watchdog of the TSC", Group.TIMERS, Severity.LOW, _look,
          why="The timer runs on isolated CPUs too. Where it is held up, the kernel may declare the TSC unstable and "
              "change to a clock that costs 1 µs and more to read.",
          source="kernel: Documentation/admin-guide/kernel-parameters.txt, tsc; tuned, profile realtime",
          elsewhere="a TSC that really drifts is not noticed"),
)
