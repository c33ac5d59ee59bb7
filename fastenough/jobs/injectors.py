# SPDX-License-Identifier: GPL-2.0-or-later
"""Injectors of known latencies on a board: a task in user space, and a kernel module."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise

from fastenough.analysis.injections import Injection, injections, too_late
from fastenough.board import Booted
from fastenough.implementations import Act, linux_kernel, linux_user
from fastenough.implementations.task import Probing
from fastenough.model import BadInput, FastenoughError
from fastenough.settings import Settings

MODULE = "fastenough_inject"
MARGIN_S = 20.0
REPORT = "50ms"
"""Report interval of a task; short, so that the bounded ring of events never fills up."""
_DEVICE = f"/dev/{MODULE}"
_PRIORITY = 99
_POLL_S = 0.2
_TRIES = 2
"""Attempts per injection in user space or by a BPF program, which may be too late."""

InjectionLog = tuple[list[Injection], dict[int, int]]
"""Injections that took place, and by size the number that did not because the injector was too late."""


@dataclass(frozen=True)
class InjectionPlan:
    """Injections on one CPU: the sizes in turn, ``per_size`` times.

    ``period_ns``: of the delayed task.  ``lead_ns``: time before a due time at which the injector begins; if it begins
    after the due time, nothing is injected.
    """

    sizes_ns: tuple[int, ...]
    per_size: int
    cpu: int = 0
    period_ns: int = 1_000_000
    lead_ns: int = 300_000

    def __post_init__(self) -> None:
        if not self.sizes_ns or self.per_size < 1:
            raise BadInput("nothing to inject: pass at least one size and at least one injection of it")
        if any(longer < 1.5 * shorter for shorter, longer in pairwise(self.sizes_ns)):
            raise BadInput(
                "the sizes must be in ascending order, each at least 1.5 times the one before, "
                "so that they can be distinguished"
            )

    @property
    def interval_ns(self) -> int:
        """Time between injections: a multiple of the period that leaves most of the CPU to others."""
        return self.period_ns * max(10, math.ceil(4 * (max(self.sizes_ns) + self.lead_ns) / self.period_ns))

    @property
    def toggled(self) -> InjectionPlan:
        """The plan for a toggled pin: the period is short enough for the shortest delay to hold up both edges."""
        return replace(self, period_ns=min(self.period_ns, min(self.sizes_ns) // 2))

    @property
    def seconds(self) -> float:
        return len(self.sizes_ns) * self.per_size * self.interval_ns / 1e9

    @property
    def longest_s(self) -> float:
        """Duration if each injection is repeated."""
        return _TRIES * self.seconds


@contextmanager
def in_user_space(booted: Booted, act: Act) -> Iterator[Probing]:
    """A running act in user space."""
    with Probing(booted.link, [booted.probe, *linux_user.probe_arguments(act)], act.limit_s) as task:
        yield task


@dataclass(frozen=True)
class HogInjector:
    """Injects delays by a task of higher priority that computes for known times."""

    booted: Booted
    plan: InjectionPlan
    name: str = "user-space hog"

    def inject(self, due_mono_ns: int) -> InjectionLog:
        """Inject the whole plan, aligned to a due time of the delayed task."""
        act = Act(
            "hog",
            {
                "affinity": self.plan.cpu,
                "report": REPORT,
                "threshold": "1ns",
                "priority": _PRIORITY,
                "interval": f"{self.plan.interval_ns}ns",
                "sizes": ",".join(f"{size}ns" for size in self.plan.sizes_ns),
                "each": self.plan.per_size,
                "lead": f"{self.plan.lead_ns}ns",
                "begin": due_mono_ns,
            },
            limit_s=self.plan.longest_s + 2 * MARGIN_S,
        )
        with in_user_space(self.booted, act) as hogging:
            hogging.wait(self.plan.longest_s + MARGIN_S)
        recording = hogging.recording()
        return injections(recording), too_late(recording)


@dataclass(frozen=True)
class InterruptInjector:
    """Injects delays by a kernel module that disables interrupts on a CPU."""

    booted: Booted
    settings: Settings
    plan: InjectionPlan
    name: str = "module, interrupts off"

    def inject(self, due_mono_ns: int) -> InjectionLog:
        """As :meth:`HogInjector.inject`."""
        parameters = {
            "sizes_ns": ",".join(map(str, self.plan.sizes_ns)),
            "each": self.plan.per_size,
            "cpu": self.plan.cpu,
            "begin_ns": due_mono_ns,
            "interval_ns": self.plan.interval_ns,
            "lead_ns": self.plan.lead_ns,
        }
        arguments = " ".join([self.booted.module(MODULE), *(f"{name}={value}" for name, value in parameters.items())])
        with linux_kernel.inserted(self.booted, self.settings, MODULE, arguments):
            return _from_device(self._lines())

    def _lines(self) -> list[str]:
        expected = len(self.plan.sizes_ns) * self.plan.per_size
        deadline = time.monotonic() + self.plan.seconds + MARGIN_S
        while len(lines := self.booted.link.read(_DEVICE).decode(errors="replace").splitlines()) < expected:
            if time.monotonic() > deadline:
                raise FastenoughError(f"only {len(lines)} of {expected} latencies were injected in time")
            time.sleep(_POLL_S)
        return lines


def _from_device(lines: Sequence[str]) -> InjectionLog:
    """Parse lines ``requested_ns,injected_ns,due_mono_ns``; an ``injected_ns`` of 0 means that nothing was injected."""
    took_place: list[Injection] = []
    late: dict[int, int] = {}
    for line in lines:
        requested_ns, injected_ns, due_mono_ns = map(int, line.split(","))
        late[requested_ns] = late.get(requested_ns, 0) + (injected_ns == 0)
        if injected_ns:
            took_place.append(Injection(requested_ns, injected_ns, due_mono_ns))
    return took_place, late


Injector = HogInjector | InterruptInjector
