# SPDX-License-Identifier: GPL-2.0-or-later
"""What the plan of a campaign states for its report: title, question, matrix, loads and settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fastenough.campaign import Plan, expand
from fastenough.campaign.matrix import Row, matrix_of


@dataclass(frozen=True)
class Note:
    """What the plan of a campaign states.

    ``rows``: planned runs; ``loads``: each with its source; ``settings`` as requested; ``text``: the plan itself.
    """

    campaign: str
    title: str
    question: str
    rows: tuple[Row, ...]
    loads: Mapping[str, str]
    settings: Mapping[str, object]
    text: str


def note_of(campaign: str, plan: Plan) -> Note:
    """The note of the campaign with this id.  A plan without a question gets one from its probes and loads."""
    specs = expand(plan)
    loads = {spec.load: plan.load(spec.load).source for spec in specs}
    probes = ", ".join(dict.fromkeys(spec.probe for spec in specs))
    question = plan.question or f"What is the latency measured by {probes} under the loads {', '.join(loads)}?"
    return Note(campaign, plan.title or plan.name, question, matrix_of(specs).rows, loads, plan.settings, plan.text)
