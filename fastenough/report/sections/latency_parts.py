# SPDX-License-Identifier: GPL-2.0-or-later
"""The stages of a wake-up latency with their measured times: AT91SAM's diagram, from the monitor's stations."""

from __future__ import annotations

from matplotlib.figure import Figure

from fastenough.analysis import words
from fastenough.report import plot
from fastenough.report.context import Context, Group, Kind
from fastenough.report.document import Data, Picture, Section
from fastenough.report.sections.stations import kinds_of

WAYS = (
    ("expiry-to-interrupt", "interrupt-to-runnable", "runnable-to-running", "running-to-return"),
    ("device-to-runnable", "runnable-to-running", "running-to-return"),
)
"""The stations of a wake-up by a timer, and by a device, in order."""
_MEANINGS = {
    "expiry-to-interrupt": "interrupt latency",
    "interrupt-to-runnable": "interrupt handler",
    "device-to-runnable": "interrupt and handler",
    "runnable-to-running": "scheduler latency",
    "running-to-return": "return to user space",
}
_MOST_LOADS = 6


def _way(group: Group) -> list[Kind]:
    """The first way whose stations all have values; else empty."""
    return next((kinds for way in WAYS if len(kinds := kinds_of(group, way)) == len(way)), [])


def _draw(group: Group, kinds: list[Kind]) -> Figure:
    """One box per stage, all of one width, with the events at the borders."""
    figure, axes = plot.new_figure(f"Stages of the wake-up latency: {group.title}", (plot.WIDE_IN[0], 2.2))
    axes.set_axis_off()
    axes.set_xlim(-0.2, len(kinds) + 0.2)
    axes.set_ylim(-1.6, 1.6)
    for place, kind in enumerate(kinds):
        name, measures = kind.series.name, kind.measures
        axes.barh(0, 1, left=place, height=1.0, color=plot.COLOURS[place], alpha=0.25, edgecolor="#000000")
        axes.annotate(_MEANINGS[name], (place + 0.5, 0.0), ha="center", va="center", fontsize=10)
        axes.annotate(
            f"median {words.latency(measures.quantile(0.5).value_ns)}\nmaximum {words.latency(measures.maximum_ns)}",
            (place + 0.5, -0.65),
            ha="center",
            va="top",
            fontsize=9,
        )
    events = [kind.series.name.split("-to-")[0] for kind in kinds] + [kinds[-1].series.name.split("-to-")[1]]
    for place, event in enumerate(events):
        axes.plot([place, place], [-0.5, 0.75], color="#000000", linewidth=1.0)
        axes.annotate(event, (place, 0.8), ha="center", va="bottom", fontsize=10, fontweight="bold")
    return figure


def _data(kinds: list[Kind]) -> Data:
    return ["part", "station", "n", "median_ns", "p999_ns", "maximum_ns"], [
        [
            _MEANINGS[kind.series.name],
            kind.series.name,
            kind.measures.n,
            kind.measures.quantile(0.5).value_ns,
            kind.measures.quantile(0.999).value_ns,
            kind.measures.maximum_ns,
        ]
        for kind in kinds
    ]


def _picture(group: Group, number: int) -> Picture | None:
    kinds = _way(group)
    if not kinds:
        return None
    return plot.picture(
        _draw(group, kinds),
        f"latency-parts-{number}",
        f"From event to event, not to scale; "
        f"n = {kinds[0].measures.n:,}, {group.title}, {group.instrument}. The maxima belong to different "
        "wake-ups and do not add up.",
        _data(kinds),
        wide=True,
    )


def section(context: Context) -> Section | None:
    pictures = [
        picture
        for number, group in enumerate(context.watched[:_MOST_LOADS], start=1)
        if (picture := _picture(group, number)) is not None
    ]
    if not pictures:
        return None
    return Section(
        "latency-parts",
        "Latency stages",
        "A wake-up latency is the sum of four stages: until the interrupt, in its handler, until the scheduler "
        "runs the task, and until the return to user space.",
        pictures,
    )
