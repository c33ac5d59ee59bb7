# SPDX-License-Identifier: GPL-2.0-or-later
"""A labgrid of our own on loopback: a real coordinator and exporter, a power switch that speaks HTTP, a console."""

from __future__ import annotations

import contextlib
import http.server
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from serial import serial_for_url
from serial.rfc2217 import PortManager

from fastenough.board import AS_BOOTED, open_board
from tests.support.processes import eventually
from tests.support.tools import TOOLS

_EXPORT = """board:
  NetworkPowerPort:
    model: rest
    host: 'http://127.0.0.1:{switch}/relay/{{index}}/value'
    index: 0
  NetworkService:
    address: board
    username: root
  NetworkSerialPort:
    host: 127.0.0.1
    port: {console}
    protocol: raw
bare:
  NetworkPowerPort:
    model: rest
    host: 'http://127.0.0.1:{switch}/relay/{{index}}/value'
    index: 1
"""
_PLACES = "".join(f"{name}: {{matches: [{{exporter: rack, group: {name}, cls: '*'}}]}}\n" for name in ("board", "bare"))


@dataclass
class Switch:
    """What was switched, in order; ``stuck`` while it answers nobody."""

    port: int = 0
    said: list[tuple[str, bytes]] = field(default_factory=list)
    stuck: threading.Event = field(default_factory=threading.Event)


@dataclass
class Wire:
    """Stands for ser2net: what a board says goes to whoever is connected."""

    protocol: str
    port: int = 0
    listeners: list[socket.socket] = field(default_factory=list)

    def say(self, said: bytes) -> None:
        """Once somebody listens."""
        assert eventually(lambda: bool(self.listeners))
        self.repeat(said)

    def repeat(self, said: bytes) -> None:
        """To those who listen now; who has just left hears nothing."""
        for listener in list(self.listeners):
            with contextlib.suppress(OSError):
                listener.sendall(said.replace(b"\xff", b"\xff\xff") if self.protocol == "rfc2217" else said)

    @contextmanager
    def meanwhile(self, speak: Callable[[], None]) -> Iterator[None]:
        """While inside, the board speaks; it has said all at the end."""
        speaker = threading.Thread(target=speak, daemon=True)
        speaker.start()
        yield
        speaker.join(30)
        assert not speaker.is_alive()


@dataclass(frozen=True)
class Lab:
    coordinator: str
    exporter: subprocess.Popen[bytes]
    switch: Switch
    wire: Wire


@contextmanager
def _power_switch() -> Iterator[Switch]:
    switch = Switch()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            while switch.stuck.is_set():
                time.sleep(0.1)
            switch.said.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *words: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    switch.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield switch
    finally:
        switch.stuck.clear()
        server.shutdown()
        server.server_close()


@contextmanager
def console_wire(protocol: str) -> Iterator[Wire]:
    wire = Wire(protocol)

    class Handler(socketserver.BaseRequestHandler):
        def setup(self) -> None:
            self.manager: Any = None
            if protocol == "rfc2217":
                self.manager = cast("Any", PortManager)(serial_for_url("loop://"), self)
            else:
                wire.listeners.append(self.request)

        def write(self, said: bytes) -> None:
            self.request.sendall(said)

        def handle(self) -> None:
            with contextlib.suppress(OSError):
                while part := self.request.recv(4096):
                    for _ in self.manager.filter(part) if self.manager else ():
                        pass
                    if self.request not in wire.listeners:
                        wire.listeners.append(self.request)

        def finish(self) -> None:
            with contextlib.suppress(ValueError):
                wire.listeners.remove(self.request)

    class Listening(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Listening(("127.0.0.1", 0), Handler) as server:
        wire.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield wire
        finally:
            server.shutdown()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def client(lab: str, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "labgrid.remote.client", "-x", lab, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _resources(address: str) -> bytes:
    return subprocess.run(
        [sys.executable, "-m", "labgrid.remote.client", "-x", address, "resources"], check=False, capture_output=True
    ).stdout


@contextmanager
def running_lab(place: Path) -> Iterator[Lab]:
    """The places ``board``, which has all, and ``bare``, which has power alone."""
    address = f"127.0.0.1:{free_port()}"
    with _power_switch() as switch, console_wire("raw") as wire, (place / "log").open("wb") as log:
        (place / "export.yaml").write_text(_EXPORT.format(switch=switch.port, console=wire.port))
        (place / "places.yaml").write_text(_PLACES)
        coordinator = subprocess.Popen(
            [TOOLS / "labgrid-coordinator", "-l", address], cwd=place, stdout=log, stderr=log
        )
        assert eventually(lambda: b"listening on" in (place / "log").read_bytes(), 60), (place / "log").read_text()
        exporter = subprocess.Popen(
            [TOOLS / "labgrid-exporter", "-c", address, "-n", "rack", "--hostname", "127.0.0.1", place / "export.yaml"],
            cwd=place,
            stdout=log,
            stderr=log,
        )
        try:
            assert eventually(lambda: b"rack" in _resources(address), 60), (place / "log").read_text()
            yield Lab(address, exporter, switch, wire)
        finally:
            for process in (exporter, coordinator):
                process.kill()
                process.wait()


def holder(lab: Lab, place: str = "board") -> str:
    return next(line for line in client(lab.coordinator, "-p", place, "show").splitlines() if "acquired: " in line)


@contextmanager
def reserved(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Another user has the board meanwhile, and still has it at the end."""

    def theirs(what: str) -> None:
        with monkeypatch.context() as patch:
            patch.setenv("LG_USERNAME", "somebody")
            client(lab.coordinator, "-p", "board", what)

    theirs("acquire")
    try:
        yield
        assert "somebody" in holder(lab)
    finally:
        theirs("release")


def refused(
    kind: type[Exception] | tuple[type[Exception], ...],
    said: str,
    name: str = "labgrid:board",
    configuration: str = AS_BOOTED,
) -> str:
    """Its one line."""
    with pytest.raises(kind, match=said) as refusal, open_board(name).boot(configuration):
        pass
    assert str(refusal.value).isprintable()
    return str(refusal.value)
