# SPDX-License-Identifier: GPL-2.0-or-later
"""Before and after a change: two measurements of the same load on the same board, and their differences.

After figure 6 of OSADL's article on the quality assessment of real-time Linux (one idle-state limit, before and after).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from fastenough.analysis import words
from fastenough.analysis.differences import all_differences, differing_keys, run_values
from fastenough.analysis.keys import RUN_KEYS
from fastenough.report import plot
from fastenough.report.context import Context, SeriesEntry
from fastenough.report.document import Column, Picture, ReportTable, Section, Text
from fastenough.report.latency import HistogramLine, Scale, counted_note, latency_data, latency_figure

TURNED = frozenset(
    {
        "settings",
        "configuration",
        "kernel",
        "kernel configuration",
        "command line",
        "frequency policy",
        "idle policy",
        "RT throttling",
        "tunables",
        "huge pages and swap",
        "CPUs in use",
        "CPU quota",
        "real-time budget",
        "CPUs allowed",
    }
)
"""Keys that a person can change on a system.  Two runs that differ in another key are not compared."""
MOST_PAIRS = 8
_QUANTILES = (0.5, 0.999)


@dataclass(frozen=True)
class BeforeAfter:
    """One kind of series, before and after.  ``differs``: the differences in words, one per key."""

    before: SeriesEntry
    after: SeriesEntry
    differs: tuple[str, ...]

    @property
    def title(self) -> str:
        return f"{self.before.group.load}, {self.before.kind.name}"


def _began_ns(entry: SeriesEntry) -> int:
    return min(recording.head.begin.wall_ns for recording in entry.group.recordings)


def _changed(before: SeriesEntry, after: SeriesEntry) -> tuple[str, ...]:
    """The changes in words; empty if there are none, or if the two are not comparable."""
    values_before, values_after = (run_values(entry.group.recordings[0]) for entry in (before, after))
    names = {key.name for key in differing_keys(values_before, values_after)}
    if not names or not names <= TURNED:
        return ()
    return tuple(
        text
        for text in all_differences(RUN_KEYS, values_before, values_after)
        if any(text.startswith(f"different {name}:") for name in names)
    )


def pairs(context: Context) -> Iterator[BeforeAfter]:
    """For each load and kind, consecutive measurements that differ only in what a person can change."""
    alike: dict[tuple[str, str], list[SeriesEntry]] = {}
    for entry in (*context.entries, *context.ways):
        alike.setdefault((entry.group.load, entry.kind.name), []).append(entry)
    for entries in alike.values():
        for before, after in pairwise(sorted(entries, key=_began_ns)):
            differs = _changed(before, after)
            if differs:
                yield BeforeAfter(before, after, differs)


def _picture(pair: BeforeAfter, number: int) -> Picture:
    """Both latency plots in one figure."""
    values = [entry.kind.all_cpus for entry in (pair.before, pair.after)]
    lines = [HistogramLine(name, side) for name, side in zip(("before", "after"), values, strict=True)]
    axis = plot.linear_axis if plot.fits_linear(values) else plot.log_axis
    figure = latency_figure(f"Before and after, load {pair.title}", lines, Scale.over(values, axis))
    n = " and ".join(f"{side.n:,} in {words.measured_time(side.duration_ns)}" for side in values)
    return plot.picture(
        figure,
        f"before-after-{number}",
        f"n = {n}; {pair.before.group.instrument}; differences: {'; '.join(pair.differs)}.{counted_note(values)}",
        latency_data(lines),
    )


def _table(all_pairs: list[BeforeAfter]) -> ReportTable:
    us = words.microseconds
    columns = (
        Column("load, series", numeric=False),
        *(
            Column(f"{name} {when} [µs]", us)
            for name in ("median", "99.9 %", "maximum")
            for when in ("before", "after")
        ),
        Column("differences", numeric=False),
    )
    rows = []
    for pair in all_pairs:
        measures = [entry.kind.measures for entry in (pair.before, pair.after)]
        quantiles = [values.quantile(quantile).value_ns for quantile in _QUANTILES for values in measures]
        rows.append((pair.title, *quantiles, *(values.maximum_ns for values in measures), "; ".join(pair.differs)))
    return ReportTable(
        "before-after",
        "All CPUs combined",
        columns,
        rows,
        note="'fastenough compare' tests whether a difference is significant. A maximum is a lower bound of the "
        "worst case: a smaller one after a change may be chance.",
    )


def section(context: Context) -> Section | None:
    all_pairs = list(pairs(context))
    if not all_pairs:
        return None
    parts: list[Picture | ReportTable | Text] = [
        _picture(pair, number) for number, pair in enumerate(all_pairs[:MOST_PAIRS], start=1)
    ]
    if len(all_pairs) > MOST_PAIRS:
        parts.append(Text(f"{len(all_pairs) - MOST_PAIRS} more are not drawn; the table has all."))
    parts.append(_table(all_pairs))
    if any(len(pair.differs) > 1 for pair in all_pairs):
        parts.append(Text("If several settings differ, these data cannot show which of them had the effect."))
    return Section(
        "before-after",
        "Before and after a change",
        "Consecutive measurements of the same load on the same board, and the changes between them.",
        parts,
    )
