# SPDX-License-Identifier: GPL-2.0-or-later
"""Response and periodic tasks as an instrument saw them: tables 4 to 9 and figures 2 to 5 of Brown and Martin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fastenough.analysis import Measures, Merged, highest_frequency_hz, words
from fastenough.reference import find_reference
from fastenough.report import plot
from fastenough.report.context import Context, Group, Kind, configuration_word
from fastenough.report.document import Column, Folded, Picture, Section, Table

_SERIAL_BYTES = 12
_SERIAL_BAUD = 115_200
_BITS_PER_BYTE = 10
SERIAL_US = _SERIAL_BYTES * _BITS_PER_BYTE / _SERIAL_BAUD * 1e6
"""How long twelve bytes take on a serial line (8 data bits, start and stop): a scale that everybody knows."""
_BINS = 160
_ROW_IN = 1.15


@dataclass(frozen=True)
class _Task:
    probe: str
    title: str
    lead: str
    quantity: str
    bound: str
    tables: str


_TASKS = {task.probe: task for task in (
    _Task("response", "Response: from an edge on one pin to its answer on another",
          "The instrument changes the board's input after a random wait and measures until the board's output follows, "
          "from falling edge to falling edge.",
          "response time", "latency does not exceed", "tables 4 and 5"),
    _Task("periodic", "Periodic: how evenly a pin is toggled",
          "The instrument measures from one falling edge to the next; shown is the deviation from the expected period. "
          "One late toggle gives two of them: a period that is too long, and one that is too short.",
          "jitter", "jitter does not exceed", "tables 6 and 7"),
)}


@dataclass(frozen=True)
class _Cell:
    """One implementation on one configuration."""

    configuration: str
    implementation: str
    group: Group
    kind: Kind

    @property
    def values(self) -> Merged:
        return self.kind.all_cpus

    @property
    def measures(self) -> Measures:
        return self.kind.measures

    @property
    def name(self) -> str:
        return f"{self.configuration} {self.implementation}"


def _cells(context: Context, probe: str) -> list[_Cell]:
    """Of runs that an instrument measured, those of this probe; the falling edge, as in the paper."""
    cells = []
    for group in context.groups:
        head = group.recordings[0].head
        if head.probe == probe and head.instrument and group.judged_kinds:
            cells.append(_Cell(configuration_word(group.recordings[0]), head.implementation, group,
                               group.judged_kinds[0]))
    return sorted(cells, key=lambda cell: (cell.implementation.endswith("kernel"), _rank(cell.configuration)))


_IN_ORDER = ("stock", "rt")


def _rank(configuration: str) -> int:
    return _IN_ORDER.index(configuration) if configuration in _IN_ORDER else len(_IN_ORDER)


def _at_home(cells: Sequence[_Cell]) -> list[_Cell]:
    """Each kernel with its own way of doing it: Linux's tasks on a kernel that has others stand in tables 8 and 9."""
    own = {cell.configuration for cell in cells if not cell.implementation.startswith("linux-")}
    return [cell for cell in cells if cell.configuration not in own or not cell.implementation.startswith("linux-")]


def _khz(hz: float | None) -> str:
    """A lower frequency is a weaker promise, so it is never rounded up."""
    return "–" if hz is None else words.digits_down(hz / 1000)


def _percentiles(task: _Task, cells: Sequence[_Cell], conditions: str, name: str = "percentiles",
                 caption: str = "Percentiles of the {}") -> Table:
    columns = (Column("configuration", numeric=False), Column("implementation", numeric=False), Column("samples"),
               Column("median [µs]", words.microseconds), Column("95 % [µs]", words.microseconds),
               Column("100 % [µs]", words.microseconds))
    rows = [(cell.configuration, cell.implementation, (m := cell.measures).n, m.quantile(0.5).value_ns,
             m.quantile(0.95).value_ns, m.maximum_ns) for cell in cells]
    header = ["configuration", "implementation", "samples", "median_ns", "p95_ns", "max_ns"]
    return Table(f"{task.probe}-{name}", caption.format(task.quantity), columns, rows, over=task.quantity,
                 csv=(header, rows), note=conditions)


def _across_kernels(task: _Task, cells: Sequence[_Cell]) -> list[Table]:
    """What one implementation does on several kernels, each with the others: tables 8 and 9."""
    kernels: dict[str, set[str]] = {}
    for cell in cells:
        kernels.setdefault(cell.implementation, set()).add(cell.configuration)
    several = [cell for cell in cells if len(kernels[cell.implementation]) > 1]
    return [_percentiles(task, several, _conditions(several), "across-kernels",
                         "The same implementation on each kernel: {}")] if several else []


def _frequencies(task: _Task, cells: Sequence[_Cell]) -> Table:
    columns = (Column("configuration", numeric=False), Column("implementation", numeric=False),
               Column("95 % frequency [kHz]", _khz), Column("100 % frequency [kHz]", _khz))
    rows = [(cell.configuration, cell.implementation, highest_frequency_hz((m := cell.measures)
             .quantile(0.95).value_ns), highest_frequency_hz(m.maximum_ns)) for cell in cells]
    header = ["configuration", "implementation", "frequency_95_hz", "frequency_100_hz"]
    return Table(f"{task.probe}-frequencies", "The same as frequencies, rounded down", columns, rows,
                 over=f"highest frequency at which {task.bound} half the period", csv=(header, rows))


def _shares(values: Merged, edges_us: np.ndarray) -> np.ndarray:
    """Percent of all samples in each bin; a bucket wider than a bin is spread evenly over its width."""
    lowest_ns, highest_ns = values.edges_ns()
    up_to = np.cumsum(values.histogram.count)
    ends_us = np.column_stack([lowest_ns, highest_ns + values.unit_ns]).ravel() / 1000.0
    counts = np.column_stack([up_to - values.histogram.count, up_to]).ravel()
    return np.asarray(100.0 * np.diff(np.interp(edges_us, ends_us, counts)) / values.n)


def _draw_row(axes: Axes, cell: _Cell, edges_us: np.ndarray) -> None:
    axes.stairs(_shares(cell.values, edges_us), edges_us, fill=True, color=plot.COLOURS[0])
    envelope_ns = cell.measures.quantile(0.95).value_ns
    if envelope_ns is not None:
        for side in (1, -1) if cell.values.two_sided else (1,):
            axes.axvline(side * envelope_ns / 1000.0, color="#b00020", linestyle="--", linewidth=1)
    axes.set_ylabel("%")
    axes.set_title(cell.name, loc="right", fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlim(edges_us[0], edges_us[-1])


def _axis_us(cells: Sequence[_Cell]) -> tuple[np.ndarray, int]:
    """Bin edges for all cells together, and how many samples lie beyond them."""
    body_ns = [quantile for cell in cells if (quantile := cell.measures.quantile(0.95).value_ns) is not None]
    end_us = 1.5 * max(body_ns, default=max(cell.values.maximum_ns or 1000.0 for cell in cells)) / 1000.0
    begin_us = -end_us if any(cell.values.two_sided for cell in cells) else 0.0
    beyond = sum(cell.values.exceeded(end_us * 1000.0)[1] for cell in cells)
    return np.linspace(begin_us, end_us, _BINS + 1), beyond


def _histograms(task: _Task, cells: Sequence[_Cell], conditions: str) -> Picture:
    edges_us, beyond = _axis_us(cells)
    figure = Figure(figsize=(plot.WIDE_IN[0], 0.7 + _ROW_IN * len(cells)), layout="constrained")
    rows = figure.subplots(len(cells), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, cell in zip(rows, cells, strict=True):
        _draw_row(axes, cell, edges_us)
    rows[-1].set_xlabel(f"{task.quantity} [µs]")
    cut = f" {words.counted(beyond, 'sample')} lie beyond the axis." if beyond else ""
    caption = f"Share of the samples by {task.quantity}, on a linear scale; within the dashed line lie 95 %."
    data = (("configuration", "implementation", "from_us", "to_us", "percent"), [
        (cell.configuration, cell.implementation, *band) for cell in cells
        for band in zip(edges_us[:-1], edges_us[1:], _shares(cell.values, edges_us), strict=True)])
    return plot.picture(figure, f"{task.probe}-histograms", f"{caption}{cut} {conditions}", data, wide=True)


def _bars(task: _Task, cells: Sequence[_Cell], conditions: str) -> Picture:
    """Maximum and 95 % envelope on a logarithmic scale, and the serial line as a yardstick."""
    figure, axes = plot.new_figure("", (plot.WIDE_IN[0], 1.0 + 0.6 * len(cells)))
    rows = [(cell, share, value_ns or 0.0, colour) for cell in cells for m in (cell.measures,)
            for share, value_ns, colour in (("95 %", m.quantile(0.95).value_ns, plot.COLOURS[0]),
                                            ("100 %", m.maximum_ns, plot.COLOURS[1]))]
    for place, (_, share, value_ns, colour) in enumerate(rows):
        at = place // 2 + (-0.2, 0.2)[place % 2]
        axes.barh(at, value_ns / 1000.0, height=0.38, color=colour)
        axes.annotate(f"{share}: {words.latency(value_ns)}", (value_ns / 1000.0, at), xytext=(4, 0), va="center",
                      textcoords="offset points", fontsize=9)
    axes.axvline(SERIAL_US, color="#444444", linestyle=":", linewidth=1.5)
    axes.annotate(f"{_SERIAL_BYTES} serial bytes at {_SERIAL_BAUD:,} bps: {SERIAL_US:,.0f} µs", (SERIAL_US, 1.0),
                  xycoords=("data", "axes fraction"), xytext=(3, 2), textcoords="offset points", fontsize=8)
    axes.set_yticks(range(len(cells)), [cell.name for cell in cells])
    axes.invert_yaxis()
    axes.set_xscale("log")
    least_us = min([SERIAL_US, *((cell.measures.quantile(0.95).value_ns or 1e9) / 1000.0 for cell in cells)])
    greatest_us = max([SERIAL_US, *(value_ns / 1000.0 for _, _, value_ns, _ in rows)])
    axes.set_xlim(max(0.05, least_us / 3), greatest_us * 6)
    plot.plain_log_axis(axes.xaxis)
    axes.set_xlabel(f"{task.quantity} [µs], logarithmic")
    data = (("configuration", "implementation", "share", "value_ns"),
            [(cell.configuration, cell.implementation, share, value_ns) for cell, share, value_ns, _ in rows])
    return plot.picture(figure, f"{task.probe}-bars", f"95 % and 100 % of the samples by {task.quantity}, on a "
                        f"logarithmic scale, beside the time {_SERIAL_BYTES} bytes take on a serial line. {conditions}",
                        data, wide=True)


def _published(task: _Task) -> Folded:
    us = words.microseconds
    columns = (Column("configuration", numeric=False), Column("implementation", numeric=False), Column("samples"),
               Column("median [µs]", us), Column("95 % [µs]", us), Column("100 % [µs]", us), Column("95 % [kHz]"),
               Column("100 % [kHz]"))
    rows = [(one.configuration, one.implementation, one.n, one.median_ns, one.p95_ns, one.maximum_ns,
             one.printed_95_khz, one.printed_100_khz) for one in find_reference("beagleboard").of(task.probe)]
    caption = (f"Brown and Martin, {task.tables} (and 8, 9): BeagleBoard C4 at 720 MHz, kernels 2.6.33, heavy load, "
               "two hours each, instrument outside.")
    return Folded("Beside it: the figures Brown and Martin published",
                  [Table(f"{task.probe}-published", caption, columns, rows)])


def _conditions(cells: Sequence[_Cell]) -> str:
    """What every table and figure states."""
    n = ", ".join(f"{cell.name} {cell.values.n:,} in {words.duration(cell.values.duration_ns)}" for cell in cells)
    instruments = ", ".join(dict.fromkeys(cell.group.instrument for cell in cells))
    loads = ", ".join(dict.fromkeys(cell.group.load for cell in cells))
    return f"n: {n}. Load: {loads}. Instrument: {instruments}."


def _section(context: Context, probe: str) -> Section | None:
    task, cells = _TASKS[probe], [cell for cell in _cells(context, probe) if cell.values.n]
    if not cells:
        return None
    home = _at_home(cells)
    conditions = _conditions(home)
    return Section(f"experiment-{probe}", task.title, task.lead,
                   [_percentiles(task, home, conditions), _frequencies(task, home), _histograms(task, home, conditions),
                    _bars(task, home, conditions), *_across_kernels(task, cells), _published(task)])


def response(context: Context) -> Section | None:
    return _section(context, "response")


def periodic(context: Context) -> Section | None:
    return _section(context, "periodic")
