# SPDX-License-Identifier: GPL-2.0-or-later
"""The gauge of the virtual bench: its real firmware, simulated at the pace of the wall clock, on the guest's pins.

The words on its pins' socket are in ``gauge/sim/pins.h``.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading
from collections import Counter
from pathlib import Path

from fastenough.link.virtual.built import build, require_tool
from fastenough.link.virtual.pins import INPUT_LINE, OUTPUT_LINE, Edge, Pins
from fastenough.model import BadInput, FastenoughError, NotApplicable

MICROCONTROLLER = "atmega328p"
_SIMULATOR = "gauge/sim/gauge-paced"
_FIRMWARE = f"gauge/avr/gauge-{MICROCONTROLLER}.elf"


def build_gauge() -> tuple[Path, Path]:
    """Simulator and firmware of this checkout; raises NotApplicable where they cannot be built here."""
    try:
        require_tool("avr-gcc", "gcc-avr avr-libc")
        simulator, firmware = build("gauge", (), (_SIMULATOR, _FIRMWARE))
    except NotApplicable as reason:
        raise NotApplicable(f"the gauge is not simulated: {reason}") from reason
    except BadInput:
        raise
    except FastenoughError as why:
        raise NotApplicable(f"the gauge is not simulated: {why}; it needs libsimavr-dev and libelf-dev") from why
    return simulator, firmware


class SimulatedGauge:
    """A gauge wired to a guest: its serial line is ``terminal``, its pins are the guest's.

    ``edges`` counts those that were ``sent`` to the board and those ``returned`` by it.
    """

    def __init__(self, directory: Path, pins: Pins) -> None:
        simulator, firmware = build_gauge()
        self._popen = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", str(simulator), "--pins", str(directory / "gauge.sock"),
             MICROCONTROLLER, str(firmware)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            start_new_session=True)
        assert self._popen.stdout is not None
        words = self._popen.stdout.readline().split()
        self._pins = pins
        self._connection = socket.socket(socket.AF_UNIX)
        if words[:1] != ["ready"]:
            self.close()
            raise FastenoughError("the simulated gauge did not start")
        self.terminal = words[1].removeprefix("terminal=")
        self.edges: Counter[str] = Counter()
        self._connection.connect(str(directory / "gauge.sock"))
        pins.on_edge = self._answer
        threading.Thread(target=self._stimulate, name="gauge-pins", daemon=True).start()

    @property
    def pid(self) -> int:
        return self._popen.pid

    def _stimulate(self) -> None:
        """What the gauge puts out is what the board takes in."""
        with contextlib.suppress(OSError, ValueError, FastenoughError), self._connection.makefile("r") as words:
            for line in words:
                self._pins.drive(INPUT_LINE, int(line.split()[1]))
                self.edges["sent"] += 1

    def _answer(self, edge: Edge) -> None:
        """What the board puts out is what the gauge takes in, at the time at which it happened."""
        if edge.line != OUTPUT_LINE:
            return
        with contextlib.suppress(OSError):
            self._connection.sendall(f"in {edge.level} {edge.mono_ns}\n".encode())
            self.edges["returned"] += 1

    def close(self) -> None:
        """Unplug it."""
        self._pins.on_edge = None
        self._popen.kill()
        self._popen.wait()
        self._connection.close()
