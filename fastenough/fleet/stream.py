# SPDX-License-Identifier: GPL-2.0-or-later
"""The stream between boards and takers: NATS JetStream keeps chunks until they are stored, for at most 14 days."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Self
from urllib.parse import unquote, urlsplit

import nats
from nats.aio.client import Client
from nats.errors import Error
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, DiscardPolicy, RetentionPolicy, StorageType
from nats.js.errors import BadRequestError, NotFoundError

from fastenough.fleet.chunk import SHARDS, stated_size
from fastenough.model import Unavailable

STREAM = "fastenough-ring"
PASSWORD_VARIABLE = "FASTENOUGH_NATS_PASSWORD"
"""Environment variable with the password of the user whom the URL of the server names."""
_SUBJECTS = "fe.ring.>"
_MOST_AGE_S = 14 * 86400.0
_EXISTS_OTHERWISE = 10058
_ANSWER_S = 5.0
_CONNECT_S = 10.0
_FEW = 8
"""Messages that are requested one by one."""
_AT_ONCE = 32
"""Messages of one request beyond these; each has at most 1 MiB."""
_CONSUMER_S = 60.0
_MOST_BYTES = 32 << 20
"""Of the unpacked contents of one transaction, without its last message, so that it fits into memory."""


@dataclass(frozen=True)
class Message:
    """One chunk in the stream: its sequence number, the machine of its topic, and its payload."""

    sequence: int
    machine: str
    payload: bytes


@dataclass(frozen=True)
class StreamState:
    """Identity of a stream (the time at which it was made), and the sequence number of its newest message."""

    made: str
    last: int


def _unavailable(url: str, error: Exception) -> Unavailable:
    server = url.rpartition("@")[2]  # without a password
    return Unavailable(f"NATS at {server} is not available: {str(error) or type(error).__name__}")


def _credentials(url: str) -> dict[str, str]:
    """User and password for a URL that names only the user; empty without a password in the environment.

    All users of the machine can read the arguments of a command.
    """
    password = os.environ.get(PASSWORD_VARIABLE)
    with suppress(ValueError):  # nats names what is wrong with the URL
        address = urlsplit(url if "://" in url else f"nats://{url}")
        if password and address.username and address.password is None:
            return {"user": unquote(address.username), "password": password}
    return {}


async def connected(url: str, errors: deque[Exception] | None = None) -> Client:
    """A connection to a server, which reconnects by itself; raises Unavailable if none answers or admits this user.

    ``errors`` collects those that the server reports later, such as a topic that this user may not use.
    """
    reported = deque[Exception](maxlen=1) if errors is None else errors

    async def note(error: Exception) -> None:  # the library would print a traceback
        reported.append(error)

    try:
        # unlimited attempts are right for reconnecting only, so the first connection has a time limit
        connecting = nats.connect(url, max_reconnect_attempts=-1, error_cb=note, **_credentials(url))
        return await asyncio.wait_for(connecting, _CONNECT_S)
    except (Error, OSError, TimeoutError) as error:
        raise _unavailable(url, reported[-1] if reported else error) from None


class ChunkStream:
    """The stream of a server, created if it is missing.

    If the storage of the server is full (its ``max_file_store``), new chunks are refused and old ones remain: a board
    keeps what no taker has confirmed.  An existing stream with other limits is used as it is.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._context: JetStreamContext = client.jetstream(timeout=_ANSWER_S)

    @classmethod
    async def opened(cls, url: str) -> Self:
        """Connect to a server; raises Unavailable if none answers."""
        stream = cls(await connected(url))
        try:
            await stream._make()
        except (Error, OSError, TimeoutError) as error:
            raise _unavailable(url, error) from None
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
        """The state of the stream, which is created again if the server has lost it."""
        try:
            info = await self._context.stream_info(STREAM)
        except NotFoundError:
            await self._make()
            info = await self._context.stream_info(STREAM)
        return StreamState(str(info.created), info.state.last_seq)

    async def read(self, shard: int, after: int, most: int) -> list[Message]:
        """The messages of a shard after a sequence number: at most ``most``, or fewer if they are long.

        The first are requested by their sequence numbers, which leaves no state on the server.  If more follow, takers
        are behind, and a consumer on the server delivers them: ten times as fast, but it takes time to create one.
        """
        messages: list[Message] = []
        while len(messages) < min(most, _FEW):
            try:
                found = await self._context.get_msg(STREAM, seq=after + 1, subject=_subject(shard), next=True)
            except NotFoundError:
                return messages
            after = found.seq or 0
            messages.append(Message(after, (found.subject or "").rpartition(".")[2], found.data or b""))
        if not is_full(messages, most):
            await self._read_more(shard, messages, most)
        return messages

    async def _read_more(self, shard: int, messages: list[Message], most: int) -> None:
        """Append what follows the last message.  Its consumer lives for this call; the database has the position."""
        config = ConsumerConfig(
            filter_subject=_subject(shard),
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=messages[-1].sequence + 1,
            ack_policy=AckPolicy.NONE,
            mem_storage=True,
            inactive_threshold=_CONSUMER_S,
        )
        consumer = await self._context.add_consumer(STREAM, config)
        reader = await self._context.pull_subscribe_bind(consumer=consumer.name, stream=STREAM)
        try:
            before = len(messages)
            while not is_full(messages, most):
                asked = min(_AT_ONCE, most - len(messages))
                found = await reader.fetch(asked, timeout=_ANSWER_S)
                for each in found:
                    number = each.metadata.sequence
                    if number.consumer != len(messages) - before + 1:
                        return  # a message was lost in transit; the next call reads from it on
                    messages.append(Message(number.stream, each.subject.rpartition(".")[2], each.data))
                if len(found) < asked:
                    return
        except TimeoutError:
            return  # nothing more, or no answer: the next call requests it again
        finally:
            with suppress(Error):
                await reader.unsubscribe()
                await self._context.delete_consumer(STREAM, consumer.name)

    async def forget(self, shard: int, up_to: int) -> None:
        """Remove the stored messages of a shard, up to a sequence number."""
        await self._context.purge_stream(STREAM, seq=up_to + 1, subject=_subject(shard))

    async def answer(self, machine: str, payload: bytes) -> None:
        """Send an answer to a board; it is lost if the board is not connected."""
        await self._client.publish(f"fe.order.{machine}", payload)

    async def close(self) -> None:
        await self._client.close()


def _subject(shard: int) -> str:
    return f"fe.ring.{shard:x}.>"


def is_full(messages: Sequence[Message], most: int) -> bool:
    """Whether these are so many, or so long, that more may follow in the stream."""
    return len(messages) >= most or sum(stated_size(message.payload) for message in messages) >= _MOST_BYTES


def fitting(messages: Sequence[Message]) -> Sequence[Message]:
    """The first messages, at least one, whose contents fit into one transaction."""
    total = 0
    for number, message in enumerate(messages, 1):
        total += stated_size(message.payload)
        if total >= _MOST_BYTES:
            return messages[:number]
    return messages


def shards_of(taker: int, takers: int) -> list[int]:
    """Shards of one of several takers; the first has number 0."""
    return list(range(taker, SHARDS, takers))
