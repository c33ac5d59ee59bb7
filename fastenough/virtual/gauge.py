# SPDX-License-Identifier: GPL-2.0-or-later
"""The gauge of the virtual bench: its real firmware, simulated in real time, on the guest's pins.

The words on its pins' socket are in ``gauge/sim/pins.h``.
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
_SIMULATOR = "gauge/sim/gauge-paced"
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
    done = subprocess.run(
        [str(simulator.with_name(Path(_EXACT).name)), MICROCONTROLLER, str(firmware)],
        input=script,
        capture_output=True,
        text=True,
        check=False,
    )
    test = parse_self_test(done.stdout.splitlines())
    if done.returncode or not test.passed:
        raise FastenoughError("the self-test of the simulated gauge fails; rebuild its firmware: ninja -C build")
    return test


class SimulatedGauge:
    """A simulated gauge wired to the pins of a guest; its serial line is ``terminal``.

    ``edges`` counts those that were ``sent`` to the board and those ``returned`` by it.
    """

    def __init__(self, directory: Path, pins: Pins) -> None:
        simulator, firmware = build_gauge()
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 (until close)
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
            stderr=self._said,
            text=True,
            start_new_session=True,
        )
        assert self._popen.stdout is not None
        words = self._popen.stdout.readline().split()
        self._pins = pins
        self._connection = socket.socket(socket.AF_UNIX)
        self._unsent: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._counted: queue.SimpleQueue[dict[str, int]] = queue.SimpleQueue()
        self._unwired = ""
        self._hears = True
        if words[:1] != ["ready"]:
            self._popen.wait()
            fault = self.fault()
            self.close()
            raise FastenoughError(f"the simulated gauge did not start: {fault}")
        self.terminal = words[1].removeprefix("terminal=")
        self.edges: Counter[str] = Counter()
        self._connection.connect(str(directory / "gauge.sock"))
        pins.on_edge = self._answer
        threading.Thread(target=self._stimulate, name="gauge-pins", daemon=True).start()
        threading.Thread(target=self._send, name="gauge-edges", daemon=True).start()

    @property
    def pid(self) -> int:
        return self._popen.pid

    def _stimulate(self) -> None:
        """Forward the outputs of the gauge to the inputs of the board."""
        try:
            with self._connection.makefile("r") as lines:
                for line in lines:
                    self._hear(line.split())
        except (OSError, ValueError, FastenoughError) as error:
            self._unwired = f"lost the wire from the simulated gauge to the board: {error}"
        self._hears = False
        self._counted.put({})

    def _hear(self, words: list[str]) -> None:
        if words[0] == "counted":
            self._counted.put({name: int(count) for name, count in (word.split("=") for word in words[1:])})
        else:
            self._pins.drive(INPUT_LINE, int(words[1]))
            self.edges["sent"] += 1

    def _send(self) -> None:
        """Many words at once: of single ones a socket holds only some hundred, and the board must never wait here."""
        with contextlib.suppress(OSError):
            while words := self._unsent.get():
                while not self._unsent.empty():
                    more = self._unsent.get()
                    words += more
                    if not more:
                        return
                self._connection.sendall(words.encode())

    def _answer(self, edge: Edge) -> None:
        """Forward the outputs of the board to the inputs of the gauge, with their times."""
        if edge.line == OUTPUT_LINE:
            self._unsent.put(f"in {edge.level} {edge.mono_ns}\n")
            self.edges["returned"] += 1

    def fault(self) -> str:
        """Error of the simulation with its last output; empty while it runs."""
        status = self._popen.poll()
        if status is None:
            return self._unwired
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").split("\n")
        said = next((line for line in reversed(lines) if line.strip()), "no error message")
        return f"the simulated gauge exited with status {status}: {said}"

    def counters(self) -> dict[str, int]:
        """Counters of the simulator since its start; empty after its end, or once the board has gone."""
        while not self._counted.empty():
            self._counted.get()
        if not self._hears or self._popen.poll() is not None:
            return {}
        self._unsent.put("count\n")
        try:
            return self._counted.get(timeout=_COUNT_S)
        except queue.Empty:
            return {}

    def settle(self) -> None:
        """Wait until the gauge has received every edge of the board; raises FastenoughError if it does not."""
        self._pins.settle()
        limit = time.monotonic() + _SETTLE_S
        while (counted := self.counters()).get("edges_waiting"):
            if time.monotonic() > limit:
                raise FastenoughError(f"the simulated gauge does not keep up: {counted['edges_waiting']} edges wait")
            time.sleep(0.02)

    def close(self) -> None:
        """End the simulation."""
        self._pins.on_edge = None
        self._popen.kill()
        self._popen.wait()
        self._unsent.put("")
        self._connection.close()
        self._said.close()
