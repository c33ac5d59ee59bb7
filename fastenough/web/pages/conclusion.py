# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of a conclusion from several runs."""

from __future__ import annotations

from dataclasses import dataclass

from fastenough.model import BadInput
from fastenough.report.document import Section, read_section, stored_form
from fastenough.store.conclusions import Conclusion, chapter_of
from fastenough.web.rendering import as_json, page_with_json
from fastenough.web.site import NotFound, Site, conclusions_of


@dataclass(frozen=True)
class ConclusionView:
    newest_s: int | None
    conclusion: Conclusion
    section: Section


def view(site: Site, conclusion: str) -> ConclusionView:
    """Raises NotFound, also for a conclusion of a board that the viewer may not see."""
    result = next((known for known in conclusions_of(site) if known.id == conclusion), None)
    if result is None or site.store is None:
        raise NotFound(conclusion)
    try:
        return ConclusionView(None, result, read_section(chapter_of(site.store, result.id) or {}))
    except BadInput as error:
        raise NotFound(conclusion) from error


def _facts(site: Site, conclusion: str) -> bytes:
    shown_conclusion = view(site, conclusion)
    return as_json({"conclusion": shown_conclusion.conclusion, "chapter": stored_form(shown_conclusion.section)})


PAGES = page_with_json("/conclusion/{conclusion}/", "conclusion.html.j2", view, facts=_facts)
