# SPDX-License-Identifier: GPL-2.0-or-later
"""RCU callbacks: where the work is done that RCU puts off."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts, as_cpus
from fastenough.audit.finding import Group, Seen, Severity, boot, build, costs, fine


def _look(facts: Facts) -> Seen:
    arguments, apart = facts.arguments, facts.set_apart
    if as_cpus(facts.get("cpu_isolation", "nohz_full")):
        return fine("threads do it for the CPUs of nohz_full")
    if "rcu_nocbs" in arguments:
        return fine(f"threads do it for CPUs {arguments['rcu_nocbs'] or 'named later'} (rcu_nocbs)")
    if facts.option("RCU_NOCB_CPU") != "y":
        return costs(
            "each CPU does its own in a soft interrupt, and this kernel cannot hand it to threads",
            build("CONFIG_RCU_EXPERT=y", "CONFIG_RCU_NOCB_CPU=y"),
        )
    if facts.option("RCU_NOCB_CPU_DEFAULT_ALL") == "y":
        return fine("threads do it for all CPUs (CONFIG_RCU_NOCB_CPU_DEFAULT_ALL)")
    return costs(
        "each CPU does its own", boot(f"rcu_nocbs={apart}"), severity=Severity.LOW if facts.real_time_kernel else None
    )


CHECK = Check(
    "rcu-callbacks",
    "RCU callbacks",
    Group.KERNEL,
    Severity.MEDIUM,
    _look,
    why="Memory freed by RCU is given back in batches on the CPU that freed it, in a soft interrupt that runs before "
    "tasks. With rcu_nocbs threads do it, which a real-time task preempts.",
    source="Enea, appendix A, step 1 (CONFIG_RCU_NOCB_CPU); kernel: Documentation/admin-guide/kernel-parameters.txt",
    elsewhere="throughput: more context switches where much is freed",
)
