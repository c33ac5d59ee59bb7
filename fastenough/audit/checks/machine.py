# SPDX-License-Identifier: GPL-2.0-or-later
"""What the machine, its firmware or its host does: stolen time, SMIs, microcode, error polling, containers."""

from __future__ import annotations

from fastenough import words
from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import (
    CheckOutcome,
    Group,
    Severity,
    boot,
    booted,
    costs,
    done,
    fine,
    hides,
    outside,
    unknown,
    written,
)

_BARE = "no hypervisor"


def _virtual_machine(facts: Facts) -> CheckOutcome:
    if facts.get("emulated"):
        return hides("emulated: timing is not meaningful", outside("measure on hardware"))
    name = facts.hypervisor
    if name is None:
        facts.need("cpu", "model")
        return fine(_BARE)
    return hides(
        f"virtual machine ({name}): the host takes CPU time unseen",
        outside("measure on bare hardware"),
    )


def _steal(facts: Facts) -> CheckOutcome:
    stolen_ns = int(facts.need("steal_so_far_ns"))
    if stolen_ns:
        up_s = float(facts.get("uptime_s") or 0)
        share = f", {stolen_ns / 1e7 / (up_s * facts.count):.2f} % of all CPU time" if up_s else ""
        return costs(
            f"{words.duration(stolen_ns)} since boot{share}",
            outside("pin each virtual CPU to a dedicated host CPU, or measure on bare hardware"),
        )
    if facts.hypervisor:
        return unknown("the counter is 0: no time was taken, or the hypervisor does not report it")
    return fine("none")


_QUIET = outside("disable in the firmware setup: legacy USB, power capping, patrol scrubbing, sleep states, sensors")


def _firmware_interrupts(facts: Facts) -> CheckOutcome:
    if not facts.x86:
        return unknown("secure firmware (PSCI, SCMI, OP-TEE) may take the CPU; no counter shows it")
    if facts.hypervisor:
        return hides("a guest does not see SMIs of its host", outside("measure on bare hardware"))
    if facts.get("smi_counter") is not None:
        return fine("counted in each run")
    if facts.need("cpu", "vendor") != "GenuineIntel":
        return hides("this processor does not count SMIs", done("look for gaps: fastenough run spin"), _QUIET)
    return hides("not counted: kernel module msr is not loaded", done("modprobe msr"), _QUIET)


_PACKAGES = {"GenuineIntel": "intel-microcode", "AuthenticAMD": "amd64-microcode"}


def _microcode(facts: Facts) -> CheckOutcome:
    if not facts.x86:
        return fine("x86 only")
    revision, package = facts.need("cpu", "microcode"), _PACKAGES.get(str(facts.get("cpu", "vendor")))
    if facts.hypervisor:
        return unknown(f"the hypervisor reports revision {revision}; the revision of the host is unknown")
    judged = facts.get("vulnerabilities", "old_microcode")
    if judged == "Not affected":
        return fine(f"revision {revision}; the kernel does not consider it outdated")
    update = [booted(f"on Debian: apt-get install {package}")] if package else []
    if judged:
        return costs(f"revision {revision}: {judged}", *update)
    return unknown(f"revision {revision}; this kernel does not know whether it is outdated", *update)


_FOLDER = "/sys/devices/system/machinecheck/machinecheck0"


def _machine_checks(facts: Facts) -> CheckOutcome:
    if not facts.x86:
        return fine("x86 only")
    known = facts.need("machine_check")
    if known["ignored"] or not known["every_s"]:
        return fine("not polled")
    return costs(
        f"each CPU is polled every {known['every_s']} s", written(f"{_FOLDER}/check_interval", 0), boot("mce=ignore_ce")
    )


def _time_coordination(facts: Facts) -> CheckOutcome:
    if not facts.x86 or facts.need("cpu", "vendor") != "GenuineIntel":
        return fine("Intel processors only")
    if facts.need("cache_allocation")["tcc"]:
        return fine("configured in the firmware (RTCT tables present)")
    return unknown(
        "no RTCT tables: the processor does not support it, or it is disabled in the firmware",
        outside("enable TCC mode in the firmware, if present; it sets idle states, frequency and caches"),
    )


def _container(facts: Facts) -> CheckOutcome:
    name = facts.get("container")
    if name is None:
        facts.need("kernel", "release")
        return (
            unknown("no container detected; detection is not reliable here")
            if facts.reason("container")
            else _bare(facts)
        )
    return hides(
        f"{name}: not all tasks, mounts and limits of the host are visible",
        done("audit the host: fastenough audit --board ssh:HOST, or run it outside of the container"),
    )


def _bare(facts: Facts) -> CheckOutcome:
    facts.require_all_tasks()
    return fine("no container: kernel threads are visible")


def _memory_errors(facts: Facts) -> CheckOutcome:
    known = facts.need("memory_error_polling")
    if not known["controllers"]:
        return fine("no memory controller is polled")
    return costs(
        f"polled for errors: {', '.join(known['controllers'])}"
        + (f", every {known['poll_ms']} ms" if known["poll_ms"] else ""),
        written("/sys/module/edac_core/parameters/edac_mc_poll_msec", 60000),
    )


CHECKS = (
    Check(
        "virtual-machine",
        "hypervisor",
        Group.MACHINE,
        Severity.HIGH,
        _virtual_machine,
        reason="The host can pause the guest's CPUs at any time. The guest sees a gap, or none if its clock stops too.",
        source="docs/method.md: in virtual machines maxima follow the steal time of the host, not the load",
        trade_off="none",
    ),
    Check(
        "steal",
        "stolen time",
        Group.MACHINE,
        Severity.HIGH,
        _steal,
        reason="While the host runs something else on the CPU, no task of this machine runs, whatever its priority.",
        source="proc(5), /proc/stat, steal",
        trade_off="none within this machine",
    ),
    Check(
        "firmware-interrupts",
        "system management interrupts (SMIs)",
        Group.MACHINE,
        Severity.MEDIUM,
        _firmware_interrupts,
        reason="The firmware stops all CPUs for up to milliseconds; the kernel can neither see nor prevent it.",
        source="kernel: Documentation/trace/hwlat_detector.rst; Intel SDM volume 4, MSR_SMI_COUNT",
        trade_off="functions of the firmware: never disable thermal protection",
    ),
    Check(
        "microcode",
        "microcode",
        Group.MACHINE,
        Severity.LOW,
        _microcode,
        reason="Microcode fixes errata of TSC, timers and idle states. Its side-channel mitigations make kernel "
        "entries slower.",
        source="kernel: Documentation/admin-guide/hw-vuln/old_microcode.rst",
        trade_off="measure again after each update",
    ),
    Check(
        "machine-checks",
        "polling for corrected errors",
        Group.MACHINE,
        Severity.LOW,
        _machine_checks,
        reason="A timer on each CPU reads error registers of the processor and logs errors.",
        source="kernel: Documentation/arch/x86/x86_64/machinecheck.rst; tuned, profile realtime (ignore_ce)",
        trade_off="failing memory is noticed later",
    ),
    Check(
        "time-coordination",
        "time-coordinated computing (Intel TCC)",
        Group.MACHINE,
        Severity.LOW,
        _time_coordination,
        reason="The firmware's TCC mode disables power saving that the kernel does not control, and can reserve "
        "part of the cache for one task.",
        source="Intel: Time Coordinated Computing, real-time configuration tables",
        trade_off="power and heat",
    ),
    Check(
        "container",
        "container",
        Group.MACHINE,
        Severity.LOW,
        _container,
        reason="Tasks and settings of the host delay what runs in a container, even though they are not visible there.",
        source="docs/containers.md",
        trade_off="none",
    ),
    Check(
        "memory-errors",
        "memory-controller polling",
        Group.MACHINE,
        Severity.LOW,
        _memory_errors,
        reason="A work item reads registers of each memory controller, often through slow configuration accesses.",
        source="kernel: Documentation/driver-api/edac.rst",
        trade_off="corrected memory errors are noticed later",
    ),
)
