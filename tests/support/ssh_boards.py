# SPDX-License-Identifier: GPL-2.0-or-later
"""Boards behind a real SSH server: on loopback, or in namespaces of their own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fastenough.link.ssh import CONFIG_SETTING
from tests.support.privileges import require_root
from tests.support.processes import living_with

NAME = "ssh://board"
_SERVER = "/usr/sbin/sshd"
_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
_SERVER_CONFIG = """ListenAddress {address}
Port {port}
HostKey {place}/host
PidFile none
AuthorizedKeysFile {place}/authorized
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
SetEnv TMARK={place} HOME={place}/home PATH={path}
"""
_CLIENT_CONFIG = """Host board
  HostName {address}
  Port {port}
  User {user}
  IdentityFile {place}/user
  IdentitiesOnly yes
  UserKnownHostsFile {place}/known
  GlobalKnownHostsFile none
"""


@dataclass(frozen=True)
class Server:
    """``config`` is what a client needs to know; everything below the server has ``mark`` in its environment."""

    place: Path
    port: int
    pid: int

    @property
    def config(self) -> Path:
        return self.place / "config"

    def environment(self) -> dict[str, str]:
        return {**os.environ, CONFIG_SETTING: str(self.config)}

    def processes(self) -> list[int]:
        """What sessions have started, their shells included, that lives."""
        return living_with(f"TMARK={self.place}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def ssh_server(
    *, user: str = "root", address: str = "127.0.0.1", prefix: Sequence[str] = (), path: str = _PATH, port: int = 0
) -> Iterator[Server]:
    """A server that lets one user in by one key; ``prefix`` is put before it, as for a namespace or another user.

    It listens at a free port unless ``port`` names one.  The user's home there is empty: what the login scripts of the
    machine's own user wait for would decide the test.
    """
    require_root("a server that is a board")
    place = Path(tempfile.mkdtemp(prefix="fastenough-test-", dir="/var/lib"))  # /tmp may be the board's own
    port = port or _free_port()
    for key in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(place / key)], check=True)
    words = {"address": address, "port": port, "place": place, "user": user, "path": path}
    (place / "sshd").write_text(_SERVER_CONFIG.format(**words))
    (place / "config").write_text(_CLIENT_CONFIG.format(**words))
    shutil.copy(place / "user.pub", place / "authorized")
    public = (place / "host.pub").read_text().split()
    (place / "known").write_text(f"{address if port == 22 else f'[{address}]:{port}'} {public[0]} {public[1]}\n")
    place.chmod(0o755)
    (place / "home").mkdir()
    if user != "root":
        shutil.chown(place / "host", user)
        shutil.chown(place / "home", user)
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    with (place / "log").open("wb") as log:
        server = subprocess.Popen(
            [*prefix, _SERVER, "-D", "-e", "-f", str(place / "sshd")], stdout=log, stderr=log, start_new_session=True
        )
    try:
        deadline = time.monotonic() + 20
        while server.poll() is None and b"Server listening" not in (place / "log").read_bytes():
            assert time.monotonic() < deadline, (place / "log").read_text()
            time.sleep(0.05)
        assert server.poll() is None, (place / "log").read_text()
        yield Server(place, port, server.pid)
    finally:
        server.kill()
        server.wait()
        shutil.rmtree(place)
