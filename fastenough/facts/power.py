# SPDX-License-Identifier: GPL-2.0-or-later
"""What saves power and costs latency: frequency scaling and idle states."""

from __future__ import annotations

from typing import Any

from fastenough.facts.fact import Absent, Fact, Inputs

_FREQ = "/sys/devices/system/cpu/cpu*/cpufreq/"
_FREQ_NAMES = ("scaling_driver", "scaling_governor", "scaling_min_freq", "scaling_max_freq", "cpuinfo_min_freq",
               "cpuinfo_max_freq", "energy_performance_preference")
_IDLE = "/sys/devices/system/cpu/cpu*/cpuidle/state*/"
_IDLE_NAMES = ("name", "latency", "residency", "disable")
_BOOST = "/sys/devices/system/cpu/cpufreq/boost"
_NO_TURBO = "/sys/devices/system/cpu/intel_pstate/no_turbo"
_IDLE_DRIVER = "/sys/devices/system/cpu/cpuidle/current_driver"
_IDLE_GOVERNOR = "/sys/devices/system/cpu/cpuidle/current_governor"


def _number(text: str) -> int | str:
    return int(text) if text.isdigit() else text


def _frequency(inputs: Inputs) -> dict[str, Any]:
    """By CPU: driver, governor, limits in kHz."""
    cpus: dict[str, dict[str, Any]] = {}
    for name in _FREQ_NAMES:
        for (cpu,), content in inputs.matching(_FREQ + name):
            cpus.setdefault(cpu, {})[name] = _number(content)
    if not cpus:
        raise Absent("the kernel scales no frequencies here (no cpufreq driver)")
    return {"cpus": cpus, "boost": inputs.number(_BOOST), "no_turbo": inputs.number(_NO_TURBO)}


def _idle(inputs: Inputs) -> dict[str, Any]:
    """By CPU and state: name, exit latency and residency in µs, whether disabled; and who decides."""
    states: dict[str, dict[str, dict[str, Any]]] = {}
    for name in _IDLE_NAMES:
        for (cpu, state), content in inputs.matching(_IDLE + name):
            states.setdefault(cpu, {}).setdefault(state, {})[name] = _number(content)
    driver = inputs.get(_IDLE_DRIVER)
    if not states and driver is None:
        raise Absent("the kernel manages no idle states here (no cpuidle)")
    return {"driver": driver, "governor": inputs.get(_IDLE_GOVERNOR), "states": states}


FACTS = (
    Fact("frequency", _frequency, files=(*(_FREQ + name for name in _FREQ_NAMES), _BOOST, _NO_TURBO)),
    Fact("idle", _idle, files=(*(_IDLE + name for name in _IDLE_NAMES), _IDLE_DRIVER, _IDLE_GOVERNOR)),
)
