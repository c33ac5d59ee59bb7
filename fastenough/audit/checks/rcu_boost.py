# SPDX-License-Identifier: GPL-2.0-or-later
"""RCU priority boosting."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, build, costs, fine


def _look(facts: Facts) -> Seen:
    if facts.option("PREEMPT_RCU") != "y":
        return fine("readers cannot be preempted in this kernel, so there is none to boost")
    if facts.option("RCU_BOOST") == "y":
        return fine("built in")
    return costs("not built in", build("CONFIG_RCU_EXPERT=y", "CONFIG_RCU_BOOST=y", "CONFIG_RCU_BOOST_DELAY=500"))


CHECK = Check(
    "rcu-boost",
    "RCU boosting",
    Group.KERNEL,
    Severity.LOW,
    _look,
    why="A reader that a real-time task keeps from running holds up every grace period, and memory cannot be freed "
    "until it runs. Boosting lends it priority.",
    source="Enea, appendix A, step 1 (CONFIG_RCU_BOOST); kernel: kernel/rcu/Kconfig",
    elsewhere="none to speak of",
)
