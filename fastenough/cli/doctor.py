# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough doctor``: what can be measured here, what is missing, and how to mend it.

One function per matter, one line in CHECKS for each; a check looks and changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import click

from fastenough.cli.output import print_json, print_table
from fastenough.cli.parameters import json_option
from fastenough.facts import collect
from fastenough.link import Link, find_probe, open_link
from fastenough.loads import LOADS, require_tools
from fastenough.model import ExitStatus, NotApplicable


class State(StrEnum):
    """How well a matter stands."""

    FINE = "fine"
    LIMITED = "limited"
    MISSING = "missing"


@dataclass(frozen=True)
class Finding:
    """One matter, how it stands, and what to do where it could stand better."""

    matter: str
    state: State
    text: str
    mend: str | None = None


@dataclass(frozen=True)
class Patient:
    """What is examined: a board and its profile, collected once."""

    link: Link
    profile: dict[str, Any]


def _probe(patient: Patient) -> Finding:
    try:
        return Finding("probe", State.FINE, find_probe(patient.link))
    except NotApplicable as reason:
        return Finding("probe", State.MISSING, str(reason), "make setup")


def _real_time(patient: Patient) -> Finding:
    granted = patient.link.run(["chrt", "-f", "98", "true"]) if patient.link.which("chrt") else None
    if granted is not None and granted.status == 0:
        return Finding("real-time priority", State.FINE, "SCHED_FIFO 98 is granted")
    return Finding("real-time priority", State.MISSING, "SCHED_FIFO 98 is refused",
                   "run as root, or set 'rtprio 99' and 'memlock unlimited' in /etc/security/limits.conf")


def _kernel(patient: Patient) -> Finding:
    kernel = patient.profile.get("kernel") or {}
    kind, release = kernel.get("preemption"), kernel.get("release")
    if kind == "preempt-rt":
        return Finding("kernel", State.FINE, f"{release} ({kind})")
    return Finding("kernel", State.LIMITED, f"{release} ({kind}): measurable, but its worst case is rarely bounded",
                   "on Debian: apt-get install linux-image-rt-amd64, then boot it")


def _machine(patient: Patient) -> Finding:
    profile = patient.profile
    if profile.get("emulated"):
        return Finding("machine", State.LIMITED, "emulated: function can be shown, speed cannot", "measure on hardware")
    if profile.get("hypervisor"):
        return Finding("machine", State.LIMITED, f"virtual machine ({profile['hypervisor']}): no worst-case verdict "
                       "where the host takes time", "measure on the bare machine")
    return Finding("machine", State.FINE, "bare machine")


def _idle_states(patient: Patient) -> Finding:
    if patient.link.exists("/dev/cpu_dma_latency"):
        return Finding("idle states", State.FINE, "/dev/cpu_dma_latency can be held")
    return Finding("idle states", State.LIMITED, "there is no /dev/cpu_dma_latency: idle states cannot be held off",
                   "boot with processor.max_cstate=1, or a kernel with CONFIG_CPU_IDLE")


def _smi(patient: Patient) -> Finding:
    if patient.link.glob("/dev/cpu/*/msr"):
        return Finding("SMI counter", State.FINE, "readable where the CPU has one")
    return Finding("SMI counter", State.LIMITED, "SMIs cannot be counted: there is no /dev/cpu/*/msr",
                   "modprobe msr (x86 of Intel only)")


def _loads(patient: Patient) -> Finding:
    missing = []
    for load in LOADS.values():
        try:
            require_tools(patient.link, load)
        except NotApplicable as reason:
            missing.append(f"{load.name}: {reason}")
    if missing:
        return Finding("loads", State.MISSING, "; ".join(missing), "apt-get install stress-ng rt-tests")
    return Finding("loads", State.FINE, ", ".join(LOADS))


def _gpio(patient: Patient) -> Finding:
    chips = patient.link.glob("/dev/gpiochip*")
    if chips:
        return Finding("GPIO", State.FINE, ", ".join(chips))
    return Finding("GPIO", State.MISSING, "no /dev/gpiochip*: response and periodic cannot be measured on this machine",
                   "use a board with pins, or the virtual bench (fastenough bench up)")


def _gauge(patient: Patient) -> Finding:
    ports = [port for pattern in ("/dev/ttyACM*", "/dev/ttyUSB*") for port in patient.link.glob(pattern)]
    if ports:
        return Finding("gauge", State.FINE, f"serial ports to look at: {', '.join(ports)} (fastenough gauge id PORT)")
    return Finding("gauge", State.MISSING, "no serial port with an instrument: boards can only measure themselves",
                   "connect an Arduino Uno and flash it: fastenough gauge flash")


def _virtual_bench(patient: Patient) -> Finding:
    missing = [tool for tool in ("qemu-system-aarch64", "aarch64-linux-gnu-gcc") if patient.link.which(tool) is None]
    if missing:
        return Finding("virtual bench", State.MISSING, f"{', '.join(missing)} not installed",
                       "apt-get install qemu-system-arm gcc-aarch64-linux-gnu")
    return Finding("virtual bench", State.FINE, "QEMU and the cross compiler are there")


def _disk(patient: Patient) -> Finding:
    free = os.statvfs(".")
    mib = free.f_bavail * free.f_frsize >> 20
    if mib >= 1024:
        return Finding("disk", State.FINE, f"{mib:,} MiB free for recordings and the hdd load")
    return Finding("disk", State.LIMITED, f"only {mib:,} MiB free for recordings and the hdd load", "free a gigabyte")


CHECKS: tuple[Callable[[Patient], Finding], ...] = (
    _probe, _real_time, _kernel, _machine, _idle_states, _smi, _loads, _gpio, _gauge, _virtual_bench, _disk,
)


@click.command()
@click.option("--board", default="local", show_default=True, help="Which board to look at.")
@json_option
def command(board: str, as_json: bool) -> ExitStatus:
    """Say what can be measured here and what is missing, with the mend.

    Status 0 when a timer can be measured under real-time priority, 5 when not.
    """
    link = open_link(board)
    patient = Patient(link, collect(link))
    findings = [check(patient) for check in CHECKS]
    if as_json:
        print_json(findings)
    else:
        print_table("", ("matter", "state", "what was found, and the mend"),
                    [(f.matter, f.state, f.text + (f"\n→ {f.mend}" if f.mend else "")) for f in findings], texts=3)
    needed = {"probe", "real-time priority"}
    lacking = any(f.state is State.MISSING for f in findings if f.matter in needed)
    return ExitStatus.NOT_APPLICABLE if lacking else ExitStatus.DONE
