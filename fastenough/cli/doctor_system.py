# SPDX-License-Identifier: GPL-2.0-or-later
"""What ``fastenough doctor`` looks at in the system itself: kernel, module, frequencies, CPUs, SMIs, rights."""

from __future__ import annotations

import re

from fastenough.audit import CHECKS, Facts, Form, Standing
from fastenough.audit import Finding as AuditFinding
from fastenough.audit.facts import as_cpus
from fastenough.board.base import installed_module
from fastenough.cli.doctor_findings import Finding, Patient, State
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


def _audited(patient: Patient, name: str) -> AuditFinding:
    """What the audit finds of that matter: doctor says only what it means for measuring."""
    return next(check for check in CHECKS if check.name == name)(Facts(patient.profile))


def kernel(patient: Patient) -> Finding:
    """The preemption model decides whether there is a bound at all."""
    found = _audited(patient, "preemption")
    if found.standing is Standing.FINE:
        return Finding("kernel", State.FINE, found.text)
    other = next((change.text for change in found.changes if change.form is Form.WORDS), "")
    fix = f"{other}, then boot it" if other else "boot a kernel with PREEMPT_RT"
    until = "".join(f"; until then, boot with {change.text}" for change in found.changes if change.form is Form.BOOT)
    return Finding("kernel", State.LIMITED, found.text, fix + until)


def governor(patient: Patient) -> Finding:
    """A CPU that was slowed down serves a task late."""
    found = _audited(patient, "governor")
    if found.standing is not Standing.COSTS:
        return Finding("governor", State.FINE, found.text)
    return Finding(
        "governor",
        State.LIMITED,
        found.text,
        f'{found.changes[0].text}, or governor = "performance" under [settings] of a plan',
    )


def isolation(patient: Patient) -> Finding:
    """Which CPUs ordinary tasks stay off."""
    found = _audited(patient, "isolated-cpus")
    if found.standing is Standing.FINE:
        known = patient.profile.get("cpu_isolation") or {}
        ticks = (
            "; its tick goes on (no nohz_full)" if known.get("isolated") and not as_cpus(known.get("nohz_full")) else ""
        )
        return Finding("isolated CPUs", State.FINE, found.text + ticks)
    apart = next((change.text.partition("=")[2] for change in found.changes), "CPU")
    return Finding(
        "isolated CPUs",
        State.LIMITED,
        found.text,
        f"where the task may have a CPU to itself, boot with isolcpus={apart} nohz_full={apart} rcu_nocbs={apart}",
    )


def rights(patient: Patient) -> Finding:
    """By which right a measurement gets real-time priority and locked memory."""
    setuid = _setuid_probe(patient)
    if setuid:
        return Finding(
            "rights",
            State.LIMITED,
            f"{setuid} is setuid: whoever may run it can take over a CPU",
            f"chmod u-s {setuid}, and grant rtprio and memlock instead:\n{how_to_grant()}",
        )
    if _said(patient, "id", "-u") == "0":
        return Finding("rights", State.FINE, "root")
    if patient.link.raised is not patient.link:
        return Finding("rights", State.FINE, "the probe and the settings run through sudo")
    limits = _said(patient, "cat", "/proc/self/limits")
    priority, memory = _limit(limits, "Max realtime priority"), _limit(limits, "Max locked memory")
    said = f"not root; limits: rtprio {priority}, memlock {memory}"
    enough = (priority == _UNLIMITED or (priority.isdigit() and int(priority) >= _FIFO)) and memory == _UNLIMITED
    if enough:
        return Finding("rights", State.FINE, said)
    return Finding(
        "rights",
        State.LIMITED,
        f"{said}: too little for SCHED_FIFO {_FIFO} and locked memory",
        "run as root; let sudo run it without a password; or grant rtprio and memlock (limits.conf)",
    )


def _limit(text: str, name: str) -> str:
    """The soft limit of that name, as the kernel writes it."""
    found = re.search(rf"^{name}\s+(\S+)", text, re.MULTILINE)
    return found[1] if found else "not known"


def _setuid_probe(patient: Patient) -> str:
    """Where the probe is, if it gives its user root's rights; else nothing."""
    try:
        probe = find_probe(patient.link)
    except NotApplicable:
        return ""
    mode = _said(patient, "stat", "-L", "-c", "%a", probe)
    return probe if mode.isdigit() and int(mode, 8) & _SETUID else ""


def module(patient: Patient) -> Finding:
    """Without it nothing is measured in the kernel, nor are gaps while interrupts are off."""
    if patient.link.name.partition(":")[0] == _VIRTUAL:
        return Finding(_MODULE, State.FINE, "built by the bench for the virtual board's kernel when it is asked for")
    try:
        place = installed_module(patient.link, MODULE)
    except NotApplicable:
        return Finding(
            _MODULE,
            State.MISSING,
            f"{MODULE}.ko is not installed for this kernel: no timer, no pin and no "
            "spin with interrupts off (gaps that SMIs and hypervisors make) by linux-kernel",
            "install the kernel's headers and the package fastenough-dkms, or see docs/module.md",
        )
    return Finding(_MODULE, State.FINE, f"{place}; {_GAPS}")


def smi(patient: Patient) -> Finding:
    """They are counted, or the gaps that they make are looked for."""
    if patient.link.glob("/dev/cpu/*/msr"):
        return Finding("SMI counter", State.FINE, f"readable where the CPU has one; {_GAPS}")
    return Finding(
        "SMI counter",
        State.LIMITED,
        "SMIs cannot be counted: there is no /dev/cpu/*/msr",
        f"modprobe msr (x86 of Intel only); {_GAPS}",
    )


def _said(patient: Patient, *command: str) -> str:
    """What a command says on the board; nothing where there is no such command."""
    try:
        return patient.link.run(command).stdout.decode(errors="replace").strip()
    except FileNotFoundError:
        return ""
