# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough farm judge``: judge every board of an archive by a limit, with the present method."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import click

from fastenough import words
from fastenough.analysis import board_rates
from fastenough.analysis.clusters import holm
from fastenough.analysis.cpu_evidence import MINIMUM_DURATION_NS, CpuEvidence, evidence_per_cpu
from fastenough.analysis.fleet import requirement_text, share_text
from fastenough.analysis.merged import merged_of
from fastenough.cli.archive_options import ArchiveOptions, archive_options, print_first_rows
from fastenough.cli.commands import Command
from fastenough.cli.options import RequirementOptions, json_option, requirement_options
from fastenough.cli.output import print_json, print_table, say, say_list
from fastenough.fleet.archive import is_one_of_several
from fastenough.fleet.archived_recording import COLUMNS, archived_parts, missing_intervals
from fastenough.fleet.board_rows import BoardRows
from fastenough.model import BadInput, ExitStatus, Requirement

_CAVEATS = (
    "An archive contains values, but no loads, settings, kernels or data checks. A board that is within the limit here "
    "has no PASS.",
    "Buckets of the archive are 6 % wide. Values in the bucket of the limit count as above it, but are no evidence "
    "that a board exceeds it.",
)


class ArchivedResult(StrEnum):
    """Result of a board: shown to keep the requirement, shown to exceed it, or neither."""

    WITHIN = "within"
    EXCEEDS = "exceeds"
    NOT_SHOWN = "not shown"


@dataclass(frozen=True)
class ArchivedBoard:
    """The result of one board.

    ``p_value``: of the allowed rate, the least over CPUs by Bonferroni.  ``exceeded``: values that certainly exceed
    the limit; ``possibly``: those that may.  ``measured_ns``: least measured time of a CPU.
    """

    board: str
    type: str
    result: ArchivedResult
    reason: str
    p_value: float
    cpus: tuple[int, ...]
    runs: int
    n: int
    exceeded: int
    possibly: int
    lost: int
    maximum_ns: float | None
    measured_ns: int


@dataclass(frozen=True)
class ArchivedType:
    """A type of board.  ``demonstrated_share``: at least this share of all its boards keep the requirement."""

    type: str
    boards: int
    within: int
    exceeding: int
    demonstrated_share: float


@dataclass(frozen=True)
class ArchiveJudgment:
    """The results of all types and boards; ``confidence``: of each statement on a board, and on a type."""

    limit_ns: int
    miss_rate: float
    confidence: float
    types: tuple[ArchivedType, ...]
    boards: tuple[ArchivedBoard, ...]


@dataclass(frozen=True)
class JudgeBoards:
    """The job: the evidence of each CPU of a board about a requirement."""

    required: Requirement

    @property
    def columns(self) -> tuple[str, ...]:
        return COLUMNS

    def of_board(self, board: BoardRows, boards: int) -> ArchivedBoard:
        """The result of a board; EXCEEDS follows from all boards together."""
        try:
            return self._judged(board)
        except BadInput as error:  # of this board only
            reason = f"not judged: {error}"
            return ArchivedBoard(
                board.board, board.type, ArchivedResult.NOT_SHOWN, reason, 1.0, (), 0, 0, 0, 0, 0, None, 0
            )

    def _judged(self, board: BoardRows) -> ArchivedBoard:
        parts = archived_parts(board)
        merged = [merged_of(of_series) for of_series in parts.values()]
        evidence = [
            cpu for values in merged for cpu in evidence_per_cpu(values, self.required, self.required.confidence)
        ]
        p_value = min(1.0, len(evidence) * min(cpu.p_value for cpu in evidence))
        reason = next(_lacking(evidence, missing_intervals(board)), "")
        measured_ns: Counter[int] = Counter()
        for (cpu, _), values in zip(parts, merged, strict=True):
            measured_ns[cpu] += values.duration_ns
        return ArchivedBoard(
            board.board,
            board.type,
            ArchivedResult.NOT_SHOWN if reason else ArchivedResult.WITHIN,
            reason,
            p_value,
            tuple(sorted(measured_ns)),
            len({run for values in merged for run in values.run_ids}),
            sum(cpu.disturbances.n for cpu in evidence),
            sum(cpu.disturbances.surely for cpu in evidence),
            sum(cpu.disturbances.possibly for cpu in evidence),
            sum(values.lost for values in merged),
            max((values.maximum_ns for values in merged if values.maximum_ns is not None), default=None),
            min(measured_ns.values()),
        )


def _lacking(evidence: Sequence[CpuEvidence], missing: int) -> Iterator[str]:
    """Yield what the evidence of a board lacks; nothing if each CPU is within.  ``missing``: number of intervals."""
    lost = sum(cpu.values.lost for cpu in evidence)
    if lost:
        yield f"{words.counted(lost, 'value')} lost"
    if missing:
        yield f"{words.counted(missing, 'interval')} missing in the archive"
    for name in sorted(filter(is_one_of_several, {cpu.values.name for cpu in evidence})):
        yield f"the archive holds {name} and no other series of the CPU; judge the board by its recordings"
    several = len({cpu.values.name for cpu in evidence}) > 1
    for cpu in evidence:
        where = ", ".join(f"CPU {number}" for number in cpu.values.cpus) or cpu.values.name
        where += f", {cpu.values.name}" if several and cpu.values.cpus else ""
        if cpu.values.duration_ns < MINIMUM_DURATION_NS:
            yield f"{where}: less than {words.duration(MINIMUM_DURATION_NS)} measured"
        elif not cpu.within:
            yield f"{where}: {_why_not(cpu)}"


def _short_for_never(cpu: CpuEvidence) -> str:
    """Why no value above the limit is no evidence that there never is one."""
    if not cpu.dense:
        return f"{words.counted(cpu.disturbances.n, 'value')} measured; {cpu.activations_for_never:,} are required"
    required = words.exact_time(cpu.requirement.return_time_ns)
    return f"{words.duration(cpu.disturbances.time_ns)} measured is too short for a return time of {required}"


def _why_not(cpu: CpuEvidence) -> str:
    found = cpu.disturbances
    above = words.exact_time(cpu.requirement.limit_ns)
    if found.surely > cpu.requirement.miss_rate * found.n:
        return f"{found.surely:,} of {found.n:,} values above {above}"
    if found.possibly > cpu.requirement.miss_rate * found.n:
        return f"{found.possibly:,} of {found.n:,} values may be above {above}: this limit is within a bucket"
    if cpu.never:
        return _short_for_never(cpu)
    if not (cpu.steady and cpu.resolved):
        return "disturbances are not stationary, or depend on each other for too long"
    if cpu.higher is not None:
        return f"not shown to be within the higher limit of {words.exact_time(cpu.higher.requirement.limit_ns)}"
    return f"too few values ({found.n:,}) or too few disturbances ({found.possibly:,} values above) for this rate"


def judged_archive(boards: Sequence[ArchivedBoard], required: Requirement) -> ArchiveJudgment:
    """All boards together: those shown to exceed the requirement (Holm), and the share of each type that keeps it."""
    exceed = holm([board.p_value for board in boards], 1.0 - required.confidence)
    judged = [
        replace(board, result=ArchivedResult.EXCEEDS) if exceeds else board
        for board, exceeds in zip(boards, exceed, strict=True)
    ]
    types = []
    for kind in sorted({board.type for board in judged}):
        results = [board.result for board in judged if board.type == kind]
        within = results.count(ArchivedResult.WITHIN)
        share = board_rates.share_within(within, len(results), required.confidence)
        types.append(ArchivedType(kind, len(results), within, results.count(ArchivedResult.EXCEEDS), share))
    return ArchiveJudgment(required.limit_ns, required.miss_rate, required.confidence, tuple(types), tuple(judged))


def _print(judgment: ArchiveJudgment, required: Requirement) -> None:
    say(f"Requirement of each board: {requirement_text(required)} ({words.percent(required.confidence)} confidence)")
    print_table(
        "Types",
        ("type", "boards", "within", "exceeding", "not shown", "share of all boards within, at least"),
        [
            (
                kind.type,
                f"{kind.boards:,}",
                f"{kind.within:,}",
                f"{kind.exceeding:,}",
                f"{kind.boards - kind.within - kind.exceeding:,}",
                share_text(kind.demonstrated_share),
            )
            for kind in judgment.types
        ],
    )
    others = [board for board in judgment.boards if board.result is not ArchivedResult.WITHIN]
    others.sort(key=lambda board: (board.result is ArchivedResult.NOT_SHOWN, -(board.maximum_ns or 0.0), board.board))
    if others:
        print()
        print_first_rows(
            "Boards that are not within",
            ("board", "result", "reason", "values", "maximum [µs]"),
            [
                (board.board, board.result, board.reason, f"{board.n:,}", words.microseconds(board.maximum_ns))
                for board in others
            ],
            texts=3,
        )
    say_list("Caveats", _CAVEATS)


@click.command("judge", cls=Command, example="fastenough farm judge --archive archive --limit 100us")
@requirement_options
@archive_options
@json_option
def command(*, limit_options: RequirementOptions, of_archive: ArchiveOptions, as_json: bool) -> ExitStatus:
    """Judge every board of an archive by a limit.

    Applies the present method and this limit to all values in the archive; the boards are not needed.  The status is
    0 if every board is within, 1 if a board exceeds the limit, else 3.  The archive contains no loads, settings or
    kernels, so a board that is within has no PASS.  Runs on all CPUs of this machine, or on a Dask cluster.
    """
    required = limit_options.requirement()
    if required is None:
        raise BadInput("farm judge requires --limit; add --miss-rate if the limit may be exceeded")
    judgment = judged_archive(of_archive.compute(JudgeBoards(required)), required)
    if as_json:
        print_json(judgment)
    else:
        _print(judgment, required)
    results = {board.result for board in judgment.boards}
    if ArchivedResult.EXCEEDS in results:
        return ExitStatus.FAIL
    return ExitStatus.DONE if results == {ArchivedResult.WITHIN} else ExitStatus.INCONCLUSIVE
