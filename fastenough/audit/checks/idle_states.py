# SPDX-License-Identifier: GPL-2.0-or-later
"""How deeply idle CPUs may sleep."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, boot, costs, done, fine, unknown

_SHALLOW_US = 10
_DEEP_US = 50


def _look(facts: Facts) -> Seen:
    arguments = facts.arguments
    if arguments.get("idle") == "poll":
        return fine("idle CPUs do not sleep (idle=poll)")
    states = facts.need("idle", "states")
    if not states:
        return unknown(
            f"the kernel leaves idle CPUs to others (driver {facts.get('idle', 'driver') or 'none'}): "
            "how long waking takes is not said"
        )
    allowed = [
        (int(state.get("latency", 0)), str(state.get("name")))
        for each in states.values()
        for state in each.values()
        if not int(state.get("disable") or 0)
    ]
    deepest_us, name = max(allowed, default=(0, "none"))
    if deepest_us <= _SHALLOW_US:
        return fine(f"the deepest allowed state takes {deepest_us} µs to leave ({name})")
    changes = [
        done(
            f"hold /dev/cpu_dma_latency at {_SHALLOW_US} µs or less while the task runs",
            ("idle-latency", str(_SHALLOW_US)),
        )
    ]
    changes += [boot("processor.max_cstate=1", "intel_idle.max_cstate=1")] if facts.x86 else [boot("cpuidle.off=1")]
    return costs(
        f"the deepest allowed state takes {deepest_us} µs to leave ({name})",
        *changes,
        severity=None if deepest_us >= _DEEP_US else Severity.LOW,
    )


CHECK = Check(
    "idle-states",
    "idle states",
    Group.POWER,
    Severity.MEDIUM,
    _look,
    why="A CPU leaves its idle state before it takes the interrupt: its exit latency comes before everything else. The "
    "probe holds states off while it measures, as a task must do for itself.",
    source="kernel: Documentation/admin-guide/pm/cpuidle.rst; OSADL's article, figure 6",
    elsewhere="power and heat: idle CPUs draw several times as much",
)
