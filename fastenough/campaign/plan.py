# SPDX-License-Identifier: GPL-2.0-or-later
"""A plan, its file form, and the runs it expands into."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastenough.files import Untrusted, read_regular
from fastenough.loads import LOADS, Expectation, Load, find_load
from fastenough.model import BadInput
from fastenough.settings import SETTINGS
from fastenough.units import parse_duration_ns

Value = str | int | float | bool

OWN = ", the board's own"
"""How the title of a run ends that is the board's recording of what the instrument measured in the run before it."""

MOST_BYTES = 1 << 20
MOST_RUNS = 100_000
"""More than this no plan has that a person means: it fills the memory before it fills the years."""

_NAME = re.compile(r"[a-z][a-z0-9-]*\Z")


def parse_duration_s(wish: str | float) -> float:
    """Seconds out of a text with a unit, such as ``"90s"`` or ``"12h"``, or a number of seconds; raises BadInput."""
    try:
        return parse_duration_ns(wish if isinstance(wish, str) else f"{wish}s") / 1e9
    except ValueError as error:
        raise BadInput(str(error)) from error


@dataclass(frozen=True)
class RunSpec:
    """One run to be made.  ``parameters`` become the probe's long options; ``position`` counts from 0."""

    position: int
    probe: str
    parameters: Mapping[str, Value]
    load: str
    duration_s: float

    def key(self) -> dict[str, Any]:
        """What makes this run the same as another, in a form that hashes alike everywhere."""
        return {"position": self.position, "probe": self.probe, "parameters": dict(sorted(self.parameters.items())),
                "load": self.load, "duration_s": self.duration_s}

    @property
    def title(self) -> str:
        """In words, which run of the plan this is."""
        words = [self.probe, *(name if value is True else f"{name}={value}"
                               for name, value in self.parameters.items())]
        return f"{' '.join(words)}, load {self.load}"

    def probe_arguments(self) -> list[str]:
        """The probe's command line after its name."""
        words = [self.probe]
        for name, value in self.parameters.items():
            if value is True:
                words.append(f"--{name}")
            elif value is not False:
                words.append(f"--{name}={value}")
        return [*words, f"--duration={max(1, round(self.duration_s * 1000))}ms", "--record=-"]


@dataclass(frozen=True)
class Entry:
    """One probe over all combinations of its parameters' values and the loads, ``repeat`` times."""

    probe: str
    loads: tuple[str, ...]
    duration_s: float
    parameters: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    repeat: int = 1


@dataclass(frozen=True)
class Plan:
    """What is to be measured.  ``loads`` holds user-written ones; ``settings`` are applied for the whole campaign."""

    name: str
    entries: tuple[Entry, ...]
    settings: Mapping[str, Value] = field(default_factory=dict)
    loads: Mapping[str, Load] = field(default_factory=dict)

    def load(self, name: str) -> Load:
        return self.loads[name] if name in self.loads else find_load(name)


def expand(plan: Plan) -> list[RunSpec]:
    """The runs of a plan, in order: entry, repetition, parameters, load."""
    return [RunSpec(position, *rest) for position, rest in enumerate(_expanded(plan))]


def _expanded(plan: Plan) -> Iterator[tuple[str, dict[str, Value], str, float]]:
    for entry in plan.entries:
        combinations = list(itertools.product(*entry.parameters.values()))
        for _, values, load in itertools.product(range(entry.repeat), combinations, entry.loads):
            yield entry.probe, dict(zip(entry.parameters, values, strict=True)), load, entry.duration_s


def plan_sha256(plan: Plan) -> str:
    """Equal for plans that would make the same runs."""
    written = {name: [list(command) for command in load.commands] for name, load in sorted(plan.loads.items())}
    content = {"runs": [spec.key() for spec in expand(plan)], "settings": dict(sorted(plan.settings.items())),
               "loads": written}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


class _Table:
    """A TOML table that knows where it stands, so that every complaint names file and key."""

    def __init__(self, where: str, content: Any) -> None:
        if not isinstance(content, dict):
            raise BadInput(f"{where}: must be a table")
        self.where = where
        self._content = content

    def take(self, key: str, kind: type | tuple[type, ...], what: str, default: Any = None) -> Any:
        """The value of a key of the given kind, ``default`` where there is none; raises BadInput."""
        value = self._content.pop(key, default)
        if value is None:
            raise BadInput(f"{self.where}: {key} is missing; add {key} = {what}")
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if value is not default and (not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds)):
            raise BadInput(f"{self.where}: {key} = {value!r} cannot be used; write {key} = {what}")
        return value

    def duration(self, key: str, default: float | None) -> float:
        value = self.take(key, (str, int, float), '"30s"', default)
        try:
            return parse_duration_s(value)
        except BadInput as error:
            raise BadInput(f"{self.where}: {key}: {error}") from error

    def words(self, key: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        value = self.take(key, list, '["word", ...]', default)
        if not value or not all(isinstance(word, str) for word in value):
            raise BadInput(f"{self.where}: {key} must be a list of at least one word in quotes")
        return tuple(value)

    def finish(self, allowed: str) -> None:
        if self._content:
            raise BadInput(f"{self.where}: unknown key {next(iter(self._content))!r}; use {allowed}")


def _parameters(where: str, content: dict[str, Any]) -> dict[str, tuple[Value, ...]]:
    parameters: dict[str, tuple[Value, ...]] = {}
    for name, value in content.items():
        values = value if isinstance(value, list) else [value]
        if not _NAME.match(name) or not values or not all(isinstance(each, str | int | float) for each in values):
            raise BadInput(f"{where}: parameters: {name} must be an option of the probe without dashes, with a text, "
                           "number, true or false, or a list of them")
        if name in ("duration", "record", "run-id", "json"):
            raise BadInput(f"{where}: parameters: {name} is the bench's own; take it out"
                           + (" and write duration beside probe" if name == "duration" else ""))
        parameters[name] = tuple(values)
    return parameters


def _custom_load(where: str, content: Any) -> Load:
    table = _Table(where, content)
    name = table.take("name", str, '"my-load"')
    if not _NAME.match(name) or name in LOADS:
        raise BadInput(f"{where}: name {name!r} cannot be used; use lower-case letters, digits and dashes, and none "
                       f"of {', '.join(LOADS)}")
    commands = table.take("commands", list, '[["command", "argument"]]')
    if not commands or not all(isinstance(line, list) and line and all(isinstance(word, str) for word in line)
                               for line in commands):
        raise BadInput(f"{where}: commands must be a list of lists of words, such as [[\"dd\", \"if=/dev/zero\"]]")
    share = table.take("cpu-share", (int, float), "0.05", 0.001)
    if not 0 <= share <= 1:
        raise BadInput(f"{where}: cpu-share = {share} cannot be; write the share of all CPUs' time that shows that the "
                       "load ran, from 0 to 1")
    tools = table.words("tools", (commands[0][0],))
    table.finish("name, commands, tools, cpu-share")
    return Load(name, where, tools, tuple(tuple(line) for line in commands), Expectation(cpu_share=float(share)))


def _entry(where: str, content: Any, plan_loads: tuple[str, ...] | None, plan_duration_s: float | None) -> Entry:
    table = _Table(where, content)
    probe = table.take("probe", str, '"timer"')
    if not _NAME.match(probe):
        raise BadInput(f"{where}: probe {probe!r} is no name of a probe; see fastenough list-probes")
    entry = Entry(
        probe, table.words("loads", plan_loads), table.duration("duration", plan_duration_s),
        _parameters(where, table.take("parameters", dict, "a table", {})), table.take("repeat", int, "1", 1),
    )
    if entry.repeat < 1:
        raise BadInput(f"{where}: repeat must be at least 1, not {entry.repeat}")
    table.finish("probe, loads, duration, parameters, repeat")
    return entry


def plan_from(content: dict[str, Any], where: str) -> Plan:
    """The plan a parsed TOML file describes; raises BadInput naming ``where`` and the key."""
    table = _Table(where, dict(content))
    name = table.take("name", str, '"my-plan"')
    if not _NAME.match(name):
        raise BadInput(f"{where}: name {name!r} cannot be used; use lower-case letters, digits and dashes")
    loads = table.words("loads", ("none",))
    duration_s = table.duration("duration", 30.0)
    settings = table.take("settings", dict, "a table", {})
    custom = [_custom_load(f"{where}: load {number}", entry)
              for number, entry in enumerate(table.take("load", list, "[[load]] tables", []), start=1)]
    runs = table.take("run", list, 'a [[run]] table with probe = "timer"')
    table.finish("name, loads, duration, settings, [[load]], [[run]]")
    entries = tuple(_entry(f"{where}: run {number}", dict(run) if isinstance(run, dict) else run, loads, duration_s)
                    for number, run in enumerate(runs, start=1))
    runs_in_all = sum(entry.repeat * len(entry.loads) * math.prod(map(len, entry.parameters.values()))
                      for entry in entries)
    if runs_in_all > MOST_RUNS:
        raise BadInput(f"{where}: these are {runs_in_all:,} runs, more than the {MOST_RUNS:,} a plan may have; "
                       "lower repeat, or list fewer values")
    if not entries:
        raise BadInput(f"{where}: there is nothing to run; add a [[run]] table with probe = \"timer\"")
    unknown = next((setting for setting in settings if setting not in SETTINGS), None)
    if unknown is not None:
        raise BadInput(f"{where}: settings: no setting is called {unknown!r}; use {', '.join(SETTINGS)}")
    for setting, value in settings.items():
        if not isinstance(value, str | int | float):
            raise BadInput(f"{where}: settings: {setting} = {value} cannot be; write a text in quotes, a number, "
                           "true or false")
    plan = Plan(name, entries, dict(settings), {load.name: load for load in custom})
    for entry in entries:
        for load in entry.loads:
            try:
                plan.load(load)
            except BadInput as error:
                raise BadInput(f"{where}: {error}") from error
    return plan


def read_toml(path: Path, example: str) -> dict[str, Any]:
    """What a plan's file says; raises BadInput naming the file and the mend, also for a device, or more than a plan."""
    try:
        return tomllib.loads(read_regular(path.resolve(), MOST_BYTES).decode())
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}; name a plan that exists") from error
    except Untrusted as error:
        raise BadInput(f"{error}: it is no plan") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"{path}: not TOML: {error}; see {example}") from error


def read_plan(path: Path) -> Plan:
    """The plan in a TOML file; raises BadInput naming file, key and mend."""
    return plan_from(read_toml(path, "campaigns/ for examples"), str(path))
