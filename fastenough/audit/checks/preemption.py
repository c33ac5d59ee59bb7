# SPDX-License-Identifier: GPL-2.0-or-later
"""The preemption model: whether there is a bound at all."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, boot, booted, build, costs, fine, written

PACKAGES = {
    "x86_64": "linux-image-rt-amd64",
    "aarch64": "linux-image-rt-arm64",
    "armv7l": "linux-image-rt-armmp",
    "i686": "linux-image-rt-686-pae",
}
"""What Debian calls its kernel with PREEMPT_RT."""
_MODELS = {
    "preempt": "most of the kernel can be preempted, but interrupts and locks delay tasks for a time nobody bounds",
    "lazy": "ordinary tasks are preempted late, and interrupts and locks delay tasks for a time nobody bounds",
    "voluntary": "the kernel is preempted at chosen points only: delays of milliseconds must be expected",
    "none": "the kernel is not preempted at all: delays of many milliseconds must be expected",
}
_DYNAMIC = "CONFIG_PREEMPT_DYNAMIC"


def can_choose(facts: Facts) -> bool:
    """Whether this kernel takes its preemption model from the command line."""
    return bool(facts.get("kernel_config", "of_interest", _DYNAMIC) == "y")


def _look(facts: Facts) -> Seen:
    model, release = str(facts.need("kernel", "preemption")), facts.get("kernel", "release")
    if model == "preempt-rt":
        return fine(f"{release}, preemption model preempt-rt")
    why = _MODELS.get(model, "which preemption model it has is not known, and its worst case is rarely bounded")
    changes = [boot("preempt=full")] if can_choose(facts) and model != "preempt" else []
    if model != "preempt" and "full" in (facts.get("scheduler_debug", "preemption") or ()):
        changes.insert(0, written("/sys/kernel/debug/sched/preempt", "full", ("preemption", "full")))
    if package := PACKAGES.get(str(facts.get("cpu", "architecture"))):
        changes.append(booted(f"on Debian: apt-get install {package}"))
    return costs(
        f"{release}, preemption model {model}: {why}",
        *changes,
        build("CONFIG_EXPERT=y", "CONFIG_PREEMPT_RT=y"),
        severity=Severity.MEDIUM if model == "preempt" else None,
    )


CHECK = Check(
    "preemption",
    "preemption model",
    Group.KERNEL,
    Severity.HIGH,
    _look,
    why="A task waits until the kernel lets itself be preempted. Only PREEMPT_RT makes interrupts threads and nearly "
    "all locks sleeping ones, so that what is long can be preempted.",
    source="kernel: kernel/Kconfig.preempt, Documentation/core-api/real-time; Enea, appendix A, tables A.4 and A.5",
    elsewhere="throughput: locks and interrupts cost more context switches",
)
