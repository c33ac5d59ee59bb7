# SPDX-License-Identifier: GPL-2.0-or-later
"""The log between boards and takers: a NATS JetStream that keeps what boards publish until it is stored."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Self

import nats
from nats.aio.client import Client
from nats.errors import Error
from nats.js import JetStreamContext
from nats.js.api import DiscardPolicy, RetentionPolicy, StorageType
from nats.js.errors import BadRequestError, NotFoundError

from fastenough.fleet.chunk import SHARDS
from fastenough.model import Unavailable

STREAM = "fastenough-ring"
_SUBJECTS = "fe.ring.>"
_MOST_AGE_S = 14 * 86400.0
_EXISTS_OTHERWISE = 10058
_ANSWER_S = 5.0
_CONNECT_S = 10.0


@dataclass(frozen=True)
class Message:
    """One chunk in the stream: its sequence number, the machine of its topic, and its payload."""

    sequence: int
    machine: str
    payload: bytes


@dataclass(frozen=True)
class StreamState:
    """Which stream it is (the time at which it was made), and the sequence number of its newest message."""

    made: str
    last: int


async def _unsaid(error: Exception) -> None:
    """The library would print a traceback; whoever needs the server says what failed."""


class ChunkStream:
    """The stream of a server, made where it is missing.

    What does not fit into the storage that the server may use (its ``max_file_store``) is refused, not forgotten: a
    board keeps what no taker has acknowledged.  A stream that somebody made with other limits is used as it is.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._context: JetStreamContext = client.jetstream(timeout=_ANSWER_S)

    @classmethod
    async def opened(cls, url: str) -> Self:
        """Raises Unavailable where no server answers."""
        try:
            # it tries again for ever, which is right only once it was connected
            client = await asyncio.wait_for(nats.connect(url, max_reconnect_attempts=-1, error_cb=_unsaid), _CONNECT_S)
            stream = cls(client)
            await stream._make()
        except (Error, OSError, TimeoutError) as error:
            server = url.rpartition("@")[2]  # without a password
            raise Unavailable(f"NATS at {server} is not available: {str(error) or type(error).__name__}") from None
        return stream

    async def _make(self) -> None:
        try:
            await self._context.add_stream(
                name=STREAM,
                subjects=[_SUBJECTS],
                storage=StorageType.FILE,
                retention=RetentionPolicy.LIMITS,
                discard=DiscardPolicy.NEW,
                max_age=_MOST_AGE_S,
            )
        except BadRequestError as error:
            if error.err_code != _EXISTS_OTHERWISE:
                raise

    async def state(self) -> StreamState:
        info = await self._context.stream_info(STREAM)
        return StreamState(str(info.created), info.state.last_seq)

    async def read(self, shard: int, after: int, most: int) -> list[Message]:
        """What follows a sequence number, at most so many messages.

        Each is asked for by its place: a consumer of the server would lose what was on its way when a request times
        out, and would be one more thing to find again after a failure.
        """
        messages: list[Message] = []
        while len(messages) < most:
            try:
                found = await self._context.get_msg(STREAM, seq=after + 1, subject=f"fe.ring.{shard:x}.>", next=True)
            except NotFoundError:
                break
            after = found.seq or 0
            messages.append(Message(after, (found.subject or "").rpartition(".")[2], found.data or b""))
        return messages

    async def forget(self, shard: int, up_to: int) -> None:
        """Remove a shard's messages up to a sequence number, which are stored."""
        await self._context.purge_stream(STREAM, seq=up_to + 1, subject=f"fe.ring.{shard:x}.>")

    async def answer(self, machine: str, payload: bytes) -> None:
        """Send a board an order; it is lost if the board does not listen."""
        await self._client.publish(f"fe.order.{machine}", payload)

    async def close(self) -> None:
        await self._client.close()


def shards_of(taker: int, takers: int) -> list[int]:
    """Those that one of several takers takes."""
    return list(range(taker, SHARDS, takers))
