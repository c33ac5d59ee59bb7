# SPDX-License-Identifier: GPL-2.0-or-later
"""What the pages are made from, and what one of them is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from fastenough.history import History, Viewer
from fastenough.store import Store

HTML = "text/html; charset=utf-8"
JSON = "application/json"
CSV = "text/csv; charset=utf-8"
PARQUET = "application/vnd.apache.parquet"
ZSTD = "application/zstd"

STALE_S = 15 * 60
"""Data of a farm's boards, which are due, is called stale where it ends earlier."""


class Nowhere(LookupError):
    """There is nothing at this address, for who asks."""


@dataclass(frozen=True)
class Site:
    """What is shown to whom.  ``note``: said on top of every page, such as that its farm is generated.

    ``served``: by a server, which shows things live and answers what is asked behind a '?'; a published site does not.
    """

    history: History
    viewer: Viewer
    store: Store | None = None
    note: str = ""
    served: bool = True
    now: Callable[[], float] = time.time

    @property
    def now_s(self) -> int:
        return int(self.now())


@dataclass(frozen=True)
class Page:
    """One line of the table of pages.  ``pattern``: its address, with names in braces that ``make`` is given by name.

    ``make`` takes the site and raises Nowhere, or UnknownBoard, where there is nothing.  ``asks``: it also takes
    ``query``, what is asked behind a '?'.  ``published``: it is part of a published site too.
    """

    pattern: str
    kind: str
    make: Callable[..., bytes]
    asks: bool = False
    published: bool = True
