# SPDX-License-Identifier: GPL-2.0-or-later
"""The connection to a server that does not answer."""

from __future__ import annotations

import asyncio

import pytest

from fastenough.farm.lab import free_ports
from fastenough.fleet import stream
from fastenough.model import Unavailable


def test_a_failed_connection_names_its_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the time limit that ended the attempts."""
    monkeypatch.setattr(stream, "_CONNECT_S", 0.5)
    (port,) = free_ports(1)
    with pytest.raises(Unavailable, match=r"Errno 111"):
        asyncio.run(stream.connected(f"nats://127.0.0.1:{port}"))
