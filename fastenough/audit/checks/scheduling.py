# SPDX-License-Identifier: GPL-2.0-or-later
"""Real-time tasks, their budgets and limits, and how the scheduler serves ordinary tasks beside them."""

from __future__ import annotations

from fastenough import words
from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import (
    CheckOutcome,
    Group,
    Severity,
    build,
    costs,
    done,
    fine,
    hides,
    sysctl,
    unknown,
    written,
)

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
"""Kernel threads whose priorities are intended."""


_NAMED = 5


_BESIDE = 5
"""The priority to which the paper (Brown and Martin) lowers them."""


def _real_time_tasks(facts: Facts) -> CheckOutcome:
    above = [
        task
        for task in facts.need("real_time_tasks")
        if not str(task["comm"]).startswith(_KERNELS)
        and (task["policy"] == "deadline" or int(task["priority"]) > _BESIDE)
    ]
    if not above:
        facts.require_all_tasks()
        return fine("only kernel threads")
    named = ", ".join(f"{task['comm']} ({task['policy']} {task['priority']})" for task in above[:_NAMED])
    more = f" and {len(above) - _NAMED} more" if len(above) > _NAMED else ""
    return costs(f"{named}{more}", done("lower them below the measured task", ("rt-ceiling", str(_BESIDE))))


def _system_limit(facts: Facts) -> tuple[int, int]:
    """Time in µs that real-time tasks may run in each period, at most the period, and the period."""
    runtime, period = (int(facts.need("tunables", f"sched_rt_{name}_us")) for name in ("runtime", "period"))
    return (period if runtime < 0 else min(runtime, period)), period


def _rt_throttling(facts: Facts) -> CheckOutcome:
    runtime, period = _system_limit(facts)
    if runtime == period:
        return fine("off: real-time tasks may use all CPU time")
    return costs(
        f"real-time tasks may run for {runtime / 1000:g} ms of each {period / 1000:g} ms",
        sysctl("kernel.sched_rt_runtime_us", -1, ("rt-throttling", "-1")),
    )


def _control_group_budget(facts: Facts) -> CheckOutcome:
    if facts.option("RT_GROUP_SCHED") != "y":
        return fine("groups have no budgets (CONFIG_RT_GROUP_SCHED is off)")
    if reason := facts.reason("real_time_budget"):
        return costs(
            f"groups have budgets; the budget of this group is unknown: {reason}",
            build("CONFIG_RT_GROUP_SCHED=n"),
            severity=Severity.LOW,
        )
    budget = facts.get("real_time_budget")
    if budget is None:
        return fine("no group limits it")
    granted, period = int(budget["granted_us"]), int(budget["period_us"])
    runtime, system_period = _system_limit(facts)
    if granted and granted * system_period >= runtime * period:
        return fine(f"same share as the system limit: {granted / 1000:g} of {period / 1000:g} ms")
    return costs(
        f"{granted / 1000:g} of {period / 1000:g} ms in the tightest group",
        done(f"write {period} to cpu.rt_runtime_us of the group and of those above it"),
        build("CONFIG_RT_GROUP_SCHED=n"),
        severity=Severity.HIGH if granted == 0 else None,
    )


def _cpu_quota(facts: Facts) -> CheckOutcome:
    if reason := facts.reason("cpu_quota"):
        return unknown(reason)
    quota = facts.get("cpu_quota")
    if quota is None:
        facts.need("control_group")
        return fine("none")
    return costs(
        f"{int(quota['granted_us']) / 1000:g} ms of CPU time in each {int(quota['period_us']) / 1000:g} ms",
        done("remove the quota (cpu.max, CPUQuota=, --cpus)"),
    )


_FILE = "/etc/security/limits.d/realtime.conf"


def _user_limits(facts: Facts) -> CheckOutcome:
    known = facts.need("real_time_limits")
    who = {
        item: sorted({str(row["who"]) for row in known["lines"] if row["item"] == item})
        for item in ("rtprio", "memlock")
    }
    both = sorted(set(who["rtprio"]) & set(who["memlock"]))
    if both:
        return fine(f"{', '.join(both)}: real-time priority and locked memory")
    half = [f"{', '.join(names)} have {item} only" for item, names in who.items() if names]
    group = next((f"@{name}" for name in known["groups"] if name == "realtime"), "@realtime")
    return hides(
        "; ".join(half) or "only root has real-time priority and locked memory",
        done(f"in {_FILE}: {group} - rtprio 98, {group} - memlock unlimited; then add the user to that group"),
    )


_FAIR_FILES = "/sys/kernel/debug/sched/fair_server/cpu*/runtime"


_FIRST_WITH_FAIR_SERVER = (6, 12)


_MIGRATED_AT_ONCE = 8
"""The default with PREEMPT_RT; other kernels move up to 32 tasks with interrupts off."""


_HIGH_PRIORITY = 1
"""The default of rcuc; ksoftirqd is an ordinary task."""


def _fair_server(facts: Facts) -> CheckOutcome:
    servers = facts.get("scheduler_debug", "fair_server") or {}
    if not servers:
        if facts.kernel_release < _FIRST_WITH_FAIR_SERVER:
            return fine("this kernel has no fair server (it came with 6.12)")
        return unknown(
            facts.reason("scheduler_debug") or "debugfs does not show whether it is active", written(_FAIR_FILES, 0)
        )
    active = {cpu: server for cpu, server in servers.items() if int(server["runtime_ns"]) > 0}
    if not active:
        return fine("off on all CPUs")
    longest_ns = max(int(server["runtime_ns"]) for server in active.values())
    numbers = sorted(int(cpu.removeprefix("cpu")) for cpu in active)
    return costs(
        f"{words.cpus(numbers)}: ordinary tasks take up to {longest_ns / 1e6:g} ms of each second from a "
        "real-time task that does not sleep",
        written(_FAIR_FILES, 0),
    )


def _migration(facts: Facts) -> CheckOutcome:
    at_once = int(facts.need("scheduler_debug", "nr_migrate"))
    if at_once <= _MIGRATED_AT_ONCE:
        return fine(f"at most {at_once} tasks are moved at once")
    return costs(
        f"up to {at_once} tasks are moved between CPUs with interrupts off",
        written("/sys/kernel/debug/sched/nr_migrate", _MIGRATED_AT_ONCE),
    )


def _thread_priorities(facts: Facts) -> CheckOutcome:
    raised = sorted(
        {
            f"{task['comm'].partition('/')[0]} ({task['policy']} {task['priority']})"
            for task in facts.interrupt_threads()
            if str(task["comm"]).startswith(("ksoftirqd/", "rcuc/", "rcub/"))
            and task["policy"] in ("fifo", "rr")
            and int(task["priority"]) > _HIGH_PRIORITY
        }
    )
    if not raised:
        return fine("ksoftirqd and RCU threads have their default priorities")
    return costs(
        f"{', '.join(raised)}: real-time tasks of lower priority wait for them",
        done("chrt -o -p 0 for each ksoftirqd/N; rcutree.kthread_prio=1 for RCU threads"),
    )


CHECKS = (
    Check(
        "real-time-tasks",
        "other real-time tasks",
        Group.SCHEDULING,
        Severity.HIGH,
        _real_time_tasks,
        reason="A task of the same or a higher priority is not preempted: the measured task waits until it sleeps.",
        source="sched(7); Brown and Martin, section 3.6 (what was there before is lowered to 5)",
        trade_off="the purpose of those tasks' priorities",
    ),
    Check(
        "rt-throttling",
        "real-time throttling",
        Group.SCHEDULING,
        Severity.LOW,
        _rt_throttling,
        reason="It affects only tasks that use nearly all of the CPU; they then wait up to 50 ms. No trace of "
        "the task explains this delay.",
        source="kernel: Documentation/scheduler/sched-rt-group.rst; tuned, profile realtime",
        trade_off="safety: a real-time task in a loop takes a CPU forever",
    ),
    Check(
        "control-group-budget",
        "real-time budget of control groups",
        Group.SCHEDULING,
        Severity.LOW,
        _control_group_budget,
        reason="A group without a budget cannot use real-time policies. A group that has used its budget waits "
        "for the next period.",
        source="kernel: Documentation/scheduler/sched-rt-group.rst",
        trade_off="safety, as with real-time throttling",
    ),
    Check(
        "cpu-quota",
        "CPU quota",
        Group.SCHEDULING,
        Severity.HIGH,
        _cpu_quota,
        reason="When the quota is used up, every ordinary task of the group stops until the next period, and "
        "real-time tasks that wait for one of them stop too.",
        source="kernel: Documentation/admin-guide/cgroup-v2.rst, cpu.max",
        trade_off="other groups may get less CPU time",
    ),
    Check(
        "user-limits",
        "real-time limits of users",
        Group.SCHEDULING,
        Severity.LOW,
        _user_limits,
        reason="A program that is denied real-time priority often continues without it and is late for a reason "
        "that no kernel setting changes.",
        source="limits.conf(5), sched(7); also checked by rtcqs and realtimeconfigquickscan",
        trade_off="safety: a user with these limits can take a CPU forever",
    ),
    Check(
        "fair-server",
        "fair server",
        Group.SCHEDULING,
        Severity.HIGH,
        _fair_server,
        reason="Since 6.12, starved ordinary tasks run for 50 ms of each second before real-time tasks, even "
        "with throttling off. A FIFO loop beside one ordinary task was stopped for 54 ms in 4 s.",
        source="kernel: kernel/sched/deadline.c (fair_server); Documentation/scheduler/sched-deadline.rst",
        trade_off="safety: an ordinary task on the CPU of a real-time loop never runs",
    ),
    Check(
        "migration-batch",
        "load-balancing batch size",
        Group.SCHEDULING,
        Severity.LOW,
        _migration,
        reason="The load balancer moves up to this many tasks at once with the run queue locked and interrupts off.",
        source="kernel: kernel/sched/core.c (sysctl_sched_nr_migrate); tuned, profile realtime",
        trade_off="load is balanced in smaller steps",
    ),
    Check(
        "soft-interrupt-threads",
        "soft-interrupt and RCU thread priorities",
        Group.SCHEDULING,
        Severity.MEDIUM,
        _thread_priorities,
        reason="Soft interrupts and RCU callbacks of that priority run before real-time tasks of lower priority, "
        "for as long as there is work.",
        source="kernel: Documentation/admin-guide/kernel-parameters.txt (rcutree.kthread_prio), kernel/softirq.c",
        trade_off="packets and freed memory wait longer",
    ),
)
