# SPDX-License-Identifier: GPL-2.0-or-later
"""Tables of comparisons of deterministic boards."""

from __future__ import annotations

from collections.abc import Sequence

from fastenough import words
from fastenough.analysis.compare import finding
from fastenough.analysis.instructions import (
    NULL_CHANGES,
    TOO_FEW_PHASES,
    InstructionComparison,
    MaximaComparison,
    PathComparison,
    difference_text,
    histograms_text,
)
from fastenough.cli.output import print_table, say

_SHARES = (0.0, 0.5, 0.9, 1.0)
"""Of the maxima, the shares whose values are listed."""


def print_instructions(comparisons: Sequence[InstructionComparison], sides: tuple[str, str]) -> None:
    """Print each comparison; ``sides``: the names of base and other."""
    for comparison in comparisons:
        if isinstance(comparison, PathComparison):
            _print_path(comparison, sides)
        else:
            _print_maxima(comparison, sides)
    print()
    say(NULL_CHANGES)


def _print_path(path: PathComparison, sides: tuple[str, str]) -> None:
    print_table(
        f"\n{path.series}, no load, in instructions, n = {words.number(path.n[0])} and {words.number(path.n[1])}",
        ("figure", *sides, "difference"),
        [
            (figure.name, f"{figure.first:,.0f}", f"{figure.second:,.0f}", difference_text(figure))
            for figure in path.figures
        ],
    )
    say(histograms_text(path))


def _print_maxima(comparison: MaximaComparison, sides: tuple[str, str]) -> None:
    phases = " and ".join(words.number(len(maxima)) for maxima in comparison.maxima)
    print_table(
        f"\n{comparison.series}, load {comparison.load}: maximum of each phase in instructions, {phases} phases",
        ("", "phases", "mean", "least", "median", "90 %", "greatest"),
        [
            (side, words.number(len(maxima)), f"{mean:,.0f}", *(f"{_at(maxima, share):,}" for share in _SHARES))
            for side, maxima, mean in zip(sides, comparison.maxima, comparison.means, strict=True)
        ],
    )
    if comparison.ends is None or comparison.difference is None:
        say(TOO_FEW_PHASES)
        return
    lower, upper = comparison.ends
    say(
        f"difference of the means {comparison.difference:+,.0f} instructions "
        f"({words.percent(comparison.confidence)} interval {lower:+,.0f} to {upper:+,.0f}): {finding(comparison)}"
    )


def _at(ascending: Sequence[int], share: float) -> int:
    return ascending[round(share * (len(ascending) - 1))]
