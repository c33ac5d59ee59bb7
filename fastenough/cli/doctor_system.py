# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks of ``fastenough doctor`` on the system: kernel, module, frequencies, CPUs, SMIs, rights."""

from __future__ import annotations

import re

from fastenough.audit import CHECKS, Facts, Form, Standing
from fastenough.audit import Finding as AuditFinding
from fastenough.audit.facts import as_cpus
from fastenough.board.base import installed_module
from fastenough.cli.doctor_findings import Finding, InspectedBoard, State
from fastenough.cli.privileges import how_to_grant
from fastenough.implementations.linux_kernel import MODULE
from fastenough.link import find_probe
from fastenough.model import NotApplicable

_FIFO = 98
_MODULE = "kernel module"
_VIRTUAL = "virtual"
_GAPS = "to measure the gaps: fastenough run spin --implementation linux-kernel"
_UNLIMITED = "unlimited"
_SETUID = 0o4000


def _audited(inspected: InspectedBoard, name: str) -> AuditFinding:
    """The finding of that check of the audit."""
    return next(check for check in CHECKS if check.name == name)(Facts(inspected.profile))


def kernel(inspected: InspectedBoard) -> Finding:
    """Preemption model of the kernel."""
    found = _audited(inspected, "preemption")
    if found.standing is Standing.FINE:
        return Finding("kernel", State.FINE, found.text)
    other = next((change.text for change in found.changes if change.form is Form.WORDS), "")
    fix = f"{other}, then boot it" if other else "boot a kernel with PREEMPT_RT"
    until = "".join(f"; until then, boot with {change.text}" for change in found.changes if change.form is Form.BOOT)
    return Finding("kernel", State.LIMITED, found.text, fix + until)


def governor(inspected: InspectedBoard) -> Finding:
    """CPU frequency governor: a slow CPU delays tasks."""
    found = _audited(inspected, "governor")
    if found.standing is not Standing.COSTS:
        return Finding("governor", State.FINE, found.text)
    return Finding(
        "governor",
        State.LIMITED,
        found.text,
        f'{found.changes[0].text}, or governor = "performance" under [settings] of a plan',
    )


def isolation(inspected: InspectedBoard) -> Finding:
    """CPUs without ordinary tasks."""
    found = _audited(inspected, "isolated-cpus")
    if found.standing is Standing.FINE:
        known = inspected.profile.get("cpu_isolation") or {}
        ticks = (
            "; the tick continues (no nohz_full)"
            if known.get("isolated") and not as_cpus(known.get("nohz_full"))
            else ""
        )
        return Finding("isolated CPUs", State.FINE, found.text + ticks)
    apart = next((change.text.partition("=")[2] for change in found.changes), "CPU")
    return Finding(
        "isolated CPUs",
        State.LIMITED,
        found.text,
        f"to reserve a CPU for the task, boot with isolcpus={apart} nohz_full={apart} rcu_nocbs={apart}",
    )


def rights(inspected: InspectedBoard) -> Finding:
    """The right to real-time priority and locked memory."""
    setuid = _setuid_probe(inspected)
    if setuid:
        return Finding(
            "rights",
            State.LIMITED,
            f"{setuid} is setuid: any user who may run it can occupy a CPU",
            f"chmod u-s {setuid}, and grant rtprio and memlock instead:\n{how_to_grant()}",
        )
    if _said(inspected, "id", "-u") == "0":
        return Finding("rights", State.FINE, "root")
    if inspected.link.raised is not inspected.link:
        return Finding("rights", State.FINE, "the probe and the settings run through sudo")
    limits = _said(inspected, "cat", "/proc/self/limits")
    priority, memory = _limit(limits, "Max realtime priority"), _limit(limits, "Max locked memory")
    said = f"not root; limits: rtprio {priority}, memlock {memory}"
    enough = (priority == _UNLIMITED or (priority.isdigit() and int(priority) >= _FIFO)) and memory == _UNLIMITED
    if enough:
        return Finding("rights", State.FINE, said)
    return Finding(
        "rights",
        State.LIMITED,
        f"{said}: insufficient for SCHED_FIFO {_FIFO} and locked memory",
        "run as root; allow sudo without a password; or grant rtprio and memlock (limits.conf)",
    )


def _limit(text: str, name: str) -> str:
    """The soft limit of that name, as the kernel writes it."""
    found = re.search(rf"^{name}\s+(\S+)", text, re.MULTILINE)
    return found[1] if found else "unknown"


def _setuid_probe(inspected: InspectedBoard) -> str:
    """Path of the probe if it is setuid, else an empty text."""
    try:
        probe = find_probe(inspected.link)
    except NotApplicable:
        return ""
    mode = _said(inspected, "stat", "-L", "-c", "%a", probe)
    return probe if mode.isdigit() and int(mode, 8) & _SETUID else ""


def module(inspected: InspectedBoard) -> Finding:
    """The module, required for measurements in the kernel and with interrupts off."""
    if inspected.link.name.partition(":")[0] == _VIRTUAL:
        return Finding(_MODULE, State.FINE, "built for the kernel of the virtual board when needed")
    try:
        place = installed_module(inspected.link, MODULE)
    except NotApplicable:
        return Finding(
            _MODULE,
            State.MISSING,
            f"{MODULE}.ko is not installed for this kernel: no timer, pin and spin (gaps caused by SMIs and "
            "hypervisors) with linux-kernel",
            "install the kernel's headers and the package fastenough-dkms, or see docs/module.md",
        )
    return Finding(_MODULE, State.FINE, f"{place}; {_GAPS}")


def smi(inspected: InspectedBoard) -> Finding:
    """Access to the SMI counter."""
    if inspected.link.glob("/dev/cpu/*/msr"):
        return Finding("SMI counter", State.FINE, f"readable if the CPU has one; {_GAPS}")
    return Finding(
        "SMI counter",
        State.LIMITED,
        "no /dev/cpu/*/msr: SMIs cannot be counted",
        f"modprobe msr (Intel x86 only); {_GAPS}",
    )


def _said(inspected: InspectedBoard, *command: str) -> str:
    """Output of a command on the board; empty if there is no such command."""
    try:
        return inspected.link.run(command).stdout.decode(errors="replace").strip()
    except FileNotFoundError:
        return ""
