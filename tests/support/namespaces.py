# SPDX-License-Identifier: GPL-2.0-or-later
"""A network of its own for a board, which can be cut off from this machine."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.privileges import require_root


@dataclass(frozen=True)
class Network:
    """``prefix`` is put before a command that is to run there."""

    name: str
    address: str

    @property
    def prefix(self) -> list[str]:
        return ["ip", "netns", "exec", self.name]

    def sent_bytes(self) -> int:
        """What has gone into it so far."""
        return int(Path(f"/sys/class/net/{self.name}h/statistics/tx_bytes").read_text())

    def cut(self) -> None:
        subprocess.run(["ip", "link", "set", f"{self.name}h", "down"], check=True)

    def join(self) -> None:
        subprocess.run(["ip", "link", "set", f"{self.name}h", "up"], check=True)


@contextmanager
def network(number: int) -> Iterator[Network]:
    """One that is joined; skips where there can be none.  Networks of the same number exclude each other."""
    require_root("network namespaces")
    name, net = f"fe{secrets.token_hex(3)}", f"10.203.{number}"
    commands = [
        f"ip netns add {name}",
        f"ip link add {name}h type veth peer name {name}b netns {name}",
        f"ip addr add {net}.1/30 dev {name}h",
        f"ip link set {name}h up",
        f"ip -n {name} addr add {net}.2/30 dev {name}b",
        f"ip -n {name} link set {name}b up",
    ]
    try:
        for command in commands:
            made = subprocess.run(command.split(), capture_output=True, text=True, check=False)
            if made.returncode:
                pytest.skip(f"no network namespaces here: {made.stderr.strip()}")
        yield Network(name, f"{net}.2")
    finally:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
        subprocess.run(["ip", "link", "del", f"{name}h"], capture_output=True, check=False)
