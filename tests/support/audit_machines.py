# SPDX-License-Identifier: GPL-2.0-or-later
"""Machines for tests of the audit: those recorded in facts_cases/, and a few put together by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fastenough.facts import collect
from fastenough.link import FakeLink

CASES = sorted((Path(__file__).parents[1] / "cases/facts").glob("*.json"))
_CONFIG = "CONFIG_INIT_ENV_ARG_LIMIT=32\nCONFIG_HIGH_RES_TIMERS=y\nCONFIG_IRQ_FORCED_THREADING=y\nCONFIG_64BIT=y\n"
_KERNEL = {
    "/proc/sys/kernel/osrelease": "6.12.1\n",
    "/proc/sys/kernel/tainted": "0\n",
    "/sys/devices/system/cpu/isolated": "\n",
    "/sys/devices/system/cpu/nohz_full": "(null)\n",
    "/proc/18/task/18/stat": "18 (migration/0) S 2 0 0 0 -1 69238848 0 0 0 0 0 0 0 0 -100 0 1 0 4 0 0 0 0 0 0 0 0 0 0 "
    "0 0 0 0 0 17 0 99 1 0 0 0 0 0 0 0 0 0 0 0\n",
}


STAT = (
    "{} ({}) S 1 0 0 0 -1 4194304 0 0 0 0 0 0 0 0 0 0 1 0 4 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 {} {} 0 0 0 0 "
    "0 0 0 0 0 0 0\n"
)


def _cpus(count: int, name: str, values: dict[str, str]) -> dict[str, str]:
    return {
        f"/sys/devices/system/cpu/cpu{cpu}/{name}/{file}": text for cpu in range(count) for file, text in values.items()
    }


def imx() -> dict[str, str]:
    """An i.MX 8M of four Cortex-A53, PREEMPT_RT, tuned as its maker says."""
    return (
        _KERNEL
        | {
            "/proc/sys/kernel/version": "#1 SMP PREEMPT_RT Mon Jan 1 00:00:00 UTC 2026\n",
            "/sys/kernel/realtime": "1\n",
            "/proc/cmdline": "console=ttymxc1,115200 root=/dev/mmcblk2p2 isolcpus=3 rcu_nocbs=3 irqaffinity=0-2\n",
            "/boot/config-6.12.1": _CONFIG + "CONFIG_PREEMPT_RT=y\nCONFIG_HZ=1000\nCONFIG_HZ_1000=y\n"
            "CONFIG_PREEMPT_RCU=y\nCONFIG_RCU_BOOST=y\nCONFIG_RCU_NOCB_CPU=y\nCONFIG_JUMP_LABEL=y\nCONFIG_NO_HZ_COMMON=y\n",
            "/proc/cpuinfo": "".join(
                f"processor\t: {cpu}\nCPU implementer\t: 0x41\nCPU part\t: 0xd03\n\n" for cpu in range(4)
            ),
            "/proc/sys/kernel/arch": "aarch64\n",
            "/sys/devices/system/cpu/online": "0-3\n",
            "/sys/devices/system/cpu/isolated": "3\n",
            "/sys/devices/system/clocksource/clocksource0/current_clocksource": "arch_sys_counter\n",
            "/proc/device-tree/model": "NXP i.MX8MMini EVK board\0",
            "/sys/devices/system/cpu/cpuidle/current_driver": "psci_idle\n",
            "/proc/consoles": "ttymxc1              -W- (EC p  )  207:17\n",
            "/proc/sys/kernel/printk": "7\t4\t1\t7\n",
            "/sys/class/thermal/thermal_zone0/type": "cpu-thermal\n",
            "/sys/class/thermal/thermal_zone0/temp": "79000\n",
            "/sys/class/thermal/thermal_zone0/trip_point_0_type": "passive\n",
            "/sys/class/thermal/thermal_zone0/trip_point_0_temp": "85000\n",
            "/proc/self/mountinfo": "22 1 0:21 / / rw,noatime - nfs 10.0.0.1:/root rw,vers=3\n",
        }
        | _cpus(
            4,
            "cpufreq",
            {
                "scaling_governor": "ondemand\n",
                "scaling_driver": "cpufreq-dt\n",
                "scaling_min_freq": "1200000\n",
                "scaling_max_freq": "1800000\n",
            },
        )
        | _cpus(4, "cpuidle/state1", {"name": "cpu-sleep-0\n", "latency": "1000\n", "disable": "0\n"})
    )


def laptop() -> dict[str, str]:
    """A laptop of two cores with two threads each; intel_pstate, a desktop's kernel."""
    files = (
        _KERNEL
        | {
            "/proc/sys/kernel/version": "#1 SMP PREEMPT_DYNAMIC Mon Jan 1 00:00:00 UTC 2026\n",
            "/proc/cmdline": "root=/dev/nvme0n1p2 quiet splash\n",
            "/boot/config-6.12.1": _CONFIG + "CONFIG_PREEMPT_DYNAMIC=y\nCONFIG_PREEMPT_VOLUNTARY=y\n"
            "CONFIG_HZ=250\nCONFIG_NO_HZ_COMMON=y\nCONFIG_NO_HZ_FULL=y\nCONFIG_RCU_NOCB_CPU=y\n"
            "CONFIG_LOCKUP_DETECTOR=y\nCONFIG_TRANSPARENT_HUGEPAGE=y\n",
            "/proc/cpuinfo": "".join(
                f"processor\t: {cpu}\nvendor_id\t: GenuineIntel\nmodel name\t: Example i5\n"
                "microcode\t: 0xf4\nflags\t\t: tsc hwp\n\n"
                for cpu in range(4)
            ),
            "/proc/sys/kernel/arch": "x86_64\n",
            "/sys/devices/system/cpu/online": "0-3\n",
            "/sys/devices/system/cpu/smt/active": "1\n",
            "/sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet\n",
            "/sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc hpet acpi_pm\n",
            "/sys/devices/system/cpu/cpuidle/current_driver": "intel_idle\n",
            "/proc/meminfo": "MemTotal: 8000000 kB\nSwapTotal: 2097152 kB\n",
            "/proc/sys/vm/swappiness": "60\n",
            "/sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never\n",
            "/proc/sys/kernel/nmi_watchdog": "1\n",
            "/proc/sys/kernel/soft_watchdog": "1\n",
            "/proc/consoles": "tty0                 -WU (EC  p  )    4:1\n",
            "/proc/sys/kernel/printk": "4\t4\t1\t7\n",
            "/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count": "41\n",
            "/sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count": "1\n",
            "/etc/security/limits.conf": "# an example\n#@realtime - rtprio 99\n",
            "/etc/group": "root:x:0:\naudio:x:29:\n",
            "/proc/self/mountinfo": "22 1 259:2 / / rw,relatime - ext4 /dev/nvme0n1p2 rw\n"
            "23 22 259:3 / /home rw - btrfs /dev/nvme0n1p3 rw\n",
            "/proc/700/task/700/stat": STAT.format(700, "irqbalance", 0, 0),
            "/proc/701/task/701/stat": STAT.format(701, "cron", 0, 0),
            "/sys/devices/system/cpu/intel_pstate/no_turbo": "0\n",
        }
        | _cpus(
            4,
            "cpufreq",
            {
                "scaling_governor": "powersave\n",
                "scaling_driver": "intel_pstate\n",
                "energy_performance_preference": "balance_power\n",
                "scaling_min_freq": "400000\n",
                "scaling_max_freq": "3600000\n",
            },
        )
        | _cpus(4, "cpuidle/state3", {"name": "C10\n", "latency": "890\n", "disable": "0\n"})
    )
    return files | {
        f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list": f"{cpu % 2},{cpu % 2 + 2}\n"
        for cpu in range(4)
    }


def server() -> dict[str, str]:
    """A server of two nodes; every debug option that its distribution has, an interrupt thread, a task of fifo 80."""
    return _KERNEL | {
        "/proc/sys/kernel/version": "#1 SMP PREEMPT_DYNAMIC Mon Jan 1 00:00:00 UTC 2026\n",
        "/proc/cmdline": "root=/dev/sda1 threadirqs preempt=full nohz=off idle=poll skew_tick=1 -- splash=1\n",
        "/boot/config-6.12.1": _CONFIG + "CONFIG_PREEMPT_DYNAMIC=y\nCONFIG_HZ=100\nCONFIG_PROVE_LOCKING=y\n"
        "CONFIG_DEBUG_PREEMPT=y\nCONFIG_NO_HZ_COMMON=y\nCONFIG_RT_GROUP_SCHED=y\nCONFIG_KSM=y\n"
        "CONFIG_NUMA=y\nCONFIG_NUMA_BALANCING=y\n",
        "/proc/cpuinfo": "".join(
            f"processor\t: {cpu}\nvendor_id\t: AuthenticAMD\nmodel name\t: Example 7003\n"
            "microcode\t: 0xa\nflags\t\t: tsc cat_l3 mba\n\n"
            for cpu in range(8)
        ),
        "/proc/sys/kernel/arch": "x86_64\n",
        "/sys/devices/system/cpu/online": "0-7\n",
        "/sys/devices/system/node/node0/cpulist": "0-3\n",
        "/sys/devices/system/node/node1/cpulist": "4-7\n",
        "/proc/sys/kernel/numa_balancing": "1\n",
        "/sys/kernel/mm/ksm/run": "1\n",
        "/sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
        "/sys/devices/virtual/workqueue/cpumask": "ff\n",
        "/sys/bus/workqueue/devices/writeback/cpumask": "7f\n",
        "/sys/kernel/tracing/current_tracer": "function\n",
        "/proc/stat": "cpu 1 1 1 1 1 1 1 0 0 0\n",
        "/proc/sys/kernel/sched_rt_runtime_us": "-1\n",
        "/proc/sys/kernel/sched_rt_period_us": "1000000\n",
        "/proc/900/task/900/stat": STAT.format(900, "corosync", 80, 1),
        "/sys/devices/system/machinecheck/machinecheck0/check_interval": "12c\n",
        "/sys/devices/system/machinecheck/machinecheck0/ignore_ce": "0\n",
        "/proc/filesystems": "nodev\tresctrl\n\text4\n",
        "/proc/self/mountinfo": "22 1 8:1 / / rw,noatime - xfs /dev/sda1 rw\n",
        "/etc/security/limits.conf": "\n",
        "/etc/group": "realtime:x:900:me\n",
        "/etc/security/limits.d/realtime.conf": "@realtime - rtprio 99\n@realtime - memlock unlimited\n",
    }


COMMANDS = {
    "laptop": {"od -An -td4 -N4 /dev/cpu_dma_latency": "          0\n"},
    "server": {"od -An -td4 -N4 /dev/cpu_dma_latency": " 2000000000\n"},
}
MADE = {"imx": imx, "laptop": laptop, "server": server}


def recorded(path: Path) -> Mapping[str, Any]:
    case = json.loads(path.read_text())
    return collect(FakeLink(case["files"], case["commands"]))


def made(name: str, **more: str) -> Mapping[str, Any]:
    """One of the machines put together by hand."""
    return collect(FakeLink(MADE[name]() | more, COMMANDS.get(name, {})))


def machines() -> dict[str, Mapping[str, Any]]:
    return {path.stem: recorded(path) for path in CASES} | {name: made(name) for name in MADE}
