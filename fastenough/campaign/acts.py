# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run asks of the board, and what of the instrument beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fastenough.board import Booted, Wires
from fastenough.campaign.expand import ACTS_WARM_UP, RunSpec
from fastenough.campaign.plan import GPIO_PROBES, Plan
from fastenough.facts.cpu import cpus_of, list_form
from fastenough.gauge.run import Periodic, Response
from fastenough.implementations import Act, Value
from fastenough.link import Link
from fastenough.model import BadInput
from fastenough.units import parse_duration_ns

_INSTRUMENT_TIMES: Mapping[str, Mapping[str, str]] = {
    "response": {"min": "3us", "max": "7071us", "timeout": "1s"},
    "periodic": {"period": "7071us", "timeout": "1s"},
}
"""The paper's, in full: a wait between 3 and 7071 µs, a period of 7071 µs."""
_HOUSEKEEPING = "housekeeping"
"""A parameter of the probe, and the setting that does the same with the bench."""
_CPUS = ("affinity", _HOUSEKEEPING)
"""Parameters of the probe that are lists of CPUs."""
_NUMBER = re.compile(r"\d{1,9}")
_PRIORITY = 98
_GRACE_S = 60.0
"""How much longer than planned a task may take before its guard ends it."""


def instrument_request(probe: str, parameters: Mapping[str, Value]) -> Response | Periodic:
    """What the instrument is asked for; raises BadInput for what it cannot do."""
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
    """What is left for the board; the instrument's period becomes the time between two toggles."""
    if not by_instrument:
        return dict(parameters)
    left = {name: value for name, value in parameters.items() if name not in _INSTRUMENT_TIMES.get(probe, ())}
    request = instrument_request(probe, parameters)
    return left | {"interval": f"{request.period_ns // 2}ns"} if isinstance(request, Periodic) else left


def board_value_lists(
    probe: str, parameters: Mapping[str, tuple[Value, ...]], by_instrument: bool
) -> dict[str, tuple[Value, ...]]:
    """The same for the values that an entry lists, one combination of which makes a run."""
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
    """Raises BadInput for a CPU that the board does not have, with the place in the plan where it is asked for."""
    has = set(cpus_of(link, "present"))
    given = [
        (entry, name, value) for entry in plan.entries for name in _CPUS for value in entry.parameters.get(name, ())
    ]
    for entry, name, value in given:
        asked = [int(cpu) for cpu in _NUMBER.findall(str(value))]
        if not isinstance(value, bool) and not has.issuperset(asked):
            lacking = next(cpu for cpu in asked if cpu not in has)
            raise entry.fault(
                f"{name}={value}: there is no CPU {lacking}; {link.name} has {len(has)}: {list_form(has)}",
                "parameters",
                name,
            )


def last_cpu(link: Link) -> int:
    """Where tasks that serve pins run: the first CPU has interrupts to serve."""
    return cpus_of(link, "online")[-1]


def board_act(plan: Plan, spec: RunSpec, booted: Booted) -> Act:
    """The act as the board is asked for it.

    Beside an instrument it goes on until the bench ends it; where nothing else is said, on the last CPU at priority 98.
    """
    by_instrument = plan.instrument is not None
    given = board_parameters(spec.probe, spec.parameters, by_instrument)
    parameters = _pins(spec.probe, plan.wires or booted.wires) | given
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
    """The directions of the pins, for the setting ``pin``; None where the act has none.

    A response follows the gauge's idle level; a period starts low, so that its edges can be told from ours.
    """
    words = [
        f"{act.parameters['chip']}/{act.parameters[name]}={name}"
        for name in ("in", "out")
        if name in GPIO_PROBES.get(act.probe, ()) and name in act.parameters and "chip" in act.parameters
    ]
    return ",".join(words) or None


def housekeeping_setting(act: Act, link: Link) -> dict[str, str]:
    """Where the probe's reporting thread is kept on some CPUs, so is the bench, if it is on the board itself."""
    cpus = act.parameters.get(_HOUSEKEEPING)
    return {_HOUSEKEEPING: str(cpus)} if cpus and link.name == "local" else {}
