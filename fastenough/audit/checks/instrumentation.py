# SPDX-License-Identifier: GPL-2.0-or-later
"""What lengthens paths of the kernel because somebody records, counts or checks: at boot or while it runs."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts, Unknown
from fastenough.audit.finding import Change, Group, Seen, Severity, boot, costs, done, fine, sysctl, written

_DEBUGGING = (
    "slab_debug",
    "slub_debug",
    "debug_pagealloc",
    "page_owner",
    "kmemleak",
    "initcall_debug",
    "ftrace",
    "trace_event",
    "ftrace_filter",
    "kprobe_event",
    "debug",
    "ignore_loglevel",
    "earlyprintk",
    "keep_bootcon",
    "lockdep",
    "kasan",
    "stacktrace",
    "debug_objects",
    "slab_nomerge",
    "kgdboc",
    "tp_printk",
    "dyndbg",
    "failslab",
    "fail_page_alloc",
)
"""Arguments of the boot line that check, record or print."""
_HEAVY = ("slab_debug", "slub_debug", "debug_pagealloc", "kasan", "ftrace", "tp_printk")
"""Those of them that cost time at each call, allocation or event."""
_OFF = ("off", "0", "n", "no", "-")


def _boot_debugging(facts: Facts) -> Seen:
    found = sorted(
        f"{name}={value}" if value else name
        for name, value in facts.arguments.items()
        if name in _DEBUGGING and value not in _OFF
    )
    if not found:
        return fine("the boot line switches no checks or traces on")
    heavy = any(each.startswith(_HEAVY) for each in found)
    return costs(
        f"the boot line has {' '.join(found)}",
        done(f"remove from the boot line: {' '.join(found)}"),
        severity=None if heavy else Severity.LOW,
    )


def _events(facts: Facts) -> Seen:
    known = facts.need("tracing")
    events, kprobes, programs = known["events"], known["kprobes"], known["bpf_programs"]
    found, changes = [], list[Change]()
    if events:
        found.append(f"{len(events)} trace event{'s' * (len(events) > 1)} ({events[0]}{', …' * (len(events) > 1)})")
        changes.append(written("/sys/kernel/tracing/events/enable", 0))
    if kprobes:
        found.append(f"{len(kprobes)} kprobe{'s' * (len(kprobes) > 1)}")
        changes.append(done("clear /sys/kernel/tracing/kprobe_events"))
    if programs:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(programs.items()))
        found.append(f"BPF programs: {kinds}")
        changes.append(done("end the programs that loaded them (bpftool prog show)"))
    if found:
        return costs("; ".join(found), *changes)
    missing = [
        name
        for name, value in (("trace events", events), ("kprobes", kprobes), ("BPF programs", programs))
        if value is None
    ]
    if missing:
        raise Unknown(f"not readable here: {', '.join(missing)}")
    return fine("no trace event, kprobe or BPF program is active")


def _accounting(facts: Facts) -> Seen:
    found, changes = [], list[Change]()
    if facts.get("tunables", "schedstats") == 1:
        found.append("scheduler statistics")
        changes.append(sysctl("kernel.sched_schedstats", 0))
    if facts.get("tunables", "delay_accounting") == 1:
        found.append("delay accounting")
        changes.append(sysctl("kernel.task_delayacct", 0))
    if facts.need("pressure_statistics"):
        found.append("pressure stall information")
        changes.append(boot("psi=0"))
    if facts.arguments.get("audit") in ("1", "on"):
        found.append("system-call audit")
        changes.append(boot("audit=0"))
    if not found:
        facts.need("tunables")
        return fine("no statistics of scheduling or pressure, and no audit from the boot line")
    return costs(", ".join(found), *changes)


CHECKS = (
    Check(
        "boot-debugging",
        "debugging from the boot line",
        Group.KERNEL,
        Severity.HIGH,
        _boot_debugging,
        why="Checks of memory and traces that start at boot lengthen allocations and every traced path, also with "
        "interrupts off; messages to slow consoles stop a CPU for milliseconds.",
        source="kernel: Documentation/admin-guide/kernel-parameters.txt, Documentation/mm/slab.rst",
        elsewhere="defects are harder to find",
    ),
    Check(
        "trace-events",
        "trace events, kprobes and BPF programs",
        Group.KERNEL,
        Severity.LOW,
        _events,
        why="Each event that is recorded and each program that is attached runs on the path it watches: about 0.1 to "
        "1 µs, more where it takes a lock.",
        source="kernel: Documentation/trace/events.rst, Documentation/bpf",
        elsewhere="what they record is not recorded; a monitor of fastenough is among them while it runs",
    ),
    Check(
        "accounting",
        "statistics on each switch of tasks",
        Group.KERNEL,
        Severity.LOW,
        _accounting,
        why="Each switch and each wake-up updates them; an audit of system calls looks at each call.",
        source="kernel: Documentation/scheduler/sched-stats.rst, Documentation/accounting/psi.rst",
        elsewhere="tools that show these statistics (systemd-oomd uses pressure) do not work",
    ),
)
