# SPDX-License-Identifier: GPL-2.0-or-later
"""Clients that read nothing cannot fill the memory of the website, and do not disturb those that read."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fastenough.web.server import Bounds, Connection, Server, make_server
from tests.support.presence import present
from tests.support.processes import eventually
from tests.support.served import asked, running

SIZE = 8 << 20
MOST = 3 * SIZE
CLIENTS = 12
"""More than fit, though the kernel takes up to 4 MiB of each answer."""
RECEIVED = 4096
"""Buffer of a client that reads nothing."""


async def _answer(request: Request) -> Response:
    return Response(b"x" * SIZE)


@contextmanager
def _unread(port: int, host: str) -> Iterator[socket.socket]:
    """A client at ``host`` that requests and reads nothing."""
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVED)
        client.bind((host, 0))
        client.connect(("127.0.0.1", port))
        client.sendall(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
        yield client


def _waiting(server: Server) -> list[tuple[str, int]]:
    """Addresses of the clients for which an answer waits in memory."""
    connections = (one for one in list(server.server_state.connections) if isinstance(one, Connection))
    return [one.client for one in connections if one.unread_bytes and one.client]


def _unread_bytes(server: Server) -> int:
    return sum(one.unread_bytes for one in list(server.server_state.connections) if isinstance(one, Connection))


@pytest.fixture
def server() -> Server:
    return make_server(Starlette(routes=[Route("/", _answer)]), Bounds(unread_bytes=MOST), "critical")


def _after_each(server: Server, port: int, host: str, stack: ExitStack) -> list[tuple[str, int]]:
    """Addresses of CLIENTS clients in order; the bound was held after each of them.

    This thread may look between the writing of an answer and the closing of an older one.
    """
    addresses = []
    for _ in range(CLIENTS):
        addresses.append(stack.enter_context(_unread(port, host)).getsockname())
        assert eventually(lambda: addresses[-1] in _waiting(server))
        assert eventually(lambda: _unread_bytes(server) <= MOST)
    return addresses


def test_unread_answers_are_bounded_and_the_oldest_are_closed(server: Server) -> None:
    with running(server) as goal, ExitStack() as stack:
        clients = _after_each(server, present(goal.port, "port"), "127.0.0.1", stack)
        left = len(_waiting(server))
        assert MOST // SIZE <= left < CLIENTS
        assert set(_waiting(server)) == set(clients[-left:])
        status, body, _ = asked(goal, "GET", "/")
        assert (status, len(body)) == (200, SIZE), "a client that reads"


def test_clients_of_the_greatest_host_are_closed_first(server: Server) -> None:
    with running(server) as goal, ExitStack() as stack:
        port = present(goal.port, "port")
        quiet = stack.enter_context(_unread(port, "127.0.0.2")).getsockname()
        assert eventually(lambda: quiet in _waiting(server))
        clients = _after_each(server, port, "127.0.0.1", stack)
        assert quiet in _waiting(server), "though it waits longest"
        assert not set(clients) <= set(_waiting(server))
