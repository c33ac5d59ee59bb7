# SPDX-License-Identifier: GPL-2.0-or-later
"""What devices do by themselves: interrupts held back by network cards, memory controllers polled for errors."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, costs, done, fine, written


def _coalescing(facts: Facts) -> Seen:
    found = sorted(
        name
        for name, card in facts.need("interrupt_coalescing").items()
        if card["adaptive"] or (card["rx_us"] or 0) > 0 or (card["rx_frames"] or 0) > 1
    )
    if not found:
        return fine("no network card holds interrupts back")
    return costs(
        f"{', '.join(found)}: interrupts of received packets are held back",
        done(f"ethtool -C {found[0]} adaptive-rx off rx-usecs 0 rx-frames 1"),
    )


def _memory_errors(facts: Facts) -> Seen:
    known = facts.need("memory_error_polling")
    if not known["controllers"]:
        return fine("the kernel polls no memory controller")
    return costs(
        f"polled for errors: {', '.join(known['controllers'])}"
        + (f", every {known['poll_ms']} ms" if known["poll_ms"] else ""),
        written("/sys/module/edac_core/parameters/edac_mc_poll_msec", 60000),
    )


CHECKS = (
    Check(
        "network-coalescing",
        "interrupts held back by network cards",
        Group.INTERRUPTS,
        Severity.LOW,
        _coalescing,
        why="A card that waits for more packets before it interrupts delays a task that waits for one packet by tens "
        "of µs.",
        source="ethtool(8), --coalesce",
        elsewhere="throughput: more interrupts under load",
    ),
    Check(
        "memory-errors",
        "polling of memory controllers",
        Group.MACHINE,
        Severity.LOW,
        _memory_errors,
        why="A work item reads registers of each memory controller, often through slow configuration accesses.",
        source="kernel: Documentation/driver-api/edac.rst",
        elsewhere="corrected errors of memory are noticed later",
    ),
)
