# SPDX-License-Identifier: GPL-2.0-or-later
"""Isolation of CPUs: isolated, tickless and shared ones, and work queues."""

from __future__ import annotations

import re

from fastenough import words
from fastenough.audit.check import Check
from fastenough.audit.facts import Facts, Unknown, as_cpus, as_mask, mask_form
from fastenough.audit.finding import (
    CheckOutcome,
    Group,
    Severity,
    boot,
    build,
    costs,
    done,
    fine,
    hides,
    unknown,
    written,
)
from fastenough.facts.cpu import list_form


def _isolated_cpus(facts: Facts) -> CheckOutcome:
    reported = facts.get("cpu_isolation", "isolated")
    partitions = as_cpus(facts.get("isolated_partitions"))
    if isolated := as_cpus(reported) | partitions:
        how = " (cpuset partition)" if isolated == partitions else ""
        return fine(f"{words.cpus(sorted(isolated))}{how}: no ordinary tasks or loads")
    if facts.count < 2:
        return fine("only one CPU: isolation is not possible")
    if reported is None:
        return unknown("this kernel does not report isolated CPUs", boot(f"isolcpus={facts.set_apart}"))
    return costs("none: real-time tasks share their CPU with all other tasks", boot(f"isolcpus={facts.set_apart}"))


def _tickless_cpus(facts: Facts) -> CheckOutcome:
    if len(facts.online) < 2:
        return fine("only one CPU, which keeps the time")
    without = as_cpus(facts.get("cpu_isolation", "nohz_full"))
    if without:
        return fine(f"CPUs {facts.get('cpu_isolation', 'nohz_full')} (nohz_full)")
    if facts.option("NO_HZ_FULL") != "y":
        return costs("none; not supported by this kernel", build("CONFIG_NO_HZ_FULL=y"))
    return costs("none: the tick interrupts each busy CPU", boot(f"nohz_full={facts.set_apart}"))


_FILES = {
    "workqueue_cpumask": "/sys/devices/virtual/workqueue/cpumask",
    "writeback_cpumask": "/sys/bus/workqueue/devices/writeback/cpumask",
}


def _work_queues(facts: Facts) -> CheckOutcome:
    if len(facts.online) < 2:
        return fine("only one CPU")
    apart, others = as_cpus(facts.set_apart), as_cpus(facts.others)
    wide = [path for name, path in _FILES.items() if as_mask(facts.need("tunables", name)) & apart]
    own = {
        f"/sys/devices/virtual/workqueue/{name}/cpumask": mask
        for name, mask in (facts.get("work_queue_masks") or {}).items()
    }
    wide += [path for path, mask in sorted(own.items()) if path not in _FILES.values() and as_mask(mask) & apart]
    if not wide:
        return fine(f"none on CPU {facts.set_apart}")
    mask = mask_form(others)
    return costs(f"any CPU, including {facts.set_apart}", *(written(path, mask) for path in wide))


def _siblings(facts: Facts) -> CheckOutcome:
    shared = [group for group in facts.get("cpu", "topology", "core") or () if len(group) > 1]
    if not shared:
        smt = facts.get("cpu", "smt")
        if smt is None and not facts.get("cpu", "topology", "core"):
            facts.need("cpu", "smt")
        return fine("each CPU is a separate core" + (" (as reported to this guest)" if facts.hypervisor else ""))
    return costs(
        f"{len(shared)} cores have two or more CPUs each",
        written("/sys/devices/system/cpu/smt/control", "off"),
        boot("nosmt"),
    )


def _cpus_granted(facts: Facts) -> CheckOutcome:
    allowed = as_cpus(facts.need("cpus_allowed"))
    withheld = facts.online - allowed - as_cpus(facts.get("cpu_isolation", "isolated"))
    if not withheld:
        return fine("all online CPUs")
    return hides(
        f"CPUs {list_form(withheld)} are not available to the measurement",
        done("taskset, cpuset.cpus or --cpuset-cpus of the container"),
    )


_LIST = re.compile(r"\d[\d,-]*")


_TOGETHER = ("isolcpus", "nohz_full", "rcu_nocbs")


def _named(facts: Facts, argument: str) -> set[int] | None:
    """Return the online CPUs that an argument names, None if it is not set; raise Unknown for an unsupported form."""
    value = facts.arguments.get(argument)
    if value is None:
        return None
    numbers = re.sub(r"^(?:[a-z_]+,)+", "", value)
    if numbers in ("all", ""):
        return set(facts.online)
    numbers = numbers.replace("N", str(max(facts.online)))
    if not _LIST.fullmatch(numbers):
        raise Unknown(f"{argument}={value} is not supported")
    return as_cpus(numbers) & facts.online


def _agreement(facts: Facts) -> CheckOutcome:
    named = {name: cpus for name in _TOGETHER if (cpus := _named(facts, name)) is not None}
    if len(named) < 2:
        return fine("at most one of isolcpus, nohz_full and rcu_nocbs is set")
    if len({frozenset(cpus) for cpus in named.values()}) == 1:
        return fine(f"{', '.join(named)} name the same CPUs")
    common_cpus = named.get("isolcpus") or set.union(*named.values())
    differing = "; ".join(f"{name}={list_form(cpus) or 'none'}" for name, cpus in named.items())
    return costs(
        f"different CPUs: {differing}",
        *(boot(f"{name}={list_form(common_cpus)}") for name, cpus in named.items() if cpus != common_cpus),
    )


CHECKS = (
    Check(
        "isolated-cpus",
        "isolated CPUs",
        Group.CPUS,
        Severity.MEDIUM,
        _isolated_cpus,
        reason="Ordinary tasks on the same CPU bring system calls, page faults and cache misses; their kernel "
        "paths with preemption off delay the real-time task.",
        source="kernel: Documentation/admin-guide/kernel-parameters.txt, isolcpus; tuned, profile realtime",
        trade_off="throughput: fewer CPUs for other tasks",
    ),
    Check(
        "tickless-cpus",
        "tickless CPUs",
        Group.CPUS,
        Severity.LOW,
        _tickless_cpus,
        reason="The tick takes a few µs of each ms from a task that computes. A task that mostly sleeps gains "
        "nothing and pays more for each system call.",
        source="kernel: Documentation/timers/no_hz.rst",
        trade_off="system calls and interrupts of those CPUs cost more",
    ),
    Check(
        "work-queues",
        "kernel work queues",
        Group.CPUS,
        Severity.LOW,
        _work_queues,
        reason="Unbound work queues may run on the CPU of a real-time task, which waits while the work holds a "
        "lock or has preemption off.",
        source="kernel: Documentation/core-api/workqueue.rst; tuned, profile realtime",
        trade_off="none",
    ),
    Check(
        "siblings",
        "SMT siblings",
        Group.CPUS,
        Severity.MEDIUM,
        _siblings,
        reason="Code on the sibling takes execution units and cache from the task at every instruction, and no "
        "scheduler sees it.",
        source="kernel: Documentation/admin-guide/kernel-parameters.txt, nosmt; also checked by rtcqs",
        trade_off="throughput: up to a third less with all CPUs busy",
    ),
    Check(
        "cpus-granted",
        "allowed CPUs",
        Group.CPUS,
        Severity.MEDIUM,
        _cpus_granted,
        reason="Latency on these CPUs is not measured, and tasks that run there share caches, memory and locks.",
        source="sched_setaffinity(2), cpuset(7)",
        trade_off="none",
    ),
    Check(
        "isolation-agreement",
        "consistency of CPU isolation",
        Group.CPUS,
        Severity.MEDIUM,
        _agreement,
        reason="A CPU that is isolated in one respect only still has the other disturbances: its tick, its RCU "
        "callbacks, or ordinary tasks.",
        source="kernel: Documentation/admin-guide/kernel-parameters.txt; Documentation/timers/no_hz.rst",
        trade_off="those of each argument",
    ),
)
