# SPDX-License-Identifier: GPL-2.0-or-later
"""Microcode."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, booted, costs, fine, unknown

_PACKAGES = {"GenuineIntel": "intel-microcode", "AuthenticAMD": "amd64-microcode"}


def _look(facts: Facts) -> Seen:
    if not facts.x86:
        return fine("a matter of x86 only")
    revision, package = facts.need("cpu", "microcode"), _PACKAGES.get(str(facts.get("cpu", "vendor")))
    if facts.hypervisor:
        return unknown(f"revision {revision} is what the hypervisor says; the host's is not seen")
    judged = facts.get("vulnerabilities", "old_microcode")
    if judged == "Not affected":
        return fine(f"revision {revision}, which this kernel knows as none that is too old")
    update = [booted(f"on Debian: apt-get install {package}")] if package else []
    if judged:
        return costs(f"revision {revision}: {judged}", *update)
    return unknown(f"revision {revision}; this kernel cannot say whether there is a newer one", *update)


CHECK = Check(
    "microcode",
    "microcode",
    Group.MACHINE,
    Severity.LOW,
    _look,
    why="Errata of TSC, timers and idle states are fixed by microcode; what it adds against side channels makes "
    "entries into the kernel slower.",
    source="kernel: Documentation/admin-guide/hw-vuln/old_microcode.rst",
    elsewhere="measure again after each update",
)
