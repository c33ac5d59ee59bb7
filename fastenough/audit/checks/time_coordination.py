# SPDX-License-Identifier: GPL-2.0-or-later
"""Intel's time-coordinated computing."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, fine, outside, unknown


def _look(facts: Facts) -> Seen:
    if not facts.x86 or facts.need("cpu", "vendor") != "GenuineIntel":
        return fine("a matter of Intel's processors only")
    if facts.need("cache_allocation")["tcc"]:
        return fine("the firmware has its tables (RTCT): it is set up there")
    return unknown(
        "the firmware shows no tables of it: the processor lacks it, or it is off in the firmware",
        outside("where the firmware has a TCC mode, switch it on; it sets idle states, clock and caches"),
    )


CHECK = Check(
    "time-coordination",
    "time-coordinated computing (Intel TCC)",
    Group.MACHINE,
    Severity.LOW,
    _look,
    why="Its mode in the firmware switches off what saves power behind the kernel's back, and can give a task a part "
    "of the cache for itself.",
    source="Intel: Time Coordinated Computing, real-time configuration tables",
    elsewhere="power and heat",
)
