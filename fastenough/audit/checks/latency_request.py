# SPDX-License-Identifier: GPL-2.0-or-later
"""Somebody else who keeps idle states away."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, done, fine, hides


def _look(facts: Facts) -> Seen:
    us = int(facts.need("latency_request_us"))
    if us < 0:
        return fine("nobody asks for anything")
    return hides(
        f"somebody holds it at {us} µs", done("fuser /dev/cpu_dma_latency names who; the task must hold it itself")
    )


CHECK = Check(
    "latency-request",
    "hold on idle states (cpu_dma_latency)",
    Group.POWER,
    Severity.LOW,
    _look,
    why="As long as another program holds idle states off, latency is lower than it is without that program.",
    source="kernel: Documentation/power/pm_qos_interface.rst; rtcqs looks at the device too",
    elsewhere="power and heat, as long as it is held",
)
