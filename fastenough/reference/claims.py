# SPDX-License-Identifier: GPL-2.0-or-later
"""What the texts say about their own figures, and whether it follows from these."""

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
    "times": lambda ones, others: max(ones) / max(others),
    "more": lambda ones, others: max(ones) / max(others) - 1.0,
    "less": lambda ones, others: 1.0 - max(ones) / max(others),
    "us": lambda ones, _: max(ones) / 1e3,
    "us_on_average": lambda ones, _: sum(ones) / len(ones) / 1e3,
    "khz": lambda ones, _: 1e6 / (2.0 * max(ones)),
    "rank": lambda ones, others: 1.0 + sum(other < max(ones) for other in others),
    "rank_from_top": lambda ones, others: 1.0 + sum(other > max(ones) for other in others),
    "share_5_times": lambda ones, others: sum(one >= 5 * max(others) for one in ones) / len(ones),
    "least_times": lambda ones, others: min(ones) / max(others),
}
"""How values of one measure are held against those of another; a rank is the place of the first among the others."""
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
    """A statement of a text, and the figures it is about: ``of`` and ``against`` name them, by default the greatest
    counts.

    It holds where the figures give ``least`` to ``most``; where they do not, ``differs`` says what they give.
    """

    reference: str
    text: str
    form: str
    of: str
    of_measure: str
    against: str
    against_measure: str
    least: float
    most: float
    differs: str

    def found(self, reference: Reference) -> float:
        """What the figures give, as the claim's form has it."""
        ones = _values(reference, self.of, self.of_measure)
        others = _values(reference, self.against, self.against_measure) if self.against else ones
        return _FORMS[self.form](ones, others)

    def holds(self, reference: Reference) -> bool:
        return self.least <= self.found(reference) <= self.most

    def said(self, reference: Reference) -> str:
        """What the figures give, with its unit."""
        found = self.found(reference)
        return f"{found * 100 if self.form in _PERCENT else found:,.3g} {_UNITS[self.form]}"


def _values(reference: Reference, said: str, measure: str) -> list[float]:
    """Of the figures that these words name; ``a|b``: those that a names, and those that b names."""
    figures = {figure: None for words in said.split("|") for figure in reference.named(words)}
    values = [value for figure in figures if (value := _MEASURES[measure](figure)) is not None]
    if not values:
        raise LookupError(f"{reference.name} has no {measure} of '{said}'")
    return values


def read_claims(text: str) -> Iterator[Claim]:
    """The claims in a file's text."""
    for row in csv.DictReader(line for line in text.splitlines() if not line.startswith("#")):
        yield Claim(
            row["reference"],
            row["text"],
            row["form"],
            row["of"],
            row["of_measure"],
            row["against"],
            row["against_measure"],
            float(row["least"]),
            float(row["most"]),
            row["differs"],
        )
