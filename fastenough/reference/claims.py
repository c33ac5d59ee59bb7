# SPDX-License-Identifier: GPL-2.0-or-later
"""What the texts say about their own figures, and whether it follows from these."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fastenough.reference.figures import Figure, Reference

_MEASURES: dict[str, Callable[[Figure], float | None]] = {
    "median": lambda figure: figure.median_ns,
    "p95": lambda figure: figure.p95_ns,
    "max": lambda figure: figure.maximum_ns,
}

_FORMS: dict[str, Callable[[float, float], float]] = {
    "times": lambda one, other: one / other,
    "more": lambda one, other: one / other - 1.0,
    "less": lambda one, other: 1.0 - one / other,
    "us": lambda one, _: one / 1e3,
    "khz": lambda one, _: 1e6 / (2.0 * one),
}
"""How two times in ns are held against each other; the last two speak of one only."""

_UNITS = {"times": "times", "more": "% more", "less": "% less", "us": "µs", "khz": "kHz"}


@dataclass(frozen=True)
class Claim:
    """A statement of a text, and the figures it is about: ``of`` and ``against`` name them, the greatest counts.

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
        one = _greatest(reference, self.of, self.of_measure)
        other = _greatest(reference, self.against, self.against_measure) if self.against else one
        return _FORMS[self.form](one, other)

    def holds(self, reference: Reference) -> bool:
        return self.least <= self.found(reference) <= self.most

    def said(self, reference: Reference) -> str:
        """What the figures give, with its unit."""
        found = self.found(reference)
        return f"{found * 100 if self.form in ('more', 'less') else found:,.3g} {_UNITS[self.form]}"


def _greatest(reference: Reference, said: str, measure: str) -> float:
    values = [value for figure in reference.named(said) if (value := _MEASURES[measure](figure)) is not None]
    if not values:
        raise LookupError(f"{reference.name} has no {measure} of '{said}'")
    return max(values)


def read_claims(text: str) -> Iterator[Claim]:
    """The claims in a file's text."""
    for row in csv.DictReader(line for line in text.splitlines() if not line.startswith("#")):
        yield Claim(row["reference"], row["text"], row["form"], row["of"], row["of_measure"], row["against"],
                    row["against_measure"], float(row["least"]), float(row["most"]), row["differs"])
