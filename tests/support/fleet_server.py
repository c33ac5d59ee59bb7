# SPDX-License-Identifier: GPL-2.0-or-later
"""The NATS server of packaging/fleet on loopback, with TLS and the users that ``farm user`` makes."""

from __future__ import annotations

import asyncio
import signal
import ssl
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nats
from aiomqtt import Client
from nats.aio.client import Client as NatsClient

from fastenough.farm.lab import free_ports
from fastenough.fleet.access import FleetUsers, Role, configuration
from tests.support.cli_calls import ROOT

_FOLDER = ROOT / "packaging" / "fleet"
_SPY = 'users: [\n      {{ user: "spy-{site}", password: "spy" }}'


@dataclass
class FleetServer:
    """A server in a folder.  ``passwords``: of each added user.  Each site has a spy, which may do anything."""

    folder: Path
    port: int
    mqtt: int
    passwords: dict[str, str] = field(default_factory=dict)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def users(self) -> FleetUsers:
        return FleetUsers(self.folder / "users.json")

    def add(self, names: Sequence[str], role: Role, site: str) -> None:
        self.passwords |= self.users.add(names, role, site)

    def configure(self) -> None:
        text = configuration(self.users.listed())
        for site in {user.site for user in self.users.listed()}:
            text = text.replace(
                f'"{site}" {{\n    jetstream: enabled\n    users: [',
                f'"{site}" {{\n    jetstream: enabled\n    {_SPY.format(site=site)}',
            )
        (self.folder / "nats-users" / "users.conf").write_text(text)

    def reload(self) -> None:
        """Read the users again."""
        assert self._process is not None
        self.configure()
        self._process.send_signal(signal.SIGHUP)

    def start(self) -> None:
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                ["nats-server", "-c", self.folder / "nats" / "nats.conf"], stdout=log, stderr=log
            )

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    @property
    def log(self) -> str:
        return (self.folder / "server.log").read_text()

    def url(self, user: str) -> str:
        return f"nats://{user}:{self.passwords[user]}@127.0.0.1:{self.port}"

    async def spy(self, site: str) -> NatsClient:
        """A client that may do anything in the account of a site; waits for the server."""
        url = f"nats://spy-{site}:spy@127.0.0.1:{self.port}"
        for _ in range(100):
            try:
                return await nats.connect(url, allow_reconnect=False, connect_timeout=5, error_cb=_silent)
            except (OSError, nats.errors.Error):
                await asyncio.sleep(0.1)
        raise AssertionError("the server does not answer")

    def client(self, user: str, **options: Any) -> Client:
        """An MQTT client of a board, by default under its machine id."""
        words: dict[str, Any] = {
            "username": user,
            "password": self.passwords[user],
            "identifier": user,
            "timeout": 5,
        } | options
        context = ssl.create_default_context(cafile=str(self.folder / "tls.crt"))
        return Client("127.0.0.1", self.mqtt, tls_context=context, **words)


async def _silent(_: Exception) -> None:
    """Error callback: the caller tries again."""


@contextmanager
def fleet_server(folder: Path) -> Iterator[FleetServer]:
    """A server that is configured and not started yet."""
    make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
    names = "-addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout tls.key -out tls.crt"
    subprocess.run([*make.split(), *names.split()], cwd=folder, check=True, capture_output=True)
    port, mqtt = free_ports(2)
    server = FleetServer(folder, port, mqtt)
    text = (_FOLDER / "nats.conf").read_text().replace('"/data"', f'"{folder}/data"').replace("/tls/", f"{folder}/")
    for old, new in (("0.0.0.0:4222", server.port), ("0.0.0.0:8883", server.mqtt)):
        assert old in text
        text = text.replace(old, f"127.0.0.1:{new}")
    for name in ("nats", "nats-users"):
        (folder / name).mkdir()
    (folder / "nats" / "nats.conf").write_text(text)
    try:
        yield server
    finally:
        server.end()
