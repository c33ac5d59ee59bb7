# SPDX-License-Identifier: GPL-2.0-or-later
"""The plan of an experiment: which tasks, implementations and configurations, on which board, by which instrument."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fastenough.campaign.plan import read_toml
from fastenough.loads import LOADS
from fastenough.model import BadInput
from fastenough.settings import SETTINGS
from fastenough.units import parse_duration_ns
from fastenough.virtual.packages import KERNELS
from fastenough.virtual.pins import CHIP, INPUT_LINE, OUTPUT_LINE

SIMULATED = "simulated"
VIRTUAL = "virtual"
IMPLEMENTATIONS = ("linux-user", "linux-kernel")
PROBES = ("response", "periodic")
_TIMES: dict[str, dict[str, str]] = {
    "response": {"min": "3us", "max": "7071us", "timeout": "1s"},
    "periodic": {"period": "7071us", "timeout": "1s"},
}
"""The paper's, in full: a wait between 3 and 7071 µs, a period of 7071 µs."""
_KEYS = ("name", "board", "instrument", "configurations", "implementations", "loads", "duration", "settings", "pins",
         "response", "periodic", "self-test", "calibration")


@dataclass(frozen=True)
class Wires:
    """The chip's label and the offsets of the board's input and output."""

    chip: str = CHIP
    input: int = INPUT_LINE
    output: int = OUTPUT_LINE


@dataclass(frozen=True)
class Cell:
    """One run of the instrument: a task, how it is implemented, on which configuration, under which load."""

    probe: str
    implementation: str
    configuration: str
    load: str


@dataclass(frozen=True)
class Experiment:
    """``times_ns`` by probe: ``min``, ``max`` and ``timeout`` of a response, ``period`` and ``timeout`` of a period.

    ``self_test`` and ``calibration``: files with what is known of a real gauge; empty where there is none.
    """

    name: str
    board: str
    instrument: str
    configurations: tuple[str, ...]
    implementations: tuple[str, ...]
    loads: tuple[str, ...]
    duration_ns: int
    times_ns: Mapping[str, Mapping[str, int]]
    settings: Mapping[str, str | int] = field(default_factory=dict)
    wires: Wires = field(default_factory=Wires)
    self_test: str = ""
    calibration: str = ""

    def cells(self) -> list[Cell]:
        """All of them, so that a board is booted once for each configuration."""
        return [Cell(probe, implementation, configuration, load) for configuration in self.configurations
                for probe in self.times_ns for implementation in self.implementations for load in self.loads]

    @property
    def sha256(self) -> str:
        """Equal for plans that would make the same runs."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


def _content(path: Path) -> dict[str, Any]:
    return read_toml(path, "campaigns/brown-martin.toml")


def is_experiment(path: Path) -> bool:
    """Whether a plan names an instrument, and is thus read here; raises BadInput for what cannot be read."""
    return "instrument" in _content(path)


class _Reader:
    """Takes keys of a TOML table one by one; every complaint names file and key."""

    def __init__(self, where: str, content: Any) -> None:
        if not isinstance(content, dict):
            raise BadInput(f"{where}: must be a table")
        self._where, self._content = where, content

    def fail(self, key: str, mend: str) -> BadInput:
        return BadInput(f"{self._where}: {key} = {self._content.get(key)!r} cannot be used; {mend}")

    def text(self, key: str, default: str | None = None) -> str:
        value = self._content.get(key, default)
        if not isinstance(value, str) or not value:
            raise self.fail(key, 'write a text in quotes')
        return value

    def names(self, key: str, known: Mapping[str, Any] | tuple[str, ...], default: tuple[str, ...]) -> tuple[str, ...]:
        value = self._content.get(key, list(default))
        names = value if isinstance(value, list) else []
        if not names or not all(isinstance(name, str) and name in known for name in names) or (
                len(set(names)) != len(names)):
            raise self.fail(key, f"write a list, each once, of {', '.join(known)}")
        return tuple(names)

    def words(self, key: str) -> tuple[str, ...]:
        value = self._content.get(key)
        if not isinstance(value, list) or not value or not all(isinstance(word, str) and word for word in value):
            raise self.fail(key, 'write a list of texts, such as ["stock"]')
        return tuple(value)

    def duration_ns(self, key: str, default: str) -> int:
        try:
            return parse_duration_ns(str(self._content.get(key, default)))
        except ValueError as error:
            raise self.fail(key, str(error)) from error

    def line(self, key: str) -> int:
        value = self._content.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self.fail(key, "write the offset of a line on the chip, such as 17")
        return value

    def table(self, key: str) -> dict[str, Any]:
        value = self._content.get(key, {})
        if not isinstance(value, dict):
            raise self.fail(key, f"write a table [{key}]")
        return value

    def finish(self, known: tuple[str, ...]) -> None:
        unknown = set(self._content) - set(known)
        if unknown:
            raise BadInput(f"{self._where}: unknown key {sorted(unknown)[0]!r}; use {', '.join(known)}")


def _times(where: str, probe: str, content: Any) -> dict[str, int]:
    reader = _Reader(f"{where}: [{probe}]", content)
    times = {key: reader.duration_ns(key, default) for key, default in _TIMES[probe].items()}
    reader.finish(tuple(_TIMES[probe]))
    if times.get("max", 1) < times.get("min", 0):
        raise BadInput(f"{where}: [{probe}]: max must not be below min")
    if times.get("period", 0) % 2:
        raise BadInput(f"{where}: [{probe}]: period must be an even number of ns: the pin is toggled twice in it")
    if times["timeout"] <= times.get("period", 0):
        raise BadInput(f"{where}: [{probe}]: timeout must be longer than the period")
    return times


def _wires(where: str, content: dict[str, Any], board: str) -> Wires:
    if board == VIRTUAL and not content:
        return Wires()
    reader = _Reader(f"{where}: [pins]", content)
    wires = Wires(reader.text("chip"), reader.line("in"), reader.line("out"))
    reader.finish(("chip", "in", "out"))
    if wires.input == wires.output:
        raise BadInput(f"{where}: [pins]: in and out must be two lines, not both {wires.input}")
    return wires


def _settings(where: str, content: dict[str, Any]) -> dict[str, str | int]:
    for name, wish in content.items():
        if name not in SETTINGS:
            raise BadInput(f"{where}: [settings]: no setting is called {name!r}; use {', '.join(SETTINGS)}")
        if not isinstance(wish, str | int):
            raise BadInput(f"{where}: [settings]: {name} = {wish!r} cannot be used; write a text or a number")
    return content


def _calibration(path: Path, content: Mapping[str, Any], board: str) -> str:
    """Beside the plan, too; without one the clock is compared with the bench's before each configuration."""
    name = content.get("calibration", "")
    if not isinstance(name, str) or (name and board == VIRTUAL):
        raise BadInput(f"{path}: calibration = {name!r} cannot be used; name the file that fastenough gauge calibrate "
                       "--json made of a real gauge, or leave it out")
    return str(path.parent / name) if name else ""


def _self_test(path: Path, content: Mapping[str, Any], board: str) -> str:
    """Beside the plan, where its name is relative; a gauge whose own offset is not known measures nothing."""
    name = content.get("self-test")
    if (name is None) != (board == VIRTUAL) or not isinstance(name, str | None) or name == "":
        raise BadInput(f'{path}: self-test = {name!r} cannot be used; ' + (
            "the simulated gauge makes its own: leave it out" if board == VIRTUAL else
            "the gauge's own offset must be known: wire its output to its input, run fastenough gauge selftest --json "
            '>gauge.json, and write self-test = "gauge.json"'))
    return str(path.parent / name) if name else ""


def read_experiment(path: Path) -> Experiment:
    """The experiment a TOML file describes; raises BadInput naming file, key and mend."""
    where, content = str(path), _content(path)
    reader = _Reader(where, content)
    reader.finish(_KEYS)
    board, instrument = reader.text("board", VIRTUAL), reader.text("instrument")
    if (board == VIRTUAL) != (instrument == SIMULATED):
        raise BadInput(f'{where}: board = "{VIRTUAL}" and instrument = "{SIMULATED}" go together; a real board takes '
                       'the port of a real gauge, such as instrument = "/dev/ttyACM0"')
    configurations = (reader.names("configurations", KERNELS, ("stock", "rt")) if board == VIRTUAL
                      else reader.words("configurations"))
    if board != VIRTUAL and len(configurations) != 1:
        raise BadInput(f"{where}: configurations: a real board is measured as it is booted: give the one name of that")
    probes = [probe for probe in PROBES if probe in content] or list(PROBES)
    return Experiment(
        reader.text("name"), board, instrument, configurations,
        reader.names("implementations", IMPLEMENTATIONS, IMPLEMENTATIONS), reader.names("loads", LOADS, ("none",)),
        reader.duration_ns("duration", "30s"), {probe: _times(where, probe, reader.table(probe)) for probe in probes},
        _settings(where, reader.table("settings")), _wires(where, reader.table("pins"), board),
        _self_test(path, content, board), _calibration(path, content, board))
