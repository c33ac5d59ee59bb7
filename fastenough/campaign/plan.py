# SPDX-License-Identifier: GPL-2.0-or-later
"""What a plan says: boards and their configurations, what is measured on each, by what, and under which loads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fastenough.board import AS_BOOTED, Wires
from fastenough.board.configuration import ConfigurationChange
from fastenough.implementations import DEFAULT, Value
from fastenough.loads import Load, find_load
from fastenough.model import BadInput, Requirement
from fastenough.units import parse_duration_ns
from fastenough.virtual.module import CHECKOUT

SIMULATED = "simulated"
"""The instrument that is wired to a board of the virtual bench."""
DEFAULT_BOARD = "local"
WARM_UP_S = 1.0
BY_KERNEL = {"timerlat": "timerlat", "wakeups": "wakeup-histograms"}
"""Probes that only read what the kernel measures, and the setting that lets it."""
BREAK = "breaktrace"
"""The parameter for the threshold that ends a run; what the kernel did before is then kept, where it can be."""
GPIO_PROBES = {"response": ("chip", "in", "out"), "periodic": ("chip", "out")}
"""Probes that an instrument can measure, and the pins each has."""

Fault = Callable[..., BadInput]


def parse_duration_s(duration: str | float) -> float:
    """Seconds out of a text with a unit, such as ``"90s"`` or ``"12h"``, or a number of seconds; raises BadInput."""
    try:
        return parse_duration_ns(duration if isinstance(duration, str) else f"{duration}s") / 1e9
    except ValueError as error:
        raise BadInput(str(error)) from error


def plain_fault(message: str, *key: str) -> BadInput:
    """A complaint about something that stands in no file."""
    return BadInput(message)


@dataclass(frozen=True)
class Entry:
    """One probe over all combinations of implementations, its parameters' values and the loads, ``repeat`` times.

    ``requirement``: what these runs are judged by.  ``keys``: values of keys of :mod:`run_keys` that act during the
    runs.  ``fault``: makes a complaint about one of its keys, with its place in the file.
    """

    probe: str
    loads: tuple[str, ...]
    duration_s: float
    parameters: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    repeat: int = 1
    implementations: tuple[str, ...] = (DEFAULT,)
    warm_up_s: float = WARM_UP_S
    requirement: Requirement | None = None
    keys: Mapping[str, Value] = field(default_factory=dict)
    fault: Fault = field(default=plain_fault, compare=False, repr=False)


@dataclass(frozen=True)
class Instrument:
    """A gauge beside the board: ``simulated``, or its port or serial number.

    ``self_test`` and ``calibration``: files with what is known of a real gauge; empty where there is none.
    """

    port: str
    self_test: str = ""
    calibration: str = ""

    @property
    def simulated(self) -> bool:
        return self.port == SIMULATED


@dataclass(frozen=True)
class Plan:
    """What is to be measured.

    ``boards`` is empty where the command says it.  ``settings`` hold for each configuration from its first run to its
    last; ``loads`` are those that the plan itself defines; ``wires`` is None where the board knows them.
    ``monitor``: beside each run, the stations of its wake-ups in the kernel are recorded.  ``changes``: how boards
    that do not boot by themselves come into a configuration.  ``title`` and ``question`` head the report; ``text`` is
    that of the file, kept with every run, empty where there was none.  ``fault``: makes a complaint about one of its
    keys.
    """

    name: str
    entries: tuple[Entry, ...]
    settings: Mapping[str, Value] = field(default_factory=dict)
    loads: Mapping[str, Load] = field(default_factory=dict)
    boards: tuple[str, ...] = ()
    configurations: tuple[str, ...] = (AS_BOOTED,)
    instrument: Instrument | None = None
    wires: Wires | None = None
    monitor: bool = False
    changes: Mapping[str, ConfigurationChange] = field(default_factory=dict)
    title: str = ""
    question: str = ""
    text: str = ""
    fault: Fault = field(default=plain_fault, compare=False, repr=False)

    def load(self, name: str) -> Load:
        return self.loads[name] if name in self.loads else find_load(name)


def shipped_plans() -> dict[str, Path]:
    """By name."""
    return {path.stem: path for path in sorted((CHECKOUT / "campaigns").glob("*.toml"))}
