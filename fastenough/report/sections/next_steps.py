# SPDX-License-Identifier: GPL-2.0-or-later
"""What to do after a campaign: what would settle its question, what these data reach, and how it is made again."""

from __future__ import annotations

from collections.abc import Iterator

from fastenough.analysis import words
from fastenough.report.context import Context
from fastenough.report.document import Section, Text


def _settling(context: Context) -> Iterator[str]:
    assessment = context.assessment
    yield from assessment.settle
    limits = [context.limit_ns(group) for group in context.groups]
    if limits and not any(limits):
        yield (
            'State the limit that your task must keep: requirement = {limit = "..."} in the plan, or '
            "fastenough report --limit. Without one nothing is judged."
        )
    reached = next((one for one in assessment.supported if one.miss_rate == 0), None)
    if reached is not None:
        yield (
            f"A limit below {words.latency(reached.limit_ns)} that must never be exceeded is out of reach of these "
            f"data at {words.percent(reached.confidence)} confidence: it needs another system, or more time."
        )


def _deciding(context: Context) -> Iterator[str]:
    if len({(group.configuration, group.recordings[0].head.implementation) for group in context.groups}) > 1:
        yield (
            "Which kernel and which implementation keep a limit, and what each costs to maintain: "
            "fastenough advise --limit LIMIT"
        )
        yield "Two of these runs, difference by difference with its interval: fastenough compare FIRST SECOND"
    yield "To see whether it holds, make the same campaign again: what was seen once may not be the worst."


def section(context: Context) -> Section | None:
    if context.note is None:
        return None
    settling = list(dict.fromkeys(_settling(context)))
    parts = [Text("To settle the question", settling)] if settling else []
    return Section("next-steps", "What to do next", "", [*parts, Text("To decide", list(_deciding(context)))])
