# SPDX-License-Identifier: GPL-2.0-or-later
"""A board with an instrument on its pins: the virtual one, or a real one with a gauge on a serial port."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from fastenough.experiment.plan import VIRTUAL, Experiment
from fastenough.facts.cpu import cpu_list
from fastenough.gauge.calibration import Calibration, SelfTest, chosen, read_calibration, read_self_test
from fastenough.gauge.ports import find_port, serial_of
from fastenough.gauge.session import Gauge
from fastenough.link import Link, find_probe, open_link
from fastenough.model import NotApplicable
from fastenough.virtual.board import MARK, VirtualBoard
from fastenough.virtual.gauge import SimulatedGauge, simulated_self_test
from fastenough.virtual.module import build_module
from fastenough.virtual.probe import install

_MODULE_IN_GUEST = "/tmp/fastenough.ko"
_CALIBRATION_S = 1.0


@dataclass(frozen=True)
class Bench:
    """What a run needs: the board, what runs on it, and the instrument outside it.

    ``instrument`` names the gauge in recordings: its port, or that it is simulated.  ``cpu``: where tasks run, the last
    one, for the first one has interrupts to serve.
    """

    link: Link
    gauge: Gauge
    calibration: Calibration
    self_test: SelfTest
    configuration: str
    probe: str
    module: str
    instrument: str
    cpu: int
    marks: tuple[str, ...] = ()
    last_words: Callable[[], list[str]] = list
    """What is known of why the board is gone."""
    simulated: SimulatedGauge | None = None
    """The simulation behind the gauge, where it is one."""


@contextmanager
def open_bench(plan: Experiment, configuration: str) -> Iterator[Bench]:
    """The bench with that configuration booted; nothing of it is left afterwards, whatever happens.

    Raises NotApplicable where a tool is missing, FastenoughError when a guest does not come up, BadInput for a port
    where no gauge of this version answers.
    """
    with (_virtual(configuration) if plan.board == VIRTUAL else _real(plan, configuration)) as bench:
        yield bench


@contextmanager
def _virtual(kernel: str) -> Iterator[Bench]:
    with ExitStack() as stack:
        board = stack.enter_context(VirtualBoard(kernel))
        gauge = stack.enter_context(Gauge(board.wire_gauge().terminal))
        board.link.write(_MODULE_IN_GUEST, build_module(board.kernel).read_bytes())
        yield Bench(board.link, gauge, gauge.calibrate(_CALIBRATION_S), simulated_self_test(),
                    f"{kernel} {board.kernel.release}", install(board.link), _MODULE_IN_GUEST, "simulated",
                    _last_cpu(board.link), (MARK,), board.qemu.last_words, board.gauge)


@contextmanager
def _real(plan: Experiment, configuration: str) -> Iterator[Bench]:
    link = open_link(plan.board)
    port = find_port(plan.instrument)
    self_test = read_self_test(Path(plan.self_test), serial_of(port))
    kept = read_calibration(Path(plan.calibration), serial_of(port)) if plan.calibration else None
    with Gauge(port) as gauge:
        release = link.read("/proc/sys/kernel/osrelease").decode().strip()
        clock = chosen(kept, gauge.calibrate(_CALIBRATION_S))
        yield Bench(link, gauge, clock, self_test, f"{configuration} {release}", find_probe(link),
                    _installed_module(link, plan), plan.instrument, _last_cpu(link))


def _last_cpu(link: Link) -> int:
    return cpu_list(link.read("/sys/devices/system/cpu/online").decode())[-1]


def _installed_module(link: Link, plan: Experiment) -> str:
    """Where DKMS has put the module; empty where no kernel implementation is wanted."""
    if "linux-kernel" not in plan.implementations:
        return ""
    if link.which("modinfo") is None:
        raise NotApplicable("modinfo is not there: apt-get install kmod")
    found = link.run(["modinfo", "-n", "fastenough"])
    if found.status:
        raise NotApplicable("the module fastenough is not installed on the board; see docs/experiment.md, or leave "
                            "linux-kernel out of implementations")
    return found.text.strip()
