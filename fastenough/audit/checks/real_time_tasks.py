# SPDX-License-Identifier: GPL-2.0-or-later
"""Other tasks of real-time priority."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, costs, done, fine

_KERNELS = (
    "migration/",
    "irq/",
    "ktimers/",
    "ktimersoftd/",
    "ksoftirqd/",
    "rcuc/",
    "rcub/",
    "rcu_preempt",
    "rcu_sched",
    "rcuog/",
    "rcuop/",
    "rcu_exp",
    "watchdogd",
    "watchdog/",
    "cpuhp/",
    "stop/",
    "idle_inject/",
    "posixcputmr/",
    "backlog_napi/",
    "psimon",
    "sugov:",
    "cros_ec",
    "card0-crtc",
    "irq_work/",
)
"""Threads of the kernel, which have their priorities for a reason."""
_NAMED = 5
_BESIDE = 5
"""What the paper lowers them to."""


def _look(facts: Facts) -> Seen:
    tasks = list(facts.need("real_time_tasks"))
    found = [
        each
        for each in tasks
        if not str(each["comm"]).startswith(_KERNELS)
        and each["policy"] != "deadline"
        and int(each["priority"]) > _BESIDE
    ]
    found += [each for each in tasks if each["policy"] == "deadline"]
    if not found:
        facts.require_all_tasks()
        return fine("none but the kernel's own")
    named = ", ".join(f"{each['comm']} ({each['policy']} {each['priority']})" for each in found[:_NAMED])
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return costs(f"{named}{more}", done("lower them below the task that counts", ("rt-ceiling", str(_BESIDE))))


CHECK = Check(
    "real-time-tasks",
    "other real-time tasks",
    Group.SCHEDULING,
    Severity.HIGH,
    _look,
    why="A task of the same or a higher priority is not preempted: the task that counts waits as long as it runs.",
    source="sched(7); Brown and Martin, section 3.6 (what was there before is lowered to 5)",
    elsewhere="what those tasks were given priority for",
)
