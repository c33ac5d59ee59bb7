# SPDX-License-Identifier: GPL-2.0-or-later
"""Live selections are shared: a site that follows as many as it can locks no other site out."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from itertools import count
from typing import cast

import pytest
from starlette.requests import Request
from starlette.responses import StreamingResponse

from fastenough.history import OWNER, History, Viewer
from fastenough.web import app
from fastenough.web.identity import AccessGrant, Identity
from fastenough.web.live import MOST_STREAMS, LiveStreams
from fastenough.web.selection import Selection
from fastenough.web.site import Site, SiteRole

_PAGE = count(1)


@pytest.fixture
def site() -> Iterator[Site]:
    history = History.temporary()
    yield Site(history, OWNER)
    history.close()


class Listeners:
    """Viewers of sites that follow selections until they are disconnected."""

    def __init__(self, site: Site) -> None:
        self._site, self.streams = site, LiveStreams()
        self._heard: list[tuple[str, AsyncIterator[bytes], asyncio.Task[bool]]] = []

    async def follow(self, name: str) -> bool:
        """Whether a new selection of a viewer is followed."""
        viewer = Viewer(sites=frozenset({name}))
        live = self.streams.stream(replace(self._site, viewer=viewer), Selection(page=next(_PAGE)))
        if live is None:
            return False
        events = live.listen()
        await anext(events)
        self._heard.append((name, events, asyncio.create_task(_ends(events))))
        return True

    async def counts(self) -> Counter[str]:
        """By viewer, the number of selections that are still followed."""
        for _ in range(500):
            followed = Counter(name for name, _, task in self._heard if not task.done())
            if followed.total() == self.streams.listeners:
                break
            await asyncio.sleep(0.01)
        return followed

    async def end(self) -> None:
        for _, _, task in self._heard:
            task.cancel()
        await self.streams.end()


class Pages:
    """Live pages of users with the role of viewer at a site, opened through the address that the pages use."""

    def __init__(self, site: Site) -> None:
        self.streams = LiveStreams()
        self._route = app._events_route(site, self.streams, 600.0)
        self._open: list[asyncio.Task[bool]] = []

    async def open(self, name: str) -> int:
        """Status of a new live page."""
        identity = Identity(f"user-{next(_PAGE)}", frozenset({AccessGrant(SiteRole.VIEWER, frozenset({name}))}))
        response = await self._route.endpoint(
            Request({"type": "http", "query_string": b"", "headers": [], app._IDENTITY: identity})
        )
        if isinstance(response, StreamingResponse):
            events = cast(AsyncIterator[bytes], response.body_iterator)
            await anext(events)
            self._open.append(asyncio.create_task(_ends(events)))
        return int(response.status_code)

    async def end(self) -> None:
        for task in self._open:
            task.cancel()
        await self.streams.end()


async def _ends(events: AsyncIterator[bytes]) -> bool:
    async for _ in events:
        pass
    return True


def test_each_site_gets_its_share_of_what_another_has_taken(site: Site) -> None:
    async def tried() -> None:
        listeners = Listeners(site)
        assert all([await listeners.follow("graz") for _ in range(MOST_STREAMS)])
        assert not await listeners.follow("graz")
        got = [await listeners.follow("linz") for _ in range(MOST_STREAMS)]
        assert await listeners.counts() == {"graz": MOST_STREAMS // 2, "linz": MOST_STREAMS // 2}
        assert got == [True] * (MOST_STREAMS // 2) + [False] * (MOST_STREAMS // 2)
        assert not await listeners.follow("graz"), "which would take it back"
        others = [f"site-{number}" for number in range(MOST_STREAMS - 2)]
        assert all([await listeners.follow(name) for name in others])
        counts = await listeners.counts()
        assert counts == dict.fromkeys(("graz", "linz", *others), 1)
        assert not await listeners.follow("one too many")
        await listeners.end()

    asyncio.run(tried())


def test_the_newest_selection_ends_and_older_ones_stay(site: Site) -> None:
    async def tried() -> None:
        listeners = Listeners(site)
        for _ in range(MOST_STREAMS):
            await listeners.follow("graz")
        await listeners.follow("linz")
        await listeners.counts()
        ended = [number for number, (_, _, task) in enumerate(listeners._heard) if task.done()]
        assert ended == [MOST_STREAMS - 1]
        assert listeners.streams.listeners_of(Viewer(sites=frozenset({"linz"}))) == 1
        assert listeners.streams.listeners == MOST_STREAMS
        await listeners.end()

    asyncio.run(tried())


def test_users_with_the_same_sites_have_a_quarter_of_all_live_pages(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "most_connections", lambda: 32)

    async def tried() -> None:
        pages = Pages(site)
        assert [await pages.open("graz") for _ in range(6)] == [200] * 4 + [503] * 2
        assert [await pages.open(name) for name in ("linz", "wels", "steyr") for _ in range(4)] == [200] * 12
        assert await pages.open("enns") == 503
        await pages.end()

    asyncio.run(tried())
