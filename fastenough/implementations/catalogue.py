# SPDX-License-Identifier: GPL-2.0-or-later
"""The probes and their parameters, as the probe program lists them; plans are checked against them at the start."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fastenough import words
from fastenough.link import Link, LocalLink, find_probe
from fastenough.model import BadInput
from fastenough.units import parse_duration_ns

Value = str | int | float | bool
"""Type of a parameter's value; True: an option without a value; False: the option is omitted."""

BENCH_OWN = {
    "duration": "use --duration, or the key duration of a plan",
    "until-interrupt": "the bench ends the act itself",
    "record": "runs are recorded into the store; use --store for another one",
    "interval-k": "the store has intervals at full resolution",
    "ring": "rings are for services, see docs/monitor-service.md; runs are recorded into the store",
    "ring-cycle": "rings are for services, see docs/monitor-service.md",
    "ring-keep": "rings are for services, see docs/monitor-service.md",
    "ring-mib": "rings are for services, see docs/monitor-service.md",
    "samples": "only the probe itself stores every sample, see fastenough-probe timer --help",
    "run-id": "the store names its runs",
    "json": "use the option --json of the command",
    "histogram": "see the report",
    "histofall": "see the report",
    "histfile": "see the report",
    "nsecs": "the bench prints no output of the probe",
    "mainaffinity": "use housekeeping",
    "quiet": "the bench prints no output of the probe",
    "thread-name": "the bench sets it if a monitor runs beside the probe",
    "trace-switch": "use --break for a trace, see docs/trace.md",
}
"""Options of the probe that the bench sets itself or does not use, and what to use instead."""
_INTEGER = re.compile(r"-?\d{1,18}")
CONFLICTING_PARAMETERS = (
    "policy",
    "priority",
    "interval",
    "deadline",
    "runtime",
    "allow-difference",
    "warm-up",
    "loops",
    "deepest-idle-state",
    "latency",
    "default-system",
)
"""Parameters of which some values exclude each other."""
_CPUS = re.compile(r"!?\d{1,5}(-\d{1,5})?(,\d{1,5}(-\d{1,5})?)*")
_LATENCY = re.compile(r"\d{1,10}|off")
_WITH_PRIORITY = (None, "fifo", "rr")
"""Policies of threads that have a real-time priority; None: the default."""
_PERIOD = "1ms"
"""The probe's default interval."""
_OPTION = re.compile(r"--([a-z][a-z-]*)(?: (\d\S*|off|fifo|rr|deadline|other)(?=[;,.)]|\s|$))?")


@dataclass(frozen=True)
class Parameter:
    """One option of a probe.  ``kind``: flag, integer, duration, choice, text or cpus."""

    name: str
    kind: str
    help: str
    choices: tuple[str, ...] = ()
    low: int | None = None
    high: int | None = None


@dataclass(frozen=True)
class ProbeEntry:
    """A probe with its own parameters and those that all probes share."""

    name: str
    summary: str
    own: tuple[Parameter, ...]
    common: tuple[Parameter, ...]

    def find(self, name: str) -> Parameter | None:
        return next((parameter for parameter in (*self.own, *self.common) if parameter.name == name), None)


def _parameter(option: Mapping[str, Any]) -> Parameter:
    return Parameter(
        option["name"],
        option["kind"],
        " ".join(in_parameters(option["help"]).split()),
        tuple(option.get("choices", ())),
        option.get("low"),
        option.get("high"),
    )


def _parameters(options: list[Mapping[str, Any]]) -> tuple[Parameter, ...]:
    return tuple(_parameter(option) for option in options if option["name"] not in BENCH_OWN)


def read_catalogue(link: Link, probe: str) -> dict[str, ProbeEntry]:
    """The probes of a program on a board, by name; raises BadInput for a program that does not list them."""
    result = link.run([probe, "--list-json"])
    try:
        catalogue = json.loads(result.stdout)
        act_options, watcher_options = (
            _parameters([option for option in catalogue["options"] if not (watcher and option["acts"])])
            for watcher in (False, True)
        )
        return {
            entry["name"]: ProbeEntry(
                entry["name"],
                entry["summary"],
                _parameters(entry["options"]),
                watcher_options if entry["watches"] else act_options,
            )
            for entry in catalogue["probes"]
        }
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{probe} does not list its probes; build probe and bench from the same version") from error


def local_catalogue() -> dict[str, ProbeEntry]:
    """The probes of the installed probe binary; raises NotApplicable if there is none."""
    link = LocalLink()
    return read_catalogue(link, find_probe(link))


def in_parameters(text: str) -> str:
    """A help text of the probe, with options written as ``name=value``."""
    return _OPTION.sub(lambda match: f"{match[1]}={match[2]}" if match[2] else match[1], text)


def check_parameters(
    probe_name: str, parameters: Mapping[str, Iterable[Value]], catalogue: Mapping[str, ProbeEntry]
) -> None:
    """Raise BadInput for an unknown probe or parameter, or an invalid value, as far as the catalogue shows."""
    if probe_name not in catalogue:
        raise BadInput(f"unknown probe '{probe_name}'; use one of {', '.join(catalogue)} (see fastenough list-probes)")
    probe = catalogue[probe_name]
    for name, values in parameters.items():
        if name in BENCH_OWN:
            raise BadInput(f"{name} is not a parameter of a run: {BENCH_OWN[name]}")
        parameter = probe.find(name)
        if parameter is None:
            raise BadInput(f"probe {probe.name} has no parameter '{name}'; see fastenough list-probes {probe.name}")
        for value in values:
            check_value(parameter, value)


def check_value(parameter: Parameter, value: Value) -> None:
    """Raise BadInput for a value of another kind, or out of range."""
    name = parameter.name
    if parameter.kind == "flag":
        if not isinstance(value, bool):
            raise BadInput(f"{name}={value}: {name} takes no value; write {name} alone")
    elif parameter.kind == "choice" and str(value) not in parameter.choices:
        raise BadInput(f"{name}={value} is not known; choose one of {', '.join(parameter.choices)}")
    elif parameter.kind == "cpus" and not isinstance(value, bool) and not _is_cpu_list(str(value)):
        raise BadInput(f"{name}={value} is not a list of CPUs; write them as 0-3,5, or !0-3,5 for all but those")
    elif isinstance(value, bool) and parameter.kind not in ("cpus", "integer"):
        raise BadInput(f"{name}: a value is missing; write {name}={_example(parameter)}")
    elif parameter.kind == "duration":
        _check_range(parameter, value, _duration_ns(name, str(value)))
    elif parameter.kind == "integer" and not isinstance(value, bool):
        if not _INTEGER.fullmatch(str(value)):
            raise BadInput(f"{name}={value} is not a whole number; write {name}={_example(parameter)}")
        _check_range(parameter, value, int(str(value)))
    elif name == "latency" and not _LATENCY.fullmatch(str(value)):
        raise BadInput(f"latency={value} is neither a number of us nor off")


def _is_cpu_list(text: str) -> bool:
    """Whether the probe reads it as a list of CPUs; an empty one stands for the default."""
    if text and not _CPUS.fullmatch(text):
        return False
    ranges = (part.partition("-") for part in text.removeprefix("!").split(","))
    return all(not last or int(first) <= int(last) for first, _, last in ranges)


def _duration_ns(name: str, text: str) -> int:
    if text == "0":
        return 0
    if text.replace(".", "", 1).isdigit():
        raise BadInput(f"{name}={text} has no unit; write {name}={text}us or {name}={text}ns")
    try:
        return parse_duration_ns(text)
    except ValueError as error:
        raise BadInput(f"{name}={error}") from error


def _check_range(parameter: Parameter, value: Value, number: int) -> None:
    low, high = parameter.low, parameter.high
    if (low is not None and number < low) or (high is not None and number > high):
        text_of = words.exact_time if parameter.kind == "duration" else str
        lowest = text_of(low) if low is not None else "any"
        highest = text_of(high) if high is not None else "any"
        raise BadInput(f"{parameter.name}={value} is out of range; choose {lowest} to {highest}")


def check_conflicts(parameters: Mapping[str, Value]) -> None:
    """Raise BadInput for values that the probe, or the kernel, refuses together; each by itself is valid."""
    named = {name: value for name, value in parameters.items() if value is not False}
    policy = named.get("policy")
    if "priority" in named and policy not in _WITH_PRIORITY:
        raise BadInput(f"priority has no effect with policy={policy}; omit it")
    if policy != "deadline" and not named.keys().isdisjoint(("runtime", "deadline")):
        raise BadInput("runtime and deadline are for policy=deadline")
    if all(str(named.get(name, 0)) != "0" for name in ("warm-up", "loops")):
        raise BadInput("warm-up cannot be combined with loops; use the duration instead of loops")
    if "deepest-idle-state" in named and not named.keys().isdisjoint(("latency", "default-system")):
        raise BadInput("deepest-idle-state conflicts with latency and default-system; give only one of them")
    _check_deadline(named)


def _check_deadline(parameters: Mapping[str, Value]) -> None:
    """Raise BadInput for times that the kernel refuses with policy=deadline."""
    if parameters.get("policy") != "deadline" or parameters.get("allow-difference"):
        return
    period_ns = _duration_ns("interval", str(parameters.get("interval", _PERIOD)))
    deadline_ns = _duration_ns("deadline", str(parameters["deadline"])) if "deadline" in parameters else period_ns
    runtime_ns = _duration_ns("runtime", str(parameters["runtime"])) if "runtime" in parameters else deadline_ns // 5
    if not runtime_ns <= deadline_ns <= period_ns:
        raise BadInput(
            f"policy=deadline: runtime {words.exact_time(runtime_ns)}, deadline {words.exact_time(deadline_ns)}, "
            f"period {words.exact_time(period_ns)}: each must be at most the next"
        )


def _example(parameter: Parameter) -> str:
    return {"duration": "200us", "choice": parameter.choices[0] if parameter.choices else "", "integer": "1"}.get(
        parameter.kind, "TEXT"
    )
