# SPDX-License-Identifier: GPL-2.0-or-later
"""The result of a gate as Markdown for a CI summary: the difference first, then the limits."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fastenough import words
from fastenough.analysis.compare import Comparison, QuantileDifference
from fastenough.analysis.gate import BaselinePair, LimitResult, subject_of
from fastenough.analysis.instructions import instructions_conclusion
from fastenough.analysis.machine import INSTRUCTIONS
from fastenough.model import Verdict

_MEANS_SOMETHING = re.compile(r"([\\`*_{}\[\]<>#|&!~])")


def plain(text: str) -> str:
    """Untrusted text on one line and without markup."""
    return _MEANS_SOMETHING.sub(r"\\\1", " ".join("".join(c if c.isprintable() else " " for c in text).split()))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(plain, cells))} |"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [_row(heads), "|" + "---|" * len(heads), *map(_row, rows), ""]


def _significance(difference: QuantileDifference) -> str:
    if difference.ends is None:
        return "no interval"
    return "significant" if difference.significant else "not significant"


def _quantiles(comparison: Comparison) -> list[str]:
    rows: list[Sequence[str]] = []
    for difference in comparison.quantiles:
        if difference.first_ns is None and difference.second_ns is None:
            continue
        interval = "–" if difference.ends is None else words.microseconds_interval(*difference.ends)
        rows.append(
            (
                words.percent(difference.quantile),
                words.microseconds(difference.first_ns),
                words.microseconds(difference.second_ns),
                interval,
                _significance(difference),
            )
        )
    maxima = (words.microseconds_or_least(*maximum) for maximum in comparison.maxima)
    rows.append(("maximum (no test)", *maxima, "–", "–"))
    return _table(
        ("quantile, µs", "baseline", "now", f"difference, {words.percent(comparison.confidence)} interval", "differs"),
        rows,
    )


def _pair(pair: BaselinePair) -> list[str]:
    lines = [f"### {plain(subject_of(pair.runs[0]))}", ""]
    for comparison in pair.comparisons:
        lines += [
            f"{plain(comparison.series)}, n = {words.number(comparison.n[1])} (baseline "
            f"{words.number(comparison.n[0])}), runs {plain(comparison.second_id)} (baseline "
            f"{plain(comparison.first_id)})",
            "",
            *_quantiles(comparison),
        ]
    if pair.instructions:
        lines += [
            *(f"- {plain(instructions_conclusion([comparison]))}" for comparison in pair.instructions),
            "",
            INSTRUCTIONS,
            "",
        ]
    if pair.differences:
        lines += [
            "**The environment differs from the baseline.** Each difference may be the cause:",
            "",
            *(f"- {plain(text)}" for text in pair.differences),
            "",
        ]
    return lines


def markdown(
    conclusion: str,
    verdict: Verdict,
    pairs: Sequence[BaselinePair],
    results: Sequence[LimitResult],
    gaps: Sequence[str],
) -> str:
    """The whole page; ``conclusion``: the difference to the baseline in one sentence."""
    lines = [f"## fastenough: {verdict}", "", plain(conclusion), ""]
    if results:
        lines += _table(
            ("verdict", "subject", "limit", "reason"),
            [(result.verdict, result.subject, result.limit.text, result.reason) for result in results],
        )
    lines += [*(f"- {plain(gap)}" for gap in gaps), ""] if gaps else []
    for pair in pairs:
        lines += _pair(pair)
    return "\n".join(lines).rstrip("\n") + "\n"
