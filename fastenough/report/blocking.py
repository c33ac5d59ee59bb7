# SPDX-License-Identifier: GPL-2.0-or-later
"""The composed bound as a chapter: the terms of each CPU, and the bounds beside the longest that was seen."""

from __future__ import annotations

from collections.abc import Sequence

from fastenough import words
from fastenough.analysis.blocking_trace import TracedCpu
from fastenough.analysis.composed_bound import Composed
from fastenough.report.document import Column, Section, Table

_NS = words.microseconds
_SEEN = "longest seen"


def _bound(latency_ns: int | None) -> str:
    return "no bound" if latency_ns is None else words.microseconds(latency_ns)


def bound_section(found: Sequence[tuple[TracedCpu, Sequence[Composed]]], meaning: str) -> Section:
    """``meaning``: what the bounds say, and what not."""
    terms = Table(
        "bound-terms",
        "Each term at the longest that was seen, less interrupts",
        (
            Column("CPU"),
            Column("off (POID) [µs]", _NS),
            Column("asked (PAIE) [µs]", _NS),
            Column("to schedule (PSD) [µs]", _NS),
            Column("unaware (DST) [µs]", _NS),
            Column("sections"),
            Column("switches"),
        ),
        [
            (
                one.cpu,
                one.blocking.poid_ns,
                one.blocking.paie_ns,
                one.blocking.psd_ns,
                one.blocking.dst_ns,
                one.sections,
                one.switches,
            )
            for one, _ in found
        ],
    )
    ways = [bound.interrupts for bound in found[0][1]]
    bounds = Table(
        "bound",
        "The bound by how interrupts are counted, and what was seen in the same trace",
        (
            Column("CPU"),
            *(Column(f"{way} [µs]", _bound) for way in ways),
            Column(f"{_SEEN} [µs]", _NS),
            Column("of wake-ups"),
        ),
        [(one.cpu, *(bound.latency_ns for bound in bounds), one.observed_ns, one.wakeups) for one, bounds in found],
    )
    return Section("bound", "The scheduling latency that the kernel's own blocking allows", meaning, [bounds, terms])
