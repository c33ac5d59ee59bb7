# SPDX-License-Identifier: GPL-2.0-or-later
"""Injects known latencies on a board and asks every witness whether it found them."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise

from fastenough.analysis.injections import (
    Found,
    Injection,
    found_by_due,
    found_by_edges,
    found_by_interval,
    in_order,
    injections,
    too_late,
)
from fastenough.gauge.session import Gauge
from fastenough.gauge.stream import Frame, deviations
from fastenough.implementations.task import Probing
from fastenough.link import Link, find_probe
from fastenough.model import BadInput, FastenoughError
from fastenough.virtual.board import VirtualBoard
from fastenough.virtual.module import CHECKOUT, build_module
from fastenough.virtual.pins import CHIP, OUTPUT_LINE
from fastenough.virtual.probe import PROBE, install

INJECT = "fastenough_inject"
INJECT_DEVICE = f"/dev/{INJECT}"
_HOG_PRIORITY = 99
_TASK_PRIORITY = 90
_REPORT = "50ms"
"""Short, so that the bounded ring of events is never full."""
_MARGIN_S = 20.0
_POLL_S = 0.2

Injected = tuple[list[Injection], dict[int, int]]
"""What took place, and by size how many did not because the injector came too late."""


@dataclass(frozen=True)
class Plan:
    """What to inject: these sizes in turn, ``each`` times, on one CPU; ``period_ns`` of the task that is delayed.

    ``lead_ns``: how long before a due time the injector begins; if it comes only after it, nothing is injected there.
    """

    sizes_ns: tuple[int, ...]
    each: int
    cpu: int = 0
    period_ns: int = 1_000_000
    lead_ns: int = 300_000

    def __post_init__(self) -> None:
        if not self.sizes_ns or self.each < 1:
            raise BadInput("nothing to inject: name at least one size, and inject it at least once")
        if any(longer < 1.5 * shorter for shorter, longer in pairwise(self.sizes_ns)):
            raise BadInput("the sizes must ascend, each at least half as long again as the one before, "
                           "so that they can be told apart")

    @property
    def interval_ns(self) -> int:
        """From one injection to the next: leaves others most of the CPU, and is a multiple of the period."""
        return self.period_ns * max(10, math.ceil(4 * (max(self.sizes_ns) + self.lead_ns) / self.period_ns))

    @property
    def seconds(self) -> float:
        return len(self.sizes_ns) * self.each * self.interval_ns / 1e9


@dataclass(frozen=True)
class Calibration:
    """What one witness found of what one injector injected; ``reason`` where that cannot be tried here."""

    injector: str
    witness: str
    rows: tuple[Found, ...] = ()
    reason: str | None = None

    @property
    def applicable(self) -> bool:
        return self.reason is None

    @property
    def missed(self) -> bool:
        """Something was injected and not found."""
        return any(row.found < row.injected for row in self.rows)

    @property
    def shortfall(self) -> str | None:
        """Why nothing is shown although nothing was missed; None where it is."""
        if not self.applicable or self.missed:
            return None
        never = [row for row in self.rows if not row.injected]
        if never or not self.rows:
            sizes = ", ".join(f"{row.asked_ns / 1e6:g} ms" for row in never) or "any size"
            return f"nothing of {sizes} could be injected: the injector was too late each time, the machine is busy"
        if not in_order(self.rows):
            return "longer ones were not found to be longer: other delays are longer than the sizes differ"
        return None

    @property
    def passed(self) -> bool:
        """Everything injected, nothing missed, and longer found longer."""
        return self.applicable and not self.missed and self.shortfall is None


@dataclass(frozen=True)
class Hog:
    """Injects by a task of higher priority that computes for known times."""

    link: Link
    probe: str
    plan: Plan
    name: str = "user-space hog"

    def inject(self, due_mono_ns: int) -> Injected:
        """Inject everything planned; one of the delayed task's due times is given."""
        argv = [self.probe, "hog", f"--affinity={self.plan.cpu}", "--record=-", f"--report={_REPORT}",
                "--threshold=1ns", f"--priority={_HOG_PRIORITY}", f"--interval={self.plan.interval_ns}ns",
                f"--sizes={','.join(f'{size_ns}ns' for size_ns in self.plan.sizes_ns)}", f"--each={self.plan.each}",
                f"--lead={self.plan.lead_ns}ns", f"--begin={due_mono_ns}"]
        with Probing(self.link, argv, self.plan.seconds + 2 * _MARGIN_S) as hogging:
            hogging.wait(self.plan.seconds + _MARGIN_S)
        recording = hogging.recording()
        return injections(recording), too_late(recording)


@dataclass(frozen=True)
class Interrupt:
    """Injects by a kernel module that keeps a CPU with interrupts off."""

    board: VirtualBoard
    plan: Plan
    name: str = "module, interrupts off"

    def inject(self, due_mono_ns: int) -> Injected:
        """As the hog does."""
        module = build_module(self.board.kernel, CHECKOUT / "target" / "module" / "inject")
        self.board.insert(module, {
            "sizes_ns": ",".join(map(str, self.plan.sizes_ns)), "each": self.plan.each, "cpu": self.plan.cpu,
            "begin_ns": due_mono_ns, "interval_ns": self.plan.interval_ns, "lead_ns": self.plan.lead_ns})
        try:
            return _from_device(self._lines())
        finally:
            self.board.unload_module(INJECT)

    def _lines(self) -> list[str]:
        expected = len(self.plan.sizes_ns) * self.plan.each
        deadline = time.monotonic() + self.plan.seconds + _MARGIN_S
        while len(lines := self.board.link.read(INJECT_DEVICE).decode().splitlines()) < expected:
            if time.monotonic() > deadline:
                raise FastenoughError(f"only {len(lines)} of {expected} latencies were injected in time")
            time.sleep(_POLL_S)
        return lines


def _from_device(lines: Sequence[str]) -> Injected:
    """Lines ``asked_ns,injected_ns,due_mono_ns``; nothing was injected where the second is 0."""
    took_place: list[Injection] = []
    late: dict[int, int] = {}
    for line in lines:
        asked_ns, injected_ns, due_mono_ns = map(int, line.split(","))
        late[asked_ns] = late.get(asked_ns, 0) + (injected_ns == 0)
        if injected_ns:
            took_place.append(Injection(asked_ns, injected_ns, due_mono_ns))
    return took_place, late


Injector = Hog | Interrupt


def timer_finds(link: Link, probe: str, plan: Plan, injector: Injector) -> Calibration:
    """Does the timer probe find the latencies in its own wake-ups?"""
    argv = [probe, "timer", f"--affinity={plan.cpu}", "--record=-", f"--report={_REPORT}",
            f"--priority={_TASK_PRIORITY}", f"--interval={plan.period_ns}ns",
            f"--threshold={min(plan.sizes_ns) // 2}ns"]
    with Probing(link, argv, plan.seconds + 4 * _MARGIN_S) as delayed:
        injected, late = injector.inject(delayed.head.begin.mono_ns)
        delayed.interrupt()
    rows = found_by_due(injected, late, delayed.recording(), "wakeup", plan.period_ns)
    return Calibration(injector.name, "timer probe, self-measured", tuple(rows))


def handler_finds(board: VirtualBoard, plan: Plan, injector: Injector) -> Calibration:
    """Does a timer handler in the kernel find them?"""
    with kernel_task(board, {"task": "timer-handler", "cpu": plan.cpu, "period_ns": plan.period_ns},
                     max(10, min(100, plan.interval_ns // 4_000_000))) as handler:
        injected, late = injector.inject(_a_due_time(handler))
        handler.interrupt()
    return Calibration(injector.name, "timer handler in the kernel, self-measured",
                       tuple(found_by_interval(injected, late, handler.recording(), 0)))


def gauge_finds(board: VirtualBoard, plan: Plan, injector: Injector) -> Calibration:
    """Does the instrument find them, on the pin that the kernel's periodic task toggles?

    Its raw samples, each the time from one falling edge to the next, add up to when each edge came.
    """
    with ExitStack() as stack:
        gauge = stack.enter_context(Gauge(board.wire_gauge().terminal))
        toggling = stack.enter_context(kernel_task(board, {
            "task": "periodic", "chip": CHIP, "out_line": OUTPUT_LINE, "cpu": plan.cpu, "period_ns": plan.period_ns},
            100))
        due_mono_ns = _a_due_time(toggling)
        gauge.stream(True)
        gauge.start_periodic(_ticks(gauge, 2 * plan.period_ns), gauge.identity.longest_ticks)
        with _streamed(gauge) as frames:
            injected, late = injector.inject(due_mono_ns)
        gauge.stop()
        toggling.interrupt()
    edges_ns = falling_edges(frames, 2 * plan.period_ns, gauge.identity.tick_ps)
    return Calibration(injector.name, "gauge, on a pin toggled by the kernel",
                       tuple(found_by_edges(injected, late, edges_ns, plan.lead_ns)))


@contextmanager
def _streamed(gauge: Gauge) -> Iterator[list[Frame]]:
    """The frames that come while inside, and those of a moment more; nobody may ask the gauge meanwhile."""
    frames: list[Frame] = []
    ended = threading.Event()

    def collect() -> None:
        while not ended.is_set():
            frames.extend(gauge.frames(_POLL_S))
        frames.extend(gauge.frames(_POLL_S))

    with ThreadPoolExecutor(1) as pool:
        collecting = pool.submit(collect)
        try:
            yield frames
        finally:
            ended.set()
        collecting.result()


def falling_edges(frames: Iterable[Frame], period_ns: int, tick_ps: int) -> list[int]:
    """When each edge came after the first one, up to where a sample is missing."""
    edges_ns = [0]
    expected = None
    for frame in frames:
        if expected is not None and frame.sequence != expected:
            break
        for ticks in deviations(frame):
            edges_ns.append(edges_ns[-1] + period_ns + ticks * tick_ps // 1000)
        expected = (frame.sequence + len(frame.samples)) & 0xFFFF
    return edges_ns


def _ticks(gauge: Gauge, ns: int) -> int:
    return round(ns * 1000 / gauge.identity.tick_ps)


def _a_due_time(task: Probing) -> int:
    """From the first maximum the task reports."""
    event = task.first_event(_MARGIN_S)
    return event.at.mono_ns - (event.value or 0)


@contextmanager
def kernel_task(board: VirtualBoard, parameters: dict[str, str | int], report_ms: int) -> Iterator[Probing]:
    """A task of fastenough.ko, recorded in intervals of that length; the module is taken out at the end."""
    board.load_module(parameters)
    try:
        with Probing(board.link, [PROBE, "kernel", "--record=-", f"--report={report_ms}ms"], 0.0) as task:
            yield task
    finally:
        board.unload_module()


def calibrate_local(link: Link, plan: Plan) -> Iterator[Calibration]:
    """What can be tried on the machine the bench runs on."""
    probe = find_probe(link)
    yield timer_finds(link, probe, plan, Hog(link, probe, plan))
    reason = ("inserting a module with interrupts off is left to boards one can lose: try --board virtual:stock, "
              "or build target/module/inject on the board")
    yield Calibration("module, interrupts off", "timer probe, self-measured", reason=reason)


def calibrate_virtual(kernel: str, plan: Plan) -> Iterator[Calibration]:
    """All of it, in a guest with that kernel."""
    with VirtualBoard(kernel) as board:
        probe = install(board.link)
        hog, interrupt = Hog(board.link, probe, plan), Interrupt(board, plan)
        yield timer_finds(board.link, probe, plan, hog)
        yield timer_finds(board.link, probe, plan, interrupt)
        yield handler_finds(board, plan, interrupt)
        yield gauge_finds(board, plan, interrupt)
