# SPDX-License-Identifier: GPL-2.0-or-later
"""Latency plots load by load: linear x in µs, logarithmic y, stairs, one line per CPU."""

from __future__ import annotations

from fastenough.analysis import words
from fastenough.report import plot
from fastenough.report.context import Context, SeriesEntry
from fastenough.report.document import Picture, Section, Text
from fastenough.report.latency import MOST_NAMED, Scale, counted_note, latency_data, latency_figure, lines_by_cpu

MOST_PLOTS = 24


def _beyond(context: Context, entry: SeriesEntry) -> str:
    """A note on the samples beyond a cut axis; empty if there are none."""
    _, axes = plot.new_figure("")
    end_us = plot.linear_axis(axes, [other.kind.all_cpus for other in context.beside(entry)])
    values = entry.kind.all_cpus
    counted = sum(only.count for only in values.counted_only)
    beyond = max(0, values.exceeded(end_us * 1000.0)[1] - counted)
    if not beyond:
        return ""
    return (
        f" The axis is cut: {words.counted(beyond, 'sample')} beyond it, up to "
        f"{words.latency(values.maximum_ns)}; the next figure shows the whole tail."
    )


def latency_pictures(context: Context, entry: SeriesEntry, name: str) -> list[Picture]:
    """The latency plot of one kind of series; a second one of the whole tail if the first is cut."""
    label = f"{entry.kind.name}: {entry.group.label(entry.kind.all_cpus)}.{counted_note([entry.kind.all_cpus])}"
    lines = lines_by_cpu(entry)
    if len(lines) > MOST_NAMED:
        label += f" The {MOST_NAMED} CPUs with the greatest maxima are in colour, the others grey."
    together = [other.kind.all_cpus for other in context.beside(entry)]
    limits_ns = context.limits_ns(entry.group)
    data = latency_data(lines)
    linear = latency_figure(entry.name, lines, Scale.over(together, plot.linear_axis, limits_ns))
    if plot.fits_linear(together):
        return [plot.picture(linear, name, label, data)]
    whole = latency_figure(f"{entry.name}, whole tail", lines, Scale.over(together, plot.log_axis, limits_ns))
    return [
        plot.picture(linear, name, label + _beyond(context, entry), data),
        plot.picture(whole, f"{name}-tail", f"{label} Latency on a logarithmic axis.", data),
    ]


def section(context: Context) -> Section | None:
    chosen = context.entries
    if not chosen:
        return None
    parts: list[Picture | Text] = []
    for number, entry in enumerate(chosen[:MOST_PLOTS], start=1):
        parts += latency_pictures(context, entry, f"latency-{number}")
    if len(chosen) > MOST_PLOTS:
        parts.append(Text(f"{len(chosen) - MOST_PLOTS} more are not drawn; the tables have all."))
    return Section(
        "latency",
        "Latency plots, CPU by CPU",
        "Histograms of latency in steps of 1 µs. The tail at the bottom right matters most: the steeper the line "
        "falls, the more reliable the maximum. Triangles mark the maximum of each CPU. Hatched areas were charged "
        "for missed periods, not measured.",
        parts,
    )
