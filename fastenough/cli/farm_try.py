# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough farm try``: a farm, or a fleet, on this machine without hardware."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TypedDict, Unpack

import click

from fastenough import words
from fastenough.cli.commands import Command
from fastenough.cli.farm_boards import line_printer
from fastenough.cli.options import DURATION, json_option
from fastenough.cli.output import JSON_VERSION, clean, print_table
from fastenough.farm.child_process import python_path
from fastenough.farm.lab import free_ports
from fastenough.fleet.supervised_process import Usage
from fastenough.fleet.tables import KEPT_DAYS
from fastenough.fleet.trial import FleetTrialResult
from fastenough.link import LocalLink
from fastenough.model import BadInput, ExitStatus, FastenoughError
from fastenough.words import output_lines

_DEFAULT_FOR_NS = 600 * 10**9
_DEFAULT_INTERVAL_NS = 60 * 10**9
_LEAST_INTERVAL_NS = 10**9
_MOST_HOURS = 24 * KEPT_DAYS - 1
"""Of a fleet: takers delete older intervals, and the trial counts them up to an hour after its boards have ended."""


def _lines(module: str, *options: object) -> Iterator[bytes]:
    """The lines that a trial prints; ``module`` gets a temporary folder, then the options.

    Raises FastenoughError if it exits with an error.
    """
    link = LocalLink()
    folder = link.scratch_name()
    os.environ["PYTHONPATH"] = python_path()
    process = link.start([sys.executable, "-m", module, folder, *map(str, options)], scratch=folder)
    try:
        yield from process.lines()
        status = process.wait()
    finally:
        if process.running:
            process.stop()
    if status:
        why = (output_lines(process.stderr()) or [f"status {status}"])[-1]
        raise FastenoughError(f"the trial has ended: {why}")


def _farm(boards: int, guests: int, port: int, as_json: bool) -> ExitStatus:
    tell = line_printer(as_json)
    for line in _lines("fastenough.farm.trial", boards, guests, port):
        tell("; ".join(output_lines(line)))
    raise FastenoughError("the farm has ended")


class _FleetOptions(TypedDict):
    fleet: int | None
    for_ns: int
    interval_ns: int
    folder: Path | None


def _fleet(boards: int, options: _FleetOptions, as_json: bool) -> ExitStatus:
    for_ns, interval_ns = options["for_ns"], options["interval_ns"]
    if interval_ns < _LEAST_INTERVAL_NS or for_ns < 2 * interval_ns:
        raise BadInput("--interval must be at least 1s, and --for at least twice as long as the interval")
    if for_ns > _MOST_HOURS * 3600 * 10**9:
        raise BadInput(
            f"--for is longer than {_MOST_HOURS}h, after which takers delete the first intervals; shorten it"
        )
    archive = _new_archive(options["folder"]) if options["folder"] else ""
    result = None
    for line in _lines("fastenough.fleet.trial", archive, boards, interval_ns / 1e9, for_ns / 1e9):
        document = json.loads(line)
        if "progress" in document:
            print(clean(document["progress"]), file=sys.stderr, flush=True)
        else:
            parts = {name: Usage(**usage) for name, usage in document["parts"].items()}
            result = FleetTrialResult(**{**document, "parts": parts})
    if result is None:
        raise FastenoughError("the trial has ended without a result")
    if as_json:
        print(json.dumps({"version": JSON_VERSION} | asdict(result)))
    else:
        _print_result(result)
    whole = result.published == result.stored == result.archived
    return ExitStatus.DONE if whole else ExitStatus.FAIL


def _new_archive(folder: Path) -> Path:
    archive = folder.absolute() / "archive"
    if archive.exists():
        raise BadInput(f"{archive} exists; name another folder with --dir")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{folder}: {error.strerror}; name another folder with --dir") from None
    return archive


def _print_result(result: FleetTrialResult) -> None:
    rows = [
        [
            name,
            f"{usage.cpu_s:.1f}",
            f"{usage.cpu_s / result.seconds:.1%}",
            f"{usage.memory_mib:.0f}",
            str(usage.restarts),
        ]
        for name, usage in result.parts.items()
    ]
    print_table(
        f"{result.published:,} intervals published, {result.stored:,} stored, {result.archived:,} in the "
        f"archive, {result.lost:,} lost, in {words.duration(result.seconds * 1e9)}",
        ["part", "CPU s", "of one CPU", "memory MiB", "restarts"],
        rows,
    )
    if result.archive:
        print(f"archive: {result.archive}")


@click.command("try", cls=Command, example="fastenough farm try --boards 5")
@click.option(
    "--boards", type=click.IntRange(1, 100), default=20, show_default=True, help="Number of simulated boards."
)
@click.option(
    "--guests",
    type=click.IntRange(0, 4),
    default=3,
    show_default=True,
    help="Number of guests of the virtual bench, each with its own kernel, if memory suffices.",
)
@click.option("--port", type=click.IntRange(1, 65535), help="Port of the website on 127.0.0.1  [default: a free port]")
@click.option(
    "--fleet",
    type=click.IntRange(1, 10_000),
    help="Instead of a farm, this number of simulated boards that publish their intervals.",
)
@click.option(
    "--for",
    "for_ns",
    type=DURATION,
    default=_DEFAULT_FOR_NS,
    help=f"Time for which the fleet publishes, at most {_MOST_HOURS}h  [default: 10min]",
)
@click.option(
    "--interval",
    "interval_ns",
    type=DURATION,
    default=_DEFAULT_INTERVAL_NS,
    help="Length of an interval of the fleet's boards  [default: 1min]",
)
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory in which the fleet's archive remains, as DIR/archive.",
)
@json_option
def command(boards: int, guests: int, port: int | None, as_json: bool, **fleet: Unpack[_FleetOptions]) -> ExitStatus:
    """Show a farm with its website, or a fleet, without hardware.

    A farm runs until Ctrl-C, on loopback and in one temporary directory: a labgrid coordinator and exporter, simulated
    boards with a power switch and consoles, guests, a private PostgreSQL if installed, the farm and its website.
    Everything is removed at the end.  Recordings of simulated boards are marked as emulated.

    With --fleet: a NATS server, a private PostgreSQL, two takers and simulated boards that publish by MQTT, for the
    time of --for.  It ends once all that was published is stored, with status 1 if anything is lost.  Any of its
    processes may be killed meanwhile (docs/fleet-boards.md).
    """
    if fleet["fleet"] is None:
        return _farm(boards, guests, port or free_ports(1)[0], as_json)
    return _fleet(fleet["fleet"], fleet, as_json)
