# SPDX-License-Identifier: GPL-2.0-or-later
"""Services that wake up periodically, or change placements."""

from __future__ import annotations

from fastenough.facts.fact import Absent, Fact, Inputs
from fastenough.facts.tasks import STATS, all_tasks

_NAMES = (
    "irqbalance",
    "tuned",
    "thermald",
    "power-profiles-",
    "auto-cpufreq",
    "tlp",
    "cron",
    "crond",
    "anacron",
    "atd",
    "packagekitd",
    "unattended-upgr",
    "apt.systemd.dai",
    "snapd",
    "updatedb",
    "updatedb.mlocat",
    "updatedb.ploca",
    "fwupd",
    "smartd",
    "tracker-miner-f",
    "baloo_file",
    "earlyoom",
    "systemd-oomd",
    "ksmtuned",
    "numad",
    "stalld",
    "rtkit-daemon",
    "dockerd",
    "containerd",
    "kubelet",
    "collectd",
    "auditd",
)
"""Names of the services in the kernel: at most 15 characters."""


def _services(inputs: Inputs) -> list[str]:
    known = {task.comm for task in all_tasks(inputs)}
    if not known:
        raise Absent("no task can be seen")
    return sorted(known & {name[:15] for name in _NAMES})


FACTS = (Fact("services", _services, files=(STATS,), volatile=True),)
