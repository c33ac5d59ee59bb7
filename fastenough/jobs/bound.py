# SPDX-License-Identifier: GPL-2.0-or-later
"""The composed bound of each CPU, out of a trace, and whether a board's kernel can be traced for it at all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fastenough.analysis.blocking_trace import TracedCpu, traced_cpus
from fastenough.analysis.composed_bound import Composed, composed
from fastenough.link import Link
from fastenough.model import BadInput, NotApplicable

TRACEFS = "/sys/kernel/tracing"
EVENTS = ("preemptirq/preempt_disable", "preemptirq/preempt_enable", "preemptirq/irq_disable",
          "preemptirq/irq_enable", "sched/sched_switch", "sched/sched_wakeup")
"""Without these the terms cannot be told; those of interrupts differ from machine to machine."""


@dataclass(frozen=True)
class CpuBound:
    """What was traced of a CPU, and the bound by each way to count interrupts."""

    traced: TracedCpu
    bounds: tuple[Composed, ...]


def bounds_of(lines: Iterable[str]) -> tuple[CpuBound, ...]:
    """Of each CPU that a trace tells of, in order; raises BadInput where that is none."""
    found = tuple(CpuBound(one, composed(one.blocking, one.interrupts)) for one in traced_cpus(lines))
    if not found:
        raise BadInput("no CPU of it was seen to switch preemption or interrupts off and on again: record for longer")
    return found


def require_events(link: Link) -> None:
    """Raises NotApplicable with the reason where the kernel of a board has no events to be traced for it."""
    if not link.exists(f"{TRACEFS}/events"):
        raise NotApplicable(f"{TRACEFS} cannot be read on {link.name}: mount tracefs there, and look as root")
    missing = [event for event in EVENTS if not link.exists(f"{TRACEFS}/events/{event}")]
    if missing:
        raise NotApplicable(f"the kernel of {link.name} has no events {', '.join(missing)}: build one with "
                            "CONFIG_PREEMPT_TRACER=y CONFIG_IRQSOFF_TRACER=y, for this only: it is slower")
