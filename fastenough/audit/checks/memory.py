# SPDX-License-Identifier: GPL-2.0-or-later
"""Swap, page handling, NUMA, cache and memory hardening."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
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
    sysctl,
    written,
)


def _swap(facts: Facts) -> CheckOutcome:
    swap_bytes = int(facts.need("memory", "swap_bytes"))
    if swap_bytes == 0:
        return fine("none")
    swappiness = facts.get("tunables", "swappiness")
    changes = [done("swapoff -a, and lock the memory of real-time tasks (mlockall)")]
    if swappiness is not None and int(swappiness) > 1:
        changes.append(sysctl("vm.swappiness", 1, ("swappiness", "1")))
    detail = "" if swappiness is None else f", swappiness {swappiness}"
    return costs(f"{swap_bytes / 2**20:,.0f} MiB{detail}", *changes)


_FILE = "/sys/kernel/mm/transparent_hugepage/enabled"


def _huge_pages(facts: Facts) -> CheckOutcome:
    chosen = facts.get("memory", "transparent_huge_pages")
    if chosen is None and facts.option("TRANSPARENT_HUGEPAGE") == "n":
        return fine("not built in")
    chosen = facts.need("memory", "transparent_huge_pages")
    if chosen == "never":
        return fine("never")
    return costs(
        f"{chosen}" + (" (only on request of a program)" if chosen == "madvise" else ""),
        written(_FILE, "never", ("transparent-huge-pages", "never")),
        boot("transparent_hugepage=never"),
        severity=Severity.LOW if chosen == "madvise" else None,
    )


def _page_merging(facts: Facts) -> CheckOutcome:
    running = facts.get("tunables", "ksm_run")
    if running is None and facts.option("KSM") == "n":
        return fine("not built in")
    if int(facts.need("tunables", "ksm_run")) != 1:
        return fine("off")
    return costs("on", written("/sys/kernel/mm/ksm/run", 0, ("page-merging", "0")))


def _compaction(facts: Facts) -> CheckOutcome:
    if facts.get("tunables", "compaction_proactiveness") is None and facts.option("COMPACTION") == "n":
        return fine("not built in")
    eager = int(facts.need("tunables", "compaction_proactiveness"))
    if eager == 0:
        return fine("only on demand")
    return costs(f"proactive ({eager})", sysctl("vm.compaction_proactiveness", 0, ("compaction", "0")))


_INTERVAL = "kfence.sample_interval"


_FILLED = {
    "init_on_alloc": ("INIT_ON_ALLOC_DEFAULT_ON", "memory is cleared on allocation"),
    "init_on_free": ("INIT_ON_FREE_DEFAULT_ON", "memory is cleared when freed"),
    "page_poison": ("", "pages are poisoned when freed"),
}
"""Boot arguments, each with the kernel option that it overrides, and its effect."""


_NO = ("0", "n", "no", "off")


def _sampled_ms(facts: Facts) -> str:
    """Return the sampling interval of KFENCE; "0" if it is off."""
    if facts.option("KFENCE") != "y":
        return "0"
    return facts.arguments.get(_INTERVAL, facts.option("KFENCE_SAMPLE_INTERVAL"))


def _does(facts: Facts, argument: str, option: str) -> bool:
    built_in = bool(option) and facts.option(option) == "y"
    if argument == "page_poison" and facts.option("PAGE_POISONING") != "y":
        return False
    return facts.arguments[argument].lower() not in _NO if argument in facts.arguments else built_in


def _memory_hardening(facts: Facts) -> CheckOutcome:
    reasons: list[str] = []
    changes: list[Change] = []
    sampled_ms = _sampled_ms(facts)
    by_interrupt = facts.option("KFENCE_STATIC_KEYS") == "y" and sampled_ms != "0"
    if sampled_ms != "0":
        reasons.append(
            f"KFENCE samples an allocation every {sampled_ms} ms"
            + (", and interrupts every CPU" if by_interrupt else "")
        )
        changes += [boot(f"{_INTERVAL}=0"), *([build("CONFIG_KFENCE_STATIC_KEYS=n")] if by_interrupt else [])]
    for argument, (option, does) in _FILLED.items():
        if _does(facts, argument, option):
            reasons.append(does)
            changes.append(boot(f"{argument}=0"))
    if not reasons:
        return fine("none")
    return costs("; ".join(reasons), *changes, severity=Severity.MEDIUM if by_interrupt else None)


def _numa_balancing(facts: Facts) -> CheckOutcome:
    if facts.get("tunables", "numa_balancing") is None and facts.option("NUMA_BALANCING") == "n":
        return fine("not built in")
    if int(facts.need("tunables", "numa_balancing")) == 0:
        return fine("off")
    return costs("on", sysctl("kernel.numa_balancing", 0, ("numa-balancing", "0")), boot("numa_balancing=disable"))


def _numa_nodes(facts: Facts) -> CheckOutcome:
    nodes = facts.need("numa")
    if not nodes and facts.option("NUMA") == "n":
        return fine("not built in: uniform memory")
    if not nodes:
        facts.need("numa", "node0")
    if len(nodes) == 1:
        return fine("one node: uniform memory")
    return costs(f"{len(nodes)} nodes", done("numactl --cpunodebind=N --membind=N for the task and its devices"))


_ENOUGH_S = 10


def _statistics(facts: Facts) -> CheckOutcome:
    every_s = int(facts.need("tunables", "stat_interval"))
    if every_s >= _ENOUGH_S:
        return fine(f"every {every_s} s")
    return costs(f"every {every_s} s on each CPU", sysctl("vm.stat_interval", 120, ("stat-interval", "120")))


def _cache_allocation(facts: Facts) -> CheckOutcome:
    known = facts.need("cache_allocation")
    if not known["can"]:
        return fine("not supported by this processor")
    if known["mounted"]:
        return fine(f"resctrl is mounted ({', '.join(known['can'])})")
    if not known["kernel"]:
        return costs(
            f"supported by the processor ({', '.join(known['can'])}), not by this kernel",
            build("CONFIG_X86_CPU_RESCTRL=y"),
        )
    return costs(
        f"available ({', '.join(known['can'])}) and not in use",
        done("mount -t resctrl resctrl /sys/fs/resctrl, and a group with its own cache share for the task's CPU"),
        booted("intel-cmt-cat (pqos) configures it at each boot"),
    )


def _high_memory(facts: Facts) -> CheckOutcome:
    if facts.option("64BIT") == "y":
        return fine("not used by 64-bit kernels")
    if facts.option("HIGHMEM") != "y":
        return fine("not built in")
    return costs("pages are mapped on demand", build("CONFIG_HIGHMEM=n"))


CHECKS = (
    Check(
        "swap",
        "swap",
        Group.MEMORY,
        Severity.HIGH,
        _swap,
        reason="A page that is not locked in memory is read from disk when it is accessed, which takes "
        "milliseconds. Even if the task itself is locked, disk activity disturbs it.",
        source="mlockall(2); kernel: Documentation/admin-guide/sysctl/vm.rst; also checked by rtcqs",
        trade_off="memory: tasks are killed instead of swapped out",
    ),
    Check(
        "huge-pages",
        "transparent huge pages",
        Group.MEMORY,
        Severity.MEDIUM,
        _huge_pages,
        reason="The kernel combines pages without the task's knowledge: it locks the memory map, interrupts "
        "other CPUs to flush TLBs, and a fault clears 2 MiB at once.",
        source="kernel: Documentation/admin-guide/mm/transhuge.rst; tuned, profile network-latency",
        trade_off="throughput of programs that use much memory",
    ),
    Check(
        "page-merging",
        "page merging (KSM)",
        Group.MEMORY,
        Severity.LOW,
        _page_merging,
        reason="A kernel thread compares memory continuously, and a write to a merged page costs a fault and a copy.",
        source="kernel: Documentation/admin-guide/mm/ksm.rst",
        trade_off="memory, with many similar guests",
    ),
    Check(
        "compaction",
        "memory compaction",
        Group.MEMORY,
        Severity.LOW,
        _compaction,
        reason="Moving pages interrupts the CPUs that use them and locks the lists of free memory.",
        source="kernel: Documentation/admin-guide/sysctl/vm.rst, compaction_proactiveness",
        trade_off="huge pages take longer to allocate",
    ),
    Check(
        "memory-hardening",
        "memory hardening",
        Group.MEMORY,
        Severity.LOW,
        _memory_hardening,
        reason="The kernel writes allocated memory once more, in paths that a real-time task waits for. KFENCE "
        "with static branches patches code at each sample, which interrupts all CPUs.",
        source="kernel: lib/Kconfig.kfence (KFENCE_STATIC_KEYS), security/Kconfig.hardening; kernel-hardening-checker "
        "recommends these options",
        trade_off="security: data that a bug leaves in memory can be read or used",
    ),
    Check(
        "numa-balancing",
        "NUMA balancing",
        Group.MEMORY,
        Severity.MEDIUM,
        _numa_balancing,
        reason="The kernel unmaps pages to see which CPU uses them: page faults even for locked memory, and TLB- "
        "flush interrupts.",
        source="kernel: Documentation/admin-guide/sysctl/kernel.rst, numa_balancing",
        trade_off="throughput of programs that are not bound to a node",
    ),
    Check(
        "numa-nodes",
        "NUMA nodes",
        Group.MEMORY,
        Severity.LOW,
        _numa_nodes,
        reason="Memory and devices of another node are reached over a link that other CPUs use too.",
        source="kernel: Documentation/mm/numa.rst; numa(7)",
        trade_off="none",
    ),
    Check(
        "statistics",
        "memory statistics",
        Group.MEMORY,
        Severity.LOW,
        _statistics,
        reason="A work item on each busy CPU sums its counters and takes CPU time from the running task.",
        source="kernel: Documentation/admin-guide/kernel-per-CPU-kthreads.rst; tuned, profile network-latency",
        trade_off="/proc/vmstat is updated less often",
    ),
    Check(
        "cache-allocation",
        "cache allocation",
        Group.MEMORY,
        Severity.LOW,
        _cache_allocation,
        reason="A load on other CPUs evicts the task's data from the shared cache; each miss costs about 100 ns.",
        source="kernel: Documentation/filesystems/resctrl.rst",
        trade_off="throughput: less cache for other tasks",
    ),
    Check(
        "high-memory",
        "high memory",
        Group.MEMORY,
        Severity.LOW,
        _high_memory,
        reason="A page of high memory is mapped before each use and flushed after it.",
        source="Enea, appendix A, step 1 (CONFIG_HIGHMEM)",
        trade_off="memory above about 800 MB cannot be used",
    ),
)
