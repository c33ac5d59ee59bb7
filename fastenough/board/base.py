# SPDX-License-Identifier: GPL-2.0-or-later
"""What a board is: a way to touch it (a link), and a way to boot it in one of its configurations."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from fastenough.facts import collect
from fastenough.link import Link
from fastenough.model import EMULATED, BadInput, Configuration, NotApplicable
from fastenough.virtual.gauge import SimulatedGauge

AS_BOOTED = "as-booted"
"""The configuration of a board that is measured as it is found."""


@dataclass(frozen=True)
class Wires:
    """Where an instrument is connected: the GPIO chip's label, and the offsets of the board's input and output."""

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


@dataclass(frozen=True)
class Booted:
    """A board in one configuration, ready to be used.

    ``probe``: path of the probe on the board.  ``marks``: what every recording made here says, such as ``emulated``.
    ``wires``: where the board's pins are connected by construction, None where a plan has to say it.
    ``last_words``: why the board is gone, as far as that is known.  ``module``: name of a kernel module to its path on
    the board, built or installed; raises NotApplicable.  ``wire_gauge``: a simulated gauge on simulated pins, which
    ends with the board; raises BadInput where there are none.
    """

    link: Link
    configuration: Configuration
    probe: str
    marks: tuple[str, ...] = ()
    wires: Wires | None = None
    last_words: Callable[[], list[str]] = list
    module: Callable[[str], str] = _no_module
    wire_gauge: Callable[[], SimulatedGauge] = _no_simulated_gauge


class Board(Protocol):
    """A board that can be booted in one or more configurations.

    ``name`` is what a person writes to mean it: ``local``, ``virtual:rt``, ``ssh://user@host:22``.
    """

    @property
    def name(self) -> str: ...

    def configurations(self) -> tuple[str, ...]:
        """What it can boot; ``("as-booted",)`` where it is measured as it is found, under whatever name."""

    def boot(self, configuration: str) -> AbstractContextManager[Booted]:
        """The board in that configuration; nothing that was started for it is left when the context ends.

        Raises NotApplicable where a tool is missing, FastenoughError when the board does not come up, BadInput for a
        configuration that it does not have.
        """


_MOST_CHARACTERS = 64


def valid_configuration_name(configuration: str) -> str:
    """The name of a configuration, which stands in heads, titles and tables; raises BadInput for one that cannot."""
    if not 0 < len(configuration) <= _MOST_CHARACTERS or not configuration.isprintable() or configuration[:1] == " ":
        raise BadInput(
            f"configuration {configuration[:_MOST_CHARACTERS]!r} is invalid; use at most "
            f"{_MOST_CHARACTERS} letters, digits, punctuation marks and spaces"
        )
    return configuration


def require_configuration(board: Board, configuration: str) -> None:
    """Raises BadInput for a configuration that the board cannot be booted in."""
    known = board.configurations()
    if known != (AS_BOOTED,) and configuration not in known:
        raise BadInput(f"board {board.name} has no configuration {configuration!r}; use one of {', '.join(known)}")


def configuration_in(profile: Mapping[str, Any], name: str = AS_BOOTED) -> Configuration:
    """What a profile says was booted, None for what it does not; named by its kernel where nobody has named it."""
    kernel, config = profile.get("kernel") or {}, profile.get("kernel_config") or {}
    found = f"{kernel.get('release', 'unknown')} {kernel.get('version', '')}".strip()
    return Configuration(
        found if name == AS_BOOTED else name, kernel.get("release"), config.get("sha256"), profile.get("cmdline")
    )


_RT = "preempt-rt"
_SAYS_RT = re.compile(r"(?<![a-z])rt(?![a-z])", re.IGNORECASE)
_SAYS_STOCK = re.compile(r"(?<![a-z])stock(?![a-z])", re.IGNORECASE)
"""Words in the name of a configuration that say which kernel is booted."""
_MARKED = {"emulated": EMULATED, "hypervisor": "virtual-machine"}
"""Facts that make what a board measures say little of speed, and the mark of a recording for each."""


def marks_in(profile: Mapping[str, Any]) -> tuple[str, ...]:
    """What a profile says of the board that every recording made there must carry."""
    return tuple(mark for fact, mark in _MARKED.items() if profile.get(fact))


def checked_configuration(link: Link, name: str) -> Configuration:
    """The same of a board that is measured as booted; raises BadInput where the name says another kernel than runs."""
    profile = collect(link, ("kernel", "kernel_config", "cmdline"))
    kernel = profile.get("kernel") or {}
    preemption = kernel.get("preemption")
    for says, is_rt in ((_SAYS_RT, True), (_SAYS_STOCK, False)):
        if preemption and says.search(name) and (preemption == _RT) != is_rt:
            raise BadInput(
                f"configuration {name}: this board runs {kernel.get('release')}, preemption {preemption}; "
                "boot the kernel that matches the name, or choose another name"
            )
    return configuration_in(profile, name)


def configuration_of(link: Link, name: str) -> Configuration:
    """What a board runs, read from the board itself."""
    return configuration_in(collect(link, ("kernel", "kernel_config", "cmdline")), name)


def installed_module(link: Link, name: str) -> str:
    """Where DKMS has put a module of the running kernel; raises NotApplicable where it has not."""
    if link.which("modinfo") is None:
        raise NotApplicable("modinfo is missing; install it: apt-get install kmod")
    found = link.run(["modinfo", "-n", name])
    if found.status:
        raise NotApplicable(
            f"kernel module {name} is not installed on the board; see docs/module.md, or remove "
            "the in-kernel implementations from the plan"
        )
    return found.text.strip()
