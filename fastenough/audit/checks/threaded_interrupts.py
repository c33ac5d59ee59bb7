# SPDX-License-Identifier: GPL-2.0-or-later
"""Interrupt handlers in threads."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, boot, build, costs, fine


def _look(facts: Facts) -> Seen:
    if facts.real_time_kernel:
        return fine("PREEMPT_RT runs them in threads")
    if "threadirqs" in facts.arguments:
        return fine("they run in threads (threadirqs)")
    if facts.option("IRQ_FORCED_THREADING") != "y":
        return costs(
            "they run with interrupts off, and this kernel cannot make them threads",
            build("CONFIG_IRQ_FORCED_THREADING=y"),
        )
    return costs("they run with interrupts off, whatever the priority of the task that waits", boot("threadirqs"))


CHECK = Check(
    "threaded-interrupts",
    "threaded interrupts",
    Group.INTERRUPTS,
    Severity.MEDIUM,
    _look,
    why="A handler runs before any task and for as long as it takes. As a thread it has a priority, and a task above "
    "it preempts it.",
    source="Enea, appendix A, step 3 and table A.4; kernel: Documentation/admin-guide/kernel-parameters.txt",
    elsewhere="throughput: a context switch for each interrupt",
)
