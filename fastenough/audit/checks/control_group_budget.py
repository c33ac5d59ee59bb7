# SPDX-License-Identifier: GPL-2.0-or-later
"""What control groups grant of real time."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, build, costs, done, fine


def _look(facts: Facts) -> Seen:
    if facts.option("RT_GROUP_SCHED") != "y":
        return fine("groups have none of their own (CONFIG_RT_GROUP_SCHED is off)")
    if reason := facts.reason("real_time_budget"):
        return costs(
            f"groups have budgets of their own, and ours is not known: {reason}",
            build("CONFIG_RT_GROUP_SCHED=n"),
            severity=Severity.LOW,
        )
    budget = facts.get("real_time_budget")
    if budget is None:
        return fine("no group above this one limits it")
    granted, period = int(budget["granted_us"]), int(budget["period_us"])
    if granted >= min(period, int(facts.get("tunables", "sched_rt_runtime_us") or period)):
        return fine(f"as much as the system grants: {granted / 1000:g} of {period / 1000:g} ms")
    return costs(
        f"{granted / 1000:g} of {period / 1000:g} ms in the tightest group",
        done(f"write {period} to cpu.rt_runtime_us of the group and of those above it"),
        build("CONFIG_RT_GROUP_SCHED=n"),
        severity=Severity.HIGH if granted == 0 else None,
    )


CHECK = Check(
    "control-group-budget",
    "real-time budget of control groups",
    Group.SCHEDULING,
    Severity.LOW,
    _look,
    why="A group without budget is refused real-time policies, and one that has used its budget waits for the next "
    "period.",
    source="kernel: Documentation/scheduler/sched-rt-group.rst",
    elsewhere="safety, as with real-time throttling",
)
