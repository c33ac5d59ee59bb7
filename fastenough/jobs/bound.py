# SPDX-License-Identifier: GPL-2.0-or-later
"""The composed bound of each CPU, from an existing trace or from one that the kernel of a board records for it."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fastenough import report
from fastenough.analysis import judge
from fastenough.analysis.blocking_trace import TracedCpu, clock_error_ns, traced_cpus
from fastenough.analysis.composed_bound import Composed, composed
from fastenough.link import Link
from fastenough.link.base import Process
from fastenough.model import BadInput, FastenoughError, NotApplicable
from fastenough.report.conclusions import bound_section
from fastenough.report.document import Section

TRACEFS = "/sys/kernel/tracing"
INSTANCE = f"{TRACEFS}/instances/fastenough-bound"
"""A separate trace buffer, so that other tracing is not affected."""
EVENTS = (
    "preemptirq/preempt_disable",
    "preemptirq/preempt_enable",
    "preemptirq/irq_disable",
    "preemptirq/irq_enable",
    "sched/sched_switch",
    "sched/sched_wakeup",
)
"""Required events; those of interrupts differ between machines."""
INTERRUPTS = ("irq/irq_handler_entry", "irq/irq_handler_exit", "ipi/ipi_entry", "ipi/ipi_exit", "irq_vectors")
_MOST_KIB, _SHARE_OF_MEMORY = 128 << 10, 8
"""Limits of the buffer of one CPU in KiB, and of all of them together as a fraction of the available memory."""
_LOST = 3
_PATIENCE_S = 60.0
_TRACE_DAT = b"\x17\x08\x44tracing"
"""First bytes of a file of trace-cmd (trace-cmd.dat.v7(5))."""
_MOST_LINE = 1 << 16
_MOST_BYTES = 8 << 30
"""Maximum size of the text of a recorded trace."""
_BYTES_PER_S = 100_000
"""Least accepted transfer rate of that text."""
_RECORD = """
instance=$1 kib=$2 seconds=$3; shift 3
mkdir "$instance" || exit
trap 'kill $child 2>/dev/null; exit 143' TERM INT HUP
trap 'cd /; wait; rmdir "$instance"' EXIT
cd "$instance" && echo 0 >tracing_on && echo "$kib" >buffer_size_kb && echo 0 >options/overwrite || exit
for event; do echo 1 >"events/$event/enable" || exit; done
echo 1 >tracing_on; sleep "$seconds" & child=$!; wait; echo 0 >tracing_on
if grep -Eq '^(overrun|commit overrun|dropped events): [1-9]' per_cpu/cpu*/stats; then exit 3; fi
cat trace & child=$!; wait
"""
"""``wait`` returns when a signal arrives, so the instance is removed then too."""


@dataclass(frozen=True)
class CpuBound:
    """The trace of a CPU, and the bound for each way to count interrupts."""

    traced: TracedCpu
    bounds: tuple[Composed, ...]


def _composed(traced: TracedCpu) -> tuple[Composed, ...]:
    error_ns = clock_error_ns(traced.resolution_ns)
    return composed(traced.blocking, traced.interrupts, traced.traced_ns, error_ns)


def bounds_of(lines: Iterable[str]) -> tuple[CpuBound, ...]:
    """The bound of each traced CPU, in order; raises BadInput if there is none."""
    bounds = tuple(CpuBound(traced, _composed(traced)) for traced in traced_cpus(lines))
    if not bounds:
        raise BadInput("the trace has no CPU that disabled and enabled preemption or interrupts; record for longer")
    return bounds


def is_trace_dat(first: bytes) -> bool:
    """Whether a file that begins with these bytes was written by ``trace-cmd record``."""
    return first.startswith(_TRACE_DAT)


def trace_cmd_lines(path: Path) -> Iterator[str]:
    """The events of a ``trace.dat``, as text from trace-cmd; raises BadInput if it fails.

    Plugins are not loaded, and lines are read in bounded pieces.
    """
    program = shutil.which("trace-cmd")
    if program is None:
        raise BadInput(
            "trace-cmd is required to read a trace.dat and is not installed: install the package trace-cmd, or "
            "convert the file with trace-cmd report -t -l where it was recorded"
        )
    command = [program, "report", "-N", "-t", "-l", "-i", str(path)]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        try:
            while line := process.stdout.readline(_MOST_LINE):
                yield line.decode(errors="replace")
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        raise BadInput(f"trace-cmd failed (status {process.returncode}): the file is damaged or its format is too new")


def section_of(bounds: Sequence[CpuBound], meaning: str) -> Section:
    return bound_section([(bound.traced, bound.bounds) for bound in bounds], meaning)


def report_bound(section: Section, out: Path) -> None:
    """Report of bounds only, without a verdict."""
    assessment = replace(
        judge([]),
        headline="A bound composed of measured terms is not a verdict",
        reasons=("a term may be longer than measured, and the bound with it",),
        next_steps=("record for longer, under the relevant loads",),
    )
    report.write_report([], assessment, out, answers=(section,))


def require_events(link: Link) -> None:
    """Raise NotApplicable with the reason if the kernel of a board lacks the required trace events."""
    present = set(link.glob(f"{TRACEFS}/events/*/*"))
    if not present:
        raise NotApplicable(f"{TRACEFS} is not readable on {link.name}: mount tracefs there and run as root")
    missing = [event for event in EVENTS if f"{TRACEFS}/events/{event}" not in present]
    if missing:
        raise NotApplicable(
            f"the kernel of {link.name} has no events {', '.join(missing)}: build one with "
            "CONFIG_PREEMPT_TRACER=y CONFIG_IRQSOFF_TRACER=y for this purpose only, since it is slower"
        )


def recorded(link: Link, duration_s: float) -> Iterator[str]:
    """Record a trace on the board and yield its lines; nothing remains on the board.

    Raises NotApplicable if the board cannot record, FastenoughError with the reason if it failed or lost events.
    """
    require_events(link)
    if link.exists(INSTANCE):
        raise FastenoughError(
            f"{INSTANCE} exists on {link.name}: another bench is recording there; if it was killed, "
            f"remove it: rmdir {INSTANCE}"
        )
    events = [*EVENTS, *(event for event in INTERRUPTS if link.exists(f"{TRACEFS}/events/{event}"))]
    process = link.start(["sh", "-c", _RECORD, "sh", INSTANCE, str(_buffer_kib(link)), f"{duration_s:g}", *events])
    with tempfile.TemporaryFile() as trace:
        try:
            trace.writelines(
                _bounded_lines(link.name, process.lines(duration_s + _PATIENCE_S), duration_s + _PATIENCE_S)
            )
            status = process.wait(_PATIENCE_S)
        finally:
            process.stop()
        _require_whole(link, process, status)
        trace.seek(0)
        yield from (line.decode(errors="replace") for line in trace)


def _bounded_lines(board: str, lines: Iterable[bytes], patience_s: float) -> Iterator[bytes]:
    """The lines of a trace; raises FastenoughError if there are too many or they arrive too slowly.

    The length of a line is already bounded.
    """
    begun_s, taken = time.monotonic(), 0
    for line in lines:
        taken += len(line)
        if taken > _MOST_BYTES:
            raise FastenoughError(f"{board} wrote more than {_MOST_BYTES >> 30} GiB of trace; use a shorter --duration")
        if time.monotonic() - begun_s > patience_s + taken / _BYTES_PER_S:
            raise FastenoughError(
                f"{board} has not finished its trace: {taken} bytes received within {time.monotonic() - begun_s:.0f} s"
            )
        yield line


def _require_whole(link: Link, process: Process, status: int) -> None:
    if status == _LOST:
        raise FastenoughError(
            "the trace lost events because its buffer was full; the longest may be among them; use a shorter --duration"
        )
    if status != 0:
        errors = process.stderr().decode(errors="replace").strip().splitlines()
        raise FastenoughError(f"{link.name} could not record a trace: {errors[-1] if errors else f'status {status}'}")


def _buffer_kib(link: Link) -> int:
    """Size of the buffer of each CPU."""
    fields = dict(line.split(":") for line in link.read("/proc/meminfo").decode(errors="replace").splitlines())
    available_kib = int(fields["MemAvailable"].split()[0])
    cpus = len(link.glob("/sys/devices/system/cpu/cpu[0-9]*"))
    return max(1024, min(_MOST_KIB, available_kib // _SHARE_OF_MEMORY // max(1, cpus)))
