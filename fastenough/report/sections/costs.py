# SPDX-License-Identifier: GPL-2.0-or-later
"""What the cost model of a deterministic board counted on the path of each wake-up."""

from __future__ import annotations

from typing import Any

from fastenough.analysis.costs import cost_figures, cost_model_of
from fastenough.report.context import Context, RunGroup
from fastenough.report.document import Column, ReportTable, Section

_COLUMNS = (
    Column("runs", numeric=False),
    Column("counted", numeric=False),
    Column("paths"),
    Column("minimum"),
    Column("median"),
    Column("upper quartile"),
)


def _rows(group: RunGroup) -> list[list[Any]]:
    """Raises BadInput for counts that no cost model writes."""
    contents = [recording.costs() for recording in group.recordings if recording.costs is not None]
    return [
        [group.title, each.counted, each.paths, each.minimum, each.median, each.upper_quartile]
        for each in cost_figures(contents)
    ]


def section(context: Context) -> Section | None:
    counted = [group for group in context.groups if any(run.costs is not None for run in group.recordings)]
    if not counted:
        return None
    models = {str(cost_model_of(run.head)) for group in counted for run in group.recordings}
    note = f"Cost model {', '.join(sorted(models))} (size in bytes, ways, bytes of a line; LRU: least recently used)."
    rows = [row for group in counted for row in _rows(group)]
    return Section(
        "costs",
        "Cache misses of the path",
        "From the last interrupt before a thread of the probe is switched in to its first instructions. The caches are "
        "a model and no machine's: use the counts to compare kernels, settings and loads. They are no time, and no "
        "verdict uses them. There is no maximum, since some of the paths belong to threads that do not measure.",
        [ReportTable("costs", "Counts of a path", _COLUMNS, rows, note=note)] if rows else [],
    )
