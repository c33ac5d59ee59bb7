# SPDX-License-Identifier: GPL-2.0-or-later
"""Consoles of the kernel and the log level."""

from __future__ import annotations

from fastenough.facts.fact import Fact, Inputs

_CONSOLES = "/proc/consoles"
_LEVELS = "/proc/sys/kernel/printk"


def _consoles(inputs: Inputs) -> list[str]:
    return [line.split()[0] for line in inputs.text(_CONSOLES).splitlines() if line.split()]


def _level(inputs: Inputs) -> int:
    """Messages of a lower level than this are printed to the consoles (proc_sys_kernel(5), printk)."""
    return int(inputs.text(_LEVELS).split()[0])


FACTS = (
    Fact("consoles", _consoles, files=(_CONSOLES,)),
    Fact("console_level", _level, files=(_LEVELS,)),
)
