# SPDX-License-Identifier: GPL-2.0-or-later
"""What ``fastenough doctor`` looks at in the system itself: kernel, module, frequencies, CPUs, SMIs, rights."""

from __future__ import annotations

import re
from typing import Any

from fastenough import words
from fastenough.board.base import installed_module
from fastenough.cli.doctor_findings import Finding, Patient, State
from fastenough.cli.privileges import how_to_grant
from fastenough.facts.cpu import cpu_list
from fastenough.implementations.linux_kernel import MODULE
from fastenough.link import find_probe
from fastenough.model import NotApplicable

_PACKAGES = {"x86_64": "linux-image-rt-amd64", "aarch64": "linux-image-rt-arm64", "armv7l": "linux-image-rt-armmp",
             "i686": "linux-image-rt-686-pae"}
"""What Debian calls its kernel with PREEMPT_RT."""
_MODELS = {
    "preempt": "most of the kernel can be preempted, but interrupts and locks delay tasks for a time nobody bounds",
    "lazy": "ordinary tasks are preempted late, and interrupts and locks delay tasks for a time nobody bounds",
    "voluntary": "the kernel is preempted at chosen points only: delays of milliseconds must be expected",
    "none": "the kernel is not preempted at all: delays of many milliseconds must be expected",
}
_FIFO = 98
_MODULE = "kernel module"
_VIRTUAL = "virtual"
_GAPS = "fastenough run spin --implementation linux-kernel measures the gaps"
_UNLIMITED = "unlimited"
_SETUID = 0o4000


def kernel(patient: Patient) -> Finding:
    """The preemption model decides whether there is a bound at all."""
    known = patient.profile.get("kernel") or {}
    model, release = str(known.get("preemption")), known.get("release")
    if model == "preempt-rt":
        return Finding("kernel", State.FINE, f"{release}, preemption model preempt-rt")
    why = _MODELS.get(model, "which preemption model it has is not known, and its worst case is rarely bounded")
    package = _PACKAGES.get(str((patient.profile.get("cpu") or {}).get("architecture")))
    options = (patient.profile.get("kernel_config") or {}).get("of_interest") or {}
    dynamic = "; until then, boot with preempt=full" if (
        options.get("CONFIG_PREEMPT_DYNAMIC") == "y" and model != "preempt") else ""
    fix = f"on Debian: apt-get install {package}, then boot it" if package else "boot a kernel with PREEMPT_RT"
    return Finding("kernel", State.LIMITED, f"{release}, preemption model {model}: {why}", fix + dynamic)


def governor(patient: Patient) -> Finding:
    """A CPU that was slowed down serves a task late."""
    known = (patient.profile.get("frequency") or {}).get("cpus") or {}
    if not known:
        return Finding("governor", State.FINE, "the kernel scales no frequencies here")
    slow = {cpu: policy for cpu, policy in known.items() if _varies(policy)}
    if not slow:
        return Finding("governor", State.FINE, f"no CPU is slowed down ({_governors(known)})")
    numbers = sorted(int(cpu.removeprefix("cpu")) for cpu in slow if cpu.removeprefix("cpu").isdigit())
    return Finding("governor", State.LIMITED,
                   f"{words.cpus(numbers)} may be slowed down while idle ({_governors(slow)}): tasks then wake late",
                   "cpupower frequency-set -g performance, or governor = \"performance\" under [settings] of a plan")


def _varies(policy: dict[str, Any]) -> bool:
    fixed = policy.get("scaling_min_freq") is not None and (
        policy.get("scaling_min_freq") == policy.get("scaling_max_freq"))
    return policy.get("scaling_governor") != "performance" and not fixed


def _governors(policies: dict[str, dict[str, Any]]) -> str:
    return "governor " + ", ".join(sorted({str(policy.get("scaling_governor")) for policy in policies.values()}))


def isolation(patient: Patient) -> Finding:
    """Which CPUs ordinary tasks stay off."""
    known = patient.profile.get("cpu_isolation") or {}
    isolated, ticks_off = cpu_list(known.get("isolated") or ""), _cpus(known.get("nohz_full"))
    if isolated:
        ticks = "" if ticks_off else "; its tick goes on (no nohz_full)"
        return Finding("isolated CPUs", State.FINE,
                       f"{words.cpus(isolated)}: ordinary tasks, and loads, stay off{ticks}")
    count = (patient.profile.get("cpu") or {}).get("count") or 1
    if count < 2:
        return Finding("isolated CPUs", State.FINE, "there is one CPU only: nothing can be isolated")
    last = count - 1
    return Finding("isolated CPUs", State.LIMITED, "none: a real-time task shares its CPU with everything else",
                   f"where the task may have a CPU to itself, boot with isolcpus={last} nohz_full={last} "
                   f"rcu_nocbs={last}")


def _cpus(text: str | None) -> list[int]:
    return cpu_list(text) if text and re.fullmatch(r"[\d,\-]+", text.strip()) else []


def rights(patient: Patient) -> Finding:
    """By which right a measurement gets real-time priority and locked memory."""
    setuid = _setuid_probe(patient)
    if setuid:
        return Finding("rights", State.LIMITED, f"{setuid} is setuid: whoever may run it can take over a CPU",
                       f"chmod u-s {setuid}, and grant rtprio and memlock instead:\n{how_to_grant()}")
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
    return Finding("rights", State.LIMITED, f"{said}: too little for SCHED_FIFO {_FIFO} and locked memory",
                   "run as root; let sudo run it without a password; or grant rtprio and memlock (limits.conf)")


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
        return Finding(_MODULE, State.MISSING, f"{MODULE} is not installed for this kernel: no timer, no pin and no "
                       "spin with interrupts off (gaps that SMIs and hypervisors make) by linux-kernel",
                       "install the kernel's headers and the package fastenough-dkms, or see docs/module.md")
    return Finding(_MODULE, State.FINE, f"{place}; {_GAPS}")


def smi(patient: Patient) -> Finding:
    """They are counted, or the gaps that they make are looked for."""
    if patient.link.glob("/dev/cpu/*/msr"):
        return Finding("SMI counter", State.FINE, f"readable where the CPU has one; {_GAPS}")
    return Finding("SMI counter", State.LIMITED, "SMIs cannot be counted: there is no /dev/cpu/*/msr",
                   f"modprobe msr (x86 of Intel only); {_GAPS}")


def _said(patient: Patient, *command: str) -> str:
    """What a command says on the board; nothing where there is no such command."""
    try:
        return patient.link.run(command).stdout.decode(errors="replace").strip()
    except FileNotFoundError:
        return ""
