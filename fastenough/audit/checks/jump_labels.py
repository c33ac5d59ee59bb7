# SPDX-License-Identifier: GPL-2.0-or-later
"""Static branches."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, build, costs, fine


def _look(facts: Facts) -> Seen:
    if facts.option("JUMP_LABEL") == "y":
        return fine("built in")
    return costs(
        "not built in: each tracepoint and each switch of the scheduler is a test in memory",
        build("CONFIG_JUMP_LABEL=y"),
    )


CHECK = Check(
    "jump-labels",
    "static branches",
    Group.KERNEL,
    Severity.LOW,
    _look,
    why="Tracepoints and options that are switched off cost a load and a branch each, unless they are patched out.",
    source="Enea, appendix A, step 1 (CONFIG_JUMP_LABEL)",
    elsewhere="patching code at run time interrupts all CPUs: switch nothing of the kind while measuring",
)
