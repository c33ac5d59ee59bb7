# SPDX-License-Identifier: GPL-2.0-or-later
"""Columns of figures: published and own figures with the same computation and rounding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fastenough import words
from fastenough.analysis.measures import highest_frequency_hz
from fastenough.reference.figures import Figure


@dataclass(frozen=True)
class FigureColumn:
    """One column: its title, its value of a figure (None: empty), and the format of the value."""

    title: str
    of: Callable[[Figure], Any]
    show: Callable[[Any], str] = str
    numeric: bool = True

    def written(self, value: Any) -> str:
        """A value as text."""
        return "–" if value is None else self.show(value)


def _text(name: str) -> Callable[[Figure], Any]:
    return lambda figure: getattr(figure, name) or None


def _value(name: str) -> Callable[[Figure], Any]:
    return lambda figure: getattr(figure, name)


def _maximum(figure: Figure) -> Any:
    """The maximum in ns; as text if it exceeds the range of its source."""
    return f"≥ {words.microseconds_down(figure.maximum_ns)}" if figure.exceeds_range else figure.maximum_ns


def _us(value: Any) -> str:
    return value if isinstance(value, str) else words.microseconds(value)


def _frequency(name: str) -> Callable[[Figure], Any]:
    """The frequency of repeated tasks; it is not meaningful for the cost of a lock or of an early timer."""
    return lambda figure: (
        None if figure.exceeds_range or figure.probe not in _TASKS else highest_frequency_hz(getattr(figure, name))
    )


_TASKS = ("response", "periodic")

COLUMNS = (
    FigureColumn("probe", _text("probe"), numeric=False),
    FigureColumn("board", _text("board"), numeric=False),
    FigureColumn("configuration", _text("configuration"), numeric=False),
    FigureColumn("implementation", _text("implementation"), numeric=False),
    FigureColumn("measured", _text("variant"), numeric=False),
    FigureColumn("load", _text("load"), numeric=False),
    FigureColumn("n", _value("n"), words.number),
    FigureColumn("duration", _text("duration")),
    FigureColumn("min [µs]", _value("minimum_ns"), words.microseconds_down),
    FigureColumn("mean [µs]", _value("mean_ns"), words.microseconds),
    FigureColumn("median [µs]", _value("median_ns"), words.microseconds),
    FigureColumn("95 % [µs]", _value("p95_ns"), words.microseconds),
    FigureColumn("100 % [µs]", _maximum, _us),
    FigureColumn("95 % frequency [kHz]", _frequency("p95_ns"), words.kilohertz),
    FigureColumn("100 % frequency [kHz]", _frequency("maximum_ns"), words.kilohertz),
    FigureColumn("transfer", _text("transfer")),
    FigureColumn("size", _text("size")),
    FigureColumn("speed [MB/s]", _value("speed_mb_s"), lambda speed: f"{speed:,g}"),
    FigureColumn("text", _text("text"), numeric=False),
    FigureColumn("in the source", _text("location"), numeric=False),
)


def columns_of(figures: Sequence[Figure]) -> list[FigureColumn]:
    """The columns with at least one value for these figures; probe and board only if there are several."""
    values_by_column = {column: {column.of(figure) for figure in figures} - {None} for column in COLUMNS}
    return [column for column, values in values_by_column.items() if len(values) > (column.title in _WHERE_SEVERAL)]


_WHERE_SEVERAL = ("probe", "board")
