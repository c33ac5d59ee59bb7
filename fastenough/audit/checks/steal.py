# SPDX-License-Identifier: GPL-2.0-or-later
"""Time that a hypervisor has taken."""

from __future__ import annotations

from fastenough import words
from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, costs, fine, outside, unknown


def _look(facts: Facts) -> Seen:
    stolen_ns = int(facts.need("steal_so_far_ns"))
    if stolen_ns:
        up_s = float(facts.get("uptime_s") or 0)
        share = f", {stolen_ns / 1e7 / (up_s * facts.count):.2f} % of all CPU time" if up_s else ""
        return costs(
            f"{words.duration(stolen_ns)} since boot{share}",
            outside("give each virtual CPU a CPU of its own on the host, or measure on the bare machine"),
        )
    if facts.hypervisor:
        return unknown("the counter stands at 0: nothing was taken, or this hypervisor does not tell")
    return fine("none")


CHECK = Check(
    "steal",
    "stolen time",
    Group.MACHINE,
    Severity.HIGH,
    _look,
    why="While the host runs something else, no task of this machine runs, whatever its priority.",
    source="proc(5), /proc/stat, steal",
    elsewhere="none within this machine",
)
