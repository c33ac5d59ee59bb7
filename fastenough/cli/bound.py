# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough bound``: bound on the scheduling latency from a kernel trace, and the longest observed one."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO, cast

import click

from fastenough import words
from fastenough.board import open_board
from fastenough.campaign.board_name import RecordedBoard, recorded_board
from fastenough.cli.commands import Command, Option
from fastenough.cli.options import DURATION, json_option, store_option
from fastenough.cli.output import print_json, print_table, say
from fastenough.cli.privileges import accessed_board
from fastenough.jobs.bound import CpuBound, bounds_of, is_trace_dat, recorded, report_bound, section_of, trace_cmd_lines
from fastenough.model import BadInput
from fastenough.report import require_writable
from fastenough.report.document import stored_form
from fastenough.store import Store
from fastenough.store.conclusions import conclude

_MOST_LINE = 1 << 16
_HEAD = 16
_MEANING = (
    "The bound holds only if each term was observed at its maximum: another load, or a longer trace, may show a "
    "longer one. It never gives a PASS."
)


def _lines(trace: BinaryIO) -> Iterator[str]:
    """Lines of a text trace, bounded in length, or of a trace.dat as trace-cmd reports them."""
    stream = io.BufferedReader(cast(io.RawIOBase, trace))
    if is_trace_dat(stream.peek(_HEAD)[:_HEAD]):
        if trace.name == "<stdin>":
            raise BadInput("a trace.dat cannot be read from standard input; give its file name")
        return trace_cmd_lines(Path(trace.name))
    return (line.decode(errors="replace") for line in iter(lambda: stream.readline(_MOST_LINE), b""))


def _us(value_ns: int | None, otherwise: str) -> str:
    return otherwise if value_ns is None else words.microseconds(value_ns)


def _print(bounds_of_cpus: Sequence[CpuBound]) -> None:
    print_table(
        "Terms [µs], each the longest observed, without interrupts",
        (
            "CPU",
            "interrupts off (POID)",
            "preempted (PAIE)",
            "scheduling (PSD)",
            "switch (DST)",
            "sections",
            "switches",
        ),
        [
            (
                str(cpu_bound.traced.cpu),
                *map(words.microseconds, (terms.poid_ns, terms.paie_ns, terms.psd_ns, terms.dst_ns)),
                f"{cpu_bound.traced.sections:,}",
                f"{cpu_bound.traced.switches:,}",
            )
            for cpu_bound in bounds_of_cpus
            for terms in (cpu_bound.traced.blocking,)
        ],
    )
    print()
    ways = [bound.interrupts for bound in bounds_of_cpus[0].bounds]
    print_table(
        "Bound [µs], by interrupt model",
        ("interrupts", *(f"CPU {cpu_bound.traced.cpu}" for cpu_bound in bounds_of_cpus)),
        [
            (way, *(_us(cpu_bound.bounds[place].latency_ns, "no bound") for cpu_bound in bounds_of_cpus))
            for place, way in enumerate(ways)
        ]
        + [
            ("longest observed", *(_us(cpu_bound.traced.observed_ns, "none") for cpu_bound in bounds_of_cpus)),
            ("wake-ups", *(f"{cpu_bound.traced.wakeups:,}" for cpu_bound in bounds_of_cpus)),
        ],
    )
    print()
    if any(cpu_bound.traced.resolution_ns > 1 for cpu_bound in bounds_of_cpus):
        say("The clock of the trace has a resolution of 1 µs: 1 µs was added to each term.")
    say(_MEANING)


@click.command(cls=Command, example="fastenough bound trace.dat")
@click.argument("trace", type=click.File("rb"), required=False)
@click.option(
    "--board", default="local", show_default=True, metavar="BOARD", help="Without TRACE: board whose kernel is traced."
)
@click.option(
    "--duration",
    "duration_ns",
    type=DURATION,
    default="5s",
    show_default=True,
    help="Without TRACE: tracing time.  Keep it short: each section with interrupts disabled makes two events.",
)
@click.option(
    "--out-dir",
    "report_path",
    cls=Option,
    former_names=["--report"],
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Directory of a report with the terms and the bounds.",
)
@store_option
@json_option
def command(
    *, trace: BinaryIO | None, board: str, duration_ns: int, report_path: Path | None, store_path: Path, as_json: bool
) -> None:
    """Compute a latency bound from a trace.

    Combines the longest observed times with preemption or interrupts disabled into a bound on the scheduling latency,
    and prints it beside the longest observed latency.  TRACE is a trace.dat of trace-cmd, the text of a kernel trace or
    of trace-cmd report -t -l, or - for standard input.  Without TRACE the kernel of the board is traced (requirements:
    docs/bound.md).
    """
    if report_path is not None:
        require_writable(report_path)
    traced, bounds = _record(board, duration_ns, Store(store_path)) if trace is None else (None, _read(trace))
    if as_json:
        print_json([asdict(bound) for bound in bounds])
    else:
        _print(bounds)
    section = section_of(bounds, _MEANING)
    if traced is not None:
        conclude(Store(store_path), traced.name, (), stored_form(section), machine=traced.machine)
    if report_path is not None:
        report_bound(section, report_path)


def _read(trace: BinaryIO) -> Sequence[CpuBound]:
    try:
        return bounds_of(_lines(trace))
    except BadInput as reason:
        raise BadInput(f"{trace.name}: {reason}") from reason


def _record(board: str, duration_ns: int, store: Store) -> tuple[RecordedBoard, Sequence[CpuBound]]:
    """Trace the board; returns its name with its machine, and the bounds."""
    with accessed_board(board) as (link, _):
        bounds = bounds_of(recorded(link.raised, duration_ns / 1e9))
        return recorded_board(open_board(board).name, link, store), bounds
