# SPDX-License-Identifier: GPL-2.0-or-later
"""Highest task frequencies, as in tables 5 and 7 of Brown and Martin."""

from __future__ import annotations

from fastenough.analysis import highest_frequency_hz, words
from fastenough.report.context import Context
from fastenough.report.document import Column, Section, Table


def section(context: Context) -> Section | None:
    rows = []
    for group in context.groups:
        for kind in group.judged_kinds:
            measures = kind.measures
            most_ns = measures.quantile(0.95).value_ns
            rows.append(
                (
                    group.title.removeprefix("load "),
                    kind.name,
                    measures.n,
                    most_ns,
                    measures.maximum_ns,
                    highest_frequency_hz(most_ns),
                    highest_frequency_hz(measures.maximum_ns),
                )
            )
    if not rows:
        return None
    columns = (
        Column("load", numeric=False),
        Column("series", numeric=False),
        Column("n"),
        Column("95 % [µs]", words.microseconds),
        Column("100 % [µs]", words.microseconds),
        Column("95 % frequency [kHz]", words.kilohertz),
        Column("100 % frequency [kHz]", words.kilohertz),
    )
    csv = (["load", "series", "n", "p95_ns", "max_ns", "frequency_95_hz", "frequency_100_hz"], rows)
    table = Table("frequency", "1/(2 L), all CPUs combined, rounded down", columns, rows, csv=csv)
    return Section(
        "frequency",
        "Highest frequencies",
        "The highest frequency with a latency L of at most half the period, for 95 % and for 100 % of the "
        "samples. Half a period is a convention; an application may need more or less.",
        [table],
    )
