# SPDX-License-Identifier: GPL-2.0-or-later
"""Groups of boards: number of boards by condition, and their maxima."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from urllib.parse import urlencode

from fastenough.history import QUANTILES, BoardGroup, GroupKind, board_groups
from fastenough.model import BadInput
from fastenough.web.rendering import page_with_json
from fastenough.web.selection import Query, integer, kind_of, values_of
from fastenough.web.site import Site

MOST_ON_PAGE = 50
WIDTH = 200
"""Width of a figure, in its own units."""
_MOST_PAGE = 10**6


@dataclass(frozen=True)
class GroupsView:
    """Groups of one ``kind`` on one page, the largest first; ``low_ns`` to ``high_ns``: the range of figures."""

    newest_s: int | None
    kind: GroupKind
    kinds: tuple[GroupKind, ...]
    groups: tuple[BoardGroup, ...]
    total: int
    page: int
    pages: int
    low_ns: int
    high_ns: int
    quantiles: tuple[int, ...] = QUANTILES

    def boards(self, name: str) -> str:
        """The query for the boards of a group."""
        return "?" + urlencode({"group": f"{self.kind}:{name}"})

    def on_page(self, page: int) -> str:
        return "?" + urlencode({"by": self.kind, "page": page})

    def x(self, value_ns: int) -> float:
        """Position of a latency in a figure, on a logarithmic scale."""
        reach = log(max(self.high_ns, 2 * self.low_ns) / self.low_ns)
        return round(WIDTH * log(max(value_ns, self.low_ns) / self.low_ns) / reach, 1)


def groups(site: Site, query: Query = ()) -> GroupsView:
    """Raises BadInput for a query that means nothing."""
    values = values_of(query, ("by", "page"))
    kind, page = kind_of(values.get("by", GroupKind.KERNEL)), integer(values, "page", 1, _MOST_PAGE)
    sorted_groups = sorted(
        board_groups(site.history, site.viewer, kind, site.now_s), key=lambda group: (-group.boards, group.name)
    )
    pages = max(1, -(-len(sorted_groups) // MOST_ON_PAGE))
    if page > pages:
        raise BadInput(f"page={page}: there are fewer pages")
    on_page = sorted_groups[(page - 1) * MOST_ON_PAGE : page * MOST_ON_PAGE]
    measured = [value for group in sorted_groups for value in group.max_30d_ns]
    low_ns, high_ns = max(1, min(measured, default=1)), max(measured, default=1)
    return GroupsView(None, kind, tuple(GroupKind), tuple(on_page), len(sorted_groups), page, pages, low_ns, high_ns)


PAGES = page_with_json("/groups", "groups.html.j2", groups, asks=True, published=False, menu="Groups")
