# SPDX-License-Identifier: GPL-2.0-or-later
"""Mitigations of side channels."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, boot, costs, fine


def _look(facts: Facts) -> Seen:
    known = facts.need("vulnerabilities")
    if not known:
        facts.need("vulnerabilities", "any")
    active = sorted(name for name, said in known.items() if "itigation:" in str(said))
    if not active:
        return fine("none is active")
    return costs(f"{len(active)} are active: {', '.join(active)}", boot("mitigations=off"))


CHECK = Check(
    "mitigations",
    "mitigations of side channels",
    Group.KERNEL,
    Severity.LOW,
    _look,
    why="They lengthen each way into and out of the kernel, and each switch between tasks of different owners.",
    source="kernel: Documentation/admin-guide/hw-vuln/index.rst; rtcqs looks at it too",
    elsewhere="security: only where no foreign code runs, not even in a browser or a container",
)
