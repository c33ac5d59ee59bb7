# SPDX-License-Identifier: GPL-2.0-or-later
"""Which CPUs do the work that the kernel puts off."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts, as_cpus, as_mask
from fastenough.audit.finding import Group, Seen, Severity, costs, fine, written

_FILES = {
    "workqueue_cpumask": "/sys/devices/virtual/workqueue/cpumask",
    "writeback_cpumask": "/sys/bus/workqueue/devices/writeback/cpumask",
}


def _look(facts: Facts) -> Seen:
    if len(facts.online) < 2:
        return fine("there is one CPU only")
    apart, others = as_cpus(facts.set_apart), as_cpus(facts.others)
    wide = [path for name, path in _FILES.items() if as_mask(facts.need("tunables", name)) & apart]
    own = {
        f"/sys/devices/virtual/workqueue/{name}/cpumask": mask
        for name, mask in (facts.get("work_queue_masks") or {}).items()
    }
    wide += [path for path, mask in sorted(own.items()) if path not in _FILES.values() and as_mask(mask) & apart]
    if not wide:
        return fine(f"none of it on CPU {facts.set_apart}")
    mask = f"{sum(1 << cpu for cpu in others):x}"
    return costs(f"any CPU, also {facts.set_apart}", *(written(path, mask) for path in wide))


CHECK = Check(
    "work-queues",
    "put-off work of the kernel",
    Group.CPUS,
    Severity.LOW,
    _look,
    why="Work queues that are bound to no CPU may run on that of a real-time task, which waits where the work holds a "
    "lock or has preemption off.",
    source="kernel: Documentation/core-api/workqueue.rst; tuned, profile realtime",
    elsewhere="none to speak of",
)
