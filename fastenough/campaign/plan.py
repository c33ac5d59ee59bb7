# SPDX-License-Identifier: GPL-2.0-or-later
"""The plan of a campaign: boards, configurations, probes, implementations and loads."""

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
"""Name of the instrument connected to a board of the virtual bench."""
DEFAULT_BOARD = "local"
WARM_UP_S = 1.0
BY_KERNEL = {"timerlat": "timerlat", "wakeups": "wakeup-histograms"}
"""Probes that read measurements of the kernel, and the setting that enables these."""
BREAK = "breaktrace"
"""Parameter for the threshold that ends a run; the kernel trace before it is then stored if possible."""
GPIO_PROBES = {"response": ("chip", "in", "out"), "periodic": ("chip", "out")}
"""Probes that an instrument can measure, and the pins of each."""

Fault = Callable[..., BadInput]


def parse_duration_s(duration: str | float) -> float:
    """Return seconds from a text with a unit, such as ``"90s"``, or from a number of seconds; raise BadInput."""
    try:
        return parse_duration_ns(duration if isinstance(duration, str) else f"{duration}s") / 1e9
    except ValueError as error:
        raise BadInput(str(error)) from error


def plain_fault(message: str, *key: str) -> BadInput:
    """Return an error about input that is not from a file."""
    return BadInput(message)


@dataclass(frozen=True)
class Entry:
    """One probe over all combinations of implementations, its parameters' values and the loads, ``repeat`` times.

    ``requirement``: criterion for the verdict of these runs.  ``keys``: values of keys of :mod:`run_keys` that act
    during the runs.  ``phases``: number of runs that differ only in their phase; a single run has ``phase_ns``, if any.
    ``fault``: return an error about one of the entry's keys, with its line in the file.
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
    phases: int = 1
    fault: Fault = field(default=plain_fault, compare=False, repr=False)
    phase_ns: int | None = None


@dataclass(frozen=True)
class Instrument:
    """The gauge of a plan: ``simulated``, or its port or serial number.

    ``self_test`` and ``calibration``: files of a real gauge; empty without such a file.
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

    ``boards`` is empty if the command gives the board.  ``settings`` hold for each configuration from its first run to
    its last; ``loads`` are defined by the plan itself; ``wires`` is None if the board knows its wires.  ``monitor``:
    record the stations of each run's wake-ups in the kernel.  ``changes``: how boards that do not boot their
    configurations themselves are changed.  ``title`` and ``question`` head the report; ``text``: text of the file,
    stored with every run, empty without a file.  ``guest``: hash of the only guest whose runs are those of this plan;
    empty if any board's are.  ``fault``: return an error about one of the plan's keys.
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
    guest: str = ""

    def load(self, name: str) -> Load:
        return self.loads[name] if name in self.loads else find_load(name)


def shipped_plans() -> dict[str, Path]:
    """Return the paths of the plans that come with fastenough, by name."""
    return {path.stem: path for path in sorted((CHECKOUT / "campaigns").glob("*.toml"))}
