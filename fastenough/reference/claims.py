# SPDX-License-Identifier: GPL-2.0-or-later
"""Claims of the texts about their own figures, and whether the figures support them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from fastenough.reference.figures import Figure, Reference

_MEASURES: dict[str, Callable[[Figure], float | None]] = {
    "min": lambda figure: figure.minimum_ns,
    "mean": lambda figure: figure.mean_ns,
    "median": lambda figure: figure.median_ns,
    "p95": lambda figure: figure.p95_ns,
    "max": lambda figure: figure.maximum_ns,
    "speed": lambda figure: figure.speed_mb_s,
}
Values = Sequence[float]
_FORMS: dict[str, Callable[[Values, Values], float]] = {
    "times": lambda values, others: max(values) / max(others),
    "more": lambda values, others: max(values) / max(others) - 1.0,
    "less": lambda values, others: 1.0 - max(values) / max(others),
    "us": lambda values, _: max(values) / 1e3,
    "us_on_average": lambda values, _: sum(values) / len(values) / 1e3,
    "khz": lambda values, _: 1e6 / (2.0 * max(values)),
    "rank": lambda values, others: 1.0 + sum(other < max(values) for other in others),
    "rank_from_top": lambda values, others: 1.0 + sum(other > max(values) for other in others),
    "share_5_times": lambda values, others: sum(value >= 5 * max(others) for value in values) / len(values),
    "least_times": lambda values, others: min(values) / max(others),
}
"""Comparisons of values of one measure with those of another; a rank is the position of the first among the others."""
_UNITS = {
    "times": "times",
    "more": "% more",
    "less": "% less",
    "us": "µs",
    "us_on_average": "µs on average",
    "khz": "kHz",
    "rank": "= rank, the least is 1",
    "rank_from_top": "= rank, the greatest is 1",
    "share_5_times": "% of the cases by 5 times or more",
    "least_times": "times",
}
_PERCENT = ("more", "less", "share_5_times")


@dataclass(frozen=True)
class Claim:
    """A statement of a text about its figures, which are compared with ``base_figures``; the greatest of each counts.

    It holds if the value computed from the figures lies between ``minimum`` and ``maximum``; otherwise ``difference``
    explains why it does not.
    """

    reference: str
    text: str
    form: str
    figures: str
    measure: str
    base_figures: str
    base_measure: str
    minimum: float
    maximum: float
    difference: str

    def computed(self, reference: Reference) -> float:
        """The value computed from the figures, in the form of the claim."""
        values = _values(reference, self.figures, self.measure)
        others = _values(reference, self.base_figures, self.base_measure) if self.base_figures else values
        return _FORMS[self.form](values, others)

    def holds(self, reference: Reference) -> bool:
        return self.minimum <= self.computed(reference) <= self.maximum

    def computed_text(self, reference: Reference) -> str:
        """The computed value as text, with its unit."""
        value = self.computed(reference)
        return f"{value * 100 if self.form in _PERCENT else value:,.3g} {_UNITS[self.form]}"


def _values(reference: Reference, names: str, measure: str) -> list[float]:
    """Values of the figures that match ``names``; ``a|b``: those that match a, and those that match b."""
    figures = {figure: None for alternative in names.split("|") for figure in reference.matching(alternative)}
    values = [value for figure in figures if (value := _MEASURES[measure](figure)) is not None]
    if not values:
        raise LookupError(f"{reference.name} has no {measure} of '{names}'")
    return values


def read_claims(text: str) -> Iterator[Claim]:
    """The claims in a file's text."""
    for row in csv.DictReader(line for line in text.splitlines() if not line.startswith("#")):
        yield Claim(
            row["reference"],
            row["text"],
            row["form"],
            row["figures"],
            row["measure"],
            row["base_figures"],
            row["base_measure"],
            float(row["minimum"]),
            float(row["maximum"]),
            row["difference"],
        )
