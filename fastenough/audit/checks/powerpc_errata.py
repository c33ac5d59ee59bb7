# SPDX-License-Identifier: GPL-2.0-or-later
"""Workarounds for errata of Freescale's cores, which make the kernel walk page tables itself."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, build, costs, fine

_ERRATA = ("FSL_ERRATUM_A_004801", "FSL_ERRATUM_A_005337")


def _look(facts: Facts) -> Seen:
    architecture = str(facts.need("cpu", "architecture"))
    if not architecture.startswith("ppc"):
        return fine(f"no matter of {architecture}")
    found = [name for name in _ERRATA if facts.option(name) == "y"]
    if not found:
        return fine("none is built in")
    return costs("built in: " + ", ".join(found), build(*(f"CONFIG_{name}=n" for name in found)))


CHECK = Check(
    "powerpc-errata",
    "errata of PowerPC cores",
    Group.KERNEL,
    Severity.LOW,
    _look,
    why="Where the core has no such defect (P2041 from revision 2), the workaround only makes misses of the TLB slow.",
    source="Enea, appendix A, step 1 (CONFIG_FSL_ERRATUM_*)",
    elsewhere="wrong data on a core that has the defect: know its revision first",
)
