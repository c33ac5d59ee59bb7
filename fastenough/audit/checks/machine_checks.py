# SPDX-License-Identifier: GPL-2.0-or-later
"""Asking for errors that were corrected."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, boot, costs, fine, written

_FOLDER = "/sys/devices/system/machinecheck/machinecheck0"


def _look(facts: Facts) -> Seen:
    if not facts.x86:
        return fine("a matter of x86 only")
    known = facts.need("machine_check")
    if known["ignored"] or not known["every_s"]:
        return fine("not asked for")
    return costs(
        f"each CPU is asked every {known['every_s']} s", written(f"{_FOLDER}/check_interval", 0), boot("mce=ignore_ce")
    )


CHECK = Check(
    "machine-checks",
    "polling for corrected errors",
    Group.MACHINE,
    Severity.LOW,
    _look,
    why="A timer on each CPU reads registers of the processor, and where there are errors also logs them.",
    source="kernel: Documentation/arch/x86/x86_64/machinecheck.rst; tuned, profile realtime (ignore_ce)",
    elsewhere="memory that begins to fail is noticed late",
)
