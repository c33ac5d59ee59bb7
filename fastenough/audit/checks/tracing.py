# SPDX-License-Identifier: GPL-2.0-or-later
"""A tracer that is on."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, costs, fine, written


def _look(facts: Facts) -> Seen:
    tracer = str(facts.need("tunables", "tracer"))
    if tracer == "nop":
        return fine("no tracer is on")
    return costs(f"the tracer {tracer} is on", written("/sys/kernel/tracing/current_tracer", "nop"))


CHECK = Check(
    "tracing",
    "tracer in use",
    Group.KERNEL,
    Severity.MEDIUM,
    _look,
    why="A tracer adds to every traced function, also to those with interrupts off: the function tracer doubles many "
    "delays.",
    source="kernel: Documentation/trace/ftrace.rst",
    elsewhere="what it records is not recorded",
)
