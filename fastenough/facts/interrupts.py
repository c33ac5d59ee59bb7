# SPDX-License-Identifier: GPL-2.0-or-later
"""Interrupts: names and CPU affinities."""

from __future__ import annotations

from typing import TypedDict

from fastenough.facts.fact import Fact, Inputs

_INTERRUPTS = "/proc/interrupts"
_AFFINITY = "/proc/irq/*/smp_affinity_list"
_EFFECTIVE = "/proc/irq/*/effective_affinity_list"
_DEFAULT = "/proc/irq/default_smp_affinity"


class InterruptFact(TypedDict):
    """Name of an interrupt, and the CPUs that may serve it and that do, as the kernel lists them; None if unknown."""

    name: str
    cpus: str | None
    effective_cpus: str | None


def parse_interrupts(text: str) -> dict[str, str]:
    """By interrupt: its text after the counts in /proc/interrupts (controller, line, actions)."""
    header, *lines = text.splitlines()
    cpus = len(header.split())
    named = {}
    for line in lines:
        label, _, rest = line.partition(":")
        fields = rest.split()
        counts = next(
            (place for place, field in enumerate(fields[:cpus]) if not field.isdigit()), min(cpus, len(fields))
        )
        named[label.strip()] = " ".join(fields[counts:])
    return named


def _interrupts(inputs: Inputs) -> dict[str, InterruptFact]:
    named = parse_interrupts(inputs.text(_INTERRUPTS))
    allowed = {irq: cpus for (irq,), cpus in inputs.matching(_AFFINITY)}
    effective = {irq: cpus for (irq,), cpus in inputs.matching(_EFFECTIVE)}
    return {
        irq: {"name": name, "cpus": allowed.get(irq), "effective_cpus": effective.get(irq) or None}
        for irq, name in named.items()
        if irq.isdigit()
    }


def _default(inputs: Inputs) -> str:
    return inputs.text(_DEFAULT)


FACTS = (
    Fact("interrupts", _interrupts, files=(_INTERRUPTS, _AFFINITY, _EFFECTIVE)),
    Fact("interrupt_default_affinity", _default, files=(_DEFAULT,)),
)
