# SPDX-License-Identifier: GPL-2.0-or-later
"""Tunables of kernel and memory management that affect latency."""

from __future__ import annotations

from fastenough.facts.fact import Fact, Inputs

_FILES = {
    "sched_rt_runtime_us": "/proc/sys/kernel/sched_rt_runtime_us",
    "sched_rt_period_us": "/proc/sys/kernel/sched_rt_period_us",
    "sched_rr_timeslice_ms": "/proc/sys/kernel/sched_rr_timeslice_ms",
    "sched_autogroup_enabled": "/proc/sys/kernel/sched_autogroup_enabled",
    "timer_migration": "/proc/sys/kernel/timer_migration",
    "numa_balancing": "/proc/sys/kernel/numa_balancing",
    "nmi_watchdog": "/proc/sys/kernel/nmi_watchdog",
    "soft_watchdog": "/proc/sys/kernel/soft_watchdog",
    "watchdog_cpumask": "/proc/sys/kernel/watchdog_cpumask",
    "split_lock_mitigate": "/proc/sys/kernel/split_lock_mitigate",
    "perf_cpu_time_max_percent": "/proc/sys/kernel/perf_cpu_time_max_percent",
    "swappiness": "/proc/sys/vm/swappiness",
    "stat_interval": "/proc/sys/vm/stat_interval",
    "compaction_proactiveness": "/proc/sys/vm/compaction_proactiveness",
    "dirty_ratio": "/proc/sys/vm/dirty_ratio",
    "ksm_run": "/sys/kernel/mm/ksm/run",
    "workqueue_cpumask": "/sys/devices/virtual/workqueue/cpumask",
    "writeback_cpumask": "/sys/bus/workqueue/devices/writeback/cpumask",
    "rcu_expedited": "/sys/kernel/rcu_expedited",
    "rcu_normal": "/sys/kernel/rcu_normal",
    "tracer": "/sys/kernel/tracing/current_tracer",
    "schedstats": "/proc/sys/kernel/sched_schedstats",
    "delay_accounting": "/proc/sys/kernel/task_delayacct",
    "haltpoll_ns": "/sys/module/haltpoll/parameters/guest_halt_poll_ns",
}

_WORK_QUEUES = "/sys/devices/virtual/workqueue/*/cpumask"


def _value(text: str) -> int | str:
    try:
        return int(text)
    except ValueError:
        return text


def _tunables(inputs: Inputs) -> dict[str, int | str | None]:
    """Values by name; None if this kernel does not have it."""
    return {name: None if (text := inputs.get(path)) is None else _value(text) for name, path in _FILES.items()}


def _work_queues(inputs: Inputs) -> dict[str, str]:
    """CPU masks of work queues with a mask of their own, by name."""
    return {name: mask for (name,), mask in inputs.matching(_WORK_QUEUES)}


FACTS = (
    Fact("tunables", _tunables, files=tuple(_FILES.values())),
    Fact("work_queue_masks", _work_queues, files=(_WORK_QUEUES,)),
)
