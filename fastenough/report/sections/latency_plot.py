# SPDX-License-Identifier: GPL-2.0-or-later
"""Latency plots in OSADL's form: linear x in µs, logarithmic y, stairs, one line per CPU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fastenough.analysis import Merged, words
from fastenough.report import plot
from fastenough.report.context import Context, Group, Kind
from fastenough.report.document import Picture, Section, Text

MOST_PLOTS = 24
_MOST_IN_LEGEND = 8


def _name(values: Merged) -> str:
    return f"CPU {values.cpus[0]}" if values.cpus else values.name


def _draw_cpu(axes: Axes, values: Merged, colour: str, label: str | None) -> None:
    heights, edges = plot.stairs(*plot.one_microsecond_view(values))
    left, right = axes.get_xlim()
    if axes.get_xscale() == "log":
        edges = np.maximum(edges, left)
    axes.stairs(*plot.drawable(heights, edges, axes), baseline=plot.FLOOR, color=colour, linewidth=1.1, label=label)
    maximum_us = (values.maximum_ns or 0.0) / 1000.0
    axes.plot([min(maximum_us, right)], [plot.FLOOR], marker="^" if maximum_us <= right else ">", color=colour,
              markersize=6, clip_on=False, zorder=5)


def _draw_limit(axes: Axes, context: Context, group: Group) -> None:
    requirement = context.assessment.requirement_of(group.recordings[0].run_id)
    if requirement is None:
        return
    limit_us = requirement.limit_ns / 1000.0
    if limit_us <= axes.get_xlim()[1] * 3:
        axes.set_xlim(right=max(axes.get_xlim()[1], limit_us * 1.05))
        axes.axvline(limit_us, color="#b00020", linestyle="--", linewidth=1)
        axes.annotate(f"limit {words.latency(requirement.limit_ns)}", (limit_us, 0.04), xytext=(-2, 0),
                      xycoords=("data", "axes fraction"), textcoords="offset points", rotation=90, va="bottom",
                      ha="right", color="#b00020", fontsize=8)


def _draw(context: Context, group: Group, kind: Kind, scale: Callable[[Axes, list[Merged]], object]) -> Figure:
    """All CPUs of one kind of series; all loads of one setup share the x axis, so that they can be compared."""
    figure, axes = plot.new_figure(group.title)
    filled = sorted((values for values in kind.per_cpu if values.n), key=lambda values: -(values.maximum_ns or 0.0))
    scale(axes, context.beside(group, kind))
    axes.set_yscale("log")
    axes.set_xlabel("latency [µs]")
    axes.set_ylabel("samples per µs")
    named = {values.cpus for values in filled[:_MOST_IN_LEGEND]}
    for place, values in enumerate(sorted(filled, key=lambda values: values.cpus)):
        label = f"{_name(values)}: max {words.latency(values.maximum_ns)}" if values.cpus in named else None
        _draw_cpu(axes, values, plot.COLOURS[place % len(plot.COLOURS)], label)
    tallest = max(int(plot.one_microsecond_view(values)[1].max()) for values in filled)
    axes.set_ylim(plot.FLOOR, max(10, tallest * 3))
    plot.plain_log_axis(axes.yaxis)
    _draw_limit(axes, context, group)
    axes.legend(loc="upper right", frameon=True, framealpha=0.9, edgecolor="none", fontsize=8)
    return figure


def _beyond(context: Context, group: Group, kind: Kind) -> str:
    """What a cut axis leaves out, in words."""
    _, axes = plot.new_figure("")
    end_us = plot.linear_axis(axes, context.beside(group, kind))
    beyond = kind.all_cpus.exceeded(end_us * 1000.0)[1]
    if not beyond:
        return ""
    return (f" The axis is cut: {words.counted(beyond, 'sample')} beyond it, up to "
            f"{words.latency(kind.all_cpus.maximum_ns)}; the figure beside holds the whole tail.")


def latency_pictures(context: Context, group: Group, kind: Kind, name: str) -> list[Picture]:
    """The latency plot of one kind of series; where its tail is too long for it, the whole tail beside it."""
    label = f"{kind.name}: {group.label(kind.all_cpus)}."
    if sum(values.n > 0 for values in kind.per_cpu) > _MOST_IN_LEGEND:
        label += f" The {_MOST_IN_LEGEND} CPUs with the greatest maxima are named."
    linear = _draw(context, group, kind, plot.linear_axis)
    if plot.fits_linear(context.beside(group, kind)):
        return [plot.picture(linear, name, label)]
    whole = _draw(context, group, kind, plot.log_axis)
    return [plot.picture(linear, name, label + _beyond(context, group, kind)),
            plot.picture(whole, f"{name}-tail", f"{label} Latency on a logarithmic axis.")]


def section(context: Context) -> Section | None:
    chosen = [(group, kind) for group in context.groups for kind in group.judged_kinds if kind.all_cpus.n]
    if not chosen:
        return None
    parts: list[Picture | Text] = []
    for number, (group, kind) in enumerate(chosen[:MOST_PLOTS], start=1):
        parts += latency_pictures(context, group, kind, f"latency-{number}")
    if len(chosen) > MOST_PLOTS:
        parts.append(Text(f"{len(chosen) - MOST_PLOTS} more are not drawn; the tables hold all of them."))
    return Section("latency", "Latency plots",
                   "How often each latency occurred, in steps of 1 µs. The bottom right corner is what matters: the "
                   "steeper the line falls, the more the maximum can be trusted. Triangles mark each CPU's maximum.",
                   parts)
