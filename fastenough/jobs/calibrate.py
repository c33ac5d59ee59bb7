# SPDX-License-Identifier: GPL-2.0-or-later
"""Inject known latencies on a board and check whether each witness measures them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial

from fastenough.analysis.injections import (
    InjectionResult,
    in_order,
    match_by_due_time,
    match_by_edges,
    match_by_interval,
)
from fastenough.board import Board, Booted
from fastenough.gauge.calibration import usable_tick_ps
from fastenough.gauge.ports import find_port
from fastenough.gauge.run import STREAMED_PERIOD_NS
from fastenough.gauge.session import Gauge
from fastenough.gauge.stream import Frame, deviations
from fastenough.implementations import DEFAULT, Act, find_implementation, linux_kernel, user_space_implementations
from fastenough.implementations.linux_user import LinuxUser
from fastenough.implementations.task import Probing
from fastenough.jobs.injectors import (
    MARGIN_S,
    REPORT,
    HogInjector,
    InjectionPlan,
    Injector,
    InterruptInjector,
    in_user_space,
)
from fastenough.model import EMULATED, BadInput, NotApplicable
from fastenough.settings import Settings

SELF_MEASURED = "timer probe, self-measured"
_PRIORITY = 90
_POLL_S = 0.2
_CALIBRATION_S = 1.0
"""Time for which the clocks of gauge and bench are compared."""

Output = tuple[str, int]
"""GPIO chip and line."""


@dataclass(frozen=True)
class WitnessResult:
    """Injections of one injector as measured by one witness; ``reason``: why this is not applicable here."""

    injector: str
    witness: str
    rows: tuple[InjectionResult, ...] = ()
    reason: str | None = None

    @property
    def applicable(self) -> bool:
        return self.reason is None

    @property
    def missed(self) -> bool:
        """Whether an injection was not detected."""
        return any(row.detected < row.injected for row in self.rows)

    @property
    def shortfall(self) -> str | None:
        """Why the result is inconclusive although no injection was missed; None if it is conclusive."""
        if not self.applicable or self.missed:
            return None
        never = [row for row in self.rows if not row.injected]
        if never or not self.rows:
            sizes = ", ".join(f"{row.requested_ns / 1e6:g} ms" for row in never) or "any size"
            return f"no delay of {sizes} was injected: the injector was always late, the machine is busy"
        if not in_order(self.rows):
            return "the measured delays do not increase with the injected ones: other delays exceed the steps"
        return None

    @property
    def passed(self) -> bool:
        """Whether all delays were injected and detected, and longer ones were measured as longer."""
        return self.applicable and not self.missed and self.shortfall is None


@dataclass(frozen=True)
class GaugeWiring:
    """A gauge by port or serial number, and the board output that it measures: GPIO chip and line."""

    port: str
    chip: str
    line: int


TaskStarter = Callable[[Act], AbstractContextManager[Probing]]
"""Starts an act on the board, in user space or in the kernel."""


@contextmanager
def _in_kernel(booted: Booted, settings: Settings, act: Act) -> Iterator[Probing]:
    """A running act in the kernel."""
    arguments = linux_kernel.insmod_arguments(booted.module(linux_kernel.MODULE), act)
    with (
        linux_kernel.inserted(booted, settings, linux_kernel.MODULE, arguments),
        Probing(booted.link, linux_kernel.reading(booted, act), act.limit_s) as task,
    ):
        yield task


def timer_finds(booted: Booted, plan: InjectionPlan, injector: Injector) -> WitnessResult:
    """Check that the timer probe measures the delays of its own wake-ups."""
    act = Act(
        "timer",
        {
            "affinity": plan.cpu,
            "report": REPORT,
            "priority": _PRIORITY,
            "interval": f"{plan.period_ns}ns",
            "threshold": f"{min(plan.sizes_ns) // 2}ns",
        },
        limit_s=plan.longest_s + 4 * MARGIN_S,
    )
    with in_user_space(booted, act) as delayed:
        injected, late = injector.inject(delayed.head.begin.mono_ns)
        delayed.interrupt()
    rows = match_by_due_time(injected, late, delayed.recording(), "wakeup", plan.period_ns)
    return WitnessResult(injector.name, SELF_MEASURED, tuple(rows))


def handler_finds(booted: Booted, settings: Settings, plan: InjectionPlan) -> WitnessResult:
    """Check that a timer handler in the kernel measures the delays."""
    report_ms = max(10, min(100, plan.interval_ns // 4_000_000))
    act = Act("timer", {"affinity": plan.cpu, "interval": f"{plan.period_ns}ns", "report": f"{report_ms}ms"})
    injector = InterruptInjector(booted, settings, plan)
    with _in_kernel(booted, settings, act) as handler:
        injected, late = injector.inject(_a_due_time(handler))
        handler.interrupt()
    return WitnessResult(
        injector.name,
        "timer handler in the kernel, self-measured",
        tuple(match_by_interval(injected, late, handler.recording(), 0)),
    )


def gauge_finds(
    wired: GaugeWiring | NotApplicable, injector: Injector, by: str, toggling: TaskStarter
) -> WitnessResult:
    """Check that the gauge measures the delays on the pin that a periodic task of the board toggles.

    Each raw sample is the time from one falling edge to the next; their sums are the times of the edges.
    """
    plan, witness = injector.plan, f"gauge, on a pin toggled by {by}"
    if isinstance(wired, NotApplicable):
        return WitnessResult(injector.name, witness, reason=str(wired))
    if 2 * plan.period_ns < STREAMED_PERIOD_NS:
        return WitnessResult(
            injector.name,
            witness,
            reason="its raw samples resolve edges at least "
            f"{STREAMED_PERIOD_NS // 1000} µs apart; inject longer delays",
        )
    act = Act(
        "periodic",
        {
            "chip": wired.chip,
            "out": wired.line,
            "affinity": plan.cpu,
            "interval": f"{plan.period_ns}ns",
            "report": "100ms",
        },
    )
    with Gauge(find_port(wired.port)) as gauge:
        tick_ps = usable_tick_ps(gauge.calibrate(_CALIBRATION_S), gauge.identity)
        period_ticks = round(2 * plan.period_ns * 1000 / tick_ps)
        with toggling(act) as task:
            due_mono_ns = _a_due_time(task)
            gauge.stream(True)
            gauge.start_periodic(period_ticks, gauge.identity.longest_ticks)
            with _stream_frames(gauge) as frames:
                injected, late = injector.inject(due_mono_ns)
            gauge.stop()
            task.interrupt()
    edges_ns = falling_edges(frames, period_ticks, tick_ps)
    rows = match_by_edges(injected, late, edges_ns, plan.lead_ns, 2 * plan.period_ns)
    return WitnessResult(injector.name, witness, tuple(rows))


@contextmanager
def _stream_frames(gauge: Gauge) -> Iterator[list[Frame]]:
    """Collect frames until the block ends, and shortly after; the gauge must get no commands in this time."""
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


def falling_edges(frames: Iterable[Frame], period_ticks: int, tick_ps: float) -> list[int]:
    """Times of the edges after the first one, in ns, up to the first missing sample."""
    edges_ticks = [0]
    expected = None
    for frame in frames:
        if expected is not None and frame.sequence != expected:
            break
        for ticks in deviations(frame):
            edges_ticks.append(edges_ticks[-1] + period_ticks + ticks)
        expected = (frame.sequence + len(frame.samples)) & 0xFFFF
    return [round(ticks * tick_ps / 1000) for ticks in edges_ticks]


def _a_due_time(task: Probing) -> int:
    """A due time of the task, from the first maximum that it reports."""
    event = task.first_event(MARGIN_S)
    return event.at.mono_ns - (event.value or 0)


def calibrate(
    board: Board,
    configuration: str,
    plan: InjectionPlan,
    port: str | None = None,
    output: Output | None = None,
    *,
    implementation: str = DEFAULT,
) -> Iterator[WitnessResult]:
    """Test each witness of a board with each injector that is permitted there.

    Interrupts are disabled on guests only, because a board may stop responding.  Tasks of a real-time core
    (``implementation``) are delayed only by a task of that core, because Linux does not delay them.

    ``port``: port or serial number of the gauge, None for the simulated gauge of a guest booted for the calibration.
    ``output``: the output that it measures, None if the board states it.  Raises BadInput if the output is unknown,
    NotApplicable if the board has no such core, FastenoughError while another bench measures on the board.
    """
    user = _in_user_space_by(implementation)
    with board.boot(configuration) as booted, Settings(booted.link) as settings:
        user.needs(booted)
        if implementation != DEFAULT:
            yield from _core_finds(replace(booted, probe=user.program_on(booted)), plan)
            return
        gauge = _gauge_of(booted, port, output)
        yield timer_finds(booted, plan, HogInjector(booted, plan))
        yield gauge_finds(gauge, HogInjector(booted, plan.toggled), "user space", partial(in_user_space, booted))
        if EMULATED not in booted.marks:
            yield WitnessResult(
                InterruptInjector.name,
                SELF_MEASURED,
                reason="interrupts are disabled only on expendable boards: use --board virtual:stock",
            )
            return
        yield timer_finds(booted, plan, InterruptInjector(booted, settings, plan))
        yield handler_finds(booted, settings, plan)
        yield gauge_finds(
            gauge,
            InterruptInjector(booted, settings, plan.toggled),
            "the kernel",
            partial(_in_kernel, booted, settings),
        )


def _in_user_space_by(implementation: str) -> LinuxUser:
    """The user-space implementation of this name; raises BadInput for other implementations."""
    result = find_implementation(implementation)
    if not isinstance(result, LinuxUser):
        known = ", ".join(user_space_implementations())
        raise BadInput(
            f"{implementation} has no calibration of its own; use one of {known}; linux-user "
            "includes the timer handler in the kernel on virtual boards"
        )
    return result


def _core_finds(booted: Booted, plan: InjectionPlan) -> Iterator[WitnessResult]:
    """Test with the program of the core; injectors that delay only tasks of Linux are listed with the reason."""
    yield timer_finds(booted, plan, HogInjector(booted, plan))
    yield WitnessResult(
        InterruptInjector.name,
        SELF_MEASURED,
        reason="the module disables interrupts of Linux, which does not delay tasks of a real-time core",
    )
    yield WitnessResult(HogInjector.name, "gauge", reason="the gauge is calibrated with linux-user only")


def _gauge_of(booted: Booted, port: str | None, output: Output | None) -> GaugeWiring | NotApplicable:
    """The given gauge or the simulated one; NotApplicable with the reason if there is none."""
    wired = None if booted.wires is None else (booted.wires.chip, booted.wires.output)
    watched = output or wired
    if port is None and wired is None:
        return NotApplicable(
            "no gauge given; pass its port and the output it measures: --gauge /dev/ttyACM0 --pin gpiochip0/27"
        )
    if watched is None:
        raise BadInput("the output that the gauge measures is unknown; add --pin CHIP/LINE, such as gpiochip0/27")
    try:
        return GaugeWiring(port or booted.wire_gauge().terminal, *watched)
    except BadInput as why:
        return NotApplicable(str(why))
    except NotApplicable as why:
        return why
