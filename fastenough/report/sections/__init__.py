# SPDX-License-Identifier: GPL-2.0-or-later
"""The chapters of a report: one file each, one line here for each, in the order of the page.

A section is a function of the context; it returns None where it has nothing to say.
"""

from collections.abc import Callable

from fastenough.registry import listed
from fastenough.report.context import Context
from fastenough.report.document import Section

SECTIONS: tuple[Callable[[Context], Section | None], ...] = tuple(
    listed(
        __name__,
        "section",
        (
            "advice",
            "set_up",
            "kernels",
            "checks",
            "latency_parts",
            "stations",
            "culprits",
            "experiment:response",
            "experiment:periodic",
            "experiment:timer",
            "agreement",
            "primitives",
            "throughput",
            "jitter",
            "beside",
            "percentiles",
            "stress_matrix",
            "supported",
            "bounds",
            "latency_plot",
            "heat_map",
            "long_term",
            "before_after",
            "events",
            "trace",
            "frequency",
            "extremes",
            "views",
            "next_steps",
            "runs",
            "settings",
            "machine",
            "audit",
            "method",
            "plan_text",
            "profile",
        ),
    )
)
