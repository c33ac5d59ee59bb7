# SPDX-License-Identifier: GPL-2.0-or-later
"""System management interrupts of x86 firmware."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, done, fine, hides, outside, unknown

_QUIET = outside("switch off in the firmware: legacy USB, power capping, patrol scrubbing, sleep states, sensors")


def _look(facts: Facts) -> Seen:
    if not facts.x86:
        return unknown("secure firmware (PSCI, SCMI, OP-TEE) may take the CPU, and nothing counts it")
    if facts.hypervisor:
        return hides("a guest does not see those of its host", outside("measure on the bare machine"))
    if facts.get("smi_counter") is not None:
        return fine("each run counts them: what the firmware takes is seen")
    if facts.need("cpu", "vendor") != "GenuineIntel":
        return hides("this processor does not count them", done("look for gaps: fastenough run spin"), _QUIET)
    return hides("not counted: the module msr is not loaded", done("modprobe msr"), _QUIET)


CHECK = Check(
    "firmware-interrupts",
    "interrupts of the firmware (SMIs)",
    Group.MACHINE,
    Severity.MEDIUM,
    _look,
    why="The firmware stops all CPUs for up to milliseconds, and the kernel cannot see or prevent it.",
    source="kernel: Documentation/trace/hwlat_detector.rst; Intel SDM volume 4, MSR_SMI_COUNT",
    elsewhere="what the firmware does in them: never switch thermal protection off",
)
