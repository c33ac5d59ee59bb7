# SPDX-License-Identifier: GPL-2.0-or-later
"""The chapters of a report: one file each, one line here for each, in the order of the page.

A section is a function of the context; it returns None where it has nothing to say.
"""

from collections.abc import Callable

from fastenough.report.context import Context
from fastenough.report.document import Section
from fastenough.report.sections import (
    agreement,
    bounds,
    events,
    experiment,
    frequency,
    heat_map,
    jitter,
    latency_plot,
    machine,
    method,
    percentiles,
    primitives,
    profile,
    runs,
    settings,
    stress_matrix,
    supported,
    throughput,
    views,
)

SECTIONS: tuple[Callable[[Context], Section | None], ...] = (
    supported.section,
    runs.section,
    experiment.response,
    experiment.periodic,
    agreement.section,
    settings.section,
    stress_matrix.section,
    primitives.section,
    throughput.section,
    jitter.section,
    latency_plot.section,
    heat_map.section,
    percentiles.section,
    bounds.section,
    frequency.section,
    views.section,
    machine.section,
    events.section,
    method.section,
    profile.section,
)
