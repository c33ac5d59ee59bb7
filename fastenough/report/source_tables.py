# SPDX-License-Identifier: GPL-2.0-or-later
"""Tables in the form of the sources, of measured or published figures: tables 4 to 9 of Brown and Martin
(percentiles, frequencies, one implementation across kernels) and A.2 to A.5 of Enea (latency by load)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fastenough.analysis import highest_frequency_hz, words
from fastenough.reference import Figure
from fastenough.report.context import RunGroup, SeriesKind, configuration_label
from fastenough.report.document import Cell, Column, ReportTable

FigureValue = Callable[[Figure], Any]
_ALWAYS = ("configuration", "implementation")
_IDENTITY_COLUMNS: tuple[tuple[str, FigureValue], ...] = (
    ("board", lambda figure: figure.board),
    ("configuration", lambda figure: figure.configuration),
    ("implementation", lambda figure: figure.implementation),
    ("measured", lambda figure: figure.variant),
    ("load", lambda figure: figure.load),
)
_KERNELS = ("stock", "rt")
_STRESS = {"none": "no stress"}


def _identity_columns(figures: Sequence[Figure]) -> list[tuple[str, FigureValue]]:
    """The first columns: configuration and implementation, and others in which the figures differ."""
    return [
        (title, value_of)
        for title, value_of in _IDENTITY_COLUMNS
        if title in _ALWAYS or len({value_of(figure) for figure in figures}) > 1
    ]


def names(figures: Sequence[Figure]) -> list[str]:
    """The name of each row in a figure: its first columns."""
    identity = _identity_columns(figures)
    return [" ".join(value_of(figure) for _, value_of in identity) for figure in figures]


def rank(figure: Figure) -> tuple[bool, int]:
    """The order of the paper: user space before the kernel, the stock kernel before the others."""
    kernel = _KERNELS.index(figure.configuration) if figure.configuration in _KERNELS else len(_KERNELS)
    return figure.implementation.endswith("kernel"), kernel


def at_home(figures: Sequence[Figure]) -> list[Figure]:
    """Each kernel with its own implementation; Linux tasks on other kernels are in tables 8 and 9."""
    kernels_with_own_tasks = {
        figure.configuration for figure in figures if not figure.implementation.startswith("linux-")
    }
    return [
        figure
        for figure in figures
        if figure.configuration not in kernels_with_own_tasks or not figure.implementation.startswith("linux-")
    ]


def across_kernels(figures: Sequence[Figure]) -> list[Figure]:
    """Those whose implementation was measured on several kernels: tables 8 and 9."""
    kernels: dict[str, set[str]] = {}
    for figure in figures:
        kernels.setdefault(figure.implementation, set()).add(figure.configuration)
    return [figure for figure in figures if len(kernels[figure.implementation]) > 1]


@dataclass(frozen=True)
class Rounding:
    """How times and minima are rounded."""

    time: Callable[[Any], str] = words.microseconds
    least: Callable[[Any], str] = words.microseconds_down


def _maximum(figure: Figure, rounding: Rounding = Rounding()) -> Cell:
    """The maximum; of one that is unknown its lower bound."""
    text = f"≥ {rounding.least(figure.maximum_ns)}" if figure.exceeds_range else rounding.time(figure.maximum_ns)
    return Cell(figure.maximum_ns, text)


def percentile_table(name: str, caption: str, quantity: str, figures: Sequence[Figure], note: str) -> ReportTable:
    """Tables 4, 6, 8 and 9: n, median, 95 % and 100 %; of a jitter the median is signed, the others are magnitudes."""
    identity, us = _identity_columns(figures), words.microseconds
    columns = (
        *(Column(title, numeric=False) for title, _ in identity),
        Column("samples"),
        Column("median [µs]", us),
        Column("95 % [µs]", us),
        Column("100 % [µs]", us),
    )
    rows = [
        [*(value_of(figure) for _, value_of in identity), figure.n, figure.median_ns, figure.p95_ns, _maximum(figure)]
        for figure in figures
    ]
    header = [*(title for title, _ in identity), "samples", "median_ns", "p95_ns", "max_ns"]
    return ReportTable(name, caption, columns, rows, over=quantity, csv=(header, _bare(rows)), note=note)


_PRINTED: tuple[tuple[str, FigureValue], ...] = (
    ("95 % as printed [kHz]", lambda figure: figure.printed_95_khz),
    ("100 % as printed [kHz]", lambda figure: figure.printed_100_khz),
)


def frequency_table(name: str, caption: str, over: str, figures: Sequence[Figure], note: str = "") -> ReportTable:
    """Tables 5 and 7: 1/(2 L) for 95 % and 100 %, and as its source printed it where there is one."""
    identity, khz = _identity_columns(figures), words.kilohertz
    printed = _PRINTED if any(figure.printed_95_khz is not None for figure in figures) else ()
    columns = (
        *(Column(title, numeric=False) for title, _ in identity),
        Column("95 % frequency [kHz]", khz),
        Column("100 % frequency [kHz]", khz),
        *(Column(title) for title, _ in printed),
    )
    rows = [
        [
            *(value_of(figure) for _, value_of in identity),
            highest_frequency_hz(figure.p95_ns),
            None if figure.exceeds_range else highest_frequency_hz(figure.maximum_ns),
            *(value_of(figure) for _, value_of in printed),
        ]
        for figure in figures
    ]
    header = [
        *(title for title, _ in identity),
        "frequency_95_hz",
        "frequency_100_hz",
        *(title for title, _ in printed),
    ]
    return ReportTable(name, caption, columns, rows, over=over, csv=(header, rows), note=note)


def _bare(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    return [[value.value if isinstance(value, Cell) else value for value in row] for row in rows]


def _stress_rows(figures: Sequence[Figure | None], rounding: Rounding) -> list[list[Any]]:
    """Rows of minimum, average and maximum; None for a missing figure."""
    least = [
        None
        if figure is None or figure.minimum_ns is None
        else Cell(figure.minimum_ns, rounding.least(figure.minimum_ns))
        for figure in figures
    ]
    maxima = [None if figure is None or figure.maximum_ns is None else _maximum(figure, rounding) for figure in figures]
    return [
        ["Min", *least],
        ["Average", *(figure and figure.mean_ns for figure in figures)],
        ["Max", *maxima],
    ]


def maxima_by_kernel(name: str, caption: str, figures: Sequence[Figure], note: str = "") -> list[ReportTable]:
    """AT91SAM's table: a row for each board, a column for each kernel; none unless several boards ran several kernels.

    Of several figures of one board and kernel the greatest counts.
    """
    boards = list(dict.fromkeys(figure.board for figure in figures))
    kernels = list(dict.fromkeys(figure.configuration for figure in figures))
    if len(boards) < 2 or len(kernels) < 2:
        return []

    def cell(board: str, kernel: str) -> Cell | None:
        measured = [
            figure
            for figure in figures
            if (figure.board, figure.configuration) == (board, kernel) and figure.maximum_ns
        ]
        if not measured:
            return None
        greatest = max(measured, key=lambda figure: figure.maximum_ns or 0.0)
        return _maximum(replace(greatest, exceeds_range=any(figure.exceeds_range for figure in measured)))

    rows = [[board, *(cell(board, kernel) for kernel in kernels)] for board in boards]
    columns = (Column("board", numeric=False), *(Column(f"{kernel} [µs]") for kernel in kernels))
    return [
        ReportTable(
            name,
            caption,
            columns,
            rows,
            over="maximum",
            note=note,
            csv=(["board", *(f"{kernel}, max_ns" for kernel in kernels)], _bare(rows)),
        )
    ]


def _stress_columns(loads: Sequence[str], first: Sequence[str], show: Callable[[Any], str]) -> tuple[Column, ...]:
    return (
        *(Column(title, numeric=False) for title in first),
        *(Column(_STRESS.get(load, load), show) for load in loads),
    )


def stress_table(
    name: str, caption: str, figures: Sequence[Figure], note: str = "", *, rounding: Rounding = Rounding()
) -> ReportTable:
    """One of tables A.2 to A.5: minimum, average and maximum of one setup under each load."""
    columns = _stress_columns([figure.load for figure in figures], ("latency [µs]",), rounding.time)
    return ReportTable(name, caption, columns, _stress_rows(figures, rounding), over="by load", note=note)


def stress_beside(
    name: str, caption: str, setups: Mapping[str, Sequence[Figure]], *, rounding: Rounding = Rounding()
) -> list[ReportTable]:
    """Tables A.2 to A.5 in one: all setups; a missing load stays empty.

    A setup with two loads of the same name is left out.
    """
    by_load = {
        setup: {figure.load: figure for figure in figures}
        for setup, figures in setups.items()
        if len({figure.load for figure in figures}) == len(figures)
    }
    if len(by_load) < 2:
        return []
    loads = list(dict.fromkeys(load for figures in by_load.values() for load in figures))
    rows = [
        [setup, *row]
        for setup, figures in by_load.items()
        for row in _stress_rows([figures.get(load) for load in loads], rounding)
    ]
    return [
        ReportTable(
            name,
            caption,
            _stress_columns(loads, ("configuration", "latency [µs]"), rounding.time),
            rows,
            over="by load",
        )
    ]


def own_figure(group: RunGroup, kind: SeriesKind) -> Figure:
    """All CPUs together."""
    head, measures = group.recordings[0].head, kind.measures
    return Figure(
        probe=head.probe,
        board=head.board or "",
        configuration=configuration_label(group.recordings[0]),
        kernel="",
        implementation=head.implementation,
        variant=str(head.parameters.get("method") or kind.name),
        load=group.load,
        command="",
        n=measures.n,
        duration=words.measured_time(measures.duration_ns),
        minimum_ns=measures.minimum_ns,
        mean_ns=measures.mean_ns,
        median_ns=measures.quantile(0.5).value_ns,
        p95_ns=measures.quantile(0.95).value_ns,
        maximum_ns=measures.reached_ns,
        exceeds_range=measures.maximum_at_least_ns is not None,
        printed_95_khz=None,
        printed_100_khz=None,
        transfer="",
        size="",
        speed_mb_s=None,
        text="",
        location="",
    )
