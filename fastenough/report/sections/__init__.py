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
        "stations:kernel_stages",
        "stations:causes",
        "experiment:response",
        "experiment:periodic",
        "experiment:timer",
        "primitives",
        "throughput",
        "percentiles:percentiles",
        "bounds:tightest_limits",
        "bounds:rate_bounds",
        "percentiles:missed_periods",
        "stress_matrix",
        "latency_plot",
        "methods:data_checks",
    ),
    "details": (
        "plan:planned",
        "kernels",
        "costs",
        "stations:latency_stages",
        "methods:edge_agreement",
        "jitter",
        "beside",
        "heat_map",
        "long_term",
        "before_after",
        "events",
        "trace",
        "percentiles:frequencies",
        "uncertainty",
        "extremes",
    ),
    "appendix": (
        "system:activity",
        "system:settings",
        "system:system_audit",
        "runs",
        "methods:definitions",
        "plan:plan_file",
        "system:profile",
    ),
}

PARTS: Mapping[str, tuple[MakeSection, ...]] = {
    part: tuple(listed(__name__, "section", names)) for part, names in _NAMES.items()
}
SECTIONS: tuple[MakeSection, ...] = tuple(make for makes in PARTS.values() for make in makes)
