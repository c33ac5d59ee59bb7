# SPDX-License-Identifier: GPL-2.0-or-later
"""The checks of the audit: right on machines that are known, and never fine by what is not known."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from typing import Any

import pytest

from fastenough.audit import CHECKS, Finding, FindingState, Form, Severity, audit, changeable_now, ordered
from fastenough.audit.facts import Unknown, as_mask
from fastenough.facts import FACTS, collect
from fastenough.facts.cpu import MOST_CPUS
from fastenough.link import FakeLink
from fastenough.model import NotApplicable
from fastenough.settings import SETTINGS
from tests.support.audit_machines import MADE, STAT, machines, made

MACHINES = machines()
COSTS, HIDES, FINE, UNKNOWN = FindingState


def found(profile: Mapping[str, Any]) -> dict[str, Finding]:
    return {finding.name: finding for finding in audit(profile)}


@pytest.mark.parametrize(
    ("machine", "standings"),
    [
        (
            "imx",
            {
                "preemption": FINE,
                "threaded-interrupts": FINE,
                "isolated-cpus": FINE,
                "rcu-callbacks": FINE,
                "tick-frequency": FINE,
                "governor": COSTS,
                "idle-states": COSTS,
                "virtual-machine": FINE,
                "tickless-cpus": COSTS,
                "microcode": FINE,
                "firmware-interrupts": UNKNOWN,
                "swap": UNKNOWN,
                "serial-console": COSTS,
                "heat": COSTS,
                "file-systems": COSTS,
                "latency-request": UNKNOWN,
                "cache-allocation": UNKNOWN,
                "machine-checks": FINE,
                "time-coordination": FINE,
                "services": FINE,
                "user-limits": UNKNOWN,
                "real-time-tasks": FINE,
                "energy-preference": FINE,
                "mitigations": UNKNOWN,
                "clock-source": FINE,
            },
        ),
        (
            "laptop",
            {
                "preemption": COSTS,
                "energy-preference": COSTS,
                "siblings": COSTS,
                "clock-source": COSTS,
                "firmware-interrupts": HIDES,
                "swap": COSTS,
                "huge-pages": COSTS,
                "watchdogs": COSTS,
                "rcu-callbacks": COSTS,
                "threaded-interrupts": COSTS,
                "microcode": UNKNOWN,
                "steal": UNKNOWN,
                "serial-console": FINE,
                "heat": COSTS,
                "file-systems": COSTS,
                "latency-request": HIDES,
                "boost": COSTS,
                "services": COSTS,
                "interrupt-balancer": COSTS,
                "user-limits": HIDES,
                "cache-allocation": FINE,
                "time-coordination": UNKNOWN,
                "container": FINE,
                "numa-balancing": FINE,
                "idle-tick": COSTS,
                "powerpc-errata": FINE,
            },
        ),
        (
            "server",
            {
                "debug-options": COSTS,
                "threaded-interrupts": FINE,
                "idle-states": FINE,
                "idle-tick": FINE,
                "numa-balancing": COSTS,
                "numa-nodes": COSTS,
                "page-merging": COSTS,
                "real-time-tasks": COSTS,
                "rt-throttling": FINE,
                "work-queues": COSTS,
                "tracing": COSTS,
                "tick-frequency": COSTS,
                "cache-allocation": COSTS,
                "machine-checks": COSTS,
                "user-limits": FINE,
                "file-systems": FINE,
                "latency-request": FINE,
                "heat": UNKNOWN,
                "serial-console": UNKNOWN,
                "interrupt-balancer": FINE,
                "firmware-interrupts": HIDES,
                "steal": FINE,
                "skewed-ticks": FINE,
                "clock-source": FINE,
            },
        ),
    ],
)
def test_a_known_machine(machine: str, standings: dict[str, FindingState]) -> None:
    findings = found(MACHINES[machine])
    assert {name: findings[name].state for name in standings} == standings


@pytest.mark.parametrize(
    ("machine", "name", "said", "changes"),
    [
        ("laptop", "preemption", "voluntary", ["preempt=full", "linux-image-rt-amd64", "CONFIG_PREEMPT_RT=y"]),
        ("laptop", "clock-source", "hpet (tsc is available)", ["current_clocksource"]),
        ("laptop", "energy-preference", "balance_power", ["performance", "intel_pstate=disable"]),
        ("laptop", "idle-states", "890 µs exit latency (C10)", ["cpu_dma_latency", "max_cstate"]),
        ("laptop", "siblings", "2 cores", ["smt/control", "nosmt"]),
        ("laptop", "rcu-callbacks", "own", ["rcu_nocbs=3"]),
        ("imx", "tickless-cpus", "not supported by this kernel", ["CONFIG_NO_HZ_FULL=y"]),
        ("imx", "isolated-cpus", "CPU 3", []),
        ("server", "debug-options", "PROVE_LOCKING, DEBUG_PREEMPT", ["CONFIG_PROVE_LOCKING=n"]),
        ("imx", "heat", "cpu-thermal 79 of 85 degrees", ["cooling"]),
        ("imx", "serial-console", "ttymxc1, for messages up to level 6", ["kernel.printk=4", "loglevel=4"]),
        ("imx", "file-systems", "network file system: /", ["local"]),
        ("laptop", "heat", "42 times", ["cooling"]),
        ("laptop", "file-systems", "access times are written: /home", ["noatime"]),
        ("laptop", "services", "cron", ["systemctl"]),
        ("laptop", "latency-request", "0 µs", ["fuser"]),
        ("server", "machine-checks", "every 300 s", ["mce=ignore_ce"]),
        ("server", "cache-allocation", "available (cat_l3, mba)", ["resctrl"]),
        ("server", "work-queues", "including 7", ["echo 7f | tee /sys/devices/virtual/workqueue/cpumask"]),
        ("server", "real-time-tasks", "corosync (fifo 80)", ["lower"]),
    ],
)
def test_what_is_and_what_changes_it(machine: str, name: str, said: str, changes: list[str]) -> None:
    finding = found(MACHINES[machine])[name]
    assert said in finding.text
    assert all(any(want in change.instruction for change in finding.changes) for want in changes)


@pytest.mark.parametrize(
    "console", ["ttyTHS0", "ttyTCU0", "ttyAML0", "ttySAC2", "ttySIF0", "ttyMV0", "ttyS1", "hvc0", "x0", "pstore_blk-1"]
)
def test_a_console_of_an_unknown_name_is_slow(console: str) -> None:
    finding = found({**MACHINES["imx"], "consoles": ["tty0", console]})["serial-console"]
    assert finding.state is COSTS and finding.text.startswith(f"{console}, for messages")


@pytest.mark.parametrize("console", ["tty0", "tty63", "ttynull-1", "netcon0", "netcon_ext0", "pstore-1", "ramoops-1"])
def test_a_console_without_a_serial_port_is_fast(console: str) -> None:
    assert found({**MACHINES["imx"], "consoles": [console]})["serial-console"].state is FINE


def test_threads_of_the_frequency_governor_are_kernel_threads() -> None:
    """schedutil runs one of policy deadline for each CPU whose frequency cannot be set from the scheduler."""
    governor = {"comm": "sugov:0", "policy": "deadline", "priority": 0}
    own = {"comm": "control", "policy": "deadline", "priority": 0}
    assert found({**MACHINES["imx"], "real_time_tasks": [governor]})["real-time-tasks"].state is FINE
    both = found({**MACHINES["imx"], "real_time_tasks": [governor, own]})["real-time-tasks"]
    assert (both.state, both.text) == (COSTS, "control (deadline 0)")


@pytest.mark.parametrize(
    ("check", "facts"),
    [
        ("tick-frequency", {"kernel_config": {"set": ["CONFIG_HZ=0"]}}),
        ("steal", {"steal_so_far_ns": 10**9, "uptime_s": 10.0, "cpu": {"count": 0}}),
        ("rt-throttling", {"tunables": {"sched_rt_runtime_us": float("inf"), "sched_rt_period_us": 10**6}}),
        ("work-queues", {"cpu": {"count": 10**12}, "cpu_isolation": {}}),
        ("work-queues", {"cpu_isolation": {"online": "0-65535," * 3}}),
        ("work-queues", {"tunables": {"workqueue_cpumask": "f" * 100_000, "writeback_cpumask": "f"}}),
        ("work-queues", {"tunables": {"workqueue_cpumask": "-f", "writeback_cpumask": "f"}}),
    ],
)
def test_impossible_numbers_are_unknown(check: str, facts: Mapping[str, Any]) -> None:
    assert found({**MACHINES["server"], **facts})[check].state is UNKNOWN


def test_the_widest_mask_is_read() -> None:
    assert as_mask("8" + "0" * (MOST_CPUS // 4 - 1)) == {MOST_CPUS - 1}
    assert as_mask("ff,00000001\n") == {0, *range(32, 40)}
    with pytest.raises(Unknown):
        as_mask("1" + "0" * (MOST_CPUS // 4))


def test_of_nothing_nothing_is_known() -> None:
    assert {finding.state for finding in audit({})} == {UNKNOWN}
    assert not [each for each in audit(MACHINES["nothing-at-all"]) if each.state is FINE]


def test_what_the_boot_line_says_is_known_without_the_kernels_options() -> None:
    findings = found({"cmdline": "console=ttyAMA0 highres=off nohz=off"})
    assert (findings["high-resolution-timers"].state, findings["idle-tick"].state) == (COSTS, FINE)
    assert "highres=off" in findings["high-resolution-timers"].text
    bare = found({"cmdline": "console=ttyAMA0"})
    assert (bare["high-resolution-timers"].state, bare["idle-tick"].state) == (UNKNOWN, UNKNOWN)


@pytest.mark.parametrize(
    ("options", "arguments", "state", "said"),
    [
        ("", "quiet", FINE, "none"),
        ("KFENCE=y SAMPLE_INTERVAL=0", "quiet", FINE, "none"),
        ("KFENCE=y SAMPLE_INTERVAL=0", "kfence.sample_interval=100", COSTS, "every 100 ms"),
        ("KFENCE=y SAMPLE_INTERVAL=100 STATIC_KEYS=y", "quiet", COSTS, "interrupts every CPU"),
        ("KFENCE=y SAMPLE_INTERVAL=100 STATIC_KEYS=y", "kfence.sample_interval=0", FINE, "none"),
        ("INIT_ON_ALLOC_DEFAULT_ON=y", "quiet", COSTS, "cleared on allocation"),
        ("INIT_ON_ALLOC_DEFAULT_ON=y", "init_on_alloc=0 init_on_free=1", COSTS, "cleared when freed"),
        ("PAGE_POISONING=y", "page_poison=off", FINE, "none"),
        ("PAGE_POISONING=y", "page_poison=1", COSTS, "poisoned"),
    ],
)
def test_memory_that_is_sampled_or_cleared(options: str, arguments: str, state: FindingState, said: str) -> None:
    """The boot line goes before what is built in; only what interrupts all CPUs weighs more than little."""
    config = "".join(f"CONFIG_{'KFENCE_' * name.startswith('S')}{name}\n" for name in options.split())
    finding = found(
        made("imx", **{"/boot/config-6.12.1": f"CONFIG_INIT_ENV_ARG_LIMIT=32\n{config}", "/proc/cmdline": arguments})
    )["memory-hardening"]
    assert finding.state is state and said in finding.text
    assert (finding.severity is Severity.MEDIUM) == ("interrupts" in finding.text)


@pytest.mark.parametrize(
    ("budget", "limit", "state"),
    [
        ((950, 1000), (950, 1000), FINE),
        ((1900, 2000), (950, 1000), FINE),
        ((1000, 2000), (950, 1000), COSTS),
        ((500, 500), (-1, 1000), FINE),
        ((950, 1000), (-1, 1000), COSTS),
        ((0, 1000), (-1, 1000), COSTS),
        ((0, 1000), (0, 1000), COSTS),
        ((950, 1000), (None, None), UNKNOWN),
    ],
)
def test_the_budget_of_a_group_is_compared_as_a_share(
    budget: tuple[int, int], limit: tuple[int | None, int | None], state: FindingState
) -> None:
    """In ms of each period: of the tightest group, and of all real-time tasks (-1: no limit)."""
    names = ("sched_rt_runtime_us", "sched_rt_period_us")
    profile = {
        "kernel_config": {"set": ["CONFIG_INIT_ENV_ARG_LIMIT=32", "CONFIG_RT_GROUP_SCHED=y"]},
        "real_time_budget": {"granted_us": budget[0] * 1000, "period_us": budget[1] * 1000},
        "tunables": {
            name: value if value is None or value < 0 else value * 1000
            for name, value in zip(names, limit, strict=True)
        },
    }
    assert found(profile)["control-group-budget"].state is state


_CPU0 = "/sys/devices/system/cpu/cpu0/cpufreq/"
_DEBUG = "/sys/kernel/debug/sched/"
_CAP = "/sys/class/powercap/intel-rapl:0/"
_COALESCING = "Coalesce parameters for {}:\nAdaptive RX: {}  TX: off\nrx-usecs:\t{}\nrx-frames:\tn/a\n"


@pytest.mark.parametrize(
    ("name", "harmful", "harmless"),
    [
        (
            "frequency-cap",
            {_CPU0 + "scaling_max_freq": "800000", _CPU0 + "cpuinfo_max_freq": "3600000"},
            {_CPU0 + "scaling_max_freq": "3600000", _CPU0 + "cpuinfo_max_freq": "3600000"},
        ),
        (
            "frequency-cap",
            {
                _CPU0 + "scaling_max_freq": "3600000",
                _CPU0 + "cpuinfo_max_freq": "3600000",
                "/sys/devices/system/cpu/intel_pstate/max_perf_pct": "40",
            },
            None,
        ),
        (
            "power-cap",
            {
                _CAP + "name": "package-0",
                _CAP + "constraint_0_power_limit_uw": "9000000",
                _CAP + "constraint_0_max_power_uw": "15000000",
            },
            {
                _CAP + "name": "package-0",
                _CAP + "enabled": "0",
                _CAP + "constraint_0_power_limit_uw": "9000000",
                _CAP + "constraint_0_max_power_uw": "15000000",
            },
        ),
        (
            "platform-profile",
            {"/sys/firmware/acpi/platform_profile": "low-power"},
            {"/sys/firmware/acpi/platform_profile": "performance"},
        ),
        (
            "idle-injection",
            {
                "/sys/class/thermal/cooling_device4/type": "intel_powerclamp",
                "/sys/class/thermal/cooling_device4/cur_state": "25",
            },
            {
                "/sys/class/thermal/cooling_device4/type": "intel_powerclamp",
                "/sys/class/thermal/cooling_device4/cur_state": "0",
            },
        ),
        (
            "link-power",
            {"/sys/module/pcie_aspm/parameters/policy": "default performance [powersave] powersupersave"},
            {"/sys/module/pcie_aspm/parameters/policy": "default [performance] powersave powersupersave"},
        ),
        (
            "link-power",
            {"/sys/module/pcie_aspm/parameters/policy": "[default] performance", "/proc/cmdline": "quiet"},
            {"/sys/module/pcie_aspm/parameters/policy": "[default] performance", "/proc/cmdline": "pcie_aspm=off"},
        ),
        (
            "isolation-agreement",
            {"/proc/cmdline": "isolcpus=managed_irq,domain,2-3 nohz_full=3 rcu_nocbs=2-3"},
            {"/proc/cmdline": "isolcpus=managed_irq,domain,2-3 nohz_full=2,3 rcu_nocbs=2-3"},
        ),
        (
            "isolation-agreement",
            {"/proc/cmdline": "isolcpus=2-N nohz_full=1-N"},
            {"/proc/cmdline": "isolcpus=2-N nohz_full=2-3 rcu_nocbs=2,3"},
        ),
        (
            "fair-server",
            {_DEBUG + f"fair_server/cpu{cpu}/runtime": "50000000" for cpu in range(4)},
            {_DEBUG + f"fair_server/cpu{cpu}/runtime": "0" for cpu in range(4)},
        ),
        ("migration-batch", {_DEBUG + "nr_migrate": "32"}, {_DEBUG + "nr_migrate": "8"}),
        (
            "soft-interrupt-threads",
            {"/proc/15/task/15/stat": STAT.format(15, "ksoftirqd/0", 60, 1)},
            {"/proc/15/task/15/stat": STAT.format(15, "ksoftirqd/0", 0, 0)},
        ),
        (
            "soft-interrupt-threads",
            {"/proc/16/task/16/stat": STAT.format(16, "rcuc/1", 50, 1)},
            {"/proc/16/task/16/stat": STAT.format(16, "rcuc/1", 1, 1)},
        ),
        (
            "preemption-argument",
            {"/proc/cmdline": "preempt=full", "/boot/config-6.12.1": "CONFIG_INIT_ENV_ARG_LIMIT=32\n"},
            {"/proc/cmdline": "preempt=full"},
        ),
        ("preemption-argument", {"/proc/cmdline": "preempt=full quiet preempt=none"}, {"/proc/cmdline": "quiet"}),
        ("preemption", {"/proc/cmdline": "preempt=full quiet preempt=none"}, None),
        (
            "preemption",
            {
                "/proc/cmdline": "preempt=full",
                "/proc/sys/kernel/version": "#1 SMP",
                "/boot/config-6.12.1": "CONFIG_INIT_ENV_ARG_LIMIT=32\nCONFIG_PREEMPT_NONE=y\n",
            },
            None,
        ),
        (
            "threaded-interrupts",
            {"/proc/cmdline": "threadirqs", "/boot/config-6.12.1": "CONFIG_INIT_ENV_ARG_LIMIT=32\n"},
            {"/proc/cmdline": "threadirqs"},
        ),
        (
            "rcu-callbacks",
            {"/proc/cmdline": "rcu_nocbs=1-3", "/boot/config-6.12.1": "CONFIG_INIT_ENV_ARG_LIMIT=32\n"},
            {"/proc/cmdline": "rcu_nocbs=1-3"},
        ),
        ("rcu-wakeups", {"/proc/cmdline": "rcu_nocbs=3"}, {"/proc/cmdline": "rcu_nocbs=3 rcu_nocb_poll"}),
        (
            "rcu-expedited",
            {"/sys/kernel/rcu_normal": "0", "/sys/kernel/rcu_expedited": "0"},
            {"/sys/kernel/rcu_normal": "1"},
        ),
        ("boot-debugging", {"/proc/cmdline": "quiet slab_debug=FZPU"}, {"/proc/cmdline": "quiet slub_debug=off"}),
        ("boot-debugging", {"/proc/cmdline": "quiet tp_printk"}, {"/proc/cmdline": "quiet slab_debug=-"}),
        ("boot-debugging", {"/proc/cmdline": "initcall_debug ignore_loglevel"}, None),
        ("trace-events", {"/sys/kernel/tracing/set_event": "sched:sched_switch\n"}, None),
        ("trace-events", {"/sys/kernel/tracing/kprobe_events": "p:kprobes/mine do_sys_open\n"}, None),
        (
            "trace-events",
            {
                "/sys/kernel/tracing/set_event": "",
                "/sys/kernel/tracing/instances/rasdaemon/set_event": "ras:mc_event\n",
            },
            None,
        ),
        (
            "accounting",
            {"/proc/sys/kernel/sched_schedstats": "1", "/proc/version": "Linux"},
            {"/proc/sys/kernel/sched_schedstats": "0", "/proc/version": "Linux"},
        ),
        ("accounting", {"/proc/pressure/cpu": "some avg10=0.00", "/proc/version": "Linux"}, None),
        ("accounting", {"/proc/cmdline": "audit=1", "/proc/version": "Linux"}, None),
        (
            "memory-errors",
            {
                "/sys/devices/system/edac/mc/mc0/mc_name": "skx_edac",
                "/sys/module/edac_core/parameters/edac_mc_poll_msec": "1000",
            },
            {"/sys/module/edac_core/parameters/edac_mc_poll_msec": "1000"},
        ),
        (
            "clock-watchdog",
            {"/sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc"},
            {
                "/sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc",
                "/proc/cmdline": "tsc=reliable",
            },
        ),
        (
            "work-queues",
            {
                "/sys/devices/virtual/workqueue/cpumask": "7",
                "/sys/bus/workqueue/devices/writeback/cpumask": "7",
                "/sys/devices/virtual/workqueue/nvme-wq/cpumask": "f",
            },
            {
                "/sys/devices/virtual/workqueue/cpumask": "7",
                "/sys/bus/workqueue/devices/writeback/cpumask": "7",
                "/sys/devices/virtual/workqueue/nvme-wq/cpumask": "7",
            },
        ),
        (
            "swap",
            {"/proc/swaps": "", "/proc/meminfo": "SwapTotal: 2097152 kB\n"},
            {"/proc/meminfo": "SwapTotal: 0 kB\n"},
        ),
    ],
)
def test_a_planted_misconfiguration_is_found(
    name: str, harmful: dict[str, str], harmless: dict[str, str] | None
) -> None:
    finding = found(made("laptop", **harmful))[name]
    assert finding.state is COSTS
    assert finding.changes
    if harmless is not None:
        assert found(made("laptop", **harmless))[name].state is FINE


def test_a_power_limit_beside_no_greatest_power_is_unknown() -> None:
    assert (
        found(
            made(
                "laptop",
                **{_CAP + "name": "package-0", _CAP + "enabled": "1", _CAP + "constraint_0_power_limit_uw": "9000000"},
            )
        )["power-cap"].state
        is UNKNOWN
    )


@pytest.mark.parametrize(
    ("release", "flags", "nodes", "state"),
    [
        ("6.12.1", "constant_tsc nonstop_tsc tsc_adjust", 1, FINE),
        ("6.12.1", "constant_tsc nonstop_tsc", 1, COSTS),
        ("5.10.1", "constant_tsc nonstop_tsc tsc_adjust", 1, COSTS),
        ("6.12.1", "constant_tsc nonstop_tsc tsc_adjust", 8, COSTS),
    ],
)
def test_the_kernel_watches_the_tsc_of_older_machines(
    release: str, flags: str, nodes: int, state: FindingState
) -> None:
    files = {
        "/proc/sys/kernel/osrelease": release,
        "/proc/cpuinfo": f"processor\t: 0\nflags\t\t: {flags}\n",
        "/sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc",
    }
    files |= {f"/sys/devices/system/node/node{node}/cpulist": "0" for node in range(nodes)}
    assert found(made("laptop", **files))["clock-watchdog"].state is state


def test_a_form_of_cpu_list_that_is_not_known_is_not_called_fine() -> None:
    cmdline = {"/proc/cmdline": "isolcpus=0-3:1/2 nohz_full=0-3:1/2"}
    assert found(made("laptop", **cmdline))["isolation-agreement"].state is UNKNOWN


def test_swap_and_the_fair_server_are_of_high_severity() -> None:
    """Both cost milliseconds, which the scale in docs/audit.md calls high."""
    findings = found(made("laptop", **{_DEBUG + "fair_server/cpu0/runtime": "50000000"}))
    assert findings["swap"].severity is findings["fair-server"].severity is Severity.HIGH


def test_cards_that_hold_interrupts_back_are_found() -> None:
    def state(adaptive: str, us: int) -> FindingState:
        answers = {"ethtool -c *": _COALESCING.format("eth0", "off", 0) + _COALESCING.format("eth1", adaptive, us)}
        return found(collect(FakeLink(MADE["imx"](), answers)))["network-coalescing"].state

    assert [state("off", 0), state("on", 0), state("off", 3)] == [FINE, COSTS, COSTS]


def test_bpf_programs_are_found_and_those_of_control_groups_are_not() -> None:
    def finding(kinds: str) -> Finding:
        programs = [{"id": number, "type": kind} for number, kind in enumerate(kinds.split())]
        answers = {"bpftool -j prog show": json.dumps(programs)}
        files = {"/sys/kernel/tracing/set_event": "", "/sys/kernel/tracing/kprobe_events": ""}
        return found(collect(FakeLink(MADE["imx"]() | files, answers)))["trace-events"]

    assert finding("cgroup_skb cgroup_device").state is FINE
    assert finding("cgroup_skb tracing tracing").state is COSTS
    assert "2 tracing" in finding("tracing tracing").text


def test_a_dynamic_kernel_offers_its_models_for_a_trial() -> None:
    """Fully preemptible is what --measure tries, by the file that debugfs has for it."""
    changes = changeable_now(audit(made("laptop", **{_DEBUG + "preempt": "none (voluntary) full lazy"})))
    assert changes["preemption"][1] == "full"
    assert "preemption" not in changeable_now(audit(made("laptop", **{_DEBUG + "preempt": "none voluntary (full)"})))


def test_a_cpuset_partition_isolates() -> None:
    finding = found(made("laptop", **{"/sys/fs/cgroup/cpuset.cpus.isolated": "3"}))["isolated-cpus"]
    assert finding.state is FINE and "CPU 3" in finding.text


@pytest.mark.parametrize("machine", MACHINES)
def test_what_is_not_known_makes_nothing_fine(machine: str) -> None:
    """Whatever fact is taken away: what was not fine with it is not fine without it."""
    profile, before = MACHINES[machine], found(MACHINES[machine])
    for fact in profile.keys() - {"absent"}:
        less = {name: value for name, value in profile.items() if name != fact}
        now = found(less)
        assert not [name for name in now if now[name].state is FINE and before[name].state is not FINE], fact
    silent = {name: None for name in profile} | {"absent": {fact.name: "it is silent" for fact in FACTS}}
    assert {finding.state for finding in audit(silent)} == {UNKNOWN}


@pytest.mark.parametrize("machine", MACHINES)
def test_where_tasks_may_be_hidden_none_of_them_is_fine(machine: str) -> None:
    """A container, or /proc mounted with hidepid: what is seen is told, and nothing follows from what is not."""
    seen: dict[str, list[object]] = {"interrupt_threads": [], "real_time_tasks": [], "services": []}
    findings = found({**MACHINES[machine], **seen})
    for name in ("services", "interrupt-balancer", "real-time-tasks", "interrupt-priorities"):
        assert findings[name].state is not FINE, name
    task = {"comm": "synth", "tid": 9, "policy": "fifo", "priority": 70}
    told = found({**MACHINES[machine], **seen, "real_time_tasks": [task], "services": ["cron"]})
    assert told["real-time-tasks"].state is told["services"].state is COSTS


@pytest.mark.parametrize("machine", MACHINES)
def test_damaged_facts_break_nothing(machine: str) -> None:
    dice = random.Random(machine)
    for _ in range(30):
        damaged = {
            name: dice.choice([value, value, None, 7, "x", [], {}, [7], {"x": 7}])
            for name, value in MACHINES[machine].items()
        }
        assert len(audit(damaged)) == len(CHECKS)
    understood = [finding for finding in audit(MACHINES[machine]) if "not understood" in finding.text]
    assert not understood


@pytest.mark.parametrize("place", ["isolated", "online", "nohz_full"])
@pytest.mark.parametrize("said", ["0-99999999999\n", "1-2-3\n", "-1\n"])
def test_a_damaged_list_of_cpus_fills_no_memory_and_is_not_believed(place: str, said: str) -> None:
    findings = found(made("imx", **{f"/sys/devices/system/cpu/{place}": said}))
    assert len(findings) == len(CHECKS)
    if place == "isolated":
        assert findings["isolated-cpus"].state is not FINE


def test_every_finding_is_complete() -> None:
    assert len({check.name for check in CHECKS}) == len(CHECKS) >= 40
    for profile in MACHINES.values():
        for finding in audit(profile):
            assert finding.text and finding.reason.endswith(".") and finding.source and finding.trade_off
            if finding.state in (COSTS, HIDES):
                assert finding.changes, finding.name
            assert all("µ" in text or text.isascii() for text in (finding.text, finding.reason, finding.trade_off))


def test_each_setting_named_is_one_that_there_is_and_takes_the_value() -> None:
    """On the machines that have its place; the value is one that the setting allows."""
    named = {
        change.setting
        for profile in MACHINES.values()
        for finding in audit(profile)
        for change in finding.changes
        if change.setting is not None
    }
    assert len(named) >= 10
    links = [FakeLink(make()) for make in MADE.values()]
    for name, value in named:
        for link in links:
            try:
                SETTINGS[name].steps(link, value)
            except (NotApplicable, FileNotFoundError):
                continue


def test_changes_are_in_a_form_that_can_be_written_down() -> None:
    for profile in MACHINES.values():
        for change in (change for finding in audit(profile) for change in finding.changes):
            match change.form:
                case Form.SYSCTL:
                    assert re.fullmatch(r"[a-z]+(\.\w+)+=-?\d+", change.text)
                case Form.FILE:
                    assert re.fullmatch(r"/(sys|proc)/[^=\s]+=\w+", change.text)
                case Form.BOOT:
                    assert re.fullmatch(r"[\w.-]+(=[\w.,-]+)?( [\w.-]+(=[\w.,-]+)?)*", change.text)
                case Form.CONFIG:
                    assert re.fullmatch(r"CONFIG_\w+=\w+( CONFIG_\w+=\w+)*", change.text)


def test_what_weighs_most_comes_first() -> None:
    weights = [finding.severity for finding in ordered(audit(MACHINES["laptop"]))]
    assert weights == sorted(weights, key=list(Severity).index)
    assert next(iter(changeable_now(audit(MACHINES["laptop"])))) == "swappiness"


def test_a_kernel_that_was_tuned_has_less() -> None:
    """What the change names, made: the finding is gone."""
    tuned = made(
        "laptop",
        **{
            "/proc/cmdline": "threadirqs preempt=full nohz=off rcu_nocbs=3 mitigations=off",
            "/sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]",
            "/sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc",
            "/proc/sys/kernel/nmi_watchdog": "0",
            "/proc/sys/kernel/soft_watchdog": "0",
        },
    )
    now = found(tuned)
    for name in ("threaded-interrupts", "idle-tick", "rcu-callbacks", "huge-pages", "clock-source", "watchdogs"):
        assert now[name].state is FINE, name
    assert now["preemption"].severity is Severity.MEDIUM
