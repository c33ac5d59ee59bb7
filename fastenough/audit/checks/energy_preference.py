# SPDX-License-Identifier: GPL-2.0-or-later
"""What the processor itself prefers where it chooses its frequency."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, boot, costs, fine, written

_FILE = "/sys/devices/system/cpu/cpu*/cpufreq/energy_performance_preference"


def _look(facts: Facts) -> Seen:
    policies = facts.need("frequency", "cpus").values()
    known = {str(each["energy_performance_preference"]) for each in policies if "energy_performance_preference" in each}
    driver = ", ".join(sorted({str(each.get("scaling_driver")) for each in policies}))
    if not known:
        return fine(f"the processor chooses no frequency by itself here (driver {driver})")
    if known <= {"performance", "0"}:
        return fine("performance")
    changes = [written(_FILE, "performance", ("energy-preference", "performance"))]
    changes += [boot("intel_pstate=disable")] if driver.startswith("intel_pstate") else []
    return costs(f"{', '.join(sorted(known))} (driver {driver})", *changes)


CHECK = Check(
    "energy-preference",
    "energy preference of the processor",
    Group.POWER,
    Severity.MEDIUM,
    _look,
    why="The processor clocks down by itself, whatever the governor says, and takes its time to come back.",
    source="kernel: Documentation/admin-guide/pm/intel_pstate.rst; tuned, profile realtime (intel_pstate=disable)",
    elsewhere="power and heat",
)
