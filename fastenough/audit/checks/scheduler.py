# SPDX-License-Identifier: GPL-2.0-or-later
"""How the scheduler serves ordinary tasks beside real-time ones, and how its models can be chosen."""

from __future__ import annotations

import re

from fastenough import words
from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, boot, build, costs, done, fine, unknown, written

_FAIR_FILES = "/sys/kernel/debug/sched/fair_server/cpu*/runtime"
_FIRST_WITH_FAIR_SERVER = (6, 12)
_MIGRATED_AT_ONCE = 8
"""What kernels with PREEMPT_RT have; others move up to 32 tasks with interrupts off."""
_HIGH_PRIORITY = 1
"""What the kernel gives rcuc; ksoftirqd is an ordinary task."""


def release(facts: Facts) -> tuple[int, int]:
    """Major and minor number of the kernel; raises ValueError where its release is malformed."""
    major, minor = re.match(r"(\d+)\.(\d+)", str(facts.need("kernel", "release"))).groups()  # type: ignore[union-attr]
    return int(major), int(minor)


def _fair_server(facts: Facts) -> Seen:
    servers = facts.get("scheduler_debug", "fair_server") or {}
    if not servers:
        if release(facts) < _FIRST_WITH_FAIR_SERVER:
            return fine("this kernel has no fair server (it came with 6.12)")
        return unknown(
            facts.reason("scheduler_debug") or "debugfs does not show whether it is on", written(_FAIR_FILES, 0)
        )
    active = {cpu: server for cpu, server in servers.items() if int(server["runtime_ns"]) > 0}
    if not active:
        return fine("off on all CPUs")
    longest_ns = max(int(server["runtime_ns"]) for server in active.values())
    numbers = sorted(int(cpu.removeprefix("cpu")) for cpu in active)
    return costs(
        f"{words.cpus(numbers)}: ordinary tasks get up to {longest_ns / 1e6:g} ms of each second from a "
        "real-time task that does not sleep",
        written(_FAIR_FILES, 0),
    )


def _migration(facts: Facts) -> Seen:
    at_once = int(facts.need("scheduler_debug", "nr_migrate"))
    if at_once <= _MIGRATED_AT_ONCE:
        return fine(f"at most {at_once} tasks are moved at once")
    return costs(
        f"up to {at_once} tasks are moved between CPUs with interrupts off",
        written("/sys/kernel/debug/sched/nr_migrate", _MIGRATED_AT_ONCE),
    )


def _thread_priorities(facts: Facts) -> Seen:
    raised = sorted(
        {
            f"{each['comm'].partition('/')[0]} ({each['policy']} {each['priority']})"
            for each in facts.interrupt_threads()
            if str(each["comm"]).startswith(("ksoftirqd/", "rcuc/", "rcub/"))
            and each["policy"] in ("fifo", "rr")
            and int(each["priority"]) > _HIGH_PRIORITY
        }
    )
    if not raised:
        return fine("ksoftirqd and the threads of RCU have the priority that the kernel gives them")
    return costs(
        f"{', '.join(raised)}: real-time tasks of lower priority wait for them",
        done("chrt -o -p 0 each ksoftirqd/N; rcutree.kthread_prio=1 for the threads of RCU"),
    )


def _preempt_argument(facts: Facts) -> Seen:
    given = [
        word.partition("=")[2]
        for word in str(facts.need("cmdline")).partition(" -- ")[0].split()
        if word.startswith("preempt=")
    ]
    if not given:
        return fine("the boot line does not choose a preemption model")
    if facts.real_time_kernel:
        return (
            costs(
                f"preempt={given[-1]} on a kernel with PREEMPT_RT: it is ignored, or makes the kernel lazy",
                done("remove preempt= from the boot line"),
            )
            if given[-1] != "full"
            else fine("preempt=full")
        )
    if facts.option("PREEMPT_DYNAMIC") != "y":
        return costs(
            f"preempt={given[-1]} has no effect: this kernel was built without PREEMPT_DYNAMIC",
            build("CONFIG_PREEMPT_DYNAMIC=y"),
        )
    if len(set(given)) > 1:
        return costs(
            f"preempt= is given {len(given)} times; the last one, {given[-1]}, is in effect",
            done(f"keep one preempt= on the boot line (in effect: {given[-1]})"),
        )
    return fine(f"preempt={given[-1]} is in effect")


def _rcu_polling(facts: Facts) -> Seen:
    if "rcu_nocb_poll" in facts.arguments or "rcu_nocbs" not in facts.arguments:
        return fine(
            "callback threads poll"
            if "rcu_nocb_poll" in facts.arguments
            else "no CPU hands its callbacks to threads by rcu_nocbs"
        )
    return costs("CPUs of rcu_nocbs wake up their callback threads themselves", boot("rcu_nocb_poll"))


CHECKS = (
    Check(
        "fair-server",
        "fair server",
        Group.SCHEDULING,
        Severity.HIGH,
        _fair_server,
        why="From 6.12 on, ordinary tasks that starve get 50 ms of each second ahead of real-time tasks, also with "
        "throttling off. A FIFO loop beside one ordinary task was stopped for 54 ms in 4 s.",
        source="kernel: kernel/sched/deadline.c (fair_server); Documentation/scheduler/sched-deadline.rst",
        elsewhere="safety: an ordinary task on the CPU of a real-time loop never runs",
    ),
    Check(
        "migration-batch",
        "tasks moved at once",
        Group.SCHEDULING,
        Severity.LOW,
        _migration,
        why="The load balancer moves that many tasks in one go with the run queue locked and interrupts off.",
        source="kernel: kernel/sched/core.c (sysctl_sched_nr_migrate); tuned, profile realtime",
        elsewhere="load is balanced in smaller steps",
    ),
    Check(
        "soft-interrupt-threads",
        "priorities of soft-interrupt and RCU threads",
        Group.SCHEDULING,
        Severity.MEDIUM,
        _thread_priorities,
        why="A soft interrupt or a batch of RCU callbacks of that priority runs before a real-time task of lower "
        "priority, for as long as there is work.",
        source="kernel: Documentation/admin-guide/kernel-parameters.txt (rcutree.kthread_prio), kernel/softirq.c",
        elsewhere="packets and freed memory wait longer",
    ),
    Check(
        "preemption-argument",
        "preempt= on the boot line",
        Group.KERNEL,
        Severity.MEDIUM,
        _preempt_argument,
        why="A boot argument without effect lets a system look preemptible that is not.",
        source="kernel: Documentation/admin-guide/kernel-parameters.txt, preempt; kernel/Kconfig.preempt",
        elsewhere="none",
    ),
    Check(
        "rcu-wakeups",
        "wake-ups of RCU callback threads",
        Group.KERNEL,
        Severity.LOW,
        _rcu_polling,
        why="Without polling, a CPU whose callbacks are handed to threads has to wake those threads up.",
        source="kernel: Documentation/admin-guide/kernel-parameters.txt, rcu_nocb_poll",
        elsewhere="power: the callback threads wake up periodically",
    ),
)
