# SPDX-License-Identifier: GPL-2.0-or-later
"""A periodic task, the monitor that watches it, and an injector that delays it: all recorded, with every sample."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import NamedTemporaryFile

from fastenough.analysis.injections import Injection
from fastenough.board import Booted
from fastenough.campaign.monitoring import LOADING_S, find_monitor
from fastenough.facts.cpu import cpus_of
from fastenough.implementations import Act
from fastenough.implementations.linux_user import options
from fastenough.implementations.task import Probing
from fastenough.jobs.injectors import MARGIN_S, REPORT, InjectionLog, InjectionPlan, InterruptInjector, in_user_space
from fastenough.link import INJECTOR, Link, find_program
from fastenough.model import EMULATED, FastenoughError, NotApplicable
from fastenough.recording import Recording
from fastenough.recording.samples import Samples, read_samples
from fastenough.settings import Settings
from fastenough.units import parse_duration_ns

BPF = "BPF, within the station"
"""Name of the injector that does not use the kernel module, which is for expendable boards only."""
_MODULES_STATION = "expiry-to-interrupt"
_TASK_PRIORITY = 90
_INJECTOR_PRIORITY = 50
"""Below the priority of the task, so that the injector does not delay it otherwise."""
_PID = re.compile("[0-9]{1,10}")
_MOST_ABOVE = 16
"""Maximum number of parent processes that a link adds above the task."""
_SETTLE_S = (3.0, 10.0, 30.0, 90.0)
"""Time from the start of the task to the first injection: injector and monitor attach, and undisturbed wake-ups are
recorded.  The next longer one is used if a busy or emulated machine takes longer."""


@dataclass(frozen=True)
class MonitoredTask:
    """Recording of the monitor and its samples by series; samples of the task; injections, and their injector.

    ``late``: number of injections that were too late, by size.
    """

    monitor: Recording
    samples: dict[int, Samples]
    task: Samples
    injected: list[Injection] = field(default_factory=list)
    late: dict[int, int] = field(default_factory=dict)
    injector: str = BPF


class TaskMonitor:
    """Runs task, monitor and injector on a board; raises NotApplicable if the monitor cannot run there."""

    def __init__(self, booted: Booted, plan: InjectionPlan) -> None:
        self._booted, self._plan = booted, plan
        self._monitor = find_monitor(booted.link)

    def injecting(self, station: str) -> MonitoredTask:
        """Run with injections at one station; raises NotApplicable if they are not possible there.

        The injector attaches before the monitor, so that it computes behind a system call before the monitor records.
        """
        for settle_s in _SETTLE_S:
            watched = self._attempt(station, settle_s)
            if watched is not None:
                return watched
        raise FastenoughError(f"the monitor did not attach within {_SETTLE_S[-1]:g} s: the machine is too busy")

    def _attempt(self, station: str, settle_s: float) -> MonitoredTask | None:
        """None if the first injection came before the monitor was attached."""
        plan = self._plan
        seconds = settle_s + plan.longest_s
        with _folder(self._booted.link) as folder, self._task(folder, seconds) as task:
            begin_ns = task.head.begin.mono_ns
            first_ns = begin_ns + plan.interval_ns * math.ceil(settle_s * 1e9 / plan.interval_ns)
            with (
                self._injector(station, first_ns, folder, seconds) as inject,
                self._watch(task, folder, seconds) as monitor,
            ):
                if monitor.head.begin.mono_ns > first_ns:
                    return None
                injected, late = inject()
                monitor.interrupt()
            task.interrupt()
            if _begin_ns(monitor.recording()) > first_ns:
                return None
            by = InterruptInjector.name if self._by_module(station) else BPF
            return self._watched(folder, monitor, injected, late, by)

    def alone(self, seconds: float) -> MonitoredTask:
        """Run task and monitor without injections."""
        with _folder(self._booted.link) as folder, self._task(folder, seconds) as task:
            with self._watch(task, folder, seconds) as monitor:
                time.sleep(seconds)
                monitor.interrupt()
            task.interrupt()
            return self._watched(folder, monitor, [], {})

    def _watched(
        self, folder: str, monitor: Probing, injected: list[Injection], late: dict[int, int], by: str = BPF
    ) -> MonitoredTask:
        (own,) = _samples(self._booted.link, f"{folder}/task").values()
        return MonitoredTask(
            monitor.recording(), _samples(self._booted.link, f"{folder}/seen"), own, injected, late, by
        )

    @contextmanager
    def _task(self, folder: str, seconds: float) -> Iterator[Probing]:
        act = Act(
            "timer",
            {
                "affinity": self._plan.cpu,
                "priority": _TASK_PRIORITY,
                "interval": f"{self._plan.period_ns}ns",
                "samples": f"{folder}/task",
            },
            limit_s=seconds + 2 * LOADING_S + 4 * MARGIN_S,
        )
        with in_user_space(self._booted, act) as task:
            yield task

    def _by_module(self, station: str) -> bool:
        return station == _MODULES_STATION and EMULATED in self._booted.marks

    def _injector(
        self, station: str, first_ns: int, folder: str, seconds: float
    ) -> AbstractContextManager[Callable[[], InjectionLog]]:
        """Attach the injector; yields a function that injects the plan and returns the log."""
        if self._by_module(station):
            return self._module(first_ns)
        return self._computing(station, first_ns, folder, seconds)

    @contextmanager
    def _module(self, first_ns: int) -> Iterator[Callable[[], InjectionLog]]:
        with Settings(self._booted.link) as settings:
            yield lambda: InterruptInjector(self._booted, settings, self._plan).inject(first_ns)

    @contextmanager
    def _computing(
        self, station: str, first_ns: int, folder: str, seconds: float
    ) -> Iterator[Callable[[], InjectionLog]]:
        plan = self._plan
        act = Act(
            "inject",
            {
                "station": station,
                "affinity": f"{plan.cpu},{_other_cpu(self._booted.link, plan.cpu)}",
                "priority": _INJECTOR_PRIORITY,
                "sizes": ",".join(f"{size}ns" for size in plan.sizes_ns),
                "each": plan.per_size,
                "interval": f"{plan.interval_ns}ns",
                "lead": f"{plan.lead_ns}ns",
                "begin": first_ns,
                "samples": f"{folder}/injected",
            },
            limit_s=seconds + 2 * LOADING_S + 4 * MARGIN_S,
        )
        program = find_program(INJECTOR, self._booted.link)
        with Probing(self._booted.link, [program, act.probe, *options(act)], act.limit_s, LOADING_S) as injector:

            def inject() -> InjectionLog:
                injector.wait(seconds + MARGIN_S)
                return _injections(injector.recording(), _samples(self._booted.link, f"{folder}/injected"))

            yield inject

    @contextmanager
    def _watch(self, task: Probing, folder: str, seconds: float) -> Iterator[Probing]:
        act = Act(
            "monitor",
            {
                "affinity": self._plan.cpu,
                "pid": _process_of(self._booted.link, task.pid),
                "threshold": f"{min(self._plan.sizes_ns) // 2}ns",
                "report": REPORT,
                "samples": f"{folder}/seen",
            },
            limit_s=seconds + LOADING_S + 3 * MARGIN_S,
        )
        with Probing(self._booted.link, [self._monitor, act.probe, *options(act)], act.limit_s, LOADING_S) as monitor:
            yield monitor


def _begin_ns(recording: Recording) -> float:
    """Begin of the first interval."""
    return min((interval.begin_mono_ns for interval in recording.intervals), default=math.inf)


def _injections(recording: Recording, samples: dict[int, Samples]) -> InjectionLog:
    injected: list[Injection] = []
    late: dict[int, int] = {}
    for series in recording.named("injected"):
        requested_ns = parse_duration_ns(series.labels["size"])
        late[requested_ns] = recording.missed(series.id)
        delays = samples.get(series.id)
        if delays is not None:
            injected += [
                Injection(requested_ns, injected_ns, due_ns)
                for due_ns, injected_ns in zip(delays.due_ns.tolist(), delays.latency_ns.tolist(), strict=True)
            ]
    return sorted(injected, key=lambda injection: injection.due_mono_ns), late


def _other_cpu(link: Link, cpu: int) -> int:
    """Another CPU of the board, used to disable the interrupts of this one."""
    others = [number for number in cpus_of(link, "online") if number != cpu]
    if not others:
        raise NotApplicable("the board has only one CPU; a second one is required to disable its interrupts")
    return others[0]


def _process_of(link: Link, root: int) -> int:
    """Process of the task, which a link may start as a child of its own process."""
    for _ in range(_MOST_ABOVE):
        children = link.raised.read(f"/proc/{root}/task/{root}/children").decode(errors="replace").split()
        if not children:
            return root
        if _PID.fullmatch(children[0]) is None:
            break
        root = int(children[0])
    raise FastenoughError(f"{link.name}: /proc/{root}/task/{root}/children lists no process of the task")


@contextmanager
def _folder(link: Link) -> Iterator[str]:
    """A temporary directory on the board, for sample files."""
    name = link.raised.run(["mktemp", "-d"]).text.strip()
    try:
        yield name
    finally:
        link.raised.run(["rm", "-rf", name])


def _samples(link: Link, place: str) -> dict[int, Samples]:
    """Fetch and read a sample file of the board."""
    with NamedTemporaryFile() as file:
        file.write(link.raised.read(place))
        file.flush()
        return read_samples(Path(file.name)).series
