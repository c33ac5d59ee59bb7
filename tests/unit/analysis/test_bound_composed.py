# SPDX-License-Identifier: GPL-2.0-or-later
"""The composed bound against every placement of wake-up and interrupts in a small kernel; its terms out of traces."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fastenough.analysis.blocking_trace import traced_cpus
from fastenough.analysis.composed_bound import Blocking, Composed, Interrupt, composed
from fastenough.model import BadInput

CASES = Path(__file__).parents[2] / "cases/bound"
WAYS = (
    "none",
    "the longest, once",
    "the longest of each kind, once",
    "each kind as often as its closest two",
    "the fullest window seen",
)


def _by(name: str, found: Sequence[Composed]) -> int | None:
    assert tuple(one.interrupts for one in found) == WAYS
    return next(one.latency_ns for one in found if one.interrupts == name)


OTHER_CPU = (
    "  task-3  [001] d.h.     5.000000000: irq_handler_entry: irq=1 name=other",
    "  task-3  [001] d.h.     5.000000000: irq_handler_exit: irq=1 ret=handled",
)
"""A trace without any interrupt is refused."""


@dataclass
class Kernel:
    """One CPU in steps of a unit: a thread with a blocking section that then gives way, and a task that is woken.

    ``poid``, ``paie``, ``before`` and ``tail`` (of the scheduler, with interrupts on and off): how long each lasts
    undisturbed.  ``interrupts``: (when it is raised, how long it takes); raised while they are off they wait.
    """

    poid: int
    paie: int
    before: int
    tail: int
    masked: bool
    wakes_at: int
    interrupts: Sequence[tuple[int, int]] = ()
    now: int = 0
    asked: bool = False
    woken: bool = False
    ran_at: int | None = None
    pid: int = 7
    irqs_on: bool = True
    lines: list[str] = field(default_factory=lambda: list(OTHER_CPU))

    def __post_init__(self) -> None:
        self.raised = sorted((at, number, took) for number, (at, took) in enumerate(self.interrupts))

    def say(self, event: str, rest: str = "") -> None:
        flags = f"{'.' if self.irqs_on else 'd'}{'N' if self.asked else '.'}.."
        self.lines.append(f"  task-{self.pid}  [000] {flags} {5:5d}.{self.now * 1000:09d}: {event}: {rest}")

    def serve(self, until: int = 0) -> None:
        """Interrupts that were raised up to now, or up to ``until`` units from now."""
        while self.irqs_on and self.raised and self.raised[0][0] <= self.now + until:
            _, number, took = self.raised.pop(0)
            self.irqs_on = False
            self.say("irq_disable")
            self.say("irq_handler_entry", f"irq={number} name=device")
            for _ in range(took):
                self.pass_one()
            self.say("irq_handler_exit", f"irq={number} ret=handled")
            self.irqs_on = True
            self.say("irq_enable")

    def wake(self) -> None:
        if self.now >= self.wakes_at and not self.woken:
            self.asked = self.woken = True
            self.say("sched_wakeup", "comm=urgent pid=9 prio=9 target_cpu=000")

    def pass_one(self) -> None:
        self.wake()
        self.now += 1

    def work(self, units: int) -> None:
        for _ in range(units):
            self.wake()
            self.serve()
            self.pass_one()

    def schedule(self) -> None:
        self.say("preempt_disable", "caller=schedule")
        self.work(self.before)
        self.serve()
        self.irqs_on = False
        self.say("irq_disable", "caller=__schedule")
        urgent, self.asked = self.asked, False
        chosen = 9 if urgent else 8
        self.say(
            "sched_switch",
            f"prev_comm=task prev_pid={self.pid} prev_prio=120 prev_state=R ==> "
            f"next_comm=other next_pid={chosen} next_prio={9 if urgent else 120}",
        )
        self.pid = chosen
        self.work(self.tail)
        self.wake()
        self.irqs_on = True
        self.say("irq_enable")
        self.serve(until=-1)
        self.say("preempt_enable", "caller=schedule")
        if urgent and self.ran_at is None:
            self.ran_at = self.now

    def answer(self) -> None:
        """Where the scheduler was asked for and may be called."""
        if self.asked:
            self.work(self.paie)
            self.serve()
            self.schedule()

    def idle_along(self, units: int) -> None:
        for _ in range(units):
            self.wake()
            self.serve()
            self.answer()
            self.pass_one()

    def run(self) -> Kernel:
        self.section(1)
        self.idle_along(3)
        self.section(self.poid)
        self.answer()
        self.idle_along(2)
        self.schedule()
        self.answer()
        self.idle_along(12)
        self.answer()
        return self

    def section(self, units: int) -> None:
        if self.masked:
            self.irqs_on = False
        self.say("irq_disable" if self.masked else "preempt_disable")
        self.work(units)
        if not self.masked:
            self.serve()
        self.irqs_on = True
        self.say("irq_enable" if self.masked else "preempt_enable")
        self.serve()

    @property
    def latency(self) -> int | None:
        return None if self.ran_at is None else self.ran_at - self.wakes_at


def _placements(kernel: tuple[int, int, int, int, bool], taken: Sequence[int], until: int) -> Iterator[Kernel]:
    for wakes_at, *at in itertools.product(range(4, until), *(range(4, until) for _ in taken)):
        yield Kernel(*kernel, wakes_at, list(zip(at, taken, strict=True))).run()


Made = tuple[int, int, int, int, bool]
KERNELS: list[Made] = [(4, 1, 2, 2, False), (4, 1, 2, 2, True), (2, 1, 1, 5, False), (1, 2, 3, 1, True)]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("taken", [(), (2,), (1, 3)])
def test_no_placement_is_later_and_one_is_as_late(kernel: Made, taken: tuple[int, ...]) -> None:
    """Each interrupt once, wherever: the bound is the worst of all placements, to the unit."""
    poid, paie, before, tail, _ = kernel
    blocking = Blocking(poid, paie, before + tail, tail)
    interrupts = [Interrupt(str(number), 0, took) for number, took in enumerate(taken)]
    bound = _by("the longest of each kind, once", composed(blocking, interrupts))
    latencies = [run.latency for run in _placements(kernel, taken, 14) if run.latency is not None]
    assert len(latencies) >= 10
    assert max(latencies) == bound == max(poid, tail) + paie + before + tail + sum(taken)


@pytest.mark.parametrize("kernel", KERNELS)
def test_no_phase_of_a_periodic_interrupt_is_later(kernel: Made) -> None:
    poid, paie, before, tail, _ = kernel
    runs = [
        Kernel(*kernel, wakes_at, [(at, 1) for at in range(phase, 40, 5)]).run()
        for phase in range(5)
        for wakes_at in range(4, 16)
    ]
    begun = [
        Interrupt("timer", one.at_ns // 1000 + 1000 * place, 1)
        for place, run in enumerate(runs)
        for told in traced_cpus(run.lines)
        for one in told.interrupts
    ]
    found = composed(Blocking(poid, paie, before + tail, tail), begun)
    sporadic, fullest = _by("each kind as often as its closest two", found), _by("the fullest window seen", found)
    latest = max(run.latency for run in runs if run.latency is not None)
    assert max(poid, tail) + paie + before + tail < latest
    assert fullest is not None and latest <= fullest
    assert sporadic is None or latest <= sporadic, "no bound, where two that had waited came at once"


@pytest.mark.parametrize("kernel", KERNELS)
def test_traces_tell_the_terms(kernel: Made) -> None:
    """Over all placements, the longest of each term is what the kernel was made of, and nothing seen was later."""
    poid, paie, before, tail, _ = kernel
    longest, latest = Blocking(), 0
    for run in _placements(kernel, (2,), 14):
        (told,) = traced_cpus(run.lines)
        seen = told.blocking
        longest = Blocking(
            max(longest.poid_ns, seen.poid_ns),
            max(longest.paie_ns, seen.paie_ns),
            max(longest.psd_ns, seen.psd_ns),
            max(longest.dst_ns, seen.dst_ns),
        )
        assert [(one.kind, one.took_ns) for one in told.interrupts] in ([("irq_handler 0", 2000)], [])
        latest = max(latest, told.observed_ns or 0)
    assert longest == Blocking(poid * 1000, paie * 1000, (before + tail) * 1000, tail * 1000)
    assert 0 < latest <= longest.undisturbed_ns + 2000


def test_a_trace_of_a_real_kernel_is_read_as_by_hand() -> None:
    """Linux 6.12, PREEMPT_RT, arm64: a task is woken twice from idle.

    Off: 40.180546 to .181180, less 176 of the timer; asked: .182601 to .182606; to schedule: .181185 to .181237,
    unaware from .181187 on; seen: .181146 to .181191.
    """
    (told,) = traced_cpus((CASES / "woken_from_idle.txt").read_text().splitlines())
    assert told.blocking == Blocking(459_000, 6_000, 53_000, 51_000), "each longer by the clock's 1 us"
    assert (told.observed_ns, told.wakeups, told.switches) == (45_000, 2, 3)
    assert [(one.kind, one.took_ns) for one in told.interrupts] == [
        ("irq_handler 11", 177_000),
        ("irq_handler 11", 18_000),
    ]
    bounds = composed(told.blocking, told.interrupts)
    assert (_by("none", bounds), _by("the longest, once", bounds)) == (518_000, 695_000)
    assert _by("the fullest window seen", composed(told.blocking, told.interrupts, told.traced_ns, 1000)) == 695_000


# --- the ways to count interrupts, by hand


def test_ways_to_count_interrupts() -> None:
    interrupts = [
        Interrupt("timer", 0, 10),
        Interrupt("timer", 100, 20),
        Interrupt("disk", 30, 5),
        Interrupt("timer", 300, 10),
    ]
    found = composed(Blocking(poid_ns=50, paie_ns=10, psd_ns=20, dst_ns=40), interrupts)
    # windows of 110 and of 125: from 0 the timer twice with its longest, 20, and the disk, 45 together
    assert [one.latency_ns for one in found] == [80, 100, 105, 125, 125]


def test_an_interrupt_delays_a_task_that_nothing_blocks() -> None:
    interrupts = [Interrupt("timer", 1000 * number, 10) for number in range(3)]
    assert [one.latency_ns for one in composed(Blocking(), interrupts)] == [0, 10, 10, 10, 10]


def test_a_window_counts_the_longest_execution_of_each_kind() -> None:
    """The fullest window held two short interrupts; each could have taken as long as the longest of its kind."""
    interrupts = [Interrupt("timer", 0, 40), *(Interrupt("timer", 1000 + 10 * place, 1) for place in range(3))]
    fullest = _by("the fullest window seen", composed(Blocking(poid_ns=15), interrupts))
    assert fullest == 15 + 3 * 40


def test_an_interrupt_that_lasts_into_the_window_counts() -> None:
    interrupts = [Interrupt("disk", 0, 100), Interrupt("timer", 95, 10)]
    assert _by("the fullest window seen", composed(Blocking(poid_ns=20), interrupts)) == 20 + 110


def test_interrupts_that_take_all_have_no_bound() -> None:
    interrupts = [Interrupt("storm", 10 * number, 10) for number in range(100)]
    found = composed(Blocking(50, 10, 20, 40), interrupts)
    assert _by("each kind as often as its closest two", found) is None
    assert _by("the fullest window seen", found) == 80 + 1000


def test_a_window_longer_than_the_trace_was_not_seen() -> None:
    interrupts = [Interrupt("timer", 1000 * number, 10) for number in range(3)]
    for traced_ns, bound_ns in ((2010, 520), (520, 520), (519, None)):
        found = composed(Blocking(poid_ns=510), interrupts, traced_ns)
        assert (_by("none", found), _by("the fullest window seen", found)) == (510, bound_ns)


def test_interrupts_may_be_closer_than_a_coarse_clock_shows() -> None:
    """Read as 3,000 apart, they may be 2,001 apart: three of them in 4,100 instead of two."""
    interrupts = [Interrupt("timer", 3000 * number, 100) for number in range(4)]
    exact, coarse = (composed(Blocking(poid_ns=4000), interrupts, None, step) for step in (0, 1000))
    sporadic = "each kind as often as its closest two"
    assert (_by(sporadic, exact), _by(sporadic, coarse)) == (4200, 4300)
    fullest = "the fullest window seen"
    fuller = composed(Blocking(poid_ns=5500), interrupts, None, 1000)
    assert (_by(fullest, composed(Blocking(poid_ns=5500), interrupts)), _by(fullest, fuller)) == (5700, 5800)


def test_an_interrupted_interrupt_ends_later() -> None:
    """The outer one lasts from 0 to 1020, so a window may contain it and the timer, too."""
    interrupts = [Interrupt("nested", 10, 1000), Interrupt("outer", 0, 20), Interrupt("timer", 1100, 10)]
    assert _by("the fullest window seen", composed(Blocking(poid_ns=5), interrupts)) == 5 + 1000 + 20 + 10


def test_of_two_interrupts_in_one_step_of_the_clock_the_last_to_end_is_the_outer_one() -> None:
    """A trace in microseconds, read in order of the ends: the inner one first."""
    interrupts = [
        Interrupt("ipi", 0, 51_000),
        Interrupt("irq_handler 5", 0, 3_000),
        Interrupt("irq_handler 5", 10_000_000, 201_000),
        Interrupt("disk", 290_000, 101_000),
    ]
    assert _by("the fullest window seen", composed(Blocking(poid_ns=5_000), interrupts, None, 1000)) == 358_000


def test_a_saturated_trace_takes_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """99.9 % of the time in interrupts: each step adds all that arrive until the window is done."""
    monkeypatch.setattr("fastenough.analysis.composed_bound._MOST_STEPS", 5)
    interrupts = [Interrupt("timer", 10_000 * number, 9990) for number in range(20_000)]
    assert _by("the fullest window seen", composed(Blocking(poid_ns=50_000), interrupts)) == 59_980_010


# --- what the edges of a trace cut, and idle CPUs


class TraceLines:
    """Lines of a trace, by hand: CPU, time in µs, PID with flags, event."""

    def __init__(self) -> None:
        self.lines = list(OTHER_CPU)

    def add(self, cpu: int, at_us: int, task: str, event: str, rest: str = "") -> TraceLines:
        pid, flags = task.split()
        self.lines.append(f"  task-{pid}  [{cpu:03d}] {flags} {5:5d}.{at_us * 1000:09d}: {event}: {rest}")
        return self

    def switch(self, cpu: int, at_us: int, before: tuple[int, int], after: tuple[int, int]) -> TraceLines:
        rest = "prev_comm=a prev_pid={} prev_prio={} prev_state=R ==> next_comm=b next_pid={} next_prio={}"
        return self.add(cpu, at_us, f"{before[0]} d..1", "sched_switch", rest.format(*before, *after))

    def blocked(self, cpu: int, begin_us: int, end_us: int) -> TraceLines:
        """Preemption off, and within it interrupts off."""
        self.add(cpu, begin_us, "7 ...1", "preempt_disable").add(cpu, begin_us, "7 d..1", "irq_disable")
        return self.add(cpu, end_us, "7 d..1", "irq_enable").add(cpu, end_us, "7 ...1", "preempt_enable")

    def read(self) -> dict[int, int]:
        """POID of each CPU in µs."""
        return {told.cpu: told.blocking.poid_ns // 1000 for told in traced_cpus(self.lines)}


def _switched() -> TraceLines:
    """CPU 0 blocks for 2 µs, switches, and blocks for 3 µs at 900; CPU 2 blocks for 1 µs."""
    events = TraceLines().blocked(0, 1, 3).blocked(2, 5, 6)
    return events.add(0, 10, "7 ...1", "preempt_disable").switch(0, 11, (7, 120), (8, 120))


def test_a_cpu_that_is_stuck_to_the_end_is_not_left_out() -> None:
    events = _switched().add(0, 12, "8 ...1", "preempt_enable").add(1, 20, "3 ...1", "preempt_disable")
    assert events.add(2, 30, "7 d..1", "irq_disable").blocked(0, 900, 903).read() == {0: 3, 1: 883, 2: 873}


def test_a_cpu_that_is_stuck_from_the_begin_on_is_not_left_out() -> None:
    """From the first event of that kind of any CPU on, it is known that both were off."""
    events = _switched().add(0, 12, "8 ...1", "preempt_enable").add(1, 500, "3 ...1", "preempt_enable")
    assert events.add(3, 600, "3 d...", "irq_enable").blocked(0, 900, 903).read() == {0: 3, 1: 499, 2: 1, 3: 599}


def test_interrupts_before_a_section_that_the_begin_cuts_do_not_shorten_it() -> None:
    """Interrupts are recorded before preemption is."""
    events = TraceLines()
    for number in range(10):
        events.add(2, 10 * number, "7 d.h.", "irq_handler_entry", "irq=5 name=disk")
        events.add(2, 10 * number + 8, "7 d.h.", "irq_handler_exit", "irq=5 name=disk")
    events.blocked(0, 100, 103).add(2, 150, "7 ...1", "preempt_enable").switch(0, 200, (7, 120), (8, 120))
    assert events.add(0, 201, "8 ...1", "preempt_enable").read() == {0: 3, 2: 50}


def test_an_idle_cpu_that_sleeps_at_the_end_blocks_nobody() -> None:
    events = _switched().add(0, 12, "8 ...1", "preempt_enable").add(2, 20, "7 ...1", "preempt_disable")
    events.switch(2, 21, (7, 120), (0, 120)).add(2, 22, "0 d..1", "irq_enable").add(2, 30, "0 d..1", "irq_disable")
    assert events.blocked(0, 900, 903).read() == {0: 3, 2: 1}


@pytest.mark.parametrize("flags", ["d.h.", "d.h1.", "dn.h413", "dn.h1213"])
def test_a_task_woken_by_an_interrupt_that_was_not_recorded_is_refused(flags: str) -> None:
    woken = f"7 {flags}", "sched_wakeup", "comm=rt pid=9 prio=50 target_cpu=000"
    events = _switched().add(0, 12, "8 ...1", "preempt_enable").blocked(2, 20, 21).add(2, 30, *woken)
    with pytest.raises(BadInput, match="CPU 2: an interrupt that is not in the trace"):
        traced_cpus(events.lines)


def test_an_interrupt_that_the_end_cuts_counts() -> None:
    events = _switched().add(0, 12, "8 ...1", "preempt_enable").add(0, 20, "8 d...", "irq_disable")
    events.add(0, 21, "8 d.h.", "irq_handler_entry", "irq=5 name=disk").blocked(2, 890, 900)
    told, _ = traced_cpus(events.lines)
    assert [(one.kind, one.took_ns) for one in told.interrupts] == [("irq_handler 5", 879_000)]
    assert told.blocking.poid_ns == 2000


def test_soft_interrupts_of_an_idle_cpu_block() -> None:
    """They run with interrupts on and preemption off, also where the idle task is interrupted."""
    events = _switched().add(0, 12, "8 ...1", "preempt_enable").add(2, 20, "7 ...1", "preempt_disable")
    events.switch(2, 21, (7, 120), (0, 120)).add(2, 22, "0 d..1", "irq_enable")
    events.add(2, 100, "0 d..1", "irq_disable").add(2, 110, "0 d.s1", "irq_enable")
    events.add(2, 600, "0 ..s1", "irq_disable").add(2, 610, "0 d..1", "irq_enable")
    assert events.read() == {0: 2, 2: 510}
    events.lines = [re.sub(r"(?<=\] )(..)(..) ", r"\1.\2.. ", line) for line in events.lines]
    assert events.read() == {0: 2, 2: 510}, "with need-resched-lazy and two more depths, as PREEMPT_RT patches print"


def test_tasks_with_a_deadline_are_read() -> None:
    """The kernel gives them the priority -1."""
    events = _switched().add(0, 12, "8 ...1", "preempt_enable")
    events.add(2, 20, "7 d...", "sched_wakeup", "comm=dl pid=9 prio=-1 target_cpu=000").blocked(0, 30, 33)
    events.switch(0, 60, (8, 120), (9, -1))
    told = traced_cpus(events.lines)[0]
    assert (told.observed_ns, told.switches) == (40_000, 2)


def test_a_wakeup_behind_the_task_that_ran_first_is_not_observed() -> None:
    """The priority of a task that runs when the trace begins is known from its switch."""
    for running, observed_ns in ((120, 40_000), (5, None)):
        events = (
            TraceLines().blocked(0, 1, 3).add(2, 20, "7 d.h.", "sched_wakeup", "comm=rt pid=9 prio=50 target_cpu=000")
        )
        events.switch(0, 60, (8, running), (9, 50))
        assert traced_cpus(events.lines)[0].observed_ns == observed_ns


# --- what is no such trace

HEAD = "# tracer: nop\n#\n"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: HEAD + text.replace("irq_disable", "other"), "no event irq_disable"),
        (lambda text: "", "no event preempt_disable"),
        (lambda text: text.replace("irq_handler_entry", "other"), "no entry of an interrupt"),
        (lambda text: text.replace("irq_handler_exit", "other"), "no exit of an interrupt"),
        (lambda text: f"{text}\n" + "\n".join([OTHER_CPU[0]] * 17), "16 interrupts without an end"),
        *(
            (lambda text, loss=loss: f"{text}\n{loss}", "has lost events")
            for loss in (
                "CPU:0 [LOST 34 EVENTS]",
                "CPU:3 [LOST EVENTS]",
                "CPU:7 [204600 EVENTS DROPPED]",
                "CPU:7 [EVENTS DROPPED]",
                "instance: CPU:1 [424 EVENTS DROPPED]",
                "##### CPU 3 buffer started ####",
                "overrun: 2533",
                "commit overrun: 1",
                "dropped events: 7",
                "# entries-in-buffer/entries-written: 126/2659   #P:2",
                "  120 events lost",
            )
        ),
        (lambda text: re.sub(r"\[000\] \S+", "[000]", text), "no flags column"),
        (lambda text: text.replace("[000] .... ", "[000] .. "), "2 columns of flags"),
        (lambda text: text.replace("[000] .... ", "[000] ...... "), "6 columns of flags"),
        (lambda text: text.replace("[000] .... ", "[000] ......... "), "9 columns of flags"),
        (lambda text: text.replace("next_pid=9", "next=9"), "without a next task"),
        (lambda text: text.replace("[000]", "[99999]"), "CPU 99999: CPU number out of range"),
        (lambda text: f"{text}\n{text}", "the times of CPU 0 go back by"),
    ],
)
def test_what_is_no_trace_is_refused(change: object, said: str) -> None:
    text = "\n".join(Kernel(4, 1, 2, 2, False, 5).run().lines)
    assert callable(change)
    with pytest.raises(BadInput, match=said):
        traced_cpus(change(text).splitlines())


@pytest.mark.parametrize(
    "harmless", ["overrun: 0", "dropped events: 0", "# entries-in-buffer/entries-written: 2659/2659   #P:2", "cpus=2"]
)
def test_what_lost_nothing_is_read(harmless: str) -> None:
    lines = Kernel(4, 1, 2, 2, False, 5).run().lines
    assert traced_cpus([harmless, *lines]) == traced_cpus(lines)


def test_the_latency_format_of_trace_cmd_tells_the_same() -> None:
    lines = Kernel(4, 1, 2, 2, False, 5, [(6, 3)]).run().lines
    latency = [line.replace("[000] ", " 0").replace("[001] ", " 1") for line in lines]
    assert traced_cpus(latency) == traced_cpus(lines)


def test_a_clock_in_microseconds_makes_terms_longer() -> None:
    lines = Kernel(4, 1, 2, 2, False, 5).run().lines
    (exact,) = traced_cpus(lines)
    (coarse,) = traced_cpus([line.replace("000: ", ": ", 1) for line in lines])
    assert coarse.resolution_ns == 1000
    assert coarse.blocking.poid_ns == exact.blocking.poid_ns + 1000
