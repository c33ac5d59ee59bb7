# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of pages: one file and one line per kind of page, used by the server and the published site.

A file exports ``PAGES``: its HTML and JSON.
"""

from __future__ import annotations

from itertools import chain

from fastenough.registry import listed
from fastenough.web.site import Page

PAGES: list[Page] = list(
    chain.from_iterable(
        listed(
            __name__,
            "PAGES",
            (
                "overview",
                "board",
                "figures",
                "run",
                "conclusion",
                "groups",
                "live",
                "compare",
                "metrics",
                "badge",
                "api",
            ),
        )
    )
)
