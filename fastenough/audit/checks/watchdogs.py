# SPDX-License-Identifier: GPL-2.0-or-later
"""Watchdogs of the kernel."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, boot, costs, fine, sysctl

_NAMES = ("nmi_watchdog", "soft_watchdog")


def _look(facts: Facts) -> Seen:
    known = {name: facts.get("tunables", name) for name in _NAMES}
    if known["soft_watchdog"] is None and facts.option("LOCKUP_DETECTOR") == "n":
        return fine("not built in")
    active = [
        name
        for name in _NAMES
        if int(
            known[name] if known[name] is not None else 0 if name == "nmi_watchdog" else facts.need("tunables", name)
        )
    ]
    if not active:
        return fine("off")
    return costs(
        " and ".join(active).replace("_", " "),
        *(sysctl(f"kernel.{name}", 0, (name.replace("_", "-"), "0")) for name in active),
        boot("nowatchdog"),
    )


CHECK = Check(
    "watchdogs",
    "watchdogs of the kernel",
    Group.TIMERS,
    Severity.LOW,
    _look,
    why="A timer on each CPU, and an interrupt that nothing can mask, take their time at every period.",
    source="kernel: Documentation/admin-guide/lockup-watchdogs.rst; tuned, profile realtime (nosoftlockup)",
    elsewhere="a kernel that hangs is not told, nor restarted",
)
