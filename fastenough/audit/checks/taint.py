# SPDX-License-Identifier: GPL-2.0-or-later
"""Modules that are not the kernel's own."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, done, fine, hides

_FLAGS = {
    0: "proprietary modules",
    4: "machine checks",
    7: "the kernel has crashed",
    9: "the kernel has warned",
    12: "modules from elsewhere",
    14: "a soft lockup",
    18: "a module that was changed",
}


def _look(facts: Facts) -> Seen:
    bits = int(facts.need("kernel", "tainted"))
    found = [said for flag, said in _FLAGS.items() if bits >> flag & 1]
    if not found:
        return fine("nothing that matters here")
    return hides(", ".join(found), done("look into the kernel's log, and boot without them to measure"))


CHECK = Check(
    "taint",
    "taint of the kernel",
    Group.KERNEL,
    Severity.LOW,
    _look,
    why="Code that nobody else runs may switch interrupts off for as long as it likes, and a kernel that has crashed "
    "or warned is in no state that anybody knows.",
    source="kernel: Documentation/admin-guide/tainted-kernels.rst",
    elsewhere="the devices that those modules serve",
)
