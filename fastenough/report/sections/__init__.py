# SPDX-License-Identifier: GPL-2.0-or-later
"""The sections of a report, by the part of the page they stand in: one file each, one line here for each, in order.

A section is a function of the context.  It returns None if it has nothing to show.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fastenough.registry import listed
from fastenough.report.context import Context
from fastenough.report.document import Section

MakeSection = Callable[[Context], Section | None]

_NAMES = {
    "evidence": (
        "advice",
        "stations",
        "culprits",
        "experiment:response",
        "experiment:periodic",
        "experiment:timer",
        "primitives",
        "throughput",
        "percentiles",
        "supported",
        "bounds",
        "views",
        "stress_matrix",
        "latency_plot",
        "checks",
    ),
    "details": (
        "set_up",
        "kernels",
        "latency_parts",
        "agreement",
        "jitter",
        "beside",
        "heat_map",
        "long_term",
        "before_after",
        "events",
        "trace",
        "frequency",
        "extremes",
    ),
    "appendix": (
        "machine",
        "settings",
        "audit",
        "runs",
        "method",
        "plan_text",
        "profile",
    ),
}

PARTS: Mapping[str, tuple[MakeSection, ...]] = {
    part: tuple(listed(__name__, "section", names)) for part, names in _NAMES.items()
}
SECTIONS: tuple[MakeSection, ...] = tuple(make for makes in PARTS.values() for make in makes)
