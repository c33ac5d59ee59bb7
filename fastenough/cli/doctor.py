# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough doctor``: what limits measurements on a machine, with fixes.

One function per check, one line in CHECKS for each; a check changes nothing.
"""

from __future__ import annotations

import os

import click

from fastenough.campaign import Entry, Plan
from fastenough.cli.commands import Command
from fastenough.cli.doctor_findings import Check, Finding, InspectedBoard, Severity, State, print_findings
from fastenough.cli.doctor_system import governor, isolation, kernel, module, rights, smi
from fastenough.cli.looking import accessed_board
from fastenough.cli.output import print_json
from fastenough.cli.parameters import json_option
from fastenough.cli.privileges import DMA_LATENCY, LOCAL, how_to_grant, refusal
from fastenough.facts import collect
from fastenough.link import Link, LocalLink, find_probe
from fastenough.loads import LOADS, TOOL_PACKAGES
from fastenough.model import ExitStatus, FastenoughError, NotApplicable
from fastenough.settings import journals, restore, restored_text, unrestored


def _probe(inspected: InspectedBoard) -> Finding:
    try:
        return Finding("probe", State.FINE, find_probe(inspected.link))
    except NotApplicable as reason:
        return Finding("probe", State.MISSING, str(reason), "make setup")


def _real_time(inspected: InspectedBoard) -> Finding:
    if inspected.link.which("chrt") is None:
        return Finding(
            "real-time priority", State.MISSING, "cannot be tested: chrt is not installed", "apt-get install util-linux"
        )
    if inspected.link.raised.run(["chrt", "-f", "98", "true"]).status == 0:
        return Finding("real-time priority", State.FINE, f"SCHED_FIFO 98 granted{_how(inspected.link)}")
    if inspected.distrust:
        return Finding(
            "real-time priority", State.MISSING, "SCHED_FIFO 98 refused, and sudo is not used", inspected.distrust
        )
    if _is_root(inspected.link):
        return Finding(
            "real-time priority", State.MISSING, "SCHED_FIFO 98 refused to root", _refused_to_root(inspected)
        )
    if _is_elsewhere(inspected.link):
        return Finding(
            "real-time priority",
            State.MISSING,
            "SCHED_FIFO 98 refused to this user of the board",
            "log in as root, or allow sudo there without a password",
        )
    return Finding(
        "real-time priority",
        State.MISSING,
        "SCHED_FIFO 98 refused",
        f"run as root; allow sudo without a password; or grant rtprio and memlock:\n{how_to_grant()}",
    )


def _refused_to_root(inspected: InspectedBoard) -> str:
    """The reason of the probe: a missing capability, a limit, or a control group of a container."""
    try:
        lacking = refusal(inspected.link, Plan("doctor", (Entry("timer", ("none",), 1.0, {}),)))
    except NotApplicable as reason:
        return str(reason)
    return lacking or "see docs/containers.md"


def _is_elsewhere(link: Link) -> bool:
    """Whether the board is another machine."""
    return link.name != LOCAL


def _is_root(link: Link) -> bool:
    return link.run(["id", "-u"]).text.strip() == "0"


def _how(link: Link) -> str:
    return " (through sudo)" if link.raised is not link else ""


def _machine(inspected: InspectedBoard) -> Finding:
    profile = inspected.profile
    if profile.get("emulated"):
        return Finding("machine", State.LIMITED, "emulated: timing is not meaningful", "measure on hardware")
    if profile.get("hypervisor"):
        return Finding(
            "machine",
            State.LIMITED,
            f"virtual machine ({profile['hypervisor']}): no worst-case verdict, the host may pause it",
            "measure on the host or on other hardware",
        )
    return Finding("machine", State.FINE, "no hypervisor")


def _idle_states(inspected: InspectedBoard) -> Finding:
    if inspected.link.exists(DMA_LATENCY):
        if inspected.link.raised.run(["sh", "-c", f"exec 3<>{DMA_LATENCY}"]).status == 0:
            return Finding("idle states", State.FINE, f"{DMA_LATENCY} is writable{_how(inspected.link)}")
        fix = (
            "run as root" if not _is_root(inspected.link) else f"give the container the device (--device {DMA_LATENCY})"
        )
        return Finding(
            "idle states",
            State.LIMITED,
            f"{DMA_LATENCY} is not writable for this user",
            f"{fix}, or measure without: fastenough run timer latency=off",
        )
    return Finding(
        "idle states",
        State.LIMITED,
        "no /dev/cpu_dma_latency: idle states cannot be disabled",
        "boot with processor.max_cstate=1, or a kernel with CONFIG_CPU_IDLE",
    )


def _loads(inspected: InspectedBoard) -> Finding:
    tools = sorted({tool for load in LOADS.values() for tool in load.tools if inspected.link.which(tool) is None})
    if not tools:
        return Finding("loads", State.FINE, ", ".join(LOADS))
    lacking = [
        f"{tool} is not installed, required by {', '.join(load.name for load in LOADS.values() if tool in load.tools)}"
        for tool in tools
    ]
    packages = sorted({TOOL_PACKAGES[tool] for tool in tools if tool in TOOL_PACKAGES})
    return Finding("loads", State.MISSING, "; ".join(lacking), f"apt-get install {' '.join(packages)}")


def _gpio(inspected: InspectedBoard) -> Finding:
    chips = inspected.link.glob("/dev/gpiochip*")
    if chips:
        return Finding("GPIO", State.FINE, ", ".join(chips))
    return Finding(
        "GPIO",
        State.MISSING,
        "no /dev/gpiochip*: no response or periodic probe on this board",
        "use a board with pins, or the virtual bench (fastenough bench up)",
    )


def _gauge(inspected: InspectedBoard) -> Finding:
    """The instrument of this machine, whatever the board."""
    ports = [port for pattern in ("/dev/ttyACM*", "/dev/ttyUSB*") for port in LocalLink().glob(pattern)]
    if ports:
        return Finding(
            "gauge",
            State.FINE,
            f"serial ports of this machine: {', '.join(ports)} (identify with: fastenough gauge id {ports[0]})",
        )
    return Finding(
        "gauge",
        State.MISSING,
        "no serial port with an instrument on this machine: boards can only measure themselves",
        "connect an Arduino Uno and flash it: fastenough gauge flash uno /dev/ttyACM0",
    )


def _virtual_bench(inspected: InspectedBoard) -> Finding:
    """The tools of this machine, whatever the board."""
    missing = [tool for tool in ("qemu-system-aarch64", "aarch64-linux-gnu-gcc") if LocalLink().which(tool) is None]
    if missing:
        return Finding(
            "virtual bench",
            State.MISSING,
            f"{', '.join(missing)} not installed on this machine",
            "apt-get install qemu-system-arm gcc-aarch64-linux-gnu",
        )
    return Finding("virtual bench", State.FINE, "QEMU and the cross compiler are installed")


def _disk(inspected: InspectedBoard) -> Finding:
    """Free space of this machine, which stores the recordings."""
    free = os.statvfs(".")
    mib = free.f_bavail * free.f_frsize >> 20
    purpose = "recordings on this machine" if _is_elsewhere(inspected.link) else "recordings and the hdd load"
    if mib >= 1024:
        return Finding("disk", State.FINE, f"{mib:,} MiB free for {purpose}")
    return Finding("disk", State.LIMITED, f"only {mib:,} MiB free for {purpose}", "free 1 GiB")


def _left_changed(inspected: InspectedBoard) -> Finding:
    left: list[str] = []
    for journal in journals(inspected.link):
        try:
            left += unrestored(inspected.link, journal)
        except FastenoughError as reason:
            return Finding("settings", State.LIMITED, str(reason), "wait for it to end")
    if left:
        return Finding(
            "settings",
            State.LIMITED,
            f"left changed by a killed fastenough process: {', '.join(left)}",
            "fastenough doctor --restore"
            + (f" --board {inspected.link.name}" if _is_elsewhere(inspected.link) else ""),
        )
    return Finding("settings", State.FINE, "no setting left changed by a killed fastenough process")


def _restore(link: Link, as_json: bool) -> ExitStatus:
    """Restore the settings in the journals of this board."""
    places = restore(link)
    if as_json:
        print_json({"restored": places})
    else:
        print(restored_text(places) if places else "nothing to restore")
    return ExitStatus.DONE


CHECKS = (
    Check(_probe, "every measurement", Severity.WRONG),
    Check(_real_time, "every measurement: ordinary tasks are delayed by any other task", Severity.WRONG),
    Check(rights, "real-time priority and locked memory", Severity.WARNING),
    Check(kernel, "longest possible delay", Severity.WARNING),
    Check(_machine, "worst-case verdicts", Severity.WARNING),
    Check(governor, "latency of tasks that wake an idle CPU", Severity.WARNING),
    Check(_idle_states, "latency of tasks that wake an idle CPU", Severity.WARNING),
    Check(isolation, "other tasks on the CPUs of real-time tasks", Severity.NOTE),
    Check(smi, "delays by firmware, invisible to the kernel", Severity.NOTE),
    Check(_loads, "measuring under load, required for a PASS", Severity.WARNING),
    Check(_disk, "recordings, and the load hdd", Severity.WARNING),
    Check(_left_changed, "settings of this machine", Severity.WARNING),
    Check(module, "only the implementation linux-kernel", Severity.NOTE),
    Check(_gpio, "only the probes response and periodic", Severity.NOTE),
    Check(_gauge, "only external confirmation", Severity.NOTE),
    Check(_virtual_bench, "only boards without hardware", Severity.NOTE),
)
"""One line for each check."""


@click.command(cls=Command, example="fastenough doctor --board ssh://root@board")
@click.option("--board", default="local", show_default=True, help="Board to inspect.")
@click.option(
    "--restore",
    "restoring",
    is_flag=True,
    help="Restore settings that a killed fastenough process left changed.",
)
@json_option
def command(board: str, restoring: bool, as_json: bool) -> ExitStatus:
    """List what limits measurements here, with fixes.

    Checks rights, kernel, machine, tools and instruments of this machine or a board, and changes nothing without
    --restore.  The exit status is 0 if a timer can be measured with real-time priority, else 5.
    """
    with accessed_board(board) as (link, distrust):
        if restoring:
            return _restore(link, as_json)
        inspected = InspectedBoard(link, collect(link), distrust)
        findings = [check(inspected) for check in CHECKS]
    if as_json:
        print_json(findings)
    else:
        print_findings(findings)
    lacking = any(finding.severity is Severity.WRONG for finding in findings)
    return ExitStatus.NOT_APPLICABLE if lacking else ExitStatus.DONE
