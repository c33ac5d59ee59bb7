# SPDX-License-Identifier: GPL-2.0-or-later
"""A labgrid and a rack of simulated boards in one folder, on loopback: a real coordinator and exporter."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from fastenough.farm.child_process import python_path
from fastenough.farm.rack import Rack, Slot, rack_text
from fastenough.link import find_probe
from fastenough.model import FastenoughError

_READY_S = 90.0
EXPORTER = "rack1"
_RESOURCES = """{name}:
  NetworkPowerPort:
    model: rest
    host: 'http://127.0.0.1:{switch}/relay/{{index}}/value'
    index: {number}
  NetworkSerialPort: {{host: 127.0.0.1, port: {console}, protocol: raw}}
"""
_PLACE = """{name}:
  matches: [{{exporter: {exporter}, group: {name}, cls: '*'}}]
"""


@dataclass(frozen=True)
class SimulatedTimes:
    """Times of a simulated board: of an interval, of a recording, and of its boot."""

    report_s: float = 3.0
    cycle_s: float = 60.0
    boot_s: float = 1.0
    period_ms: int = 20

    @property
    def probe(self) -> tuple[str, ...]:
        return (
            find_probe(),
            "timer",
            f"--interval={self.period_ms}ms",
            f"--report={self.report_s:g}s",
            f"--ring-cycle={self.cycle_s:g}s",
            "--interval-k=4",
            "--policy=other",
            "--allow-difference",
            "--affinity=0",
            "--default-system",
            "--quiet",
            "--until-interrupt",
        )


def free_ports(count: int) -> list[int]:
    """Free ports of the loopback interface, all different."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for listener in sockets:
            listener.bind(("127.0.0.1", 0))
        return [int(listener.getsockname()[1]) for listener in sockets]


class Lab:
    """``processes``: coordinator, exporter and rack, which the caller must end."""

    def __init__(self, folder: Path, names: Sequence[str], pace: SimulatedTimes = SimulatedTimes()) -> None:
        self.folder, self.names, self.pace = folder, tuple(names), pace
        port, self.switch, *consoles = free_ports(2 + len(names))
        self.coordinator = f"127.0.0.1:{port}"
        self.rings = {name: folder / "rings" / name for name in names}
        self._consoles = dict(zip(names, consoles, strict=True))
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Start all parts.  The coordinator has the places before the first request; boards have no power."""
        for ring in self.rings.values():
            ring.mkdir(parents=True, mode=0o700)
        home = self.folder / "coordinator"
        home.mkdir()
        (home / "places.yaml").write_text("".join(_PLACE.format(name=name, exporter=EXPORTER) for name in self.names))
        (self.folder / "exporter.yaml").write_text(
            "".join(
                _RESOURCES.format(name=name, number=number, switch=self.switch, console=self._consoles[name])
                for number, name in enumerate(self.names)
            )
        )
        slots = tuple(Slot(self._consoles[name], str(self.rings[name])) for name in self.names)
        (self.folder / "rack.json").write_text(rack_text(Rack(self.switch, self.pace.probe, self.pace.boot_s, slots)))
        self.start_rack()
        self.start_coordinator()
        self.start_exporter()

    def start_rack(self) -> None:
        self._run("rack", "-m", "fastenough.farm.rack", self.folder / "rack.json")

    def start_coordinator(self) -> None:
        self._run("coordinator", "-m", "labgrid.remote.coordinator", "-l", self.coordinator)
        self._await("coordinator", b"listening on")

    def start_exporter(self) -> None:
        """The exporter ends when the coordinator ends or drops it; in a real lab systemd starts it again."""
        self._run(
            "exporter",
            "-m",
            "labgrid.remote.exporter",
            "-c",
            self.coordinator,
            "-n",
            EXPORTER,
            "--hostname",
            "127.0.0.1",
            self.folder / "exporter.yaml",
        )
        self._await("exporter", b"Exporter ready")

    def _run(self, name: str, *arguments: str | Path) -> None:
        home = self.folder / "coordinator" if name == "coordinator" else self.folder
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-P", *arguments],
                cwd=home,
                env={**os.environ, "PYTHONPATH": python_path()},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _await(self, name: str, ready_text: bytes) -> None:
        deadline = time.monotonic() + _READY_S
        path = self.folder / f"{name}.log"
        while ready_text not in path.read_bytes():
            if time.monotonic() > deadline or self.processes[name].poll() is not None:
                raise FastenoughError(
                    f"labgrid's {name} did not start; its last output: {path.read_text(errors='replace')[-200:]}"
                )
            time.sleep(0.1)

    def end(self) -> None:
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait()
