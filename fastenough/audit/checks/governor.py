# SPDX-License-Identifier: GPL-2.0-or-later
"""Who chooses a CPU's frequency."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastenough import words
from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, costs, done, fine, unknown

_CHANGE = "cpupower frequency-set -g performance"


def _varies(policy: Mapping[str, Any]) -> bool:
    fixed = policy.get("scaling_min_freq") is not None and (
        policy.get("scaling_min_freq") == policy.get("scaling_max_freq")
    )
    return policy.get("scaling_governor") != "performance" and not fixed


def _governors(policies: Mapping[str, Mapping[str, Any]]) -> str:
    return "governor " + ", ".join(sorted({str(policy.get("scaling_governor")) for policy in policies.values()}))


def _look(facts: Facts) -> Seen:
    known = facts.get("frequency", "cpus") or {}
    if not known:
        return unknown(facts.reason("frequency") or "the kernel scales no frequencies here, others may")
    slow = {cpu: policy for cpu, policy in known.items() if _varies(policy)}
    if not slow:
        return fine(f"no CPU is slowed down ({_governors(known)})")
    numbers = sorted(int(cpu.removeprefix("cpu")) for cpu in slow if cpu.removeprefix("cpu").isdigit())
    return costs(
        f"{words.cpus(numbers)} may be slowed down while idle ({_governors(slow)}): tasks then wake late",
        done(_CHANGE, ("governor", "performance")),
    )


CHECK = Check(
    "governor",
    "frequency governor",
    Group.POWER,
    Severity.MEDIUM,
    _look,
    why="A CPU that was slowed down runs the path from interrupt to task at a fraction of its speed, and takes time to "
    "change its clock.",
    source="kernel: Documentation/admin-guide/pm/cpufreq.rst; rtcqs looks at it too",
    elsewhere="power and heat: CPUs run at full clock while they are busy",
)
