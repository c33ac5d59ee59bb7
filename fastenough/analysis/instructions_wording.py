# SPDX-License-Identifier: GPL-2.0-or-later
"""The sentences of a comparison of deterministic boards."""

from __future__ import annotations

from collections.abc import Sequence

from fastenough import words
from fastenough.analysis.compare_wording import finding
from fastenough.analysis.instructions import (
    LEAST_PHASES,
    InstructionComparison,
    MaximaComparison,
    PathComparison,
    PathFigure,
)

TOO_FEW_PHASES = (
    f"no statement about maxima under load: at least {LEAST_PHASES} phases of each are needed (--phases "
    f"{LEAST_PHASES}), since one more instruction shifts all later events, and the maximum with them"
)

NULL_CHANGES = (
    "For scale: 21 changes without any effect moved minimum and median without load by 0, the mean by up to 0.34 %, "
    "the maximum by up to 2.4 %; one moved the mean maximum of 30 phases under load by 4.4 % (docs/virtual-bench.md)"
)
"""By how much changes without any effect moved each figure."""


def difference_text(figure: PathFigure) -> str:
    """By how many instructions a figure of a path differs: "+312 instructions (+4.1 %)"."""
    share = "" if figure.share is None else f" ({100 * figure.share:+.1f} %)"
    return "equal" if not figure.difference else f"{_signed(figure.difference)} instructions{share}"


def _signed(instructions: float) -> str:
    decimals = 0 if instructions == round(instructions) else 1
    return f"{instructions:+,.{decimals}f}"


def histograms_text(path: PathComparison) -> str:
    """In how many buckets the histograms of a path differ."""
    if path.buckets is None or path.moved is None:
        return f"histograms of {words.number(path.n[0])} and {words.number(path.n[1])} values are not compared"
    if not path.buckets:
        return "the histograms are equal"
    moved = f"{words.number(path.moved)} of {words.counted(path.n[0], 'value')}"
    return f"the histograms differ in {words.counted(path.buckets, 'bucket')} ({moved})"


def _path_text(path: PathComparison) -> str:
    figures = [f"{figure.name} {difference_text(figure)}" for figure in path.figures if figure.difference]
    equal = [figure.name for figure in path.figures if not figure.difference]
    if equal:
        figures.append(f"{' and '.join(filter(None, (', '.join(equal[:-1]), equal[-1])))} equal")
    return f"{path.series}, no load: {'; '.join([*figures, histograms_text(path)])}"


def _maxima_text(maxima: MaximaComparison) -> str:
    if maxima.ends is None or maxima.difference is None:
        return f"{maxima.series}, load {maxima.load}: {TOO_FEW_PHASES}"
    lower, upper = (_signed(round(end)) for end in maxima.ends)
    share = 100 * maxima.difference / maxima.means[0]
    return (
        f"{maxima.series}, load {maxima.load}: mean maximum of a phase {finding(maxima)} "
        f"({_signed(round(maxima.difference))} instructions, {share:+.1f} %; "
        f"{words.percent(maxima.confidence)} interval {lower} to {upper})"
    )


def instructions_conclusion(comparisons: Sequence[InstructionComparison]) -> str:
    """One sentence for each series; equal ones once."""
    sentences = [
        _path_text(comparison) if isinstance(comparison, PathComparison) else _maxima_text(comparison)
        for comparison in comparisons
    ]
    return "; ".join(dict.fromkeys(sentences))
