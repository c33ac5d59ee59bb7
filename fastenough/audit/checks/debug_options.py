# SPDX-License-Identifier: GPL-2.0-or-later
"""Options of the kernel that check or trace, and make paths longer that cannot be preempted."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, build, costs, fine

_HEAVY = (
    "PROVE_LOCKING",
    "DEBUG_LOCK_ALLOC",
    "DEBUG_LOCKDEP",
    "LOCK_STAT",
    "DEBUG_OBJECTS",
    "DEBUG_PAGEALLOC",
    "KASAN",
    "KCSAN",
    "KMSAN",
    "DEBUG_KMEMLEAK",
    "SLUB_DEBUG_ON",
    "DEBUG_PREEMPT",
    "IRQSOFF_TRACER",
    "PREEMPT_TRACER",
    "GCOV_KERNEL",
    "KCOV",
    "DEBUG_ATOMIC_SLEEP",
    "FAULT_INJECTION",
    "DEBUG_VM_PGTABLE",
    "PREEMPTIRQ_DELAY_TEST",
)
"""Each lengthens locks, allocations, or every switching off of interrupts."""
_LIGHT = (
    "DEBUG_SHIRQ",
    "RCU_TRACE",
    "LATENCYTOP",
    "DEBUG_LIST",
    "DEBUG_RT_MUTEXES",
    "DEBUG_SPINLOCK",
    "DEBUG_MUTEXES",
    "SCHEDSTATS",
    "DEBUG_VM",
)


def _look(facts: Facts) -> Seen:
    heavy, light = ([name for name in names if facts.option(name) == "y"] for names in (_HEAVY, _LIGHT))
    if not heavy and not light:
        return fine("none of those that lengthen paths of the kernel is built in")
    return costs(
        "built in: " + ", ".join(heavy + light),
        build(*(f"CONFIG_{name}=n" for name in heavy + light)),
        severity=None if heavy else Severity.LOW,
    )


CHECK = Check(
    "debug-options",
    "debug options",
    Group.KERNEL,
    Severity.HIGH,
    _look,
    why="Checks of locks, memory and preemption lengthen what runs with interrupts or preemption off. Enea saw "
    "388 µs with them and 126 µs without.",
    source="Enea, appendix A, step 1 and tables A.2 and A.3; kernel: Documentation/core-api/real-time/hardware.rst",
    elsewhere="defects are harder to find: keep a second kernel with them",
)
