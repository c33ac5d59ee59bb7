# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough audit``: settings that cost latency or hide it, with reasons and changes."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from fastenough import words
from fastenough.analysis.paired import LEAST_ROUNDS
from fastenough.audit import Finding, FindingState, Severity, ordered
from fastenough.audit.emit import Remarks, emit
from fastenough.cli.audit_measure import (
    AuditMeasurement,
    MeasureArguments,
    conclusions,
    make_folder,
    measured_audit,
    print_measured,
    remarks,
    status_of,
    write_files,
)
from fastenough.cli.commands import Command, Option
from fastenough.cli.options import DURATION, CpuList, Names, json_option, store_option
from fastenough.cli.output import clean, print_json, print_marked, text_width
from fastenough.cli.privileges import accessed_board, as_granted_option
from fastenough.cli.progress import Work
from fastenough.implementations.catalogue import in_parameters
from fastenough.implementations.task import Refused
from fastenough.jobs.audit import Audit, AuditTrials, audit_board, conclude_trials, report_trials
from fastenough.link import Link
from fastenough.loads import LOADS
from fastenough.model import BadInput, ExitStatus
from fastenough.report import require_writable
from fastenough.settings import SETTINGS, restore, restored_text
from fastenough.store import Store


@dataclass(frozen=True)
class _Details:
    """``everything``: also findings that are fine or unknown; ``verbose``: reasons, all changes and sources."""

    everything: bool
    verbose: bool


def _print_result(audit: Audit, measured: AuditTrials | None, details: _Details, as_json: bool) -> None:
    if as_json:
        document: dict[str, object] = {
            "board": audit.board,
            "machine": audit.machine,
            "conclusion": summary(audit),
            "findings": [_with_instructions(asdict(result), result.changes) for result in audit.findings],
        }
        print_json(document if measured is None else document | {"measured": AuditMeasurement.of(measured)})
        return
    print_audit(audit, details.everything, details.verbose)
    if measured is not None:
        print_measured(measured)


def _names(text: str) -> list[str]:
    """Names of configurations; raises BadInput unless there are two or more, each once."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if text and (len(names) < 2 or len(set(names)) < len(names)):
        raise BadInput(f"--boot {text}: give two or more configurations of the board, each once, as in stock,rt")
    return names


def _with_instructions(finding: Mapping[str, Any], changes: Any) -> dict[str, object]:
    return {**finding, "changes": [{**asdict(change), "instruction": change.instruction} for change in changes]}


def _emit(audit: Audit, made: Remarks, folder: Path | None) -> None:
    if folder is not None:
        write_files(emit(audit.findings, made), folder)


def _put_back(link: Link) -> None:
    """Restore settings that a killed process left changed, so that they do not appear as findings."""
    places = restore(link)
    if places:
        click.echo(restored_text(places), err=True)


@click.command(cls=Command, example="fastenough audit --all")
@click.option("--board", default="local", show_default=True, metavar="BOARD", help="Board to inspect (docs/boards.md).")
@click.option("--all", "everything", is_flag=True, help="Also list what is fine or unknown, with the reason.")
@click.option(
    "--verbose", "-v", is_flag=True, help="Show the reason, all changes, the trade-off and the source of each finding."
)
@click.option(
    "--measure",
    "measuring",
    is_flag=True,
    help="Measure the effect of each change that needs no reboot, one at a time, then of the best changes together.",
)
@click.option(
    "--only",
    type=Names("setting", list(SETTINGS)),
    default=None,
    metavar="SETTINGS",
    help="With --measure: settings to try (names: docs/settings.md).",
)
@click.option(
    "--load",
    "loads",
    cls=Option,
    former_names=["--loads"],
    type=Names("load", list(LOADS)),
    default="none,full",
    show_default=True,
    help="With --measure: comma-separated loads.",
)
@click.option(
    "--rounds",
    type=click.IntRange(min=LEAST_ROUNDS),
    default=5,
    show_default=True,
    help="With --measure: number of rounds. A round is two pairs of runs, each without and with the change in random "
    "order.",
)
@click.option(
    "--duration",
    "duration_ns",
    type=DURATION,
    default="10s",
    show_default=True,
    help="With --measure: length of each run.",
)
@click.option(
    "--interval", default="500us", show_default=True, metavar="DURATION", help="With --measure: period of the timer."
)
@click.option(
    "--cpus",
    type=CpuList(),
    default="",
    metavar="CPUS",
    help="With --measure: CPUs of the timer, as in 2-3  [default: all]",
)
@click.option(
    "--boot",
    "boots",
    type=str,
    default="",
    metavar="CONFIGURATIONS",
    help="With --measure, for a board that boots by itself: configurations, each compared with the first, as in "
    "stock,rt. Settings are then tried only with --only.",
)
@click.option(
    "--resume", is_flag=True, help="With --measure: resume the latest interrupted audit with the same arguments."
)
@click.option(
    "--emit",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Write the changes as files of other tools: kernel fragment, boot line, sysctl, tuned, rt-conf, systemd.",
)
@click.option(
    "--out-dir",
    "report_path",
    cls=Option,
    former_names=["--report"],
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="With --measure: directory of a report on the trials.",
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
    """Find settings that cost latency or hide it.

    Lists each finding with its reason, the change that fixes it and the source; facts that are not available are
    unknown, not fine.  Without --measure nothing is changed.  With --measure each change is tried in runs, and
    settings are restored after each run.
    """
    if not measuring and (only or resume or boots or cpus or report_path):
        raise BadInput("--only, --cpus, --boot, --out-dir and --resume require --measure")
    if report_path is not None:
        require_writable(report_path)
    details = _Details(everything, verbose)
    arguments = MeasureArguments(
        board, loads, rounds, duration_ns, interval, only or (), as_granted, resume, _names(boots), cpus
    )
    with accessed_board(board, arguments.configuration) as (link, _):
        if measuring:
            _put_back(link)
        audit = audit_board(board, link)
    if not measuring:
        _emit(audit, {}, folder)
        _print_result(audit, None, details, as_json)
        return ExitStatus.DONE
    if folder is not None:
        make_folder(folder, emit(audit.findings, {}))
    store = Store(store_path)
    try:
        measured = measured_audit(arguments, audit, store)
    except Refused as error:
        raise BadInput(in_parameters(str(error))) from error
    _print_result(audit, measured, details, as_json)
    section = conclude_trials(measured, list(conclusions(measured)), store)
    if report_path is not None:
        with Work("writing the report"):
            report_trials(measured, section, store, report_path)
    _emit(audit, remarks(measured), folder)
    return status_of(measured)


_INDENT = " " * 9
_STYLES = {Severity.HIGH: "bold red", Severity.MEDIUM: "yellow", Severity.LOW: ""}
_LABEL = len("trade-off: ")
_CUT = "..."


def _counted(counts: Sequence[Finding], what: str) -> str:
    by = [
        f"{number} {severity}"
        for severity in Severity
        if (number := sum(finding.severity is severity for finding in counts))
    ]
    return f"{words.counted(len(counts), 'finding')} {what}" + (f" ({', '.join(by)})" if by else "")


def summary(audit: Audit) -> str:
    """Counts of the findings, in one sentence."""
    hiding = audit.of(FindingState.HIDES)
    parts = [
        _counted(audit.of(FindingState.COSTS), "may cost latency"),
        f"{len(hiding)} {'hides' if len(hiding) == 1 else 'hide'} latency",
        f"{len(audit.of(FindingState.UNKNOWN))} unknown",
        f"{len(audit.of(FindingState.FINE))} fine",
    ]
    return "; ".join(parts)


def _lines(finding: Finding, width: int) -> Iterator[str]:
    wrapper = textwrap.TextWrapper(width, initial_indent=_INDENT, subsequent_indent=_INDENT, break_on_hyphens=False)
    hides = " (hides latency)" if finding.state is FindingState.HIDES else ""
    yield from wrapper.wrap(clean(f"{finding.group}, {finding.title}{hides}: {finding.text}"))
    wrapper.subsequent_indent = _INDENT + " " * _LABEL
    for label, text in _labelled_lines(finding):
        wrapper.initial_indent = _INDENT + label.ljust(_LABEL)
        yield from wrapper.wrap(clean(text))


def _labelled_lines(finding: Finding) -> Iterator[tuple[str, str]]:
    yield "reason:", finding.reason
    for number, change in enumerate(finding.changes):
        yield "" if number else "change:", f"{change.when}: {change.instruction}"
    if finding.changes:
        yield "trade-off:", finding.trade_off
    yield "source:", finding.source


def _print_short(mark: str, style: str, findings: Sequence[Finding], width: int) -> None:
    wrapper = textwrap.TextWrapper(
        width, initial_indent=_INDENT, subsequent_indent=_INDENT + "  ", break_on_hyphens=False
    )
    for finding in findings:
        first, *rest = wrapper.wrap(clean(f"{finding.title}: {finding.text}"))
        print_marked(mark.ljust(len(_INDENT)), style, "\n".join([first.removeprefix(_INDENT), *rest]))


def _line(finding: Finding, width: int) -> str:
    """Title, finding and first change in one line of at most ``width`` columns."""
    hides = " (hides latency)" if finding.state is FindingState.HIDES else ""
    change = f" -> {finding.changes[0].instruction}" if finding.changes else ""
    text = " ".join(clean(f"{finding.title}{hides}: {finding.text.partition(': ')[0]}{change}").split())
    return text if len(text) <= width else f"{text[: width - len(_CUT)]}{_CUT}"


def print_audit(audit: Audit, everything: bool, verbose: bool) -> None:
    """The machine, a summary, and a line for each finding.

    ``everything``: also findings that are fine or unknown; ``verbose``: with reasons, all changes and sources.
    """
    width = text_width()
    for text in (f"{audit.board}: {audit.machine}", summary(audit)):
        print("\n".join(textwrap.wrap(clean(text), width, break_on_hyphens=False)))
    for finding in ordered([*audit.of(FindingState.COSTS), *audit.of(FindingState.HIDES)]):
        lines = list(_lines(finding, width)) if verbose else [_line(finding, width - len(_INDENT))]
        print_marked(
            str(finding.severity).ljust(len(_INDENT)),
            _STYLES[finding.severity],
            "\n".join([lines[0].removeprefix(_INDENT), *lines[1:]]),
        )
    not_known, well = audit.of(FindingState.UNKNOWN), audit.of(FindingState.FINE)
    if everything:
        _print_short("unknown", "yellow", not_known, width)
        _print_short("fine", "green", well, width)
    elif not_known:
        print(f"{'unknown'.ljust(len(_INDENT))}{words.counted(len(not_known), 'fact')}")
    more = [
        *([] if verbose else ["reasons, changes and sources: --verbose"]),
        *([] if everything else ["unknown and fine: --all"]),
    ]
    if more:
        print("\n".join(textwrap.wrap(f"({'; '.join(more)})", width, break_on_hyphens=False)))
