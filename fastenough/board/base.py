# SPDX-License-Identifier: GPL-2.0-or-later
"""A board: a link to it, and a way to boot it in one of its configurations."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from fastenough.facts import collect
from fastenough.link import Link
from fastenough.link.base import Completed
from fastenough.loads import Load, StartedLoad
from fastenough.model import EMULATED, BadInput, Configuration, NotApplicable
from fastenough.virtual.gauge import SimulatedGauge

AS_BOOTED = "as-booted"
"""The configuration of a board that the bench does not boot."""
DETERMINISTIC_KERNEL = "stock"
"""The kernel that a deterministic board boots if its name has none."""


@dataclass(frozen=True)
class Wires:
    """Pins of an instrument: the GPIO chip's label, and the offsets of the board's input and output line."""

    chip: str
    input: int
    output: int


def _no_module(name: str) -> str:
    raise NotApplicable(f"kernel module {name} is not available for this board")


def _no_simulated_gauge() -> SimulatedGauge:
    raise BadInput(
        'the simulated gauge requires a virtual board that the plan boots (board = "virtual"); '
        "otherwise give the port of a real gauge"
    )


def _no_costs() -> None:
    """Return None: the costs of a board without a cost model."""


def _nothing() -> None:
    """Do nothing: a measurement that is followed ends by the task's own signal."""


@dataclass(frozen=True)
class Booted:
    """A board in one configuration, ready to be used.

    ``probe``: path of the probe on the board.  ``marks``: marks of every recording made here, such as ``emulated``.
    ``wires``: pins connected by construction, None if a plan must name them.  ``last_words``: return why the board is
    gone, if known.  ``module``: return the path on the board of a kernel module, built or installed; raises
    NotApplicable.  ``wire_gauge``: return a simulated gauge on simulated pins, which ends with the board; raises
    BadInput for a board without them.  ``start_load``: a load for a number of CPUs and of seconds, on a board that does
    not start it by commands of the bench.  ``interrupt``: end a measurement that tells nothing before its end.
    ``set_phase``: by how many ns of the board's time later the next measurements begin; None if the begin of a
    measurement is not exact.  ``watch``: context in which a command records beside the next measurement, and the
    function that returns afterwards what it did; None on a board where the bench starts and ends it.  ``costs``: return
    what a cost model counted for the last measurement, None without one.  ``kernel``: the fact of that name, as read at
    the boot; empty on a board that boots its configurations itself.
    """

    link: Link
    configuration: Configuration
    probe: str
    marks: tuple[str, ...] = ()
    wires: Wires | None = None
    last_words: Callable[[], list[str]] = list
    module: Callable[[str], str] = _no_module
    wire_gauge: Callable[[], SimulatedGauge] = _no_simulated_gauge
    start_load: Callable[[Load, int, float], StartedLoad] | None = None
    interrupt: Callable[[], None] = _nothing
    set_phase: Callable[[int], None] | None = None
    watch: Callable[[Sequence[str]], AbstractContextManager[Callable[[], Completed]]] | None = None
    costs: Callable[[], bytes | None] = _no_costs
    kernel: Mapping[str, Any] = field(default_factory=dict)


class Board(Protocol):
    """A board that can be booted in one or more configurations.

    ``name``: the user's name for it, such as ``local``, ``virtual:rt``, ``ssh://user@host:22``.
    """

    @property
    def name(self) -> str: ...

    def configurations(self) -> tuple[str, ...]:
        """Return its configurations; ``("as-booted",)`` if the bench does not boot it and any name is allowed."""

    def boot(self, configuration: str) -> AbstractContextManager[Booted]:
        """Context with the board in that configuration; everything started for it ends with the context.

        Raises NotApplicable for a missing tool, FastenoughError if the board does not boot, BadInput for an unknown
        configuration.
        """


_MOST_CHARACTERS = 64


def valid_configuration_name(configuration: str) -> str:
    """Return the name of a configuration; raise BadInput for one that does not fit heads, titles and tables."""
    if not 0 < len(configuration) <= _MOST_CHARACTERS or not configuration.isprintable() or configuration[:1] == " ":
        raise BadInput(
            f"configuration {configuration[:_MOST_CHARACTERS]!r} is invalid; use at most "
            f"{_MOST_CHARACTERS} letters, digits, punctuation marks and spaces"
        )
    return configuration


def require_configuration(board: Board, configuration: str) -> None:
    """Raise BadInput for a configuration that the board does not have."""
    known = board.configurations()
    if known != (AS_BOOTED,) and configuration not in known:
        raise BadInput(f"board {board.name} has no configuration {configuration!r}; use one of {', '.join(known)}")


def configuration_in(profile: Mapping[str, Any], name: str = AS_BOOTED) -> Configuration:
    """Return the configuration in a profile, None for unknown values; without a name it is named by its kernel."""
    kernel, config = profile.get("kernel") or {}, profile.get("kernel_config") or {}
    kernel_name = f"{kernel.get('release', 'unknown')} {kernel.get('version', '')}".strip()
    return Configuration(
        kernel_name if name == AS_BOOTED else name, kernel.get("release"), config.get("sha256"), profile.get("cmdline")
    )


_RT = "preempt-rt"
_NAMES_RT = re.compile(r"(?<![a-z])rt(?![a-z])", re.IGNORECASE)
_NAMES_STOCK = re.compile(r"(?<![a-z])stock(?![a-z])", re.IGNORECASE)
"""Words in the name of a configuration that name the preemption model of its kernel."""
_MARKED = {"emulated": EMULATED, "hypervisor": "virtual-machine"}
"""Facts that limit what a measurement shows about speed, and the mark of a recording for each."""


def marks_in(profile: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the marks that a profile requires in every recording of the board."""
    return tuple(mark for fact, mark in _MARKED.items() if profile.get(fact))


def kernel_profile(link: Link) -> Mapping[str, Any]:
    """Read the facts that identify the configuration of a board."""
    return collect(link, ("kernel", "kernel_config", "cmdline"))


def checked_profile(link: Link, name: str) -> Mapping[str, Any]:
    """Return these facts of a board measured as booted; raise BadInput if the name contradicts the kernel."""
    profile = kernel_profile(link)
    require_name(profile, name)
    return profile


def require_name(profile: Mapping[str, Any], name: str) -> None:
    """Raise BadInput if the name of a configuration contradicts the kernel in the profile."""
    fault = name_fault(profile.get("kernel") or {}, name)
    if fault:
        raise BadInput(f"{fault}; boot the kernel that matches the name, or choose another name")


def name_fault(kernel: Mapping[str, Any], name: str) -> str:
    """Return how the name of a configuration contradicts the running kernel; empty if it does not."""
    preemption = kernel.get("preemption")
    for pattern, is_rt in ((_NAMES_RT, True), (_NAMES_STOCK, False)):
        if preemption and pattern.search(name) and (preemption == _RT) != is_rt:
            runs = f"the board runs kernel {kernel.get('release')} with preemption {preemption}"
            meant = f"a kernel {'with' if is_rt else 'without'} PREEMPT_RT"
            return f"configuration {name}: {runs}, but the name means {meant}"
    return ""


def configuration_of(link: Link, name: str) -> Configuration:
    """Read the configuration of a board from the board itself."""
    return configuration_in(kernel_profile(link), name)


def installed_module(link: Link, name: str) -> str:
    """Return the path of a module that DKMS installed for the running kernel; raise NotApplicable without one."""
    if link.which("modinfo") is None:
        raise NotApplicable("modinfo is missing; install it: apt-get install kmod")
    modinfo = link.run(["modinfo", "-n", name])
    if modinfo.status:
        raise NotApplicable(
            f"kernel module {name} is not installed on the board; see docs/module.md, or remove "
            "the in-kernel implementations from the plan"
        )
    return modinfo.text.strip()
