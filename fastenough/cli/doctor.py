# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough doctor``: what can be measured here, what is missing, and how to fix it.

One function per matter, one line in CHECKS for each; a check looks and changes nothing.  --restore puts back what a
bench that was killed has left changed.
"""

from __future__ import annotations

import os

import click

from fastenough.campaign import Entry, Plan
from fastenough.cli.doctor_findings import Check, Finding, Patient, Severity, State, print_findings
from fastenough.cli.doctor_system import governor, isolation, kernel, module, rights, smi
from fastenough.cli.looking import looked_at
from fastenough.cli.output import print_json
from fastenough.cli.parameters import json_option
from fastenough.cli.privileges import DMA_LATENCY, LOCAL, how_to_grant, refusal
from fastenough.facts import collect
from fastenough.link import Link, LocalLink, find_probe
from fastenough.loads import LOADS, TOOL_PACKAGES
from fastenough.model import ExitStatus, FastenoughError, NotApplicable
from fastenough.settings import journals, restore, restored_text, unrestored


def _probe(patient: Patient) -> Finding:
    try:
        return Finding("probe", State.FINE, find_probe(patient.link))
    except NotApplicable as reason:
        return Finding("probe", State.MISSING, str(reason), "make setup")


def _real_time(patient: Patient) -> Finding:
    if patient.link.which("chrt") is None:
        return Finding(
            "real-time priority", State.MISSING, "there is no chrt to ask for it with", "apt-get install util-linux"
        )
    if patient.link.raised.run(["chrt", "-f", "98", "true"]).status == 0:
        return Finding("real-time priority", State.FINE, f"SCHED_FIFO 98 is granted{_how(patient.link)}")
    if patient.distrust:
        return Finding(
            "real-time priority", State.MISSING, "SCHED_FIFO 98 is refused, and sudo is not used", patient.distrust
        )
    if _is_root(patient.link):
        return Finding(
            "real-time priority", State.MISSING, "SCHED_FIFO 98 is refused to root", _refused_to_root(patient)
        )
    if _is_elsewhere(patient.link):
        return Finding(
            "real-time priority",
            State.MISSING,
            "SCHED_FIFO 98 is refused to this user of the board",
            "log in there as root, or let sudo run there without a password",
        )
    return Finding(
        "real-time priority",
        State.MISSING,
        "SCHED_FIFO 98 is refused",
        f"run as root; let sudo run it without a password; or grant rtprio and memlock:\n{how_to_grant()}",
    )


def _refused_to_root(patient: Patient) -> str:
    """What the probe says of it: a capability, a limit or a control group of a container is in the way."""
    try:
        lacking = refusal(patient.link, Plan("doctor", (Entry("timer", ("none",), 1.0, {}),)))
    except NotApplicable as reason:
        return str(reason)
    return lacking or "see docs/containers.md"


def _is_elsewhere(link: Link) -> bool:
    """Board and bench are two machines."""
    return link.name != LOCAL


def _is_root(link: Link) -> bool:
    return link.run(["id", "-u"]).text.strip() == "0"


def _how(link: Link) -> str:
    return " (through sudo)" if link.raised is not link else ""


def _machine(patient: Patient) -> Finding:
    profile = patient.profile
    if profile.get("emulated"):
        return Finding("machine", State.LIMITED, "emulated: function can be shown, speed cannot", "measure on hardware")
    if profile.get("hypervisor"):
        return Finding(
            "machine",
            State.LIMITED,
            f"virtual machine ({profile['hypervisor']}): no worst-case verdict where the host takes time",
            "measure on the bare machine",
        )
    return Finding("machine", State.FINE, "bare machine")


def _idle_states(patient: Patient) -> Finding:
    if patient.link.exists(DMA_LATENCY):
        if patient.link.raised.run(["sh", "-c", f"exec 3<>{DMA_LATENCY}"]).status == 0:
            return Finding("idle states", State.FINE, f"{DMA_LATENCY} can be held{_how(patient.link)}")
        fix = "run as root" if not _is_root(patient.link) else f"give the container the device (--device {DMA_LATENCY})"
        return Finding(
            "idle states",
            State.LIMITED,
            f"{DMA_LATENCY} may not be held by this user",
            f"{fix}, or measure without: fastenough run timer latency=off",
        )
    return Finding(
        "idle states",
        State.LIMITED,
        "there is no /dev/cpu_dma_latency: idle states cannot be held off",
        "boot with processor.max_cstate=1, or a kernel with CONFIG_CPU_IDLE",
    )


def _loads(patient: Patient) -> Finding:
    tools = sorted({tool for load in LOADS.values() for tool in load.tools if patient.link.which(tool) is None})
    if not tools:
        return Finding("loads", State.FINE, ", ".join(LOADS))
    lacking = [
        f"{tool} is not there, which these need: "
        f"{', '.join(load.name for load in LOADS.values() if tool in load.tools)}"
        for tool in tools
    ]
    packages = sorted({TOOL_PACKAGES[tool] for tool in tools if tool in TOOL_PACKAGES})
    return Finding("loads", State.MISSING, "; ".join(lacking), f"apt-get install {' '.join(packages)}")


def _gpio(patient: Patient) -> Finding:
    chips = patient.link.glob("/dev/gpiochip*")
    if chips:
        return Finding("GPIO", State.FINE, ", ".join(chips))
    return Finding(
        "GPIO",
        State.MISSING,
        "no /dev/gpiochip*: response and periodic cannot be measured on this board",
        "use a board with pins, or the virtual bench (fastenough bench up)",
    )


def _gauge(patient: Patient) -> Finding:
    """It is plugged into the bench, whichever board is looked at."""
    ports = [port for pattern in ("/dev/ttyACM*", "/dev/ttyUSB*") for port in LocalLink().glob(pattern)]
    if ports:
        return Finding(
            "gauge",
            State.FINE,
            f"serial ports of this machine to look at: {', '.join(ports)} (fastenough gauge id {ports[0]})",
        )
    return Finding(
        "gauge",
        State.MISSING,
        "this machine has no serial port with an instrument: boards can only measure themselves",
        "connect an Arduino Uno and flash it: fastenough gauge flash uno /dev/ttyACM0",
    )


def _virtual_bench(patient: Patient) -> Finding:
    """It runs on the bench, whichever board is looked at."""
    missing = [tool for tool in ("qemu-system-aarch64", "aarch64-linux-gnu-gcc") if LocalLink().which(tool) is None]
    if missing:
        return Finding(
            "virtual bench",
            State.MISSING,
            f"{', '.join(missing)} not installed on this machine",
            "apt-get install qemu-system-arm gcc-aarch64-linux-gnu",
        )
    return Finding("virtual bench", State.FINE, "QEMU and the cross compiler are there")


def _disk(patient: Patient) -> Finding:
    """Of the bench, which keeps the recordings."""
    free = os.statvfs(".")
    mib = free.f_bavail * free.f_frsize >> 20
    purpose = "recordings on this machine" if _is_elsewhere(patient.link) else "recordings and the hdd load"
    if mib >= 1024:
        return Finding("disk", State.FINE, f"{mib:,} MiB free for {purpose}")
    return Finding("disk", State.LIMITED, f"only {mib:,} MiB free for {purpose}", "free a gigabyte")


def _left_changed(patient: Patient) -> Finding:
    left: list[str] = []
    for journal in journals(patient.link):
        try:
            left += unrestored(patient.link, journal)
        except FastenoughError as reason:
            return Finding("settings", State.LIMITED, str(reason), "wait until it has ended")
    if left:
        return Finding(
            "settings",
            State.LIMITED,
            f"a fastenough that was killed has left changed: {', '.join(left)}",
            "fastenough doctor --restore" + (f" --board {patient.link.name}" if _is_elsewhere(patient.link) else ""),
        )
    return Finding("settings", State.FINE, "nothing is left changed by a fastenough that was killed")


def _restore(link: Link, as_json: bool) -> ExitStatus:
    """Put back what the journals of this board hold."""
    places = restore(link)
    if as_json:
        print_json({"restored": places})
    else:
        print(restored_text(places) if places else "nothing to restore")
    return ExitStatus.DONE


CHECKS = (
    Check(_probe, "every measurement", Severity.WRONG),
    Check(_real_time, "every measurement: without it, late tasks show nothing", Severity.WRONG),
    Check(rights, "who may measure with real-time priority and locked memory", Severity.WARNING),
    Check(kernel, "how long the longest delay can become", Severity.WARNING),
    Check(_machine, "whether a verdict on the worst case can be given", Severity.WARNING),
    Check(governor, "latency of tasks that wake an idle CPU", Severity.WARNING),
    Check(_idle_states, "latency of tasks that wake an idle CPU", Severity.WARNING),
    Check(isolation, "who else runs where a real-time task runs", Severity.NOTE),
    Check(smi, "delays that no kernel sees (firmware)", Severity.NOTE),
    Check(_loads, "measuring under load, without which nothing passes", Severity.WARNING),
    Check(_disk, "recordings, and the load hdd", Severity.WARNING),
    Check(_left_changed, "what this machine is set to", Severity.WARNING),
    Check(module, "linux-kernel among the implementations only", Severity.NOTE),
    Check(_gpio, "the probes response and periodic only", Severity.NOTE),
    Check(_gauge, "confirmation from outside only", Severity.NOTE),
    Check(_virtual_bench, "boards without hardware only", Severity.NOTE),
)
"""One line for each matter."""


@click.command()
@click.option("--board", default="local", show_default=True, help="Which board to look at.")
@click.option(
    "--restore",
    "restoring",
    is_flag=True,
    help="Put back settings that a fastenough which was killed has left changed.",
)
@json_option
def command(board: str, restoring: bool, as_json: bool) -> ExitStatus:
    """Say what can be measured here and what is missing, with the fix.

    Status 0 when a timer can be measured under real-time priority, 5 when not.
    """
    with looked_at(board) as (link, distrust):
        if restoring:
            return _restore(link, as_json)
        patient = Patient(link, collect(link), distrust)
        findings = [check(patient) for check in CHECKS]
    if as_json:
        print_json(findings)
    else:
        print_findings(findings)
    lacking = any(finding.severity is Severity.WRONG for finding in findings)
    return ExitStatus.NOT_APPLICABLE if lacking else ExitStatus.DONE
