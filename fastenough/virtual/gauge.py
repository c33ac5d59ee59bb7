# SPDX-License-Identifier: GPL-2.0-or-later
"""The gauge of the virtual bench: its real firmware, simulated in real time, on the guest's pins.

The messages on its pins' socket are defined in ``gauge/sim/realtime.c``.
"""

from __future__ import annotations

import contextlib
import queue
import socket
import subprocess
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from fastenough.gauge.calibration import SelfTest, parse_self_test
from fastenough.model import BadInput, FastenoughError, NotApplicable
from fastenough.virtual.meson_build import build, require_tool
from fastenough.virtual.module import CHECKOUT
from fastenough.virtual.pins import INPUT_LINE, OUTPUT_LINE, Edge, Pins

MICROCONTROLLER = "atmega328p"
_SIMULATOR = "gauge/sim/gauge-realtime"
_EXACT = "gauge/sim/gauge-exact"
_FIRMWARE = f"gauge/avr/gauge-{MICROCONTROLLER}.elf"
_COUNT_S = 20.0
_SETTLE_S = 60.0


def build_gauge() -> tuple[Path, Path]:
    """Simulator and firmware of this checkout; raises NotApplicable if they cannot be built."""
    if not (CHECKOUT / "gauge" / "sim").is_dir():
        raise NotApplicable(
            "cannot simulate the gauge: an installed bench does not include the simulator "
            "(gauge/sim, GPL-3.0-or-later); run from a source tree"
        )
    try:
        require_tool("avr-gcc", "gcc-avr avr-libc")
        simulator, firmware, _ = build("gauge", (), (_SIMULATOR, _FIRMWARE, _EXACT))
    except NotApplicable as reason:
        raise NotApplicable(f"cannot simulate the gauge: {reason}") from reason
    except BadInput:
        raise
    except FastenoughError as why:
        raise NotApplicable(f"cannot simulate the gauge: {why}; it requires libsimavr-dev and libelf-dev") from why
    return simulator, firmware


def simulated_self_test() -> SelfTest:
    """Self-test of the firmware with a wire from output to input, in exactly simulated time."""
    simulator, firmware = build_gauge()
    script = "run 2000000\nfollow 0 0\nsay selftest\n"
    result = subprocess.run(
        [str(simulator.with_name(Path(_EXACT).name)), MICROCONTROLLER, str(firmware)],
        input=script,
        capture_output=True,
        text=True,
        check=False,
    )
    test = parse_self_test(result.stdout.splitlines())
    if result.returncode or not test.passed:
        raise FastenoughError("the self-test of the simulated gauge fails; rebuild its firmware: ninja -C build")
    return test


class SimulatedGauge:
    """A simulated gauge wired to the pins of a guest; its serial line is ``terminal``.

    ``edges`` counts those that were ``sent`` to the board and those ``returned`` by it.
    """

    def __init__(self, directory: Path, pins: Pins) -> None:
        simulator, firmware = build_gauge()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (until close)
        self._popen = subprocess.Popen(
            [
                "setpriv",
                "--pdeathsig",
                "KILL",
                str(simulator),
                "--pins",
                str(directory / "gauge.sock"),
                MICROCONTROLLER,
                str(firmware),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            start_new_session=True,
        )
        assert self._popen.stdout is not None
        fields = self._popen.stdout.readline().split()
        self._pins = pins
        self._connection = socket.socket(socket.AF_UNIX)
        self._messages: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._counter_replies: queue.SimpleQueue[dict[str, int]] = queue.SimpleQueue()
        self._wire_fault = ""
        self._is_connected = True
        if fields[:1] != ["ready"]:
            self._popen.wait()
            fault = self.fault()
            self.close()
            raise FastenoughError(f"the simulated gauge did not start: {fault}")
        self.terminal = fields[1].removeprefix("terminal=")
        self.edges: Counter[str] = Counter()
        self._connection.connect(str(directory / "gauge.sock"))
        pins.on_edge = self._forward_edge
        threading.Thread(target=self._forward_stimuli, name="gauge-pins", daemon=True).start()
        threading.Thread(target=self._send_edges, name="gauge-edges", daemon=True).start()

    @property
    def pid(self) -> int:
        return self._popen.pid

    def _forward_stimuli(self) -> None:
        """Forward the outputs of the gauge to the inputs of the board."""
        try:
            with self._connection.makefile("r") as lines:
                for line in lines:
                    self._receive(line.split())
        except (OSError, ValueError, FastenoughError) as error:
            self._wire_fault = f"lost the wire from the simulated gauge to the board: {error}"
        self._is_connected = False
        self._counter_replies.put({})

    def _receive(self, fields: list[str]) -> None:
        if fields[0] == "counted":
            self._counter_replies.put({name: int(count) for name, count in (field.split("=") for field in fields[1:])})
        else:
            self._pins.drive(INPUT_LINE, int(fields[1]))
            self.edges["sent"] += 1

    def _send_edges(self) -> None:
        """Send many edges at once: a socket holds only some hundred single ones, and the board must never wait."""
        with contextlib.suppress(OSError):
            while messages := self._messages.get():
                while not self._messages.empty():
                    message = self._messages.get()
                    messages += message
                    if not message:
                        return
                self._connection.sendall(messages.encode())

    def _forward_edge(self, edge: Edge) -> None:
        """Forward the outputs of the board to the inputs of the gauge, with their times."""
        if edge.line == OUTPUT_LINE:
            self._messages.put(f"in {edge.level} {edge.mono_ns}\n")
            self.edges["returned"] += 1

    def fault(self) -> str:
        """Error of the simulation with its last output; empty while it runs."""
        status = self._popen.poll()
        if status is None:
            return self._wire_fault
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").split("\n")
        message = next((line for line in reversed(lines) if line.strip()), "no error message")
        return f"the simulated gauge exited with status {status}: {message}"

    def counters(self) -> dict[str, int]:
        """Counters of the simulator since its start; empty once it has ended or lost its connection."""
        while not self._counter_replies.empty():
            self._counter_replies.get()
        if not self._is_connected or self._popen.poll() is not None:
            return {}
        self._messages.put("count\n")
        try:
            return self._counter_replies.get(timeout=_COUNT_S)
        except queue.Empty:
            return {}

    def settle(self) -> None:
        """Wait until the gauge has received every edge of the board; raises FastenoughError if it does not."""
        self._pins.settle()
        deadline_mono_s = time.monotonic() + _SETTLE_S
        while (counters := self.counters()).get("edges_waiting"):
            if time.monotonic() > deadline_mono_s:
                raise FastenoughError(f"the simulated gauge does not keep up: {counters['edges_waiting']} edges wait")
            time.sleep(0.02)

    def close(self) -> None:
        """End the simulation."""
        self._pins.on_edge = None
        self._popen.kill()
        self._popen.wait()
        self._messages.put("")
        self._connection.close()
        self._errors.close()
