# SPDX-License-Identifier: GPL-2.0-or-later
"""How the kernel was built and booted: preemption, debugging, tracing, RCU, mitigations."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts, Unknown, as_cpus
from fastenough.audit.finding import (
    Change,
    CheckOutcome,
    Group,
    Severity,
    boot,
    booted,
    build,
    costs,
    done,
    fine,
    hides,
    sysctl,
    written,
)

PACKAGES = {
    "x86_64": "linux-image-rt-amd64",
    "aarch64": "linux-image-rt-arm64",
    "armv7l": "linux-image-rt-armmp",
    "i686": "linux-image-rt-686-pae",
}
"""Debian packages of kernels with PREEMPT_RT."""


_MODELS = {
    "preempt": "most of the kernel can be preempted, but delays by interrupts and locks are unbounded",
    "lazy": "ordinary tasks are preempted late, and delays by interrupts and locks are unbounded",
    "voluntary": "the kernel is preempted at fixed points only; expect delays of milliseconds",
    "none": "the kernel is never preempted; expect delays of many milliseconds",
}


_DYNAMIC = "CONFIG_PREEMPT_DYNAMIC"


def can_choose(facts: Facts) -> bool:
    """Whether the preemption model of this kernel can be set on the command line."""
    return bool(facts.get("kernel_config", "of_interest", _DYNAMIC) == "y")


def _preemption(facts: Facts) -> CheckOutcome:
    model, release = str(facts.need("kernel", "preemption")), facts.get("kernel", "release")
    if model == "preempt-rt":
        return fine(f"{release}, preemption model preempt-rt")
    why = _MODELS.get(model, "unknown preemption model; its worst case is rarely bounded")
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


_HEAVY = (
    "PROVE_LOCKING",
    "DEBUG_LOCK_ALLOC",
    "DEBUG_LOCKDEP",
    "LOCK_STAT",
    "DEBUG_OBJECTS",
    "DEBUG_PAGEALLOC",
    "KASAN",
    "KCSAN",
    "KMSAN",
    "DEBUG_KMEMLEAK",
    "SLUB_DEBUG_ON",
    "DEBUG_PREEMPT",
    "IRQSOFF_TRACER",
    "PREEMPT_TRACER",
    "GCOV_KERNEL",
    "KCOV",
    "DEBUG_ATOMIC_SLEEP",
    "FAULT_INJECTION",
    "DEBUG_VM_PGTABLE",
    "PREEMPTIRQ_DELAY_TEST",
)
"""Each lengthens locks, allocations, or every disabling of interrupts."""


_LIGHT = (
    "DEBUG_SHIRQ",
    "RCU_TRACE",
    "LATENCYTOP",
    "DEBUG_LIST",
    "DEBUG_RT_MUTEXES",
    "DEBUG_SPINLOCK",
    "DEBUG_MUTEXES",
    "SCHEDSTATS",
    "DEBUG_VM",
)


def _debug_options(facts: Facts) -> CheckOutcome:
    heavy, light = ([name for name in names if facts.option(name) == "y"] for names in (_HEAVY, _LIGHT))
    if not heavy and not light:
        return fine("none that lengthens kernel paths is built in")
    return costs(
        "built in: " + ", ".join(heavy + light),
        build(*(f"CONFIG_{name}=n" for name in heavy + light)),
        severity=None if heavy else Severity.LOW,
    )


def _tracing(facts: Facts) -> CheckOutcome:
    tracer = str(facts.need("tunables", "tracer"))
    if tracer == "nop":
        return fine("no tracer is active")
    return costs(f"tracer {tracer} is active", written("/sys/kernel/tracing/current_tracer", "nop"))


_FLAGS = {
    0: "proprietary modules",
    4: "machine checks",
    7: "the kernel has crashed",
    9: "the kernel has warned",
    12: "out-of-tree modules",
    14: "a soft lockup",
    18: "a module that was changed",
}


def _taint(facts: Facts) -> CheckOutcome:
    bits = int(facts.need("kernel", "tainted"))
    taints = [text for flag, text in _FLAGS.items() if bits >> flag & 1]
    if not taints:
        return fine("no relevant taint")
    return hides(", ".join(taints), done("check the kernel log, and boot without them before measuring"))


def _rcu_callbacks(facts: Facts) -> CheckOutcome:
    arguments, apart = facts.arguments, facts.set_apart
    if as_cpus(facts.get("cpu_isolation", "nohz_full")):
        return fine("run in threads for the nohz_full CPUs")
    if facts.option("RCU_NOCB_CPU") != "y":
        return costs(
            "each CPU runs its own in a soft interrupt; this kernel cannot run them in threads",
            build("CONFIG_RCU_EXPERT=y", "CONFIG_RCU_NOCB_CPU=y"),
        )
    if "rcu_nocbs" in arguments:
        return fine(f"run in threads for CPUs {arguments['rcu_nocbs'] or 'set later'} (rcu_nocbs)")
    if facts.option("RCU_NOCB_CPU_DEFAULT_ALL") == "y":
        return fine("run in threads for all CPUs (CONFIG_RCU_NOCB_CPU_DEFAULT_ALL)")
    return costs(
        "each CPU runs its own", boot(f"rcu_nocbs={apart}"), severity=Severity.LOW if facts.real_time_kernel else None
    )


def _rcu_boost(facts: Facts) -> CheckOutcome:
    if facts.option("PREEMPT_RCU") != "y":
        return fine("not needed: readers are not preemptible in this kernel")
    if facts.option("RCU_BOOST") == "y":
        return fine("built in")
    return costs("not built in", build("CONFIG_RCU_EXPERT=y", "CONFIG_RCU_BOOST=y", "CONFIG_RCU_BOOST_DELAY=500"))


def _rcu_expedited(facts: Facts) -> CheckOutcome:
    if int(facts.need("tunables", "rcu_normal")):
        return fine("disabled (rcu_normal)")
    if int(facts.need("tunables", "rcu_expedited")):
        return costs(
            "every grace period is expedited",
            written("/sys/kernel/rcu_expedited", 0),
            boot("rcupdate.rcu_normal_after_boot=1"),
        )
    return costs(
        "the kernel may start one",
        boot("rcupdate.rcu_normal_after_boot=1"),
        written("/sys/kernel/rcu_normal", 1),
        severity=Severity.LOW,
    )


def _jump_labels(facts: Facts) -> CheckOutcome:
    if facts.option("JUMP_LABEL") == "y":
        return fine("built in")
    return costs(
        "not built in: each tracepoint and scheduler feature tests a variable in memory",
        build("CONFIG_JUMP_LABEL=y"),
    )


_ERRATA = ("FSL_ERRATUM_A_004801", "FSL_ERRATUM_A_005337")


def _powerpc_errata(facts: Facts) -> CheckOutcome:
    architecture = str(facts.need("cpu", "architecture"))
    if not architecture.startswith("ppc"):
        return fine(f"not applicable to {architecture}")
    workarounds = [name for name in _ERRATA if facts.option(name) == "y"]
    if not workarounds:
        return fine("none is built in")
    return costs("built in: " + ", ".join(workarounds), build(*(f"CONFIG_{name}=n" for name in workarounds)))


def _mitigations(facts: Facts) -> CheckOutcome:
    known = facts.need("vulnerabilities")
    if not known:
        facts.need("vulnerabilities", "any")
    active = sorted(name for name, state in known.items() if "itigation:" in str(state))
    if not active:
        return fine("none is active")
    return costs(f"{len(active)} are active: {', '.join(active)}", boot("mitigations=off"))


def _split_locks(facts: Facts) -> CheckOutcome:
    if not facts.x86:
        return fine("x86 only")
    if facts.arguments.get("split_lock_detect") == "off":
        return fine("not detected (split_lock_detect=off)")
    if int(facts.need("tunables", "split_lock_mitigate")) == 0:
        return fine("logged without penalty")
    return costs(
        "where the processor detects one, its task is stopped for 10 ms or more",
        sysctl("kernel.split_lock_mitigate", 0, ("split-lock-penalty", "0")),
        boot("split_lock_detect=off"),
    )


def _preempt_argument(facts: Facts) -> CheckOutcome:
    models = [
        argument.partition("=")[2]
        for argument in str(facts.need("cmdline")).partition(" -- ")[0].split()
        if argument.startswith("preempt=")
    ]
    if not models:
        return fine("the boot line selects no preemption model")
    if facts.real_time_kernel:
        return (
            costs(
                f"preempt={models[-1]} on a PREEMPT_RT kernel: it is ignored or selects lazy preemption",
                done("remove preempt= from the boot line"),
            )
            if models[-1] != "full"
            else fine("preempt=full")
        )
    if facts.option("PREEMPT_DYNAMIC") != "y":
        return costs(
            f"preempt={models[-1]} has no effect: this kernel was built without PREEMPT_DYNAMIC",
            build("CONFIG_PREEMPT_DYNAMIC=y"),
        )
    if len(set(models)) > 1:
        return costs(
            f"preempt= is given {len(models)} times; the last one, {models[-1]}, is in effect",
            done(f"keep one preempt= on the boot line (in effect: {models[-1]})"),
        )
    return fine(f"preempt={models[-1]} is in effect")


def _rcu_polling(facts: Facts) -> CheckOutcome:
    if "rcu_nocb_poll" in facts.arguments or "rcu_nocbs" not in facts.arguments:
        return fine("callback threads poll" if "rcu_nocb_poll" in facts.arguments else "no rcu_nocbs CPUs")
    return costs("rcu_nocbs CPUs wake their callback threads", boot("rcu_nocb_poll"))


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
"""Boot arguments that check, record or print."""


_HEAVY_BOOT_DEBUGGING = ("slab_debug", "slub_debug", "debug_pagealloc", "kasan", "ftrace", "tp_printk")
"""Those that cost time at each call, allocation or event."""


_OFF = ("off", "0", "n", "no", "-")


def _boot_debugging(facts: Facts) -> CheckOutcome:
    arguments = sorted(
        f"{name}={value}" if value else name
        for name, value in facts.arguments.items()
        if name in _DEBUGGING and value not in _OFF
    )
    if not arguments:
        return fine("the boot line enables no checks or traces")
    heavy = any(argument.startswith(_HEAVY_BOOT_DEBUGGING) for argument in arguments)
    return costs(
        f"the boot line has {' '.join(arguments)}",
        done(f"remove from the boot line: {' '.join(arguments)}"),
        severity=None if heavy else Severity.LOW,
    )


def _events(facts: Facts) -> CheckOutcome:
    known = facts.need("tracing")
    events, kprobes, programs = known["events"], known["kprobes"], known["bpf_programs"]
    enabled, changes = [], list[Change]()
    if events:
        enabled.append(f"{len(events)} trace event{'s' * (len(events) > 1)} ({events[0]}{', …' * (len(events) > 1)})")
        changes.append(written("/sys/kernel/tracing/events/enable", 0))
    if kprobes:
        enabled.append(f"{len(kprobes)} kprobe{'s' * (len(kprobes) > 1)}")
        changes.append(done("clear /sys/kernel/tracing/kprobe_events"))
    if programs:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(programs.items()))
        enabled.append(f"BPF programs: {kinds}")
        changes.append(done("stop the programs that loaded them (bpftool prog show)"))
    if enabled:
        return costs("; ".join(enabled), *changes)
    missing = [
        name
        for name, value in (("trace events", events), ("kprobes", kprobes), ("BPF programs", programs))
        if value is None
    ]
    if missing:
        raise Unknown(f"not readable here: {', '.join(missing)}")
    return fine("no trace event, kprobe or BPF program is active")


def _accounting(facts: Facts) -> CheckOutcome:
    enabled, changes = [], list[Change]()
    if facts.get("tunables", "schedstats") == 1:
        enabled.append("scheduler statistics")
        changes.append(sysctl("kernel.sched_schedstats", 0))
    if facts.get("tunables", "delay_accounting") == 1:
        enabled.append("delay accounting")
        changes.append(sysctl("kernel.task_delayacct", 0))
    if facts.need("pressure_statistics"):
        enabled.append("pressure stall information")
        changes.append(boot("psi=0"))
    if facts.arguments.get("audit") in ("1", "on"):
        enabled.append("system-call audit")
        changes.append(boot("audit=0"))
    if not enabled:
        facts.need("tunables")
        return fine("no scheduling or pressure statistics, and no system-call audit on the boot line")
    return costs(", ".join(enabled), *changes)


CHECKS = (
    Check(
        "preemption",
        "preemption model",
        Group.KERNEL,
        Severity.HIGH,
        _preemption,
        reason="A task waits until the kernel can be preempted. Only PREEMPT_RT runs interrupt handlers in "
        "threads and makes nearly all locks sleeping locks, so that long kernel paths can be preempted.",
        source="kernel: kernel/Kconfig.preempt, Documentation/core-api/real-time; Enea, appendix A, tables A.4 and A.5",
        trade_off="throughput: locks and interrupts cost more context switches",
    ),
    Check(
        "debug-options",
        "debug options",
        Group.KERNEL,
        Severity.HIGH,
        _debug_options,
        reason="Checks of locks, memory and preemption lengthen paths that run with interrupts or preemption "
        "off. Enea measured 388 µs with them and 126 µs without.",
        source="Enea, appendix A, step 1 and tables A.2 and A.3; kernel: Documentation/core-api/real-time/hardware.rst",
        trade_off="bugs are harder to find: keep a second kernel with these options",
    ),
    Check(
        "tracing",
        "tracer in use",
        Group.KERNEL,
        Severity.MEDIUM,
        _tracing,
        reason="A tracer adds time to every traced function, also with interrupts off. The function tracer "
        "doubles many delays.",
        source="kernel: Documentation/trace/ftrace.rst",
        trade_off="its records are missing",
    ),
    Check(
        "taint",
        "kernel taint",
        Group.KERNEL,
        Severity.LOW,
        _taint,
        reason="Out-of-tree code may disable interrupts for any time, and after a crash or a warning the state "
        "of the kernel is undefined.",
        source="kernel: Documentation/admin-guide/tainted-kernels.rst",
        trade_off="the devices of those modules",
    ),
    Check(
        "rcu-callbacks",
        "RCU callbacks",
        Group.KERNEL,
        Severity.MEDIUM,
        _rcu_callbacks,
        reason="Memory freed by RCU is released in batches on the CPU that freed it, in a soft interrupt that "
        "runs before tasks. With rcu_nocbs, threads release it, which a real-time task preempts.",
        source="Enea, appendix A, step 1 (CONFIG_RCU_NOCB_CPU); "
        "kernel: Documentation/admin-guide/kernel-parameters.txt",
        trade_off="throughput: more context switches where much memory is freed",
    ),
    Check(
        "rcu-boost",
        "RCU boosting",
        Group.KERNEL,
        Severity.LOW,
        _rcu_boost,
        reason="A preempted reader delays every grace period, and memory cannot be freed until it runs. Boosting "
        "raises its priority.",
        source="Enea, appendix A, step 1 (CONFIG_RCU_BOOST); kernel: kernel/rcu/Kconfig",
        trade_off="none",
    ),
    Check(
        "rcu-expedited",
        "expedited RCU",
        Group.KERNEL,
        Severity.MEDIUM,
        _rcu_expedited,
        reason="An expedited grace period interrupts all CPUs at once, including those of real-time tasks.",
        source="kernel: Documentation/RCU/Design/Requirements/Requirements.rst (PREEMPT_RT: rcu_normal_after_boot)",
        trade_off="operations that wait for a grace period, such as firewall changes, take longer",
    ),
    Check(
        "jump-labels",
        "static branches",
        Group.KERNEL,
        Severity.LOW,
        _jump_labels,
        reason="Disabled tracepoints and options cost a load and a branch each unless they are patched out.",
        source="Enea, appendix A, step 1 (CONFIG_JUMP_LABEL)",
        trade_off="patching code at run time interrupts all CPUs: toggle nothing while measuring",
    ),
    Check(
        "powerpc-errata",
        "PowerPC errata",
        Group.KERNEL,
        Severity.LOW,
        _powerpc_errata,
        reason="On cores without these defects (P2041 from revision 2) the workarounds only make TLB misses slow.",
        source="Enea, appendix A, step 1 (CONFIG_FSL_ERRATUM_*)",
        trade_off="wrong data on a core that has the defect: check its revision first",
    ),
    Check(
        "mitigations",
        "side-channel mitigations",
        Group.KERNEL,
        Severity.LOW,
        _mitigations,
        reason="They lengthen each entry to and exit from the kernel, and switches between tasks of different users.",
        source="kernel: Documentation/admin-guide/hw-vuln/index.rst; also checked by rtcqs",
        trade_off="security: only where no untrusted code runs, not even in a browser or a container",
    ),
    Check(
        "split-locks",
        "penalty for split locks",
        Group.KERNEL,
        Severity.LOW,
        _split_locks,
        reason="The kernel deliberately slows down a task that locks memory across two cache lines; a real-time "
        "task whose library does so is late by milliseconds.",
        source="kernel: Documentation/arch/x86/buslock.rst; Documentation/admin-guide/sysctl/kernel.rst",
        trade_off="such locks of other tasks can stall the bus of all CPUs",
    ),
    Check(
        "preemption-argument",
        "preempt= on the boot line",
        Group.KERNEL,
        Severity.MEDIUM,
        _preempt_argument,
        reason="A boot argument without effect makes a system look preemptible that is not.",
        source="kernel: Documentation/admin-guide/kernel-parameters.txt, preempt; kernel/Kconfig.preempt",
        trade_off="none",
    ),
    Check(
        "rcu-wakeups",
        "RCU callback wake-ups",
        Group.KERNEL,
        Severity.LOW,
        _rcu_polling,
        reason="Without polling, a CPU whose callbacks run in threads has to wake those threads.",
        source="kernel: Documentation/admin-guide/kernel-parameters.txt, rcu_nocb_poll",
        trade_off="power: the callback threads wake up periodically",
    ),
    Check(
        "boot-debugging",
        "boot-line debugging",
        Group.KERNEL,
        Severity.HIGH,
        _boot_debugging,
        reason="Memory checks and traces that start at boot lengthen allocations and every traced path, also "
        "with interrupts off. Messages to slow consoles stop a CPU for milliseconds.",
        source="kernel: Documentation/admin-guide/kernel-parameters.txt, Documentation/mm/slab.rst",
        trade_off="bugs are harder to find",
    ),
    Check(
        "trace-events",
        "trace events, kprobes and BPF programs",
        Group.KERNEL,
        Severity.LOW,
        _events,
        reason="Each recorded event and each attached program runs on the path it traces: about 0.1 to 1 µs, "
        "more where it takes a lock.",
        source="kernel: Documentation/trace/events.rst, Documentation/bpf",
        trade_off="their records are missing; a running monitor of fastenough is one of them",
    ),
    Check(
        "accounting",
        "scheduling statistics",
        Group.KERNEL,
        Severity.LOW,
        _accounting,
        reason="Each context switch and each wake-up updates them. A system-call audit checks each call.",
        source="kernel: Documentation/scheduler/sched-stats.rst, Documentation/accounting/psi.rst",
        trade_off="tools that use these statistics do not work (systemd-oomd uses pressure)",
    ),
)
