# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough doctor``: what limits measurements on a machine, with fixes.

One function per check, one line in CHECKS for each; a check changes nothing."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import click

from fastenough import words
from fastenough.audit import CHECKS as AUDIT_CHECKS
from fastenough.audit import Facts, FindingState, Form
from fastenough.audit import Finding as AuditFinding
from fastenough.audit.facts import as_cpus
from fastenough.board.base import installed_module
from fastenough.campaign import Entry, Plan
from fastenough.cli.commands import Command
from fastenough.cli.options import json_option
from fastenough.cli.output import clean, print_json, print_marked, text_width
from fastenough.cli.privileges import DMA_LATENCY, LOCAL, accessed_board, how_to_grant, refusal
from fastenough.facts import Profile, collect
from fastenough.implementations.linux_kernel import MODULE
from fastenough.link import BoardGone, Link, LocalLink, find_probe
from fastenough.loads import LOADS, TOOL_PACKAGES
from fastenough.model import ExitStatus, FastenoughError, NotApplicable
from fastenough.settings import BoardBusy, journals, restore, restored_text, unrestored


def _probe(inspected: InspectedBoard) -> Diagnosis:
    try:
        return Diagnosis(Condition.FINE, find_probe(inspected.link))
    except NotApplicable as reason:
        return Diagnosis(Condition.MISSING, str(reason), "make setup")


def _real_time(inspected: InspectedBoard) -> Diagnosis:
    if inspected.link.which("chrt") is None:
        return Diagnosis(
            Condition.MISSING,
            "cannot be tested: chrt is not installed",
            "apt-get install util-linux",
        )
    if inspected.link.raised.run(["chrt", "-f", "98", "true"]).status == 0:
        return Diagnosis(Condition.FINE, f"SCHED_FIFO 98 granted{_how(inspected.link)}")
    if inspected.distrust:
        return Diagnosis(Condition.MISSING, "SCHED_FIFO 98 refused, and sudo is not used", inspected.distrust)
    if _is_root(inspected.link):
        return Diagnosis(Condition.MISSING, "SCHED_FIFO 98 refused to root", _refused_to_root(inspected))
    if _is_elsewhere(inspected.link):
        return Diagnosis(
            Condition.MISSING,
            "SCHED_FIFO 98 refused to this user of the board",
            "log in as root, or allow sudo there without a password",
        )
    return Diagnosis(
        Condition.MISSING,
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


def _machine(inspected: InspectedBoard) -> Diagnosis:
    profile = inspected.profile
    if profile.get("emulated"):
        return Diagnosis(Condition.LIMITED, "emulated: timing is not meaningful", "measure on hardware")
    if profile.get("hypervisor"):
        return Diagnosis(
            Condition.LIMITED,
            f"virtual machine ({profile['hypervisor']}): no worst-case verdict, the host may pause it",
            "measure on the host or on other hardware",
        )
    return Diagnosis(Condition.FINE, "no hypervisor")


def _idle_states(inspected: InspectedBoard) -> Diagnosis:
    if inspected.link.exists(DMA_LATENCY):
        if inspected.link.raised.run(["sh", "-c", f"exec 3<>{DMA_LATENCY}"]).status == 0:
            return Diagnosis(Condition.FINE, f"{DMA_LATENCY} is writable{_how(inspected.link)}")
        fix = (
            "run as root" if not _is_root(inspected.link) else f"give the container the device (--device {DMA_LATENCY})"
        )
        return Diagnosis(
            Condition.LIMITED,
            f"{DMA_LATENCY} is not writable for this user",
            f"{fix}, or measure without: fastenough run timer latency=off",
        )
    return Diagnosis(
        Condition.LIMITED,
        "no /dev/cpu_dma_latency: idle states cannot be disabled",
        "boot with processor.max_cstate=1, or a kernel with CONFIG_CPU_IDLE",
    )


def _loads(inspected: InspectedBoard) -> Diagnosis:
    tools = sorted({tool for load in LOADS.values() for tool in load.tools if inspected.link.which(tool) is None})
    if not tools:
        return Diagnosis(Condition.FINE, ", ".join(LOADS))
    lacking = [
        f"{tool} is not installed, required by {', '.join(load.name for load in LOADS.values() if tool in load.tools)}"
        for tool in tools
    ]
    packages = sorted({TOOL_PACKAGES[tool] for tool in tools if tool in TOOL_PACKAGES})
    return Diagnosis(Condition.MISSING, "; ".join(lacking), f"apt-get install {' '.join(packages)}")


def _gpio(inspected: InspectedBoard) -> Diagnosis:
    chips = inspected.link.glob("/dev/gpiochip*")
    if chips:
        return Diagnosis(Condition.FINE, ", ".join(chips))
    return Diagnosis(
        Condition.MISSING,
        "no /dev/gpiochip*: no response or periodic probe on this board",
        "use a board with pins, or the virtual bench (fastenough bench up)",
    )


def _gauge(inspected: InspectedBoard) -> Diagnosis:
    """The instrument of this machine, whatever the board."""
    ports = [port for pattern in ("/dev/ttyACM*", "/dev/ttyUSB*") for port in LocalLink().glob(pattern)]
    if ports:
        return Diagnosis(
            Condition.FINE,
            f"serial ports of this machine: {', '.join(ports)} (identify with: fastenough gauge id {ports[0]})",
        )
    return Diagnosis(
        Condition.MISSING,
        "no serial port with an instrument on this machine: boards can only measure themselves",
        "connect an Arduino Uno and flash it: fastenough gauge flash uno /dev/ttyACM0",
    )


def _virtual_bench(inspected: InspectedBoard) -> Diagnosis:
    """The tools of this machine, whatever the board."""
    missing = [tool for tool in ("qemu-system-aarch64", "aarch64-linux-gnu-gcc") if LocalLink().which(tool) is None]
    if missing:
        return Diagnosis(
            Condition.MISSING,
            f"{', '.join(missing)} not installed on this machine",
            "apt-get install qemu-system-arm gcc-aarch64-linux-gnu",
        )
    return Diagnosis(Condition.FINE, "QEMU and the cross compiler are installed")


def _disk(inspected: InspectedBoard) -> Diagnosis:
    """Free space of this machine, which stores the recordings."""
    free = os.statvfs(".")
    mib = free.f_bavail * free.f_frsize >> 20
    purpose = "recordings on this machine" if _is_elsewhere(inspected.link) else "recordings and the hdd load"
    if mib >= 1024:
        return Diagnosis(Condition.FINE, f"{mib:,} MiB free for {purpose}")
    return Diagnosis(Condition.LIMITED, f"only {mib:,} MiB free for {purpose}", "free 1 GiB")


def _changed_settings(inspected: InspectedBoard) -> Diagnosis:
    left: list[str] = []
    for journal in journals(inspected.link):
        try:
            left += unrestored(inspected.link, journal)
        except BoardBusy as reason:
            return Diagnosis(Condition.LIMITED, str(reason), "wait for it to end")
    if left:
        return Diagnosis(
            Condition.LIMITED,
            f"left changed by a killed fastenough process: {', '.join(left)}",
            "fastenough doctor --restore"
            + (f" --board {inspected.link.name}" if _is_elsewhere(inspected.link) else ""),
        )
    return Diagnosis(Condition.FINE, "no setting left changed by a killed fastenough process")


def _restore(link: Link, as_json: bool) -> ExitStatus:
    """Restore the settings in the journals of this board."""
    places = restore(link)
    if as_json:
        print_json({"restored": places})
    else:
        print(restored_text(places) if places else "nothing to restore")
    return ExitStatus.DONE


_INDENT = " " * 9


class Condition(StrEnum):
    """State of a checked subject."""

    FINE = "fine"
    LIMITED = "limited"
    MISSING = "missing"


class Impact(StrEnum):
    """Effect: none; a feature is missing; conclusions are limited; no valid measurement."""

    NONE = "none"
    NOTE = "note"
    WARNING = "warning"
    WRONG = "wrong"


_STYLES = {Impact.WRONG: "bold red", Impact.WARNING: "yellow", Impact.NOTE: "", Impact.NONE: "green"}
_HEADS = {Impact.NONE: "fine"}


@dataclass(frozen=True)
class Diagnosis:
    """State of one subject and the fix.

    Lines of ``fix`` after the first are commands to paste.  ``subject``, ``concerns`` and ``severity`` come from the
    examination.
    """

    subject: str = field(default="", kw_only=True)
    state: Condition
    text: str
    fix: str | None = None
    concerns: str = ""
    severity: Impact = Impact.NONE


@dataclass(frozen=True)
class InspectedBoard:
    """The inspected board, its profile, and why sudo is not used on it, or an empty text."""

    link: Link
    profile: Profile
    distrust: str = ""


@dataclass(frozen=True)
class Examination:
    """A check of one subject that changes nothing; the affected measurements, and the severity if it is not fine."""

    subject: str
    examine: Callable[[InspectedBoard], Diagnosis]
    concerns: str
    severity: Impact

    def __call__(self, board: InspectedBoard) -> Diagnosis:
        """The diagnosis; a check that cannot be completed is one as well.  Raises BoardGone."""
        try:
            diagnosis = self.examine(board)
        except BoardGone:
            raise
        except FastenoughError as reason:
            diagnosis = Diagnosis(Condition.LIMITED, f"cannot be examined: {reason}")
        severity = Impact.NONE if diagnosis.state is Condition.FINE else self.severity
        return replace(diagnosis, subject=self.subject, concerns=self.concerns, severity=severity)


def _summary(findings: Sequence[Diagnosis]) -> str:
    """The conclusion from all findings."""
    by = {severity: [finding.subject for finding in findings if finding.severity is severity] for severity in Impact}
    wrong, warnings = by[Impact.WRONG], by[Impact.WARNING]
    if wrong:
        return f"Measurements do not work on this machine. Fix first: {', '.join(wrong)}"
    if warnings:
        return (
            f"Timer measurements work on this machine. {words.counted(len(warnings), 'warning')} "
            f"{'limits' if len(warnings) == 1 else 'limit'} the conclusions: {', '.join(warnings)}"
        )
    return "Timer measurements work on this machine, without known limitations"


def _lines(finding: Diagnosis, width: int) -> Iterator[str]:
    """Lines of a finding: text, affected measurements and fix, folded and indented."""
    wrapper = textwrap.TextWrapper(width, initial_indent=_INDENT, subsequent_indent=_INDENT, break_on_hyphens=False)
    yield from wrapper.wrap(clean(f"{finding.subject}: {finding.text}"))
    if finding.severity is Impact.NONE:
        return
    wrapper.subsequent_indent = _INDENT + " " * len("concerns: ")
    yield from wrapper.wrap(clean(f"concerns: {finding.concerns}"))
    if finding.fix:
        yield from wrapper.wrap(clean(f"fix:      {finding.fix.partition(chr(10))[0]}"))


def print_findings(findings: Sequence[Diagnosis]) -> None:
    """Print the conclusion, the findings by severity, and last, unfolded, the commands to paste."""
    width = text_width()
    print("\n".join(textwrap.wrap(clean(_summary(findings)), width, break_on_hyphens=False)))
    for severity in (Impact.WRONG, Impact.WARNING, Impact.NOTE, Impact.NONE):
        for finding in findings:
            if finding.severity is severity:
                first, *rest = _lines(finding, width)
                print_marked(
                    _HEADS.get(severity, severity).ljust(len(_INDENT)),
                    _STYLES[severity],
                    "\n".join([first.removeprefix(_INDENT), *rest]),
                )
    for finding in findings:
        paste = (finding.fix or "").partition("\n")[2]
        if paste:
            print(f"\n{paste}")


_FIFO = 98
_VIRTUAL = "virtual"
_GAPS = "to measure the gaps: fastenough run spin --implementation linux-kernel"
_UNLIMITED = "unlimited"
_SETUID = 0o4000


def _audit_finding(inspected: InspectedBoard, name: str) -> AuditFinding:
    """The finding of that check of the audit."""
    return next(check for check in AUDIT_CHECKS if check.name == name)(Facts(inspected.profile))


def kernel(inspected: InspectedBoard) -> Diagnosis:
    """Preemption model of the kernel."""
    finding = _audit_finding(inspected, "preemption")
    if finding.state is FindingState.FINE:
        return Diagnosis(Condition.FINE, finding.text)
    other = next((change.text for change in finding.changes if change.form is Form.PROSE), "")
    fix = f"{other}, then boot it" if other else "boot a kernel with PREEMPT_RT"
    until = "".join(f"; until then, boot with {change.text}" for change in finding.changes if change.form is Form.BOOT)
    return Diagnosis(Condition.LIMITED, finding.text, fix + until)


def governor(inspected: InspectedBoard) -> Diagnosis:
    """CPU frequency governor: a slow CPU delays tasks."""
    result = _audit_finding(inspected, "governor")
    if result.state is not FindingState.COSTS:
        return Diagnosis(Condition.FINE, result.text)
    return Diagnosis(
        Condition.LIMITED,
        result.text,
        f'{result.changes[0].text}, or governor = "performance" under [settings] of a plan',
    )


def isolation(inspected: InspectedBoard) -> Diagnosis:
    """CPUs without ordinary tasks."""
    result = _audit_finding(inspected, "isolated-cpus")
    if result.state is FindingState.FINE:
        known = inspected.profile.get("cpu_isolation") or {}
        ticks = (
            "; the tick continues (no nohz_full)"
            if known.get("isolated") and not as_cpus(known.get("nohz_full"))
            else ""
        )
        return Diagnosis(Condition.FINE, result.text + ticks)
    apart = next((change.text.partition("=")[2] for change in result.changes), "CPU")
    return Diagnosis(
        Condition.LIMITED,
        result.text,
        f"to reserve a CPU for the task, boot with isolcpus={apart} nohz_full={apart} rcu_nocbs={apart}",
    )


def rights(inspected: InspectedBoard) -> Diagnosis:
    """The right to real-time priority and locked memory."""
    setuid = _setuid_probe(inspected)
    if setuid:
        return Diagnosis(
            Condition.LIMITED,
            f"{setuid} is setuid: any user who may run it can occupy a CPU",
            f"chmod u-s {setuid}, and grant rtprio and memlock instead:\n{how_to_grant()}",
        )
    if _output_of(inspected, "id", "-u") == "0":
        return Diagnosis(Condition.FINE, "root")
    if inspected.link.raised is not inspected.link:
        return Diagnosis(Condition.FINE, "the probe and the settings run through sudo")
    limits = _output_of(inspected, "cat", "/proc/self/limits")
    priority, memory = _limit(limits, "Max realtime priority"), _limit(limits, "Max locked memory")
    state = f"not root; limits: rtprio {priority}, memlock {memory}"
    enough = (priority == _UNLIMITED or (priority.isdigit() and int(priority) >= _FIFO)) and memory == _UNLIMITED
    if enough:
        return Diagnosis(Condition.FINE, state)
    return Diagnosis(
        Condition.LIMITED,
        f"{state}: insufficient for SCHED_FIFO {_FIFO} and locked memory",
        "run as root; allow sudo without a password; or grant rtprio and memlock (limits.conf)",
    )


def _limit(text: str, name: str) -> str:
    """The soft limit of that name, as the kernel writes it."""
    match = re.search(rf"^{name}\s+(\S+)", text, re.MULTILINE)
    return match[1] if match else "unknown"


def _setuid_probe(inspected: InspectedBoard) -> str:
    """Path of the probe if it is setuid, else an empty text."""
    try:
        probe = find_probe(inspected.link)
    except NotApplicable:
        return ""
    mode = _output_of(inspected, "stat", "-L", "-c", "%a", probe)
    return probe if mode.isdigit() and int(mode, 8) & _SETUID else ""


def module(inspected: InspectedBoard) -> Diagnosis:
    """The module, required for measurements in the kernel and with interrupts off."""
    if inspected.link.name.partition(":")[0] == _VIRTUAL:
        return Diagnosis(Condition.FINE, "built for the kernel of the virtual board when needed")
    try:
        place = installed_module(inspected.link, MODULE)
    except NotApplicable:
        return Diagnosis(
            Condition.MISSING,
            f"{MODULE}.ko is not installed for this kernel: no timer, pin and spin (gaps caused by SMIs and "
            "hypervisors) with linux-kernel",
            "install the kernel's headers and the package fastenough-dkms, or see docs/module.md",
        )
    return Diagnosis(Condition.FINE, f"{place}; {_GAPS}")


def smi(inspected: InspectedBoard) -> Diagnosis:
    """Access to the SMI counter."""
    if inspected.link.glob("/dev/cpu/*/msr"):
        return Diagnosis(Condition.FINE, f"readable if the CPU has one; {_GAPS}")
    return Diagnosis(
        Condition.LIMITED,
        "no /dev/cpu/*/msr: SMIs cannot be counted",
        f"modprobe msr (Intel x86 only); {_GAPS}",
    )


def _output_of(inspected: InspectedBoard, *command: str) -> str:
    """Output of a command on the board; empty if there is no such command."""
    try:
        return inspected.link.run(command).stdout.decode(errors="replace").strip()
    except FileNotFoundError:
        return ""


CHECKS = (
    Examination("probe", _probe, "every measurement", Impact.WRONG),
    Examination(
        "real-time priority",
        _real_time,
        "every measurement: ordinary tasks are delayed by any other task",
        Impact.WRONG,
    ),
    Examination("rights", rights, "real-time priority and locked memory", Impact.WARNING),
    Examination("kernel", kernel, "longest possible delay", Impact.WARNING),
    Examination("machine", _machine, "worst-case verdicts", Impact.WARNING),
    Examination("governor", governor, "latency of tasks that wake an idle CPU", Impact.WARNING),
    Examination("idle states", _idle_states, "latency of tasks that wake an idle CPU", Impact.WARNING),
    Examination("isolated CPUs", isolation, "other tasks on the CPUs of real-time tasks", Impact.NOTE),
    Examination("SMI counter", smi, "delays by firmware, invisible to the kernel", Impact.NOTE),
    Examination("loads", _loads, "measuring under load, required for a PASS", Impact.WARNING),
    Examination("disk", _disk, "recordings, and the load hdd", Impact.WARNING),
    Examination("settings", _changed_settings, "settings of this machine", Impact.WARNING),
    Examination("kernel module", module, "only the implementation linux-kernel", Impact.NOTE),
    Examination("GPIO", _gpio, "only the probes response and periodic", Impact.NOTE),
    Examination("gauge", _gauge, "only external confirmation", Impact.NOTE),
    Examination("virtual bench", _virtual_bench, "only boards without hardware", Impact.NOTE),
)
"""One line for each check."""


@click.command(cls=Command, example="fastenough doctor --board ssh://root@board")
@click.option("--board", default="local", show_default=True, metavar="BOARD", help="Board to inspect (docs/boards.md).")
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
    lacking = any(finding.severity is Impact.WRONG for finding in findings)
    return ExitStatus.NOT_APPLICABLE if lacking else ExitStatus.DONE
