# SPDX-License-Identifier: GPL-2.0-or-later
"""A website for tests: a small farm's, served on loopback by the real server in a thread of its own."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastenough.history import PUBLIC, History, catch_up
from fastenough.web.app import PATIENCE_S, make_app
from fastenough.web.identity import AccessRules
from fastenough.web.pages import PAGES
from fastenough.web.server import make_server
from fastenough.web.site import Page, Site
from tests.support.farm_data import FarmData


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass(frozen=True)
class Served:
    """A site, the farm it is of, and the port it is served at."""

    site: Site
    known_farm: FarmData | None
    port: int

    @property
    def farm(self) -> FarmData:
        """The farm of the site; only for sites that were made from one."""
        assert self.known_farm is not None
        return self.known_farm

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(self, address: str, method: str = "GET", **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, address, headers={name.replace("_", "-"): value for name, value in headers.items()})
        found = connection.getresponse()
        answer = Answer(found.status, {name.lower(): value for name, value in found.getheaders()}, found.read())
        connection.close()
        return answer


def site_of(farm: FarmData, folder: Path) -> Site:
    """A farm with a history of its own, seen by the public a minute after it ended."""
    history = History.at(f"sqlite:///{folder}/history.sqlite")
    farm.declare(history)
    assert not catch_up(history, farm.store).faults
    return Site(history, PUBLIC, farm.store, now=lambda: farm.end_s + 360)


@contextmanager
def command_serving(
    *command: str | Path, cwd: Path, options: Sequence[str | Path] = (), environment: Mapping[str, str] = os.environ
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """``fastenough web`` at work, and the address that it tells."""
    with subprocess.Popen(
        [*command, "web", "--listen", "127.0.0.1:0", *options],
        cwd=cwd,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as server:
        try:
            assert server.stdout is not None
            told = iter(server.stdout.readline, "")
            yield server, next(line for line in told if line.startswith("http")).split()[0]
        finally:
            server.kill()


@contextmanager
def serving(
    site: Site,
    farm: FarmData | None = None,
    pages: Sequence[Page] = PAGES,
    names: Sequence[str] = (),
    *,
    rules: AccessRules | None = None,
    patience_s: float = PATIENCE_S,
) -> Iterator[Served]:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        app = make_app(site, pages=pages, names=names, rules=rules, patience_s=patience_s)
        server = make_server(app, log_level="critical")
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        try:
            yield Served(site, farm, bound.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join(20)
