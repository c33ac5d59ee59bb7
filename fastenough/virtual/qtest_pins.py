# SPDX-License-Identifier: GPL-2.0-or-later
"""Pins of machines with GPIO hardware, over QEMU's qtest socket.

QEMU stops the guest while a reply is unread: a separate thread always reads the socket.
"""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time
from pathlib import Path
from typing import ClassVar

from fastenough.model import BadInput, FastenoughError
from fastenough.virtual.pins import LINES, Emulator, Pins

_OPEN_S = 5.0
_REPLY_S = 20.0


class QtestPins(Pins):
    """The lines of a device, over a connection to qtest; those in ``reserved`` have other purposes."""

    def __init__(self, connection: socket.socket, device: str, reserved: frozenset[int] = frozenset()) -> None:
        super().__init__()
        self._connection = connection
        self._device = device
        self._free = [line for line in range(LINES) if line not in reserved]
        self._replies: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._command_lock = threading.Lock()
        threading.Thread(target=self._receive_lines, name="pins", daemon=True).start()
        self._command(f"irq_intercept_out {device}")

    def drive(self, line: int, level: int) -> int:
        if line not in self._free:
            raise BadInput(
                f"the virtual board has no free input line {line}; choose one of {', '.join(map(str, self._free))}"
            )
        self._command(f"set_irq_in {self._device} unnamed-gpio-in {line} {int(bool(level))}")
        return time.monotonic_ns()

    def settle(self) -> None:
        """Wait for the reply to a query, which follows all earlier edges."""
        self._command("endianness")

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    def _command(self, command: str) -> None:
        with self._command_lock:
            try:
                self._connection.sendall(command.encode() + b"\n")
                reply = self._replies.get(timeout=_REPLY_S)
            except (OSError, queue.Empty) as error:
                raise FastenoughError("the virtual board's pins do not answer: QEMU has exited or hangs") from error
        if reply is None or not reply.startswith("OK"):
            raise FastenoughError(f"QEMU refused {command!r}: {reply or 'it has exited'}")

    def _receive_lines(self) -> None:
        try:
            with self._connection.makefile("r", encoding="ascii") as stream:
                for line in stream:
                    self._dispatch(line.split())
        except (OSError, ValueError):
            pass
        self._replies.put(None)

    def _dispatch(self, fields: list[str]) -> None:
        if fields[:1] == ["IRQ"]:
            self.receive(int(fields[2]), int(fields[1] == "raise"))
        else:
            self._replies.put(" ".join(fields))


class QtestPort:
    """The qtest socket of QEMU."""

    modules: ClassVar[tuple[str, ...]] = ()
    reserved: ClassVar[frozenset[int]] = frozenset()

    def __init__(self, directory: Path) -> None:
        self.arguments = ["-qtest", f"unix:{directory}/qtest.sock,server=on,wait=off", "-qtest-log", "none"]

    def open(self, emulator: Emulator) -> Pins:
        return QtestPins(emulator.connect("qtest", _OPEN_S), self.device(emulator), self.reserved)

    def device(self, emulator: Emulator) -> str:
        """The QOM path of the device."""
        raise NotImplementedError

    def close(self) -> None:
        """Does nothing: QEMU removes its socket."""


class Pl061Port(QtestPort):
    """The PL061 of arm64's ``virt``; one of its lines is the power key."""

    chip: ClassVar[str] = "9030000.pl061"
    reserved: ClassVar[frozenset[int]] = frozenset({3})

    def device(self, emulator: Emulator) -> str:
        return emulator.find("pl061")


class ImxPort(QtestPort):
    """The seventh port of the i.MX6 on ``sabrelite``."""

    chip: ClassVar[str] = "20b4000.gpio"

    def device(self, emulator: Emulator) -> str:
        return "/machine/soc/gpio7"
