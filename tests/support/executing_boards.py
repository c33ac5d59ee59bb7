# SPDX-License-Identifier: GPL-2.0-or-later
"""A board whose orders are carried out: the publisher, the executor's service, and a service that records a ring."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from fastenough.recording import read_recording
from tests.support.ordered_boards import MACHINE, OrderedBoard
from tests.support.processes import eventually, living_with, with_words
from tests.support.rings import files
from tests.support.tools import ROOT

CARRY_OUT = ROOT / "target" / "publisher" / "carry-out"
_FORMER_S = 1

_SERVICE = """#!/bin/sh
# Stands in for systemd: ends the probe, reads the environment file of its unit, and starts it again.
if [ -e {folder}/block ]; then
    touch {folder}/blocked
    sleep 100
fi
if [ -e {folder}/pid ]; then
    kill -INT "$(cat {folder}/pid)"
    for _ in $(seq 100); do kill -0 "$(cat {folder}/pid)" 2>/dev/null || break; sleep 0.1; done
fi
FASTENOUGH_INTERVAL={former}s
[ ! -e {folder}/state/interval ] || . {folder}/state/interval
env -u FASTENOUGH_STATE setsid {probe} timer --interval=1ms --policy=other --allow-difference --affinity=0 \\
    --default-system --quiet --until-interrupt --ring={folder}/ring --interval-k=4 --report "$FASTENOUGH_INTERVAL" \\
    </dev/null >{folder}/probe.log 2>&1 &
echo $! >{folder}/pid
"""


def shells() -> list[str]:
    """Shells on which the program of the actions must work: the one of this machine, and busybox if there is one."""
    busybox = shutil.which("busybox")
    return ["sh", *([f"{busybox} sh"] if busybox else [])]


@dataclass
class ExecutingBoard:
    """``board``: its publisher.  ``state`` is the folder of the executor's service, ``ring`` that of the real probe."""

    board: OrderedBoard
    executor: Path
    probe: str
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.state.mkdir(mode=0o700)
        service = self.folder / "service"
        service.write_text(_SERVICE.format(folder=self.folder, probe=self.probe, former=_FORMER_S))
        service.chmod(0o755)
        (self.folder / "actions").write_bytes(CARRY_OUT.read_bytes())
        (self.folder / "actions").chmod(0o755)
        (self.folder / "executor-machine").write_text(f"{MACHINE}\n")
        client = self.folder / "client"
        client.write_text(f'#!/bin/sh\nexec {self.executor} --socket={self.socket} "$@"\n')
        client.chmod(0o755)
        self.environment = {
            **os.environ,
            "FASTENOUGH_STATE": str(self.state),
            "FASTENOUGH_RING": str(self.folder / "ring"),
            "FASTENOUGH_RESTART": str(service),
            "FASTENOUGH_START": "setsid",
            "FASTENOUGH_KERNEL_TRACE": str(self.folder / "kernel"),
        }

    @property
    def folder(self) -> Path:
        return self.board.folder

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def socket(self) -> Path:
        return self.folder / "socket"

    @property
    def interval_s(self) -> float:
        """The length of an interval in the newest recording of the ring."""
        return read_recording(files(self.folder / "ring")[-1]).head.interval_ns / 1e9

    def command(self, **options: str) -> list[str]:
        """The executor's service, as root starts it."""
        paths = {
            "socket": self.socket,
            "signers": self.folder / "signers",
            "machine-id": self.folder / "executor-machine",
            "state": self.state / "last-order",
            "actions": self.folder / "actions",
        }
        return [str(self.executor), "--serve", *(f"--{name}={value}" for name, value in {**paths, **options}.items())]

    @contextmanager
    def serving(self, *before: str) -> Iterator[subprocess.Popen[bytes]]:
        """The executor's service; killed at the end with all that it started.  ``before`` is put in front of it."""
        self.socket.unlink(missing_ok=True)
        with (self.folder / "executor.log").open("ab") as log:
            process = subprocess.Popen([*before, *self.command()], env=self.environment, stderr=log, stdout=log)
        try:
            assert eventually(self.socket.exists)
            yield process
        finally:
            self.kill(process)
            errors = (self.folder / "executor.log").read_text()
            assert "Sanitizer" not in errors and "runtime error" not in errors, errors

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """As systemd ends a service: all its processes, but not those of other services."""
        process.kill()
        process.wait()
        for pid in living_with(f"FASTENOUGH_STATE={self.state}"):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """The service that records the ring, with the former interval."""
        ring = self.folder / "ring"
        ring.chmod(0o700)
        subprocess.run([self.folder / "service"], check=True)
        try:
            assert eventually(lambda: bool(files(ring)))
            yield
        finally:
            for pid in with_words(self.probe, f"--ring={ring}"):
                os.kill(pid, signal.SIGKILL)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Publisher, executor's service and ring."""
        with self.recording(), self.serving(), self.board.running(f"--executor={self.folder}/client"):
            yield

    def call(self, message: bytes) -> bytes:
        """The answer of the service to bytes that whoever controls the publisher sends."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(60)
            connection.connect(str(self.socket))
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(message)
                connection.shutdown(socket.SHUT_WR)
            with suppress(ConnectionResetError):
                return connection.recv(4096)
            return b""

    def contents(self) -> dict[str, bytes]:
        """All files of the service, but the time of the newest order."""
        found = {}
        for path in self.state.rglob("*"):
            with suppress(FileNotFoundError, IsADirectoryError):
                found[str(path.relative_to(self.state))] = path.read_bytes()
        return {name: content for name, content in found.items() if not name.startswith("last-order")}

    @contextmanager
    def blocked(self) -> Iterator[None]:
        """The next restart of the ring's service hangs; at the end, this waits until it does."""
        (self.folder / "block").touch()
        yield
        assert eventually((self.folder / "blocked").exists)
        (self.folder / "block").unlink()
