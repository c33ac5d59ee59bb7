# SPDX-License-Identifier: GPL-2.0-or-later
"""A campaign's report as an application note: question, set-up, result, verdict, advice, appendix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fastenough.campaign import Plan, expand
from fastenough.campaign.matrix import Row, matrix_of
from fastenough.report.document import Section


@dataclass(frozen=True)
class Note:
    """What the plan of a campaign says of it.

    ``rows``: what was planned; ``loads``: each with its source; ``settings`` as requested; ``text``: the plan's own.
    """

    campaign: str
    title: str
    question: str
    rows: tuple[Row, ...]
    loads: Mapping[str, str]
    settings: Mapping[str, object]
    text: str


def note_of(campaign: str, plan: Plan) -> Note:
    """Of a campaign of that id; a plan that asks nothing is asked what it shows."""
    specs = expand(plan)
    loads = {spec.load: plan.load(spec.load).source for spec in specs}
    probes = ", ".join(dict.fromkeys(spec.probe for spec in specs))
    question = plan.question or f"What does a measurement of {probes} show under the loads {', '.join(loads)}?"
    return Note(campaign, plan.title or plan.name, question, matrix_of(specs).rows, loads, plan.settings, plan.text)


@dataclass(frozen=True)
class Chapter:
    """Sections under one heading; ``id`` and ``title`` are empty in a report that has no chapters."""

    id: str
    title: str
    sections: tuple[Section, ...]


RESULT = "result"
_CHAPTERS = {
    "set-up": ("Set-up", ("planned", "kernels", "settings")),
    RESULT: ("Result", ()),
    "verdict": ("Verdict", ("checks", "bounds", "supported")),
    "to-do": ("Advice", ("advice", "next-steps")),
    "appendix": ("Appendix", ("machine", "runs", "method", "plan", "profile")),
}
"""Id of each chapter to its title and the ids of its sections, in order; what is named nowhere is a result."""


def chapters(sections: Sequence[Section], note: Note | None) -> list[Chapter]:
    """The sections in chapters, of which none is empty; all in one without a heading where there is no note."""
    if note is None:
        return [Chapter("", "", tuple(sections))]
    by_id = {section.id: section for section in sections}
    placed = {name for _, names in _CHAPTERS.values() for name in names}
    results = tuple(section for section in sections if section.id not in placed)
    found = [
        Chapter(id, title, results if id == RESULT else tuple(by_id[name] for name in names if name in by_id))
        for id, (title, names) in _CHAPTERS.items()
    ]
    return [chapter for chapter in found if chapter.sections]
