# SPDX-License-Identifier: GPL-2.0-or-later
"""Consoles, background services and file systems."""

from __future__ import annotations

import re

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import CheckOutcome, Group, Severity, boot, costs, done, fine, sysctl

_FAST = re.compile(r"(tty|ttynull|netcon|netcon_ext|pstore|ramoops)-?\d+")
"""Consoles of the kernel that wait for no device: screens, none, network, memory.  Drivers of serial ports choose other
names; a console of an unknown name is taken for one of them.  The console of pstore has the name of its backend since
Linux 5.8.  Of these, ramoops writes into memory; pstore_blk writes into a block device."""

_ERRORS = 4
"""Messages of this level and above are not errors."""


def _serial_console(facts: Facts) -> CheckOutcome:
    slow = [str(name) for name in facts.need("consoles") if not _FAST.fullmatch(str(name))]
    if not slow:
        return fine("no serial console")
    level = int(facts.need("console_level"))
    if level <= _ERRORS:
        return fine(f"{', '.join(slow)}, errors only (level {level})")
    return costs(
        f"{', '.join(slow)}, for messages up to level {level - 1}",
        sysctl("kernel.printk", _ERRORS, ("console-level", str(_ERRORS))),
        boot("quiet", "loglevel=4"),
        severity=Severity.LOW if facts.real_time_kernel else None,
    )


_GOOD = ("tuned", "rtkit-daemon", "stalld")
"""Services for real time, or harmless to it."""


def _services(facts: Facts) -> CheckOutcome:
    periodic = [str(name) for name in facts.need("services") if name not in (*_GOOD, "irqbalance")]
    if not periodic:
        facts.require_all_tasks()
        return fine("no periodic service is running")
    return costs(", ".join(periodic), done("systemctl stop or mask the services that are not needed"))


_NAMED = 4


def _file_systems(facts: Facts) -> CheckOutcome:
    known = facts.need("mounts")
    far = [str(mount["point"]) for mount in known if mount["network"]]
    writing = [
        str(mount["point"])
        for mount in known
        if not {"relatime", "noatime", "ro"} & set(mount["options"])
        and not mount["network"]
        and not str(mount["kind"]).startswith(("fuse", "overlay"))
    ]
    if not far and not writing:
        return fine("no network file system, none with access times")
    reasons = [f"network file system: {', '.join(far[:_NAMED])}"] if far else []
    reasons += [f"access times are written: {', '.join(writing[:_NAMED])}"] if writing else []
    changes = [done("keep the task's program, libraries and data on a local file system")] if far else []
    changes += [done("mount them with noatime")] if writing else []
    return costs("; ".join(reasons), *changes, severity=Severity.MEDIUM if "/" in far else None)


CHECKS = (
    Check(
        "serial-console",
        "serial console",
        Group.SERVICES,
        Severity.HIGH,
        _serial_console,
        reason="Without PREEMPT_RT the kernel waits for each character with interrupts off: 87 µs at 115,200 Bd, "
        "7 ms for a line of 80 characters.",
        source="kernel: Documentation/core-api/printk-basics.rst",
        trade_off="messages go to the log only; after a crash the serial line does not show them",
    ),
    Check(
        "services",
        "background services",
        Group.SERVICES,
        Severity.LOW,
        _services,
        reason="Services that wake up hourly cause disk, memory and system-call activity that a short "
        "measurement does not see.",
        source="also checked by rtcqs and realtimeconfigquickscan",
        trade_off="the functions of these services, such as updates",
    ),
    Check(
        "file-systems",
        "file systems",
        Group.SERVICES,
        Severity.LOW,
        _file_systems,
        reason="A page of the program that is not in memory is read over the network, whose traffic interrupts "
        "the CPUs. Enea's worst load is disk access over NFS.",
        source="Enea, appendix A, table A.1; mount(8), noatime; also checked by rtcqs",
        trade_off="none",
    ),
)
