# SPDX-License-Identifier: GPL-2.0-or-later
"""What ordinary users may ask for."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, done, fine, hides

_FILE = "/etc/security/limits.d/realtime.conf"


def _look(facts: Facts) -> Seen:
    known = facts.need("real_time_limits")
    who = {
        item: sorted({str(row["who"]) for row in known["lines"] if row["item"] == item})
        for item in ("rtprio", "memlock")
    }
    both = sorted(set(who["rtprio"]) & set(who["memlock"]))
    if both:
        return fine(f"{', '.join(both)}: real-time priority and locked memory")
    half = [f"{', '.join(names)} have {item} only" for item, names in who.items() if names]
    group = next((f"@{name}" for name in known["groups"] if name == "realtime"), "@realtime")
    return hides(
        "; ".join(half) or "no user but root has real-time priority and locked memory",
        done(f"in {_FILE}: {group} - rtprio 98, {group} - memlock unlimited; then the user into that group"),
    )


CHECK = Check(
    "user-limits",
    "rights of ordinary users",
    Group.SCHEDULING,
    Severity.LOW,
    _look,
    why="A program that is refused real-time priority often runs on without it, and is late for a reason that no "
    "kernel setting changes.",
    source="limits.conf(5), sched(7); rtcqs and realtimeconfigquickscan look at it too",
    elsewhere="safety: whoever has it can take a CPU for ever",
)
