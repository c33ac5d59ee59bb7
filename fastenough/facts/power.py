# SPDX-License-Identifier: GPL-2.0-or-later
"""Power management that affects latency: frequency scaling, idle states, power limits."""

from __future__ import annotations

from typing import TypedDict

from fastenough.facts.fact import Absent, Fact, Inputs

_FREQ = "/sys/devices/system/cpu/cpu*/cpufreq/"
_FREQ_NAMES = (
    "scaling_driver",
    "scaling_governor",
    "scaling_min_freq",
    "scaling_max_freq",
    "cpuinfo_min_freq",
    "cpuinfo_max_freq",
    "energy_performance_preference",
)
_IDLE = "/sys/devices/system/cpu/cpu*/cpuidle/state*/"
_IDLE_NAMES = ("name", "latency", "residency", "disable")
_BOOST = "/sys/devices/system/cpu/cpufreq/boost"
_NO_TURBO = "/sys/devices/system/cpu/intel_pstate/no_turbo"
_MAX_PERF = "/sys/devices/system/cpu/intel_pstate/max_perf_pct"
_IDLE_DRIVER = "/sys/devices/system/cpu/cpuidle/current_driver"
_IDLE_GOVERNOR = "/sys/devices/system/cpu/cpuidle/current_governor"
_CAP = "/sys/class/powercap/*/{}"
_PROFILE = "/sys/firmware/acpi/platform_profile"
_COOLING = "/sys/class/thermal/cooling_device*/{}"
_INJECTORS = ("intel_powerclamp", "thermal-idle", "idle")


class FrequencyFact(TypedDict):
    """By CPU the values of its policy, limits in kHz; and the controls of all CPUs, None if unknown."""

    cpus: dict[str, dict[str, int | str]]
    boost: int | None
    no_turbo: int | None
    max_perf_pct: int | None


class IdleFact(TypedDict):
    """Driver and governor; by CPU and state: name, exit latency and residency in µs, whether disabled."""

    driver: str | None
    governor: str | None
    states: dict[str, dict[str, dict[str, int | str]]]


def _number(text: str) -> int | str:
    return int(text) if text.isdigit() else text


def _frequency(inputs: Inputs) -> FrequencyFact:
    cpus: dict[str, dict[str, int | str]] = {}
    for name in _FREQ_NAMES:
        for (cpu,), content in inputs.matching(_FREQ + name):
            cpus.setdefault(cpu, {})[name] = _number(content)
    if not cpus:
        raise Absent("the kernel scales no frequencies here (no cpufreq driver)")
    return {
        "cpus": cpus,
        "boost": inputs.number(_BOOST),
        "no_turbo": inputs.number(_NO_TURBO),
        "max_perf_pct": inputs.number(_MAX_PERF),
    }


def _idle(inputs: Inputs) -> IdleFact:
    states: dict[str, dict[str, dict[str, int | str]]] = {}
    for name in _IDLE_NAMES:
        for (cpu, state), content in inputs.matching(_IDLE + name):
            states.setdefault(cpu, {}).setdefault(state, {})[name] = _number(content)
    driver = inputs.get(_IDLE_DRIVER)
    if not states and driver is None:
        raise Absent("the kernel manages no idle states here (no cpuidle)")
    return {"driver": driver, "governor": inputs.get(_IDLE_GOVERNOR), "states": states}


def _power_caps(inputs: Inputs) -> dict[str, dict[str, int | str]]:
    """By zone: its name, whether it is enforced, and the long-term limit beside the greatest possible, in µW."""
    zones: dict[str, dict[str, int | str]] = {}
    for key, file in (
        ("name", "name"),
        ("enabled", "enabled"),
        ("limit_uw", "constraint_0_power_limit_uw"),
        ("max_uw", "constraint_0_max_power_uw"),
    ):
        for (zone,), content in inputs.matching(_CAP.format(file)):
            zones.setdefault(zone, {})[key] = _number(content)
    if not zones:
        raise Absent("the kernel controls no power limits here (no powercap)")
    return zones


def _profile(inputs: Inputs) -> str:
    return inputs.text(_PROFILE)


def _idle_injection(inputs: Inputs) -> dict[str, int]:
    """Cooling devices that inject idle time, by kind: the greatest state in effect (0: none)."""
    states = {device: int(text) for (device,), text in inputs.matching(_COOLING.format("cur_state"))}
    state_by_kind: dict[str, int] = {}
    for (device,), kind in inputs.matching(_COOLING.format("type")):
        if kind.startswith(_INJECTORS):
            state_by_kind[kind] = max(state_by_kind.get(kind, 0), states.get(device, 0))
    if not states:
        raise Absent("the kernel shows no cooling device here")
    return state_by_kind


FACTS = (
    Fact(
        "power_caps",
        _power_caps,
        files=tuple(
            _CAP.format(file)
            for file in ("name", "enabled", "constraint_0_power_limit_uw", "constraint_0_max_power_uw")
        ),
    ),
    Fact("platform_profile", _profile, files=(_PROFILE,)),
    Fact(
        "idle_injection", _idle_injection, volatile=True, files=(_COOLING.format("type"), _COOLING.format("cur_state"))
    ),
    Fact("frequency", _frequency, files=(*(_FREQ + name for name in _FREQ_NAMES), _BOOST, _NO_TURBO, _MAX_PERF)),
    Fact("idle", _idle, files=(*(_IDLE + name for name in _IDLE_NAMES), _IDLE_DRIVER, _IDLE_GOVERNOR)),
)
