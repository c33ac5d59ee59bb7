# SPDX-License-Identifier: GPL-2.0-or-later
"""A quota of CPU time."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, costs, done, fine, unknown


def _look(facts: Facts) -> Seen:
    if reason := facts.reason("cpu_quota"):
        return unknown(reason)
    quota = facts.get("cpu_quota")
    if quota is None:
        facts.need("control_group")
        return fine("no control group has one")
    return costs(
        f"{int(quota['granted_us']) / 1000:g} ms of CPU time in each {int(quota['period_us']) / 1000:g} ms",
        done("take the quota away (cpu.max, CPUQuota=, --cpus)"),
    )


CHECK = Check(
    "cpu-quota",
    "quota of CPU time",
    Group.SCHEDULING,
    Severity.HIGH,
    _look,
    why="When it is used up, every ordinary task of the group stops until the next period, and real-time tasks that "
    "wait for one of them stop too.",
    source="kernel: Documentation/admin-guide/cgroup-v2.rst, cpu.max",
    elsewhere="others may get less CPU time",
)
