# SPDX-License-Identifier: GPL-2.0-or-later
"""Changes that were tried, as a chapter: what each does to the tail alone, once more, and the best of them at once."""

from __future__ import annotations

from collections.abc import Sequence

from fastenough import words
from fastenough.analysis.compare_wording import finding
from fastenough.analysis.tried import Tried
from fastenough.report.document import Column, Part, Section, Table, Text

_NS = words.nearest_microseconds
_NOTHING = "–"


def _percent(value: float | None) -> str:
    return _NOTHING if value is None else words.percent(value)


def _rate(value: float | None) -> str:
    return _NOTHING if value is None else words.rate(value)


_COLUMNS = (
    Column("change", numeric=False),
    Column("load", numeric=False),
    Column("pairs"),
    Column("at", _percent),
    Column("without [µs]", _NS),
    Column("effect [µs]", _NS),
    Column("from [µs]", _NS),
    Column("to [µs]", _NS),
    Column("quantile", numeric=False),
    Column("beyond the limit without", _rate),
    Column("with it", _rate),
    Column("rate", numeric=False),
)
_MEANS = (
    "From pairs of runs without and with the change in random order. The interval (95 %) is the wider of that of "
    "the pairs (Student's t) and of a block bootstrap over time. What is shown holds for all changes and loads "
    "of a table together (Holm); that nothing could be shown is no proof that there is nothing."
)


def _row(tried: Tried) -> tuple[object, ...]:
    effect, tail = tried.effect, tried.tail
    if effect is None or tail is None:
        return (tried.name, tried.load, tried.pairs, *(None,) * 8, "; ".join(tried.reasons) or "nothing can be said")
    return (
        tried.name,
        tried.load,
        tried.pairs,
        effect.quantile,
        effect.without_ns,
        effect.effect_ns,
        effect.lower_ns,
        effect.upper_ns,
        finding(effect),
        tail.without,
        tail.with_it,
        finding(tail),
    )


def tried_section(
    conclusions: Sequence[str], tables: Sequence[tuple[str, Sequence[Tried]]], refused: Sequence[tuple[str, str]]
) -> Section:
    """``tables``: a caption, and what was tried; ``refused``: what was not, and why."""
    parts: list[Part] = [
        Table(f"tried-{number}", caption, _COLUMNS, [_row(each) for each in tried], note=_MEANS)
        for number, (caption, tried) in enumerate(tables, start=1)
        if tried
    ]
    if refused:
        parts.append(Text("Not tried:", [f"{name}: {reason}" for name, reason in refused]))
    return Section(
        "tried",
        "What changes do, measured",
        ". ".join(f"{said[0].upper()}{said[1:]}" for said in conclusions) + ".",
        parts,
    )
