# SPDX-License-Identifier: GPL-2.0-or-later
"""Where and how interrupts are served."""

from __future__ import annotations

from fastenough import words
from fastenough.audit.check import Check
from fastenough.audit.facts import Facts, as_cpus
from fastenough.audit.finding import CheckOutcome, Group, Severity, boot, build, costs, done, fine


def _threaded_interrupts(facts: Facts) -> CheckOutcome:
    if facts.real_time_kernel:
        return fine("handlers run in threads (PREEMPT_RT)")
    if facts.option("IRQ_FORCED_THREADING") != "y":
        return costs(
            "handlers run with interrupts off; this kernel cannot run them in threads",
            build("CONFIG_IRQ_FORCED_THREADING=y"),
        )
    if "threadirqs" in facts.arguments:
        return fine("handlers run in threads (threadirqs)")
    return costs("handlers run with interrupts off, whatever the priority of the waiting task", boot("threadirqs"))


def _interrupt_affinity(facts: Facts) -> CheckOutcome:
    known = facts.need("interrupts")
    if len(facts.online) < 2:
        return fine("only one CPU")
    apart = as_cpus(facts.set_apart)
    reach = {irq: as_cpus(interrupt.get("effective_cpus") or interrupt.get("cpus")) for irq, interrupt in known.items()}
    there = [irq for irq, cpus in reach.items() if cpus & apart]
    if not any(reach.values()):
        return (
            fine("no device interrupt has an affinity")
            if not known
            else costs(
                "the kernel does not report affinities", boot(f"irqaffinity={facts.others}"), severity=Severity.LOW
            )
        )
    if not there:
        return fine(f"none on CPU {facts.set_apart}")
    return costs(
        f"{len(there)} of {words.counted(len(known), 'interrupt')} may run on CPU {facts.set_apart}",
        done(f"write {facts.others} to /proc/irq/*/smp_affinity_list", ("irq-affinity", facts.others)),
        boot(f"irqaffinity={facts.others}"),
    )


def _interrupt_balancer(facts: Facts) -> CheckOutcome:
    if "irqbalance" not in facts.need("services"):
        facts.require_all_tasks()
        return fine("not running")
    return costs(
        "irqbalance is running",
        done(
            f"systemctl disable --now irqbalance, or IRQBALANCE_BANNED_CPULIST={facts.set_apart} in its configuration"
        ),
    )


def _interrupt_priorities(facts: Facts) -> CheckOutcome:
    threads = [thread for thread in facts.interrupt_threads() if str(thread["comm"]).startswith("irq/")]
    priorities = {int(thread["priority"]) for thread in threads if thread["policy"] in ("fifo", "rr")}
    if len(threads) < 2 or len(priorities) > 1:
        return fine(
            f"{words.counted(len(threads), 'interrupt thread')}, of "
            f"{words.counted(len(priorities), 'priority').replace('prioritys', 'priorities')}"
        )
    return costs(
        f"all {len(threads)} interrupt threads have priority {min(priorities, default=0)}",
        done("chrt -f -p PRIORITY for the thread of the interrupt that the task waits for (setting irq-threads)"),
    )


def _coalescing(facts: Facts) -> CheckOutcome:
    cards = sorted(
        name
        for name, card in facts.need("interrupt_coalescing").items()
        if card["adaptive"] or (card["rx_us"] or 0) > 0 or (card["rx_frames"] or 0) > 1
    )
    if not cards:
        return fine("no network card delays interrupts")
    return costs(
        f"{', '.join(cards)}: receive interrupts are delayed",
        done(f"ethtool -C {cards[0]} adaptive-rx off rx-usecs 0 rx-frames 1"),
    )


CHECKS = (
    Check(
        "threaded-interrupts",
        "threaded interrupts",
        Group.INTERRUPTS,
        Severity.MEDIUM,
        _threaded_interrupts,
        reason="A handler runs before any task, for as long as it takes. In a thread it has a priority, and a "
        "task of higher priority preempts it.",
        source="Enea, appendix A, step 3 and table A.4; kernel: Documentation/admin-guide/kernel-parameters.txt",
        trade_off="throughput: a context switch for each interrupt",
    ),
    Check(
        "interrupt-affinity",
        "interrupt affinity",
        Group.INTERRUPTS,
        Severity.MEDIUM,
        _interrupt_affinity,
        reason="A device interrupt preempts the task on that CPU, and its soft interrupt may follow.",
        source="kernel: Documentation/core-api/irq/irq-affinity.rst; also checked by rt-conf and rtcqs",
        trade_off="device throughput: fewer CPUs serve interrupts",
    ),
    Check(
        "interrupt-balancer",
        "interrupt balancing",
        Group.INTERRUPTS,
        Severity.MEDIUM,
        _interrupt_balancer,
        reason="It moves interrupts to CPUs with little load, which is where a real-time task sleeps, and "
        "overwrites affinities.",
        source="irqbalance(1); tuned, profile realtime (banned_cpus)",
        trade_off="device throughput, unless interrupts are assigned by hand",
    ),
    Check(
        "interrupt-priorities",
        "interrupt thread priorities",
        Group.INTERRUPTS,
        Severity.LOW,
        _interrupt_priorities,
        reason="The thread of the interrupt that a task waits for queues behind those of all other devices, in "
        "order of arrival.",
        source="Brown and Martin, section 3.6; kernel: kernel/irq/manage.c (sched_set_fifo)",
        trade_off="other devices are served later",
    ),
    Check(
        "network-coalescing",
        "interrupt coalescing of network cards",
        Group.INTERRUPTS,
        Severity.LOW,
        _coalescing,
        reason="A card that waits for more packets before it interrupts delays a task that waits for one packet "
        "by tens of µs.",
        source="ethtool(8), --coalesce",
        trade_off="throughput: more interrupts under load",
    ),
)
