# SPDX-License-Identifier: GPL-2.0-or-later
"""Requests of a run: the act for the board, and the request to the instrument."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fastenough.board import Booted, Wires
from fastenough.campaign.expand import ACTS_WARM_UP, RunSpec
from fastenough.campaign.plan import GPIO_PROBES, Plan
from fastenough.facts.cpu import cpus_of, list_form
from fastenough.gauge.run import Periodic, Response
from fastenough.implementations import Act, Value
from fastenough.implementations.task import Refused
from fastenough.link import Link
from fastenough.model import BadInput
from fastenough.units import parse_duration_ns

_INSTRUMENT_TIMES: Mapping[str, Mapping[str, str]] = {
    "response": {"min": "3us", "max": "7071us", "timeout": "1s"},
    "periodic": {"period": "7071us", "timeout": "1s"},
}
"""Defaults, from the paper: a wait between 3 and 7071 µs, and a period of 7071 µs."""
_HOUSEKEEPING = "housekeeping"
"""Parameter of the probe, and the setting with the same effect on the bench."""
_CPUS = ("affinity", _HOUSEKEEPING)
"""Parameters of the probe that are lists of CPUs."""
_NUMBER = re.compile(r"\d{1,9}")
_PRIORITY = 98
_GRACE_S = 60.0
"""Time beyond the planned duration after which the guard ends the task."""


def instrument_request(probe: str, parameters: Mapping[str, Value]) -> Response | Periodic:
    """Return the request to the instrument; raise BadInput for a probe or times that it does not support."""
    if probe not in _INSTRUMENT_TIMES:
        raise BadInput(f"probe {probe} cannot be measured by an instrument; use {', '.join(_INSTRUMENT_TIMES)}")
    times = {name: _time_ns(name, parameters.get(name, default)) for name, default in _INSTRUMENT_TIMES[probe].items()}
    if probe == "response":
        if times["max"] < times["min"]:
            raise BadInput("max must not be below min")
        return Response(times["min"], times["max"], times["timeout"])
    if times["period"] % 2:
        raise BadInput("period must be an even number of ns: the pin toggles twice per period")
    if times["timeout"] <= times["period"]:
        raise BadInput("timeout must be longer than the period")
    return Periodic(times["period"], times["timeout"])


def _time_ns(name: str, value: Value) -> int:
    try:
        return parse_duration_ns(str(value))
    except ValueError as error:
        raise BadInput(f"{name}: {error}") from error


def board_parameters(probe: str, parameters: Mapping[str, Value], by_instrument: bool) -> dict[str, Value]:
    """Return the parameters for the board; the instrument's period becomes the interval between two toggles."""
    if not by_instrument:
        return dict(parameters)
    left = {name: value for name, value in parameters.items() if name not in _INSTRUMENT_TIMES.get(probe, ())}
    request = instrument_request(probe, parameters)
    return left | {"interval": f"{request.period_ns // 2}ns"} if isinstance(request, Periodic) else left


def board_value_lists(
    probe: str, parameters: Mapping[str, tuple[Value, ...]], by_instrument: bool
) -> dict[str, tuple[Value, ...]]:
    """Return the same for the lists of values of an entry; each combination of values is one run."""
    if not by_instrument:
        return dict(parameters)
    if ACTS_WARM_UP in parameters:
        raise BadInput(
            f"{ACTS_WARM_UP} is not supported with an instrument, which counts every edge from the first; remove it"
        )
    return {name: values for name, values in parameters.items() if name not in _INSTRUMENT_TIMES.get(probe, ())}


def _pins(probe: str, wires: Wires | None) -> dict[str, Value]:
    if wires is None:
        return {}
    known: dict[str, Value] = {"chip": wires.chip, "in": wires.input, "out": wires.output}
    return {name: known[name] for name in GPIO_PROBES.get(probe, ())}


def check_cpus(plan: Plan, link: Link) -> None:
    """Raise Refused, with the line of the plan, for a CPU that the board does not have."""
    has = set(cpus_of(link, "present"))
    values = [
        (entry, name, value) for entry in plan.entries for name in _CPUS for value in entry.parameters.get(name, ())
    ]
    for entry, name, value in values:
        cpus = [int(cpu) for cpu in _NUMBER.findall(str(value))]
        if not isinstance(value, bool) and not has.issuperset(cpus):
            missing = next(cpu for cpu in cpus if cpu not in has)
            fault = entry.fault(
                f"{name}={value}: there is no CPU {missing}; {link.name} has {len(has)}: {list_form(has)}",
                "parameters",
                name,
            )
            raise Refused(str(fault))


def last_cpu(link: Link) -> int:
    """Return the CPU for tasks that serve pins: the last one, since the first one handles interrupts."""
    return cpus_of(link, "online")[-1]


def board_act(plan: Plan, spec: RunSpec, booted: Booted) -> Act:
    """Return the act for the board.

    With an instrument it has no duration: the bench ends it.  Its defaults are then priority 98 on the last CPU.
    """
    by_instrument = plan.instrument is not None
    values = board_parameters(spec.probe, spec.parameters, by_instrument)
    parameters = _pins(spec.probe, plan.wires or booted.wires) | values
    if by_instrument:
        parameters = {"priority": _PRIORITY, "affinity": last_cpu(booted.link)} | parameters
    return Act(
        spec.probe,
        parameters,
        None if by_instrument else spec.duration_s,
        spec.whole_s + _GRACE_S,
        None if by_instrument or spec.requirement is None else spec.requirement.limit_ns,
    )


def pins_requested(act: Act) -> str | None:
    """Return the directions of the pins as a value of the setting ``pin``; None for an act without pins.

    A response follows the gauge's idle level; a period starts low, which distinguishes its edges from those of the
    bench.
    """
    pins = [
        f"{act.parameters['chip']}/{act.parameters[name]}={name}"
        for name in ("in", "out")
        if name in GPIO_PROBES.get(act.probe, ()) and name in act.parameters and "chip" in act.parameters
    ]
    return ",".join(pins) or None


def housekeeping_setting(act: Act, link: Link) -> dict[str, str]:
    """Return the setting that binds the bench to the CPUs of the probe's reporting thread; empty on a remote board."""
    cpus = act.parameters.get(_HOUSEKEEPING)
    return {_HOUSEKEEPING: str(cpus)} if cpus and link.name == "local" else {}
