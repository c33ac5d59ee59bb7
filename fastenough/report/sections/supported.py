# SPDX-License-Identifier: GPL-2.0-or-later
"""The tightest limits the data support."""

from __future__ import annotations

from fastenough.analysis import Supported, words
from fastenough.report.context import Context
from fastenough.report.document import Column, Section, Table, Text

_MARKED = (
    "These limits apply to the measured samples only and are no worst case: the machine is virtual or emulated "
    "(see the reasons in the summary)."
)


def _hardness(miss_rate: float) -> str:
    return "no misses (100 %)" if miss_rate == 0 else f"at most {words.percent(miss_rate)} misses"


def _row(supported: Supported) -> tuple[object, ...]:
    left = supported.bound.text if supported.miss_rate == 0 else "as stated"
    return (_hardness(supported.miss_rate), supported.limit_ns, words.percent(supported.confidence), left)


def section(context: Context) -> Section | None:
    if not context.assessment.supported:
        return None
    columns = (
        Column("requirement", numeric=False),
        Column("tightest limit [µs]", words.microseconds),
        Column("confidence"),
        Column("bound on the rate above it", numeric=False),
    )
    table = Table(
        "supported",
        "Met by every CPU under every load",
        columns,
        [_row(supported) for supported in context.assessment.supported],
    )
    shared = any("no worst-case verdict" in reason or "emulated" in reason for reason in context.assessment.reasons)
    return Section(
        "supported",
        "Tightest limits these data support",
        "The smallest limits, rounded up to two digits, that no CPU exceeded more often than stated.",
        [table, *([Text(_MARKED)] if shared else [])],
    )
