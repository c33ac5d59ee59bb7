# SPDX-License-Identifier: GPL-2.0-or-later
"""Server-sent events: sends board changes to all listeners, at most once a second, with one query for all."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

from starlette.concurrency import run_in_threadpool

from fastenough.history import BoardStatus, board_statuses
from fastenough.model import FastenoughError
from fastenough.web.rendering import as_json
from fastenough.web.site import Site

_LOG = logging.getLogger(__name__)
POLL_S = 1.0
HEART_S = 15.0
_BACKLOG = 30
"""A listener that is so many events behind is let go; a browser then asks again by itself, and reads all anew."""

Row = dict[str, Any]


def row_of(status: BoardStatus) -> Row:
    """Return the fields that are sent when a board changes.  The reason is excluded: it changes with time."""
    return {
        "state": status.state,
        "label": status.state.label,
        "style": status.state.style,
        "shape": status.state.shape,
        "seen_s": status.seen_s,
        "max_5min_ns": status.max_5min_ns,
        "max_24h_ns": status.max_24h_ns,
        "max_30d_ns": status.max_30d_ns,
        "max_ever_ns": status.max_ever_ns,
    }


def rows(site: Site) -> dict[str, Row]:
    """By board."""
    return {one.board.name: row_of(one) for one in board_statuses(site.history, site.viewer, site.now_s)}


class Live:
    """Sends each event to all listeners; queries the history only while there are listeners."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._number = 0
        self._last: dict[str, Row] = {}
        self._listeners: set[asyncio.Queue[bytes | None]] = set()
        self._wanted = asyncio.Event()

    @property
    def listeners(self) -> int:
        """How many there are; each holds a connection for as long as it likes."""
        return len(self._listeners)

    async def run(self) -> None:
        """Send changes until cancelled; nothing is sent while the history cannot be read."""
        while True:
            await self._wanted.wait()
            try:
                self.tell(await run_in_threadpool(rows, self._site))
            except FastenoughError as error:
                _LOG.warning("live: %s", error)
            except Exception:  # a failed query does not end the live view
                _LOG.warning("live: history query failed", exc_info=True)
            await asyncio.sleep(POLL_S)
            if not self._listeners:
                self._wanted.clear()

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
            self._listeners.discard(queue)
            queue.get_nowait()
            queue.put_nowait(None)

    async def listen(self) -> AsyncIterator[bytes]:
        """The stream of one listener: first the state of all boards, then changes."""
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(_BACKLOG)
        if self._last:
            queue.put_nowait(self._event(self._last, []))
        self._listeners.add(queue)
        self._wanted.set()
        try:
            yield b"retry: 5000\n\n"
            while True:
                try:
                    event = await asyncio.wait_for(queue.get(), HEART_S)
                except TimeoutError:
                    event = b": keep-alive\n\n"
                if event is None:
                    return
                yield event
        finally:
            self._listeners.discard(queue)
