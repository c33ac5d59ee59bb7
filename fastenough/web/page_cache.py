# SPDX-License-Identifier: GPL-2.0-or-later
"""A cache of rendered pages for a few seconds: many readers share one rendering and one ETag."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool

FRESH_S = 5.0
_MOST = 500
"""Maximum number of cached pages, about 100 kB each; the newest stay."""
_LEAST_PACKED = 1000


@dataclass(frozen=True)
class CachedPage:
    """A rendered page.  ``packed``: with gzip, None if that saves nothing."""

    body: bytes
    packed: bytes | None
    tag: str
    made_s: float

    @classmethod
    def of(cls, body: bytes) -> CachedPage:
        packed = gzip.compress(body, 6, mtime=0) if len(body) >= _LEAST_PACKED else None
        smaller = packed if packed is not None and len(packed) < len(body) else None
        return cls(body, smaller, hashlib.sha256(body).hexdigest()[:24], time.monotonic())


class PageCache:
    """Pages by viewer and address.  Simultaneous requests for one page render it once."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, CachedPage] = {}
        self._making: dict[Hashable, asyncio.Lock] = {}

    def _fresh(self, address: Hashable) -> CachedPage | None:
        page = self._kept.get(address)
        return page if page is not None and time.monotonic() - page.made_s < FRESH_S else None

    async def get(self, address: Hashable, make: Callable[[], bytes]) -> CachedPage:
        """The cached page, or the result of ``make``, which runs in another thread; its exceptions are raised here."""
        page = self._fresh(address)
        if page is not None:
            return page
        lock = self._making.setdefault(address, asyncio.Lock())
        try:
            async with lock:
                return self._fresh(address) or self._keep(address, CachedPage.of(await run_in_threadpool(make)))
        finally:
            if not lock.locked():
                self._making.pop(address, None)

    def _keep(self, address: Hashable, page: CachedPage) -> CachedPage:
        self._kept.pop(address, None)
        self._kept[address] = page
        while len(self._kept) > _MOST:
            del self._kept[next(iter(self._kept))]
        return page
