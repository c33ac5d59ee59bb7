# SPDX-License-Identifier: GPL-2.0-or-later
"""Helper of tests: an application of Starlette's, served on loopback as it is in earnest."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from starlette.applications import Starlette

from fastenough.farm.push import Goal
from fastenough.web.server import Bounds, Server, make_server


@contextmanager
def served(app: Starlette, bounds: Bounds | None = None) -> Iterator[Goal]:
    """Its address, until the block ends."""
    with running(make_server(app, bounds)) as goal:
        yield goal


@contextmanager
def running(server: Server) -> Iterator[Goal]:
    """The address of a server, which runs until the block ends."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = threading.Thread(target=server.run, args=([listening],))
        serving.start()
        try:
            yield Goal(False, "127.0.0.1", listening.getsockname()[1], "")
        finally:
            server.should_exit = True
            serving.join()


def asked(
    goal: Goal,
    method: str,
    path: str,
    body: bytes | Iterator[bytes] | None = None,
    headers: Mapping[str, str] | None = None,
) -> tuple[int, bytes, Mapping[str, str]]:
    """One request: status, body and headers of the answer."""
    connection = http.client.HTTPConnection(goal.host, goal.port, timeout=60)
    try:
        connection.request(method, path, body, dict(headers or {}))
        answer = connection.getresponse()
        return answer.status, answer.read(), dict(answer.getheaders())
    finally:
        connection.close()
