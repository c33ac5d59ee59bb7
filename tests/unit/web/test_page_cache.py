# SPDX-License-Identifier: GPL-2.0-or-later
"""The cache of pages: simultaneous readers share one rendering, and each gets its result or its error."""

from __future__ import annotations

import asyncio
import threading

import pytest

from fastenough.model import BadInput
from fastenough.web.page_cache import CachedPage, PageCache

READERS = 3


class SlowMake:
    """A page that is complete when it is released; ``fails``: it then raises BadInput."""

    def __init__(self, *, fails: bool) -> None:
        self.made = 0
        self.began, self.released = threading.Event(), threading.Event()
        self._fails = fails

    def __call__(self) -> bytes:
        self.made += 1
        self.began.set()
        assert self.released.wait(60)
        if self._fails:
            raise BadInput("no such group")
        return b"page"


async def _read(cache: PageCache, page: SlowMake) -> list[CachedPage | BaseException]:
    """The answers to readers that all ask before the page is complete."""
    readers = [asyncio.create_task(cache.get("/", page)) for _ in range(READERS)]
    assert await asyncio.to_thread(page.began.wait, 60)
    page.released.set()
    return await asyncio.gather(*readers, return_exceptions=True)


@pytest.mark.parametrize("fails", [False, True])
def test_readers_of_a_page_share_one_rendering(fails: bool) -> None:
    page = SlowMake(fails=fails)
    answers = asyncio.run(_read(PageCache(), page))
    assert page.made == 1
    assert [type(answer) for answer in answers] == [BadInput if fails else CachedPage] * READERS
    assert all(answer is answers[0] for answer in answers)


def test_a_page_is_made_again_after_an_error_only() -> None:
    async def read() -> tuple[int, int]:
        cache, failing, sound = PageCache(), SlowMake(fails=True), SlowMake(fails=False)
        await _read(cache, failing)
        await _read(cache, sound)
        await cache.get("/", sound)
        return failing.made, sound.made

    assert asyncio.run(read()) == (1, 1)
