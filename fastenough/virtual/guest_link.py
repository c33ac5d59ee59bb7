# SPDX-License-Identifier: GPL-2.0-or-later
"""The link to a guest: its agent on a socket of QEMU; the monitor is installed on demand."""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path

from fastenough.link import INJECTOR, MONITOR
from fastenough.link.agent import AgentLink, Stream
from fastenough.link.base import BoardGone
from fastenough.virtual.monitor import install_monitor

_GONE = "the virtual board is gone: QEMU has exited"
_COMMAND_S = 60.0
"""An emulated machine on a busy bench took more than 10 s to read a file."""


class _GuestLink(AgentLink):
    """Link to the agent of a guest, which has all other programs from its start."""

    def which(self, tool: str) -> str | None:
        """Raises NotApplicable, with the reason, if the monitor or its injector cannot be built for the guest."""
        path = super().which(tool)
        if path is None and tool in (MONITOR, INJECTOR):
            install_monitor(self)
            path = super().which(tool)
        return path


def guest_link(connection: socket.socket, name: str, timeout_s: float = 10.0) -> AgentLink:
    """The guest at the other end; raises Stalled if it does not answer in time, BoardGone if it has ended."""

    def end() -> None:
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)

    stream = Stream(connection.fileno(), connection.fileno(), end, connection.close, lambda: _GONE)
    return _GuestLink(stream, name, timeout_s=timeout_s, command_s=_COMMAND_S)


def connect_guest(path: Path, name: str) -> AgentLink:
    """The guest whose agent is on that socket; raises BoardGone if there is none."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(path))
    except OSError as error:
        connection.close()
        raise BoardGone(_GONE) from error
    return guest_link(connection, name)
