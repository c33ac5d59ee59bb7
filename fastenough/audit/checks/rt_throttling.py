# SPDX-License-Identifier: GPL-2.0-or-later
"""How much of each second real-time tasks may run."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, costs, fine, sysctl


def _look(facts: Facts) -> Seen:
    runtime, period = (int(facts.need("tunables", f"sched_rt_{name}_us")) for name in ("runtime", "period"))
    if runtime < 0 or runtime >= period:
        return fine("off: real-time tasks may have all of the CPU")
    return costs(
        f"after {runtime / 1000:g} of {period / 1000:g} ms real-time tasks wait for the rest",
        sysctl("kernel.sched_rt_runtime_us", -1, ("rt-throttling", "-1")),
    )


CHECK = Check(
    "rt-throttling",
    "real-time throttling",
    Group.SCHEDULING,
    Severity.LOW,
    _look,
    why="Only tasks that take the CPU nearly whole meet it, and then wait up to 50 ms. It shows as a delay that no "
    "trace of the task explains.",
    source="kernel: Documentation/scheduler/sched-rt-group.rst; tuned, profile realtime",
    elsewhere="safety: a real-time task that loops takes a CPU for ever",
)
