# SPDX-License-Identifier: GPL-2.0-or-later
"""Clocks, ticks, timers and watchdogs."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts, as_cpus
from fastenough.audit.finding import (
    CheckOutcome,
    Group,
    Severity,
    boot,
    build,
    costs,
    done,
    fine,
    outside,
    sysctl,
    unknown,
    written,
)


def _high_resolution_timers(facts: Facts) -> CheckOutcome:
    if facts.arguments.get("highres") in ("off", "0", "n"):
        return costs("disabled at boot (highres=off): timers expire at a tick", boot("highres=on"))
    if facts.option("HIGH_RES_TIMERS") != "y":
        return costs(
            f"not built in: timers expire at a tick, {facts.option('HZ')} times per second",
            build("CONFIG_HIGH_RES_TIMERS=y"),
        )
    return fine("enabled")


_FAST = ("tsc", "arch_sys_counter", "riscv_clocksource", "timebase", "MIPS")


_GUEST = ("kvm-clock", "hyperv_clocksource_tsc_page", "xen")


_SLOW = ("hpet", "acpi_pm", "jiffies", "pit", "refined-jiffies")


_PLACE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"


def _clock_source(facts: Facts) -> CheckOutcome:
    source = str(facts.need("clocksource"))
    if source in _FAST:
        return fine(f"{source}, a CPU register")
    if source in _GUEST:
        return fine(f"{source}, a CPU counter scaled by the hypervisor")
    better = [source for source in facts.get("clocksources_available") or () if source in _FAST]
    changes = [written(_PLACE, better[0])] if better else [boot("tsc=reliable")] if facts.x86 else []
    return costs(
        f"{source}" + (f" ({better[0]} is available)" if better else ""),
        *changes,
        severity=None if source in _SLOW else Severity.LOW,
    )


_SHARED = ("hpet", "pit", "bc_hrtimer", "rtc")


def _clock_events(facts: Facts) -> CheckOutcome:
    devices = facts.need("clock_event_devices")
    if not devices:
        return unknown("the kernel lists no timer device")
    shared = sorted({name for name in devices.values() if str(name).startswith(_SHARED)})
    if not shared:
        return fine(", ".join(sorted(set(map(str, devices.values())))) + ", one per CPU")
    return costs(
        f"{', '.join(shared)}: shared by several CPUs",
        outside("enable the CPU's local timer in the firmware"),
    )


_ENOUGH_HZ = 1000


def _tick_frequency(facts: Facts) -> CheckOutcome:
    hz = int(facts.option("HZ"))
    if hz >= _ENOUGH_HZ:
        return fine(f"{hz} Hz")
    return costs(
        f"{hz} Hz: tick-based timing has steps of {1000 / hz:g} ms",
        build("CONFIG_HZ_1000=y", "CONFIG_HZ=1000"),
    )


def _idle_tick(facts: Facts) -> CheckOutcome:
    if facts.arguments.get("nohz") in ("off", "0", "n"):
        return fine("the tick never stops (nohz=off)")
    if as_cpus(facts.get("cpu_isolation", "nohz_full")):
        return fine("not applicable with nohz_full CPUs")
    if facts.option("HZ_PERIODIC") == "y":
        return fine("the tick never stops (CONFIG_HZ_PERIODIC)")
    if facts.option("NO_HZ_COMMON") != "y":
        return fine("tickless idle is not built in")
    return costs("an idle CPU stops its tick", boot("nohz=off"))


def _skewed_ticks(facts: Facts) -> CheckOutcome:
    if facts.arguments.get("skew_tick") == "1":
        return fine("spread over the tick period (skew_tick=1)")
    if len(facts.online) < 4:
        return fine(f"few CPUs ({len(facts.online)}), so little contention")
    return costs(f"{len(facts.online)} CPUs tick at the same time", boot("skew_tick=1"))


def _timer_migration(facts: Facts) -> CheckOutcome:
    if len(facts.online) < 2:
        return fine("only one CPU")
    if int(facts.need("tunables", "timer_migration")) == 0:
        return fine("off: each CPU runs its own timers")
    return costs(
        "on: timers of an idle CPU move to a busy one", sysctl("kernel.timer_migration", 0, ("timer-migration", "0"))
    )


_TIMER_THREADS = ("ktimers/", "ktimersoftd/")


_LOW = 50


def _timer_threads(facts: Facts) -> CheckOutcome:
    if not facts.real_time_kernel:
        return fine("timers run in the interrupt (not PREEMPT_RT)")
    threads = [thread for thread in facts.interrupt_threads() if str(thread["comm"]).startswith(_TIMER_THREADS)]
    if not threads:
        return fine("this kernel has no timer threads")
    low = min(int(thread["priority"]) for thread in threads)
    if low >= _LOW:
        return fine(f"priority {low} or higher")
    return costs(f"priority {low}", done("chrt -f -p 99 for each ktimers/N", ("timer-threads", "99")))


_WATCHDOGS = ("nmi_watchdog", "soft_watchdog")


def _watchdogs(facts: Facts) -> CheckOutcome:
    known = {name: facts.get("tunables", name) for name in _WATCHDOGS}
    if known["soft_watchdog"] is None and facts.option("LOCKUP_DETECTOR") == "n":
        return fine("not built in")
    active = [
        name
        for name in _WATCHDOGS
        if int(
            known[name] if known[name] is not None else 0 if name == "nmi_watchdog" else facts.need("tunables", name)
        )
    ]
    if not active:
        return fine("off")
    return costs(
        " and ".join(active).replace("_", " "),
        *(sysctl(f"kernel.{name}", 0, (name.replace("_", "-"), "0")) for name in active),
        boot("nowatchdog"),
    )


_NO_WATCHDOG = ("reliable", "nowatchdog")


_TRUSTED_SINCE, _TRUSTED_FLAGS, _TRUSTED_NODES = (5, 17), frozenset(("constant_tsc", "nonstop_tsc", "tsc_adjust")), 2
"""From this release on, the kernel starts no watchdog where the processor has all these flags and there are no more
nodes of memory (arch/x86/kernel/tsc.c, check_system_tsc_reliable)."""


def _trusted(facts: Facts) -> bool:
    nodes = facts.get("numa")
    return (
        facts.kernel_release >= _TRUSTED_SINCE
        and set(facts.need("cpu", "flags")) >= _TRUSTED_FLAGS
        and nodes is not None
        and len(nodes) <= _TRUSTED_NODES
    )


def _clock_watchdog(facts: Facts) -> CheckOutcome:
    if not facts.x86 or str(facts.need("clocksource")) != "tsc":
        return fine("the clock source is not the TSC")
    if facts.arguments.get("tsc") in _NO_WATCHDOG or "tsc_reliable" in facts.need("cpu", "flags"):
        return fine("the TSC is marked reliable: no watchdog timer")
    if _trusted(facts):
        return fine("the kernel trusts this processor's TSC: no watchdog timer")
    return costs("a timer compares the TSC with another clock every 0.5 s, on each CPU in turn", boot("tsc=reliable"))


CHECKS = (
    Check(
        "high-resolution-timers",
        "high-resolution timers",
        Group.TIMERS,
        Severity.HIGH,
        _high_resolution_timers,
        reason="Without them a timer expires at the next kernel tick, up to 10 ms late.",
        source="kernel: Documentation/timers/highres.rst",
        trade_off="none",
    ),
    Check(
        "clock-source",
        "clock source",
        Group.TIMERS,
        Severity.MEDIUM,
        _clock_source,
        reason="Each clock read accesses a device, often by a system call: 1 µs and more instead of about 30 ns, "
        "and CPUs wait for each other.",
        source="kernel: Documentation/timers/timekeeping.rst",
        trade_off="a TSC that the kernel rejected may differ between CPUs: check the kernel log for the reason",
    ),
    Check(
        "clock-events",
        "timer devices",
        Group.TIMERS,
        Severity.MEDIUM,
        _clock_events,
        reason="A timer outside of the CPU is programmed over a bus, and one CPU forwards its interrupt to the others.",
        source='kernel: Documentation/timers/highres.rst, "clock event devices"',
        trade_off="none",
    ),
    Check(
        "tick-frequency",
        "tick frequency",
        Group.TIMERS,
        Severity.LOW,
        _tick_frequency,
        reason="Driver time-outs, RCU and the time slices of ordinary tasks are counted in ticks. Timers of "
        "real-time tasks are not, with high-resolution timers.",
        source="Enea, appendix A, step 1 (CONFIG_HZ=1000); kernel: kernel/Kconfig.hz",
        trade_off="power and some CPU time: more interrupts on busy CPUs",
    ),
    Check(
        "idle-tick",
        "idle tick",
        Group.TIMERS,
        Severity.LOW,
        _idle_tick,
        reason="A CPU that wakes up restarts its tick and catches up on missed ticks before the task runs.",
        source='kernel: Documentation/timers/no_hz.rst, "Issues"',
        trade_off="power: every tick wakes idle CPUs, and nohz_full is not possible",
    ),
    Check(
        "skewed-ticks",
        "simultaneous ticks",
        Group.TIMERS,
        Severity.LOW,
        _skewed_ticks,
        reason="All CPUs take the same locks in their ticks and wait for each other.",
        source="kernel: Documentation/admin-guide/kernel-parameters.txt, skew_tick",
        trade_off="power: fewer CPUs sleep at the same time",
    ),
    Check(
        "timer-migration",
        "timer migration",
        Group.TIMERS,
        Severity.LOW,
        _timer_migration,
        reason="Timers that ordinary tasks set on an idle CPU move to a busy one and interrupt the task running there.",
        source="kernel: kernel/time/hrtimer.c, kernel/time/timer_migration.c; tuned, profile network-latency",
        trade_off="power: idle CPUs are woken for their own timers",
    ),
    Check(
        "timer-threads",
        "timer threads",
        Group.TIMERS,
        Severity.MEDIUM,
        _timer_threads,
        reason="Timers that do not expire in the hard interrupt (signals, itimers, timerfd of ordinary tasks) "
        "expire when this thread runs, after every real-time task of higher priority.",
        source="Brown and Martin, section 3.6; kernel: kernel/softirq.c",
        trade_off="handlers of other timers run before real-time tasks",
    ),
    Check(
        "watchdogs",
        "lockup watchdogs",
        Group.TIMERS,
        Severity.LOW,
        _watchdogs,
        reason="A timer on each CPU and a non-maskable interrupt take CPU time in every period.",
        source="kernel: Documentation/admin-guide/lockup-watchdogs.rst; tuned, profile realtime (nosoftlockup)",
        trade_off="a hung kernel is neither reported nor restarted",
    ),
    Check(
        "clock-watchdog",
        "TSC watchdog",
        Group.TIMERS,
        Severity.LOW,
        _clock_watchdog,
        reason="The timer runs on isolated CPUs too. If it is delayed, the kernel may mark the TSC unstable and "
        "switch to a clock that costs 1 µs or more to read.",
        source="kernel: Documentation/admin-guide/kernel-parameters.txt, tsc; tuned, profile realtime",
        trade_off="a TSC that drifts is not detected",
    ),
)
