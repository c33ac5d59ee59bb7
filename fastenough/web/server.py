# SPDX-License-Identifier: GPL-2.0-or-later
"""HTTP server with bounds on the number of connections, their idle time and the time to end.

A client that sends half a request or reads no answer occupies a file descriptor.  Such connections are closed after a
time, or earlier, the longest waiting first, if there are too many.  The memory of unread answers is bounded.
"""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import threading
from collections import Counter
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_S = 10.0
"""Maximum time until the head of a request, from the begin of the connection or the end of the previous answer."""
STALLED_S = 60.0
"""Maximum time without progress in sending an answer."""
MOST_CONNECTIONS = 4096
MOST_UNREAD_BYTES = 256 << 20
"""Maximum size of unread answers in memory, of all connections together."""
END_S = 1.5
"""Time to end after SIGTERM or Ctrl-C; threads may wait for a database that hangs."""
_ACCEPTED_AT_ONCE = 16
_QUEUE = 1024
"""Connections that the kernel holds until they are accepted."""


def most_connections() -> int:
    """At most half of the descriptors that this process may have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(16, min(MOST_CONNECTIONS, soft // 2))


@dataclass(frozen=True)
class Bounds:
    """Bounds of the connections of a server; the defaults are those of the site."""

    header_s: float = HEADER_S
    unread_bytes: int = MOST_UNREAD_BYTES


class Connection(H11Protocol):
    """One connection."""

    def __init__(self, bounds: Bounds, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._bounds = bounds
        self._waiting: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self.waits_since_s = 0.0
        self.stalled_since_s = 0.0

    @property
    def waits(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def unread_bytes(self) -> int:
        """Size of the unread answer in memory; the last part, which will soon fit the socket, is not counted."""
        stalled = self._stalled is not None and not self.transport.is_closing()
        return self.transport.get_write_buffer_size() if stalled else 0

    @property
    def host(self) -> str:
        """Address of the client, or of the proxy before it."""
        return self.client[0] if self.client else ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast("asyncio.Transport", transport))
        self._begin_waiting()
        if len(self.connections) > most_connections():
            self._make_room()

    def _make_room(self) -> None:
        """Close the connection that has waited longest for a request, this one if no other waits."""
        there = [
            connection
            for connection in self.connections
            if isinstance(connection, Connection) and not connection.transport.is_closing()
        ]
        if len(there) > most_connections():
            min(
                (connection for connection in there if connection.waits),
                key=lambda connection: connection.waits_since_s,
            ).transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self.waits:
            self._end_waiting()
        elif self._waiting is None:
            self._begin_waiting()

    def on_response_complete(self) -> None:
        self._end_waiting()
        self._begin_waiting()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_waiting()
        self.resume_writing()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled = self.loop.call_later(STALLED_S, self.transport.abort)
        self.stalled_since_s = self.loop.time()
        self._bound_unread()

    def _bound_unread(self) -> None:
        """Close connections until the unread answers fit: of the host that leaves most unread, the oldest first."""
        unread = {
            connection: connection.unread_bytes
            for connection in self.connections
            if isinstance(connection, Connection) and connection.unread_bytes
        }
        by_host: Counter[str] = Counter()
        for connection, size in unread.items():
            by_host[connection.host] += size
        while unread and by_host.total() > self._bounds.unread_bytes:
            greatest, _ = by_host.most_common(1)[0]
            oldest = min(
                (connection for connection in unread if connection.host == greatest),
                key=lambda connection: connection.stalled_since_s,
            )
            by_host[greatest] -= unread.pop(oldest)
            oldest.transport.abort()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _begin_waiting(self) -> None:
        self.waits_since_s = self.loop.time()
        self._waiting = self.loop.call_later(self._bounds.header_s, self._give_up)

    def _end_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        self._waiting = None
        if self.waits:
            self.transport.abort()


class Server(uvicorn.Server):
    """A server that ends within ``END_S`` after the first signal, whatever its threads wait for."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """asyncio takes one number for how many connections it accepts at once and how many the kernel holds."""
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(_QUEUE)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if not self.should_exit:
            deadline = threading.Timer(END_S, os._exit, (128 + sig,))
            deadline.daemon = True
            deadline.start()
        super().handle_exit(sig, frame)


def raise_descriptors() -> None:
    """Let this process have as many descriptors as its connections may need, as far as that is permitted."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 2 * MOST_CONNECTIONS if hard == resource.RLIM_INFINITY else min(2 * MOST_CONNECTIONS, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


def make_server(app: ASGIApp, bounds: Bounds | None = None, log_level: str = "warning") -> Server:
    """The server of an application; ``run(sockets=[…])`` serves it until it is ended."""
    http = cast("type[asyncio.Protocol]", partial(Connection, bounds or Bounds()))
    return Server(
        uvicorn.Config(
            app,
            http=http,
            ws="none",
            log_level=log_level,
            server_header=False,
            # the address of the client stays that of the connection: access depends on it
            proxy_headers=False,
            lifespan="on",
            timeout_graceful_shutdown=1,
            backlog=_ACCEPTED_AT_ONCE,
        )
    )
