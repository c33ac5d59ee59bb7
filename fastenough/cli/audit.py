# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough audit``: what in this system costs latency or hides it, why, and what would change it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from fastenough.analysis.paired import LEAST_ROUNDS
from fastenough.audit.emit import Remarks, emit
from fastenough.cli.audit_findings import print_audit, summary
from fastenough.cli.audit_measure import (
    Asked,
    as_document,
    conclusions,
    make_folder,
    measured_audit,
    print_measured,
    remarks,
    status_of,
    write_files,
)
from fastenough.cli.live import Work
from fastenough.cli.looking import looked_at
from fastenough.cli.output import print_json
from fastenough.cli.parameters import DURATION, CpuList, Names, json_option
from fastenough.cli.privileges import as_granted_option
from fastenough.cli.stores import store_option
from fastenough.implementations.catalogue import in_parameters
from fastenough.implementations.task import Refused
from fastenough.jobs.audit import Audit, audit_board
from fastenough.jobs.audit_measure import Measured, report_measured, tell_measured
from fastenough.link import Link
from fastenough.loads import LOADS
from fastenough.model import BadInput, ExitStatus
from fastenough.report import require_writable
from fastenough.settings import SETTINGS, restore, restored_text
from fastenough.store import Store


@dataclass(frozen=True)
class _Details:
    """``everything``: findings that are fine or unknown, too; ``verbose``: reasons, all changes and sources."""

    everything: bool
    verbose: bool


def _tell(found: Audit, measured: Measured | None, details: _Details, as_json: bool) -> None:
    if as_json:
        said: dict[str, Any] = {
            "board": found.board,
            "machine": found.machine,
            "conclusion": summary(found),
            "findings": [_with_how(asdict(each), each.changes) for each in found.findings],
        }
        print_json(said if measured is None else said | {"measured": as_document(measured)})
        return
    print_audit(found, details.everything, details.verbose)
    if measured is not None:
        print_measured(measured)


def _names(said: str) -> list[str]:
    """Raises BadInput where there are not two or more, each once."""
    names = [name.strip() for name in said.split(",") if name.strip()]
    if said and (len(names) < 2 or len(set(names)) < len(names)):
        raise BadInput(f"--boot {said}: name two configurations of the board or more, each once, as in stock,rt")
    return names


def _with_how(finding: Mapping[str, Any], changes: Any) -> dict[str, Any]:
    return {**finding, "changes": [{**asdict(change), "how": change.how} for change in changes]}


def _emit(found: Audit, made: Remarks, folder: Path | None) -> None:
    if folder is not None:
        write_files(emit(found.findings, made), folder)


def _put_back(link: Link) -> None:
    """What a killed bench has left changed is no finding here, and could not be tried."""
    places = restore(link)
    if places:
        click.echo(restored_text(places), err=True)


@click.command()
@click.option("--board", default="local", show_default=True, help="Which board to look at.")
@click.option("--all", "everything", is_flag=True, help="Also what is fine, and why something cannot be known.")
@click.option("--verbose", "-v", is_flag=True, help="With the reason, all changes and the source of each finding.")
@click.option(
    "--measure",
    "measuring",
    is_flag=True,
    help="Try each change that can be made now, one at a time, and then the best of them at once.",
)
@click.option(
    "--only",
    type=Names("setting", list(SETTINGS)),
    default=None,
    metavar="SETTINGS",
    help="With --measure: only these, by the names of docs/settings.md.",
)
@click.option(
    "--loads",
    type=Names("load", list(LOADS)),
    default="none,full",
    show_default=True,
    help="With --measure: under which loads.",
)
@click.option(
    "--rounds",
    type=click.IntRange(min=LEAST_ROUNDS),
    default=5,
    show_default=True,
    help="With --measure: of four runs each: without, with, with, without.",
)
@click.option(
    "--duration", "duration_ns", type=DURATION, default="10s", show_default=True, help="With --measure: of each run."
)
@click.option("--interval", default="500us", show_default=True, help="With --measure: of the timer.")
@click.option(
    "--cpus",
    type=CpuList(),
    default="",
    metavar="CPUS",
    help="With --measure: those of the timer, as 2-3; all CPUs when left out.",
)
@click.option(
    "--boot",
    "boots",
    type=str,
    default="",
    metavar="CONFIGURATIONS",
    help="With --measure, for a board that boots by itself: the others are tried against the first, as in "
    "stock,rt; settings then only with --only.",
)
@click.option("--resume", is_flag=True, help="With --measure: keep what an earlier one of the same words has measured.")
@click.option(
    "--emit",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Write what would change it for other tools: kernel fragment, boot line, sysctl, tuned, rt-conf, systemd.",
)
@click.option(
    "--report",
    "report_path",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIRECTORY",
    help="With --measure: where to write a report on the trials.",
)
@as_granted_option
@store_option
@json_option
def command(
    *,
    board: str,
    everything: bool,
    verbose: bool,
    measuring: bool,
    only: list[str] | None,
    loads: list[str],
    rounds: int,
    duration_ns: int,
    interval: str,
    cpus: str,
    boots: str,
    resume: bool,
    folder: Path | None,
    report_path: Path | None,
    as_granted: bool,
    store_path: Path,
    as_json: bool,
) -> int:
    """Say what in this system costs latency or hides it, why, and what would change it.

    It looks at facts and changes nothing; status 0 when it could look.  What is not known is never called fine.  With
    --measure settings are changed while runs are made, and put back after each of them.
    """
    if not measuring and (only or resume or boots or cpus or report_path):
        raise BadInput("--only, --cpus, --boot, --report and --resume say how to measure: add --measure")
    if report_path is not None:
        require_writable(report_path)
    details = _Details(everything, verbose)
    asked = Asked(board, loads, rounds, duration_ns, interval, only or (), as_granted, resume, _names(boots), cpus)
    with looked_at(board, asked.configuration) as (link, _):
        if measuring:
            _put_back(link)
        found = audit_board(board, link)
    if not measuring:
        _emit(found, {}, folder)
        _tell(found, None, details, as_json)
        return ExitStatus.DONE
    if folder is not None:
        make_folder(folder, emit(found.findings, {}))
    store = Store(store_path)
    try:
        measured = measured_audit(asked, found, store)
    except Refused as error:
        raise BadInput(in_parameters(str(error))) from error
    _tell(found, measured, details, as_json)
    section = tell_measured(measured, list(conclusions(measured)), store)
    if report_path is not None:
        with Work("making the report"):
            report_measured(measured, section, store, report_path)
    _emit(found, remarks(measured), folder)
    return status_of(measured)
