# SPDX-License-Identifier: GPL-2.0-or-later
"""A cache of rendered pages for a few seconds: many readers share one rendering and one ETag.

A page that takes longer, such as a table of ten thousand boards, is sent while it is made."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import time
import zlib
from collections.abc import AsyncIterator, Callable, Hashable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool

FRESH_S = 5.0
_MOST = 500
"""Maximum number of cached pages, about 100 kB each; the newest stay."""
_LEAST_PACKED = 1000
_SOON_S = 0.05
"""A page that is complete within this time after the request is sent as a whole, with ETag and length."""


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


async def packed_parts(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The parts, compressed by gzip so that a reader can unpack each part on arrival."""
    packer = zlib.compressobj(6, wbits=zlib.MAX_WBITS | 16)
    async for part in parts:
        yield packer.compress(part) + packer.flush(zlib.Z_SYNC_FLUSH)
    yield packer.flush()


class GrowingPage:
    """A page that a thread is making, for any number of readers.  ``whole``: the complete page, None before."""

    def __init__(self) -> None:
        self.whole: CachedPage | None = None
        self._parts: list[bytes] = []
        self._has_all = False
        self._error: Exception | None = None
        self._changed = asyncio.Event()
        self._soon_s = time.monotonic() + _SOON_S

    async def make(self, parts: Callable[[], Iterator[bytes]]) -> CachedPage | None:
        """Collect the parts in a thread; returns the whole page, None if it failed."""
        loop = asyncio.get_running_loop()

        def collect() -> None:
            for part in parts():
                loop.call_soon_threadsafe(self._add, part)

        try:
            await run_in_threadpool(collect)
            self._has_all = True
            self._wake()
            self.whole = await run_in_threadpool(CachedPage.of, b"".join(self._parts))
        except Exception as error:  # for each reader
            self._error = error
        self._wake()
        return self.whole

    def _add(self, part: bytes) -> None:
        self._parts.append(part)
        self._wake()

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def begin(self) -> None:
        """Wait for the first part, and until `_SOON_S` for the rest; raises the exception of a failed page."""
        while not (self._parts or self._has_ended):
            await self._changed.wait()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._end(), max(0.0, self._soon_s - time.monotonic()))
        if self._error is not None:
            raise self._error

    @property
    def _has_ended(self) -> bool:
        return self.whole is not None or self._error is not None

    async def complete(self) -> CachedPage:
        """The whole page, once it is made; raises the exception of a failed page."""
        await self._end()
        if self._error is not None:
            raise self._error
        assert self.whole is not None
        return self.whole

    async def _end(self) -> None:
        while not self._has_ended:
            await self._changed.wait()

    async def parts(self, patience_s: float) -> AsyncIterator[bytes]:
        """All parts from the first one; raises the exception of a failed page, or TimeoutError if a part is late."""
        sent = 0
        while True:
            while sent < len(self._parts):
                yield self._parts[sent]
                sent += 1
            if self._error is not None:
                raise self._error
            if self._has_all:
                return
            await asyncio.wait_for(self._changed.wait(), patience_s)


class PageCache:
    """Pages by viewer and address.  Simultaneous requests for one page render it once."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, CachedPage] = {}
        self._growing: dict[Hashable, tuple[GrowingPage, asyncio.Task[None]]] = {}

    def _fresh(self, address: Hashable) -> CachedPage | None:
        page = self._kept.get(address)
        return page if page is not None and time.monotonic() - page.made_s < FRESH_S else None

    async def get(self, address: Hashable, make: Callable[[], bytes]) -> CachedPage:
        """The cached page, or the result of ``make``, which runs in another thread; raises its exceptions."""
        page = await self.begun(address, lambda: iter((make(),)))
        return page if isinstance(page, CachedPage) else await page.complete()

    async def begun(self, address: Hashable, parts: Callable[[], Iterator[bytes]]) -> CachedPage | GrowingPage:
        """The cached page, or an incomplete page once it has its first part; raises the exception of a failed page."""
        page = self._fresh(address)
        if page is not None:
            return page
        if address not in self._growing:
            new = GrowingPage()
            self._growing[address] = new, asyncio.create_task(self._grow(address, new, parts))
        growing, _ = self._growing[address]
        await growing.begin()
        return growing.whole or growing

    async def _grow(self, address: Hashable, growing: GrowingPage, parts: Callable[[], Iterator[bytes]]) -> None:
        try:
            whole = await growing.make(parts)
            if whole is not None:
                self._keep(address, whole)
        finally:
            self._growing.pop(address, None)

    def _keep(self, address: Hashable, page: CachedPage) -> CachedPage:
        self._kept.pop(address, None)
        self._kept[address] = page
        while len(self._kept) > _MOST:
            del self._kept[next(iter(self._kept))]
        return page
