# SPDX-License-Identifier: GPL-2.0-or-later
"""Server-sent events: sends changes of boards to all listeners of the same selection, at most once a second, with one
query for all of them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator
from typing import TypedDict

from starlette.concurrency import run_in_threadpool

from fastenough.history import BoardCondition, BoardStatus, Viewer
from fastenough.model import BadInput, FastenoughError
from fastenough.web.rendering import as_json
from fastenough.web.selection import Selection, chosen
from fastenough.web.site import Site

_LOG = logging.getLogger(__name__)
POLL_S = 1.0
HEART_S = 15.0
MOST_STREAMS = 32
"""Maximum number of selections with listeners at a time; if it is reached, viewers share them equally."""
_BACKLOG = 30
"""A listener that is this many events behind is disconnected; a browser reconnects and reads everything again."""


class Row(TypedDict):
    """The fields of a board that listeners get when they change."""

    state: BoardCondition
    style: str
    shape: str
    verdict: str
    seen_s: int | None
    main_seen_s: int | None
    max_5min_s: int | None
    max_5min_ns: int | None
    max_24h_ns: int | None
    max_30d_ns: int | None
    max_ever_ns: int | None


def row_of(status: BoardStatus) -> Row:
    """The fields of a board, without the reason, which changes with time."""
    return {
        "state": status.state,
        "style": status.state.style,
        "shape": status.state.shape,
        "verdict": status.verdict,
        "seen_s": status.seen_s,
        "main_seen_s": status.main_seen_s,
        "max_5min_s": status.max_5min_s,
        "max_5min_ns": status.max_5min_ns,
        "max_24h_ns": status.max_24h_ns,
        "max_30d_ns": status.max_30d_ns,
        "max_ever_ns": status.max_ever_ns,
    }


def rows(site: Site, selection: Selection) -> dict[str, Row]:
    """The row of each board of a selection."""
    return {status.board.name: row_of(status) for status in chosen(site.present(), selection).boards}


class Live:
    """Sends each event to all listeners; queries the history only while there are listeners."""

    def __init__(self, site: Site, selection: Selection) -> None:
        self._site, self._selection = site, selection
        self._number = 0
        self._last: dict[str, Row] = {}
        self._listeners: set[asyncio.Queue[bytes | None]] = set()
        self._wanted = asyncio.Event()

    @property
    def listeners(self) -> int:
        """Number of listeners; each holds a connection."""
        return len(self._listeners)

    async def run(self) -> None:
        """Send changes until cancelled; nothing is sent while the history cannot be read."""
        while True:
            await self._wanted.wait()
            try:
                self.tell(await run_in_threadpool(rows, self._site, self._selection))
            except BadInput:  # the page is behind the last one, perhaps since boards left the selection
                self.tell({})
            except FastenoughError as error:
                _LOG.warning("live: %s", error)
            except Exception:  # a failed query does not end the live view
                _LOG.warning("live: history query failed", exc_info=True)
            await asyncio.sleep(POLL_S)
            if not self._listeners:
                self._wanted.clear()
                self._last = {}  # the next listener may come hours later, when some boards are at another site

    def tell(self, now: dict[str, Row]) -> None:
        """Send the differences from the last event."""
        changed = {name: row for name, row in now.items() if self._last.get(name) != row}
        gone = [name for name in self._last if name not in now]
        self._last = now
        if not changed and not gone:
            return
        self._number += 1
        event = self._event(changed, gone)
        for queue in list(self._listeners):
            self._give(queue, event)

    def _event(self, boards: dict[str, Row], gone: list[str]) -> bytes:
        return b"id: %d\nevent: now\ndata: %s\n\n" % (self._number, as_json({"boards": boards, "gone": gone}))

    def _give(self, queue: asyncio.Queue[bytes | None], event: bytes) -> None:
        try:
            queue.put_nowait(event)
        except asyncio.QueueFull:
            self._disconnect(queue)

    def _disconnect(self, queue: asyncio.Queue[bytes | None]) -> None:
        """End a listener after the events that it has not read; one of these makes room for the end if necessary."""
        self._listeners.discard(queue)
        if queue.full():
            queue.get_nowait()
        queue.put_nowait(None)

    def end(self) -> None:
        """Disconnect all listeners; their browsers connect again."""
        for queue in list(self._listeners):
            self._disconnect(queue)

    def listen(self, for_s: float | None = None) -> AsyncIterator[bytes]:
        """The events of one listener: first the state of all its boards, then changes.  ``for_s``: the longest time,
        after which a browser connects again; None: unlimited."""
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(_BACKLOG)
        if self._last:
            queue.put_nowait(self._event(self._last, []))
        self._listeners.add(queue)
        self._wanted.set()
        return self._sent(queue, None if for_s is None else time.monotonic() + for_s)

    async def _sent(self, queue: asyncio.Queue[bytes | None], until_s: float | None) -> AsyncIterator[bytes]:
        try:
            yield b"retry: 5000\n\n"
            while until_s is None or time.monotonic() < until_s:
                try:
                    event = await asyncio.wait_for(queue.get(), HEART_S)
                except TimeoutError:
                    event = b": keep-alive\n\n"
                if event is None:
                    return
                yield event
        finally:
            self._listeners.discard(queue)


class LiveStreams:
    """A stream for each viewer and selection with listeners; each queries the history by itself, so they are few."""

    def __init__(self) -> None:
        self._streams: dict[tuple[Viewer, Selection], tuple[Live, asyncio.Task[None]]] = {}

    @property
    def listeners(self) -> int:
        """Number of listeners of all streams."""
        return sum(live.listeners for live, _ in self._streams.values())

    def listeners_of(self, viewer: Viewer) -> int:
        """Number of listeners of all streams of one viewer."""
        return sum(live.listeners for (other, _), (live, _) in self._streams.items() if other == viewer)

    def stream(self, site: Site, selection: Selection) -> Live | None:
        """The stream of a selection for the viewer of a site; None if there is no room for another stream.

        If the maximum is reached, the newest stream of the viewer with the most streams ends, so that no viewer locks
        out another one.  There is no room if this viewer would then have more streams than that one.
        """
        wanted = site.viewer, selection
        for idle in [listened for listened, (live, _) in self._streams.items() if not live.listeners]:
            if idle != wanted:
                self._streams.pop(idle)[1].cancel()
        if wanted not in self._streams:
            if len(self._streams) >= MOST_STREAMS and not self._make_room(site.viewer):
                return None
            live = Live(site, selection)
            self._streams[wanted] = live, asyncio.create_task(live.run())
        return self._streams[wanted][0]

    def _make_room(self, viewer: Viewer) -> bool:
        """End the newest stream of the viewer with the most streams if there is room for one more of ``viewer``.

        Returns whether a stream ended.
        """
        counts = Counter(other for other, _ in self._streams)
        greatest, most = counts.most_common(1)[0]
        if counts[viewer] + 1 >= most:
            return False
        newest = next(listened for listened in reversed(self._streams) if listened[0] == greatest)
        live, task = self._streams.pop(newest)
        live.end()
        task.cancel()
        return True

    async def end(self) -> None:
        tasks = [task for _, task in self._streams.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
