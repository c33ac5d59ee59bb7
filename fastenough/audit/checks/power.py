# SPDX-License-Identifier: GPL-2.0-or-later
"""CPU frequency, idle states, power limits and temperature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastenough import words
from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import (
    CheckOutcome,
    Group,
    Severity,
    boot,
    costs,
    done,
    fine,
    hides,
    outside,
    unknown,
    written,
)

_CHANGE = "cpupower frequency-set -g performance"


def _varies(policy: Mapping[str, Any]) -> bool:
    fixed = policy.get("scaling_min_freq") is not None and (
        policy.get("scaling_min_freq") == policy.get("scaling_max_freq")
    )
    return policy.get("scaling_governor") != "performance" and not fixed


def _governors(policies: Mapping[str, Mapping[str, Any]]) -> str:
    return "governor " + ", ".join(sorted({str(policy.get("scaling_governor")) for policy in policies.values()}))


def _governor(facts: Facts) -> CheckOutcome:
    known = facts.get("frequency", "cpus") or {}
    if not known:
        return unknown(
            facts.reason("frequency") or "not controlled by the kernel; firmware or host may scale frequencies"
        )
    slow = {cpu: policy for cpu, policy in known.items() if _varies(policy)}
    if not slow:
        return fine(f"no CPU is slowed down ({_governors(known)})")
    numbers = sorted(int(cpu.removeprefix("cpu")) for cpu in slow if cpu.removeprefix("cpu").isdigit())
    return costs(
        f"{words.cpus(numbers)} may slow down while idle ({_governors(slow)}): late wake-ups",
        done(_CHANGE, ("governor", "performance")),
    )


_FILE = "/sys/devices/system/cpu/cpu*/cpufreq/energy_performance_preference"


def _energy_preference(facts: Facts) -> CheckOutcome:
    policies = facts.need("frequency", "cpus").values()
    known = {
        str(policy["energy_performance_preference"]) for policy in policies if "energy_performance_preference" in policy
    }
    driver = ", ".join(sorted({str(policy.get("scaling_driver")) for policy in policies}))
    if not known:
        return fine(f"the processor does not choose its own frequency (driver {driver})")
    if known <= {"performance", "0"}:
        return fine("performance")
    changes = [written(_FILE, "performance", ("energy-preference", "performance"))]
    changes += [boot("intel_pstate=disable")] if driver.startswith("intel_pstate") else []
    return costs(f"{', '.join(sorted(known))} (driver {driver})", *changes)


_SHALLOW_US = 10


_DEEP_US = 50


def _idle_states(facts: Facts) -> CheckOutcome:
    arguments = facts.arguments
    if arguments.get("idle") == "poll":
        return fine("idle CPUs poll (idle=poll)")
    states = facts.need("idle", "states")
    if not states:
        return unknown(
            f"idle states are not managed by the kernel (driver {facts.get('idle', 'driver') or 'none'}): "
            "exit latencies are unknown"
        )
    allowed = [
        (int(state.get("latency", 0)), str(state.get("name")))
        for states_of_cpu in states.values()
        for state in states_of_cpu.values()
        if not int(state.get("disable") or 0)
    ]
    deepest_us, name = max(allowed, default=(0, "none"))
    if deepest_us <= _SHALLOW_US:
        return fine(f"deepest enabled state: {deepest_us} µs exit latency ({name})")
    changes = [
        done(
            f"hold /dev/cpu_dma_latency at {_SHALLOW_US} µs or less while the task runs",
            ("idle-latency", str(_SHALLOW_US)),
        )
    ]
    changes += [boot("processor.max_cstate=1", "intel_idle.max_cstate=1")] if facts.x86 else [boot("cpuidle.off=1")]
    return costs(
        f"deepest enabled state: {deepest_us} µs exit latency ({name})",
        *changes,
        severity=None if deepest_us >= _DEEP_US else Severity.LOW,
    )


def _latency_request(facts: Facts) -> CheckOutcome:
    us = int(facts.need("latency_request_us"))
    if us < 0:
        return fine("no request")
    return hides(
        f"another program requests {us} µs",
        done("fuser /dev/cpu_dma_latency names it; the task must make its own request"),
    )


_INTEL = "/sys/devices/system/cpu/intel_pstate/no_turbo"


_OTHER = "/sys/devices/system/cpu/cpufreq/boost"


def _boost(facts: Facts) -> CheckOutcome:
    facts.need("frequency", "cpus")
    boost, no_turbo = facts.get("frequency", "boost"), facts.get("frequency", "no_turbo")
    if boost is None and no_turbo is None:
        return unknown("the kernel has no boost control here")
    if boost == 0 or no_turbo == 1:
        return fine("off")
    return costs("on", written(_INTEL, 1) if no_turbo is not None else written(_OTHER, 0))


_NEAR_MILLIDEGREES = 10_000


_COOL = outside("better cooling, or a power or frequency limit low enough to avoid throttling")


def _heat(facts: Facts) -> CheckOutcome:
    known = facts.need("thermal")
    near = [
        f"{zone['kind']} {zone['millidegrees'] / 1000:g} of {zone['slowed_from_millidegrees'] / 1000:g} degrees"
        for zone in known["zones"].values()
        if zone["millidegrees"]
        and zone["slowed_from_millidegrees"]
        and zone["slowed_from_millidegrees"] - zone["millidegrees"] < _NEAR_MILLIDEGREES
    ]
    if known["throttled"]:
        return costs(f"throttled {words.counted(int(known['throttled']), 'time')} since boot", _COOL)
    if near:
        return costs(f"near the throttling temperature: {', '.join(near)}", _COOL)
    if known["throttled"] is None:
        return unknown("this processor has no throttling counter; its temperature is low now")
    return fine("not throttled since boot")


_NEARLY_ALL = 0.95
"""Share of the maximum frequency; drivers round limits."""


_FAST_PROFILES = ("performance", "balanced-performance")


def _capped(policy: Mapping[str, Any]) -> bool:
    limit, greatest = policy.get("scaling_max_freq"), policy.get("cpuinfo_max_freq")
    return isinstance(limit, int) and isinstance(greatest, int) and limit < _NEARLY_ALL * greatest


def _frequency(facts: Facts) -> CheckOutcome:
    policies = facts.get("frequency", "cpus") or {}
    if not policies:
        return unknown(
            facts.reason("frequency") or "not controlled by the kernel; firmware or host may scale frequencies"
        )
    share = facts.get("frequency", "max_perf_pct")
    if isinstance(share, int) and share < _NEARLY_ALL * 100:
        return costs(
            f"intel_pstate limits all CPUs to {share} % of their performance",
            written("/sys/devices/system/cpu/intel_pstate/max_perf_pct", 100),
        )
    low = {cpu: policy for cpu, policy in policies.items() if _capped(policy)}
    if not low:
        if all(policy.get("cpuinfo_max_freq") is None for policy in policies.values()):
            return unknown("the maximum frequency of the CPUs is unknown")
        return fine("no CPU is limited below its maximum frequency")
    numbers = sorted(int(cpu.removeprefix("cpu")) for cpu in low if cpu.removeprefix("cpu").isdigit())
    slowest = min(low.values(), key=lambda policy: policy["scaling_max_freq"] / policy["cpuinfo_max_freq"])
    return costs(
        f"{words.cpus(numbers)}: at most {slowest['scaling_max_freq'] / 1e3:,.0f} of "
        f"{slowest['cpuinfo_max_freq'] / 1e3:,.0f} MHz",
        done(f"cpupower frequency-set -u {slowest['cpuinfo_max_freq']}kHz"),
    )


def _greatest_known(zone: Mapping[str, Any]) -> bool:
    return isinstance(zone.get("max_uw"), int) and zone["max_uw"] > 0


def _power(facts: Facts) -> CheckOutcome:
    zones = facts.need("power_caps")
    low = sorted(
        str(zone.get("name"))
        for zone in zones.values()
        if zone.get("enabled") != 0
        and isinstance(zone.get("limit_uw"), int)
        and _greatest_known(zone)
        and 0 < zone["limit_uw"] < zone["max_uw"]
    )
    if not low and not any(_greatest_known(zone) for zone in zones.values() if zone.get("enabled") != 0):
        if all(zone.get("enabled") == 0 for zone in zones.values()):
            return fine("no power limit is enabled")
        return unknown("the maximum power of the package is unknown, so its limits cannot be judged")
    if not low:
        return fine("no power limit is below the maximum power of the package")
    return costs(
        f"limited below the maximum power: {', '.join(low)}",
        done("write constraint_0_max_power_uw into constraint_0_power_limit_uw below /sys/class/powercap"),
    )


def _profile(facts: Facts) -> CheckOutcome:
    profile = str(facts.need("platform_profile"))
    if profile in _FAST_PROFILES:
        return fine(profile)
    return costs(f"firmware profile: {profile}", written("/sys/firmware/acpi/platform_profile", "performance"))


def _injection(facts: Facts) -> CheckOutcome:
    forced = sorted(kind for kind, state in facts.need("idle_injection").items() if int(state) > 0)
    if not forced:
        return fine("no idle injection")
    return costs(
        f"idle injection is active ({', '.join(forced)})",
        done("write 0 into cur_state of that cooling device below /sys/class/thermal; improve the cooling"),
    )


def _links(facts: Facts) -> CheckOutcome:
    policy = str(facts.need("pcie_link_power"))
    if facts.arguments.get("pcie_aspm") == "off":
        return fine("PCI Express links stay awake (pcie_aspm=off)")
    if policy == "performance":
        return fine("PCI Express links stay awake")
    return costs(
        f"PCI Express links may sleep (policy {policy})",
        written("/sys/module/pcie_aspm/parameters/policy", "performance"),
    )


CHECKS = (
    Check(
        "governor",
        "frequency governor",
        Group.POWER,
        Severity.MEDIUM,
        _governor,
        reason="A CPU at a low frequency runs the path from interrupt to task at a fraction of its speed, and "
        "needs time to change its frequency.",
        source="kernel: Documentation/admin-guide/pm/cpufreq.rst; also checked by rtcqs",
        trade_off="power and heat: busy CPUs run at full frequency",
    ),
    Check(
        "energy-preference",
        "energy preference",
        Group.POWER,
        Severity.MEDIUM,
        _energy_preference,
        reason="The processor lowers its frequency by itself, whatever the governor, and needs time to raise it again.",
        source="kernel: Documentation/admin-guide/pm/intel_pstate.rst; tuned, profile realtime (intel_pstate=disable)",
        trade_off="power and heat",
    ),
    Check(
        "idle-states",
        "idle states",
        Group.POWER,
        Severity.MEDIUM,
        _idle_states,
        reason="A CPU leaves its idle state before it handles the interrupt, so the exit latency adds to the "
        "wake-up latency. The probe disables deep states while it measures; a task must do the same.",
        source="kernel: Documentation/admin-guide/pm/cpuidle.rst; OSADL's article, figure 6",
        trade_off="power and heat: idle CPUs draw several times as much",
    ),
    Check(
        "latency-request",
        "idle-state request (cpu_dma_latency)",
        Group.POWER,
        Severity.LOW,
        _latency_request,
        reason="While another program disables idle states, latency is lower than without that program.",
        source="kernel: Documentation/power/pm_qos_interface.rst; rtcqs also checks the device",
        trade_off="power and heat while it is held",
    ),
    Check(
        "boost",
        "frequency boost",
        Group.POWER,
        Severity.LOW,
        _boost,
        reason="The CPU's speed depends on the load of other CPUs and on temperature, so the same path takes "
        "different times.",
        source="kernel: Documentation/admin-guide/pm/cpufreq.rst, boost",
        trade_off="throughput of single threads",
    ),
    Check(
        "heat",
        "thermal throttling",
        Group.POWER,
        Severity.HIGH,
        _heat,
        reason="A processor that is too hot halves its frequency or stops for a time, after an hour of load and "
        "not in a short measurement.",
        source="kernel: Documentation/driver-api/thermal; Intel SDM volume 3, thermal monitoring",
        trade_off="none",
    ),
    Check(
        "frequency-cap",
        "maximum frequency",
        Group.POWER,
        Severity.MEDIUM,
        _frequency,
        reason="A CPU limited below its maximum frequency takes longer on every path, whatever its governor.",
        source="kernel: Documentation/admin-guide/pm/cpufreq.rst (scaling_max_freq)",
        trade_off="power and heat",
    ),
    Check(
        "power-cap",
        "power limits",
        Group.POWER,
        Severity.MEDIUM,
        _power,
        reason="When the package reaches its limit, the processor slows all CPUs down by itself.",
        source="kernel: Documentation/power/powercap/powercap.rst",
        trade_off="power and heat",
    ),
    Check(
        "platform-profile",
        "firmware power profile",
        Group.POWER,
        Severity.MEDIUM,
        _profile,
        reason="With quiet or cool profiles, the firmware limits frequency and power without the kernel.",
        source="kernel: Documentation/userspace-api/sysfs-platform_profile.rst",
        trade_off="power, heat and noise",
    ),
    Check(
        "idle-injection",
        "idle injection",
        Group.POWER,
        Severity.HIGH,
        _injection,
        reason="Threads of priority FIFO 50 and above keep CPUs idle for milliseconds at a time to cool them.",
        source="kernel: Documentation/admin-guide/thermal/intel_powerclamp.rst, drivers/powercap/idle_inject.c",
        trade_off="heat: the processor needs other cooling",
    ),
    Check(
        "link-power",
        "PCI Express link power",
        Group.POWER,
        Severity.LOW,
        _links,
        reason="A link in a sleep state takes from a few to tens of µs to carry an interrupt or a device access.",
        source="kernel: Documentation/admin-guide/kernel-parameters.txt, pcie_aspm",
        trade_off="power",
    ),
)
