# SPDX-License-Identifier: GPL-2.0-or-later
"""Tasks in user space of the EVL core (Xenomai 4): the probe built for it, with the words of ``linux-user``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

from fastenough.board.base import Booted
from fastenough.implementations.base import Act
from fastenough.implementations.catalogue import ProbeEntry, Value
from fastenough.implementations.linux_kernel import inserted
from fastenough.implementations.linux_user import LinuxUser, words
from fastenough.implementations.task import Task
from fastenough.model import BadInput, NotApplicable
from fastenough.settings import Settings

PROGRAM = "fastenough-probe-evl"
GPIO_MODULE = "fastenough_oob_gpio"
PROBES = ("timer", "response", "periodic")
METHODS = ("evl_sleep_until", "evl_timer")
_CHOICES = {"method": METHODS, "way": ("auto", "oob"), "policy": ("fifo", "other")}
DEVICE = "/dev/evl/control"
"""There where the kernel has the core."""
_BUILT = "build it with meson -Dprobe_platform=evl and put it into the board's PATH"


@dataclass(frozen=True)
class EvlUser(LinuxUser):
    """``line_thread``: the core's own interrupt handler wakes the task, so there is no thread."""

    name: str = "evl-user"
    line_thread: str = ""

    def check(self, probe: str, parameters: Mapping[str, Iterable[Value]], known: Mapping[str, ProbeEntry]) -> None:
        if probe not in PROBES:
            raise BadInput(f"{self.name} has no probe '{probe}'; use one of {', '.join(PROBES)}, or leave {self.name} "
                           "out of the implementations")
        for name, choices in _CHOICES.items():
            unknown = next((value for value in map(str, parameters.get(name, ())) if value not in choices), None)
            if unknown is not None:
                raise BadInput(f"{name}={unknown} is none of {self.name}'s; choose one of {', '.join(choices)}")
        super().check(probe, {name: values for name, values in parameters.items() if name not in _CHOICES}, known)

    def needs(self, booted: Booted) -> None:
        if not booted.link.exists(DEVICE):
            raise NotApplicable(f"the board's kernel has no EVL core ({DEVICE} is not there)")
        if booted.link.which(PROGRAM) is None:
            raise NotApplicable(f"there is no {PROGRAM} on the board; {_BUILT}")

    @contextmanager
    def start(self, booted: Booted, act: Act, settings: Settings) -> Iterator[Task]:
        with _lines(booted, act, settings), \
                Task(booted.link, [PROGRAM, *words(act)], act.limit_s, silence_s=act.silence_s) as task:
            yield task


def _lines(booted: Booted, act: Act, settings: Settings) -> AbstractContextManager[None]:
    """Makes the chip's lines known to the core."""
    chip = act.parameters.get("chip")
    if chip is None or booted.link.exists(f"/dev/fastenough-oob/{chip}"):
        return nullcontext()
    return inserted(booted, settings, GPIO_MODULE, f"{booted.module(GPIO_MODULE)} chip={chip}")


IMPLEMENTATION = EvlUser()
