# SPDX-License-Identifier: GPL-2.0-or-later
"""Figure of a monitor calibration: delays injected into each station as the monitor measured them (OSADL, figure 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from fastenough.report import plot
from fastenough.report.document import Picture

_SIZE_IN = (10.4, 6.4)
_BINS = 120
Times = NDArray[np.int64]


@dataclass(frozen=True)
class Panel:
    """One station: its values (ns) without an injection, with one, and the other stations' of the same wake-ups."""

    station: str
    sizes_ns: tuple[int, ...]
    quiet_ns: Times
    delayed_ns: Times
    elsewhere_ns: Times


def calibration_picture(panels: Sequence[Panel]) -> Picture:
    """One picture of all stations on the same axes: log x in µs, log counts."""
    figure = Figure(figsize=_SIZE_IN, layout="constrained")
    every = figure.subplots(2, (len(panels) + 1) // 2, sharex=True, sharey=True, squeeze=False).ravel()
    edges_us = _edges_us(panels)
    for axes, panel in zip(every, panels, strict=False):
        _draw(axes, panel, edges_us)
    plot.legend_below(figure, every[0].get_legend_handles_labels()[0], columns=4)
    for axes in every[-2:]:
        axes.set_xlabel("station latency [µs]", fontsize=9)
    figure.supylabel("wake-ups", fontsize=9)
    rows = [(panel.station, kind, int(value)) for panel in panels for kind, values in _kinds(panel) for value in values]
    return plot.picture(
        figure,
        "monitor-calibration",
        "Injected delays of each station as measured by the monitor",
        (("station", "wake-ups", "ns"), rows),
        wide=True,
    )


def _kinds(panel: Panel) -> list[tuple[str, Times]]:
    return [
        ("not delayed", panel.quiet_ns),
        ("delayed here", panel.delayed_ns),
        ("same wake-ups at other stations", panel.elsewhere_ns),
    ]


def _edges_us(panels: Sequence[Panel]) -> NDArray[np.float64]:
    highest_ns = max((int(values.max()) for panel in panels for _, values in _kinds(panel) if values.size), default=1)
    return np.geomspace(0.1, max(1.0, highest_ns / 1000 * 1.2), _BINS)


def _draw(axes: Axes, panel: Panel, edges_us: NDArray[np.float64]) -> None:
    axes.set_title(panel.station, loc="left", fontsize=10, fontweight="bold")
    axes.set_xscale("log")
    colours = (plot.UNNAMED, plot.COLOURS[1], plot.COLOURS[0])
    greatest = 1
    for (kind, values), colour in zip(_kinds(panel), colours, strict=True):
        counts, _ = np.histogram(np.clip(values / 1000.0, edges_us[0], edges_us[-1]), edges_us)
        axes.stairs(
            np.maximum(counts, plot.FLOOR), edges_us, baseline=plot.FLOOR, color=colour, label=kind, linewidth=1.3
        )
        greatest = max(greatest, int(counts.max()))
    for position, size_ns in enumerate(panel.sizes_ns):
        axes.axvline(
            size_ns / 1000.0, color="#000000", linestyle=":", linewidth=1.0, label="_" if position else "injected"
        )
    plot.count_axis(axes, greatest)
    plot.plain_log_axis(axes.xaxis)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
