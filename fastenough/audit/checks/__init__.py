# SPDX-License-Identifier: GPL-2.0-or-later
"""The checks of an audit: one module for each group, and one line here for each module."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.registry import listed

CHECKS: tuple[Check, ...] = tuple(
    check
    for checks in listed(
        __name__,
        "CHECKS",
        (
            "machine",
            "kernel",
            "timers",
            "power",
            "interrupts",
            "cpus",
            "scheduling",
            "memory",
            "services",
        ),
    )
    for check in checks
)
