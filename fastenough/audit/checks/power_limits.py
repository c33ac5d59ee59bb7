# SPDX-License-Identifier: GPL-2.0-or-later
"""Limits that keep CPUs slower than they are: frequency caps, power caps, profiles, forced idling, sleeping links."""

from __future__ import annotations

from typing import Any

from fastenough import words
from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, costs, done, fine, unknown, written

_NEARLY_ALL = 0.95
"""Of the greatest frequency; limits are rounded by drivers."""
_FAST_PROFILES = ("performance", "balanced-performance")


def _capped(policy: dict[str, Any]) -> bool:
    limit, greatest = policy.get("scaling_max_freq"), policy.get("cpuinfo_max_freq")
    return isinstance(limit, int) and isinstance(greatest, int) and limit < _NEARLY_ALL * greatest


def _frequency(facts: Facts) -> Seen:
    policies = facts.get("frequency", "cpus") or {}
    if not policies:
        return unknown(facts.reason("frequency") or "the kernel scales no frequencies here, others may")
    share = facts.get("frequency", "max_perf_pct")
    if isinstance(share, int) and share < _NEARLY_ALL * 100:
        return costs(
            f"intel_pstate lets all CPUs reach {share} % of their performance",
            written("/sys/devices/system/cpu/intel_pstate/max_perf_pct", 100),
        )
    low = {cpu: policy for cpu, policy in policies.items() if _capped(policy)}
    if not low:
        if all(policy.get("cpuinfo_max_freq") is None for policy in policies.values()):
            return unknown("the greatest frequency of the CPUs is not known")
        return fine("no CPU is limited below its greatest frequency")
    numbers = sorted(int(cpu.removeprefix("cpu")) for cpu in low if cpu.removeprefix("cpu").isdigit())
    slowest = min(low.values(), key=lambda policy: policy["scaling_max_freq"] / policy["cpuinfo_max_freq"])
    return costs(
        f"{words.cpus(numbers)}: at most {slowest['scaling_max_freq'] / 1e3:,.0f} of "
        f"{slowest['cpuinfo_max_freq'] / 1e3:,.0f} MHz",
        done(f"cpupower frequency-set -u {slowest['cpuinfo_max_freq']}kHz"),
    )


def _greatest_known(zone: dict[str, Any]) -> bool:
    return isinstance(zone.get("max_uw"), int) and zone["max_uw"] > 0


def _power(facts: Facts) -> Seen:
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
        return unknown("the greatest power of the package is not known, so that its limits say nothing")
    if not low:
        return fine("no power limit is below what the package may take")
    return costs(
        f"limited below the greatest power: {', '.join(low)}",
        done("write constraint_0_max_power_uw into constraint_0_power_limit_uw below /sys/class/powercap"),
    )


def _profile(facts: Facts) -> Seen:
    profile = str(facts.need("platform_profile"))
    if profile in _FAST_PROFILES:
        return fine(profile)
    return costs(f"the firmware's profile is {profile}", written("/sys/firmware/acpi/platform_profile", "performance"))


def _injection(facts: Facts) -> Seen:
    forced = sorted(kind for kind, state in facts.need("idle_injection").items() if int(state) > 0)
    if not forced:
        return fine("no CPU is made idle by force")
    return costs(
        f"CPUs are made idle by force ({', '.join(forced)})",
        done("write 0 into cur_state of that cooling device below /sys/class/thermal; improve the cooling"),
    )


def _links(facts: Facts) -> Seen:
    policy = str(facts.need("pcie_link_power"))
    if facts.arguments.get("pcie_aspm") == "off":
        return fine("the kernel lets no link of PCI Express sleep (pcie_aspm=off)")
    if policy == "performance":
        return fine("links of PCI Express stay awake")
    return costs(
        f"links of PCI Express may sleep (policy {policy})",
        written("/sys/module/pcie_aspm/parameters/policy", "performance"),
    )


CHECKS = (
    Check(
        "frequency-cap",
        "greatest frequency",
        Group.POWER,
        Severity.MEDIUM,
        _frequency,
        why="A CPU that may not run at its full clock takes longer on every path, whatever its governor is called.",
        source="kernel: Documentation/admin-guide/pm/cpufreq.rst (scaling_max_freq)",
        elsewhere="power and heat",
    ),
    Check(
        "power-cap",
        "power limits",
        Group.POWER,
        Severity.MEDIUM,
        _power,
        why="When the package reaches its limit, the processor slows all CPUs down by itself.",
        source="kernel: Documentation/power/powercap/powercap.rst",
        elsewhere="power and heat",
    ),
    Check(
        "platform-profile",
        "power profile of the firmware",
        Group.POWER,
        Severity.MEDIUM,
        _profile,
        why="Profiles for quiet or cool operation let the firmware limit clocks and power without the kernel.",
        source="kernel: Documentation/userspace-api/sysfs-platform_profile.rst",
        elsewhere="power, heat and noise",
    ),
    Check(
        "idle-injection",
        "forced idling",
        Group.POWER,
        Severity.HIGH,
        _injection,
        why="Threads of priority FIFO 50 and above keep CPUs idle for milliseconds at a time to cool them.",
        source="kernel: Documentation/admin-guide/thermal/intel_powerclamp.rst, drivers/powercap/idle_inject.c",
        elsewhere="heat: something else has to cool the processor",
    ),
    Check(
        "link-power",
        "sleeping PCI Express links",
        Group.POWER,
        Severity.LOW,
        _links,
        why="A link that sleeps takes some to tens of µs to carry an interrupt or an access to a device.",
        source="kernel: Documentation/admin-guide/kernel-parameters.txt, pcie_aspm",
        elsewhere="power",
    ),
)
