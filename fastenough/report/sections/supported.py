# SPDX-License-Identifier: GPL-2.0-or-later
"""The hardest requirements the data support."""

from __future__ import annotations

from fastenough.analysis import Supported, words
from fastenough.report.context import Context
from fastenough.report.document import Column, Section, Table, Text

_MARKED = (
    "They are what was seen, and no worst case: this machine shares its time with others, "
    "or is emulated (see the reasons above)."
)


def _hardness(miss_rate: float) -> str:
    return "never later (100 %)" if miss_rate == 0 else f"at most {words.percent(miss_rate)} later"


def _row(supported: Supported) -> tuple[object, ...]:
    left = supported.bound.text if supported.miss_rate == 0 else "bounded as stated"
    return (_hardness(supported.miss_rate), supported.limit_ns, words.percent(supported.confidence), left)


def section(context: Context) -> Section | None:
    if not context.assessment.supported:
        return None
    columns = (
        Column("requirement", numeric=False),
        Column("shortest limit [µs]", words.microseconds),
        Column("confidence"),
        Column("what remains possible above it", numeric=False),
    )
    table = Table(
        "supported",
        "Every CPU under every load kept to these",
        columns,
        [_row(supported) for supported in context.assessment.supported],
    )
    shared = any("no worst-case verdict" in reason or "emulated" in reason for reason in context.assessment.reasons)
    return Section(
        "supported",
        "Hardest requirements these data reach",
        "The smallest limits, rounded up to two digits, that no CPU exceeded more often than stated.",
        [table, *([Text(_MARKED)] if shared else [])],
    )
