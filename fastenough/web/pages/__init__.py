# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of pages: one file each, one line here.  The server and the published site both walk it.

A file exports ``PAGES``: what it shows, for people and for machines.
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
