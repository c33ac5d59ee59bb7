# SPDX-License-Identifier: GPL-2.0-or-later
"""What probes there are and what they take, as the probe itself says; plans are checked against it before anything."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fastenough import words
from fastenough.link import Link
from fastenough.model import BadInput
from fastenough.units import parse_duration_ns

Value = str | int | float | bool
"""What a parameter can be; True is an option without a value, and one that is False is left out."""

BENCH_OWN = {
    "duration": "say it with --duration, or beside probe in a plan",
    "until-interrupt": "the bench ends what it began",
    "record": "runs are recorded into the store; --store names another",
    "interval-k": "the store keeps intervals as fine as they are",
    "ring": "a ring is a service's, see docs/monitor-service.md; runs are recorded into the store",
    "ring-cycle": "a ring is a service's, see docs/monitor-service.md",
    "ring-keep": "a ring is a service's, see docs/monitor-service.md",
    "ring-mib": "a ring is a service's, see docs/monitor-service.md",
    "samples": "the probe alone keeps every sample, see the help of fastenough-probe timer",
    "run-id": "the store names its runs",
    "json": "the bench has --json of its own",
    "histogram": "see the report",
    "histofall": "see the report",
    "histfile": "see the report",
    "nsecs": "the bench prints nothing of the probe's",
    "mainaffinity": "write housekeeping",
    "quiet": "the bench prints nothing of the probe's",
    "thread-name": "a monitor beside the run has the threads named",
    "trace-switch": "--break keeps a trace, see docs/trace.md",
}
"""Options of the probe that the bench gives itself, or has no use for, and what to do instead."""
_INTEGER = re.compile(r"-?\d{1,18}")
DEADLINE_PARAMETERS = ("policy", "interval", "deadline", "runtime", "allow-difference")
_PERIOD = "1ms"
"""The probe's own, where no interval is given."""
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
    """A probe and its parameters, its own before those that all probes share."""

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
    """What a probe on a board can measure, by name; raises BadInput for a program that does not say."""
    said = link.run([probe, "--list-json"])
    try:
        listed = json.loads(said.stdout)
        common, watching = (
            _parameters([option for option in listed["options"] if not (watches and option["acts"])])
            for watches in (False, True)
        )
        return {
            entry["name"]: ProbeEntry(
                entry["name"], entry["summary"], _parameters(entry["options"]), watching if entry["watches"] else common
            )
            for entry in listed["probes"]
        }
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{probe} does not say what it can measure; build probe and bench from one version") from error


def in_parameters(text: str) -> str:
    """What the probe says of its options, in the words of who writes ``name=value``."""
    return _OPTION.sub(lambda found: f"{found[1]}={found[2]}" if found[2] else found[1], text)


def check_parameters(
    name_of_probe: str, parameters: Mapping[str, Iterable[Value]], catalogue: Mapping[str, ProbeEntry]
) -> None:
    """Raises BadInput for a probe, parameter or value that cannot be, as far as can be known beforehand."""
    if name_of_probe not in catalogue:
        raise BadInput(
            f"there is no probe '{name_of_probe}'; use one of {', '.join(catalogue)} (see fastenough list-probes)"
        )
    probe = catalogue[name_of_probe]
    for name, values in parameters.items():
        if name in BENCH_OWN:
            raise BadInput(f"{name} is no parameter of a run: {BENCH_OWN[name]}")
        parameter = probe.find(name)
        if parameter is None:
            raise BadInput(f"probe {probe.name} has no parameter '{name}'; see fastenough list-probes {probe.name}")
        for value in values:
            check_value(parameter, value)


def check_value(parameter: Parameter, value: Value) -> None:
    """Raises BadInput for a value of another kind, or out of range."""
    name = parameter.name
    if parameter.kind == "flag":
        if not isinstance(value, bool):
            raise BadInput(f"{name}={value}: {name} takes no value; write {name} alone")
    elif parameter.kind == "choice" and str(value) not in parameter.choices:
        raise BadInput(f"{name}={value} is not known; choose one of {', '.join(parameter.choices)}")
    elif isinstance(value, bool) and parameter.kind not in ("cpus", "integer"):
        raise BadInput(f"{name}: a value is missing; write {name}={_example(parameter)}")
    elif parameter.kind == "duration":
        _check_range(parameter, value, _duration_ns(name, str(value)))
    elif parameter.kind == "integer" and not isinstance(value, bool):
        if not _INTEGER.fullmatch(str(value)):
            raise BadInput(f"{name}={value} is no whole number; write {name}={_example(parameter)}")
        _check_range(parameter, value, int(str(value)))


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
        shown = words.exact_time if parameter.kind == "duration" else str
        least = shown(low) if low is not None else "any"
        most = shown(high) if high is not None else "any"
        raise BadInput(f"{parameter.name}={value} is out of range; choose {least} to {most}")


def check_deadline(parameters: Mapping[str, Value]) -> None:
    """Raises BadInput for times that the kernel refuses together with policy=deadline."""
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
