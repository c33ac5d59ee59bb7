# SPDX-License-Identifier: GPL-2.0-or-later
"""A hypervisor below."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, fine, hides, outside

_BARE = "no hypervisor is seen"


def _look(facts: Facts) -> Seen:
    if facts.get("emulated"):
        return hides("emulated: function can be shown, speed cannot", outside("measure on hardware"))
    name = facts.hypervisor
    if name is None:
        facts.need("cpu", "model")
        return fine(_BARE)
    return hides(
        f"virtual machine ({name}): the host takes time, and what it does is not seen here",
        outside("measure on the bare machine"),
    )


CHECK = Check(
    "virtual-machine",
    "hypervisor",
    Group.MACHINE,
    Severity.HIGH,
    _look,
    why="The host stops the guest's CPUs when it likes. The guest sees a gap, or nothing where its clock stops too.",
    source="docs/method.md: on such machines maxima follow the host's steal, not the load",
    elsewhere="none: it is where to measure",
)
