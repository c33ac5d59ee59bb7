# SPDX-License-Identifier: GPL-2.0-or-later
"""A statement about a type of board: each board judged by itself, the share of boards within, rates across boards.

The verdict rests on the share of boards alone, which assumes nothing about how boards differ.  PASS: at least the
required share of all boards of the type keep the requirement.  FAIL: one of the boards is shown to exceed it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fastenough import words
from fastenough.analysis import blocks, board_rates, sequential, special
from fastenough.analysis.assessment import Judgment, StatedMaximum
from fastenough.analysis.board_rates import LEAST_FOR_PREDICTION
from fastenough.analysis.board_types import BoardRuns, loads_of
from fastenough.analysis.checks import findings_of, is_broken
from fastenough.analysis.clusters import holm
from fastenough.analysis.excluded_runs import ExcludedRuns, RequiredOfRun, excluded_run, exclusion_text
from fastenough.analysis.judgment import judge
from fastenough.analysis.merged import load_name
from fastenough.model import Outcome, Requirement, Verdict
from fastenough.recording import Recording

SHARE = 0.9
"""Share of boards that must be shown to keep the requirement, where none is stated."""
LEAST_BOARDS = 6
"""Boards without which there is neither PASS nor FAIL: with fewer, not even half of all boards can be shown at 95 %."""
HOMOGENEITY_LEVEL = 0.05
_HOUR_NS = 3600e9
_AMBIGUOUS = "its runs have no identifiers of the hardware, and several machines have its name"
_MOST_NAMED = 5
"""Names that a sentence lists."""


@dataclass(frozen=True)
class BoardResult:
    """The result of one board.

    ``within``: it is shown, by itself, to keep the requirement under every load.  ``exceeds``: it is shown, among all
    boards, not to.  ``p_value``: of the allowed rate, the least over CPUs and loads.  ``scale_ns``: disturbances no
    further apart than this depend on each other and count as one; 0 where they may be independent.  ``steady``: the
    system did not change during the measurement.  ``measured_ns``: least measured time of a load.  ``more_ns``: how
    much longer to measure, if that decides.  ``unusable_runs``: runs whose data cannot be trusted, which are not
    judged; ``unusable``: those of them that hold latencies.  ``declared_burst``: the declared longest burst, if the
    board is within only under that declaration.
    """

    board: str
    names: tuple[str, ...]
    identified: bool
    runs: tuple[str, ...]
    verdict: Verdict
    within: bool
    exceeds: bool
    p_value: float
    n: int
    exceeded: int
    disturbances: int
    maximum_ns: float | None
    scale_ns: float
    steady: bool
    measured_ns: float
    more_ns: float | None
    reasons: tuple[str, ...]
    missing_loads: tuple[str, ...]
    unusable: tuple[ExcludedRuns, ...]
    unusable_runs: tuple[str, ...]
    declared_burst: int | None

    @property
    def refuses(self) -> bool:
        """Whether this board alone refuses a PASS of its type."""
        return self.exceeds or self.verdict is Verdict.FAIL or any(run.exceeds for run in self.unusable)


@dataclass(frozen=True)
class RateAcrossBoards:
    """Disturbances of one CPU under one load on all boards.

    ``homogeneity``: p-value of one rate of all boards.  ``detectable_variation``: the least coefficient of variation
    between boards that this test finds in 80 % of cases.  ``every_ns``: no more than one disturbance comes in so long,
    over these boards together; None where the test objects.  ``new_board_every_ns``: the same of one more board, with
    the variation between boards, if rates are gamma-distributed; None with fewer than three boards.
    ``allowed_every_ns``: as often as a disturbance may come, if each makes as many activations late as declared, else
    as many as they did on average on the board where these were most.
    """

    series: str
    cpus: tuple[int, ...]
    load: str | None
    boards: int
    disturbances: int
    measured_ns: float
    homogeneity: float
    detectable_variation: float | None
    every_ns: float | None
    new_board_every_ns: float | None
    allowed_every_ns: float

    @property
    def differ(self) -> bool:
        """Whether the test of homogeneity objects."""
        return self.every_ns is None


@dataclass(frozen=True)
class FleetEvidence:
    """The evidence of all boards together.

    ``demonstrated_share``: at least this share of all boards of the type keep the requirement, at its confidence.
    ``boards_needed``: boards in all, of which those not shown to stay as they are, for the required share.
    """

    requirement: Requirement
    required_share: float
    boards: tuple[BoardResult, ...]
    demonstrated_share: float
    boards_needed: int | None
    rates: tuple[RateAcrossBoards, ...]

    @property
    def within(self) -> int:
        return sum(board.within for board in self.boards)

    @property
    def rests_on_burst(self) -> bool:
        """Whether a board is within only under the declared longest burst."""
        return any(board.within and board.declared_burst is not None for board in self.boards)

    @property
    def exceeding(self) -> tuple[BoardResult, ...]:
        """Boards that are shown to exceed the requirement, or of which an untrusted run has too many exceedances."""
        return tuple(board for board in self.boards if board.refuses)

    @property
    def drifting(self) -> bool:
        """Whether more boards are not stationary than the level of their tests explains.

        Each load, series and CPU is tested by itself, so that some boards of a large fleet fail a test by chance.
        """
        unsteady = sum(not board.steady for board in self.boards)
        by_chance = 1.0 - (1.0 - blocks.LEVEL) ** max(1, len(self.rates))
        return unsteady > 0 and float(special.bdtrc(unsteady - 1, len(self.boards), by_chance)) <= blocks.LEVEL

    def verdict(self, *, complete: bool) -> Verdict:
        """``complete``: no board or run of the type whose result may be worse was left out."""
        if len(self.boards) < LEAST_BOARDS:
            return Verdict.INCONCLUSIVE
        if any(board.exceeds for board in self.boards):
            return Verdict.FAIL
        demonstrated = complete and not self.exceeding and self.demonstrated_share >= self.required_share
        return Verdict.PASS if demonstrated else Verdict.INCONCLUSIVE


@dataclass(frozen=True)
class _Judged:
    """One board with the judgments of its usable runs."""

    board: BoardRuns
    verdict: Verdict
    judgments: tuple[Judgment, ...]
    reasons: tuple[str, ...]
    missing_loads: tuple[str, ...]
    unusable: tuple[ExcludedRuns, ...]
    unusable_runs: tuple[str, ...]

    @property
    def stated(self) -> list[StatedMaximum]:
        return [maximum for judgment in self.judgments for maximum in judgment.evidence]

    @property
    def p_value(self) -> float:
        """The least over CPUs and loads, by Bonferroni."""
        p_values = [maximum.p_value for maximum in self.stated]
        return min(1.0, len(p_values) * min(p_values)) if p_values else 1.0

    @property
    def within(self) -> bool:
        usable = not self.missing_loads and not any(run.exceeds for run in self.unusable)
        return self.verdict is Verdict.PASS and usable and not self.board.ambiguous


def _is_usable(recording: Recording) -> bool:
    findings = findings_of(recording)
    return recording.outcome is Outcome.COMPLETED and not is_broken(findings)


def _judged(board: BoardRuns, required: Requirement, loads: Sequence[str | None]) -> _Judged:
    by_usability: dict[bool, list[Recording]] = {True: [], False: []}
    for recording in board.recordings:
        by_usability[_is_usable(recording)].append(recording)
    usable, others = by_usability[True], by_usability[False]
    assessment = judge(usable or others, required)
    results = (excluded_run(recording, RequiredOfRun(recording, required)) for recording in others)
    measured = set(map(load_name, usable))
    missing = tuple(str(load) for load in loads if load not in measured)
    return _Judged(
        board,
        assessment.verdict,
        assessment.judgments,
        (_AMBIGUOUS,) if board.ambiguous and assessment.verdict is Verdict.PASS else assessment.reasons,
        missing if usable else (),
        tuple(result for result in results if result is not None),
        tuple(recording.run_id for recording in others),
    )


def fleet_evidence(boards: Sequence[BoardRuns], required: Requirement, share: float = SHARE) -> FleetEvidence:
    """Judge each board by itself, and all of them as a sample of their type."""
    loads = loads_of(boards)
    judged = [_judged(board, required, loads) for board in boards]
    exceed = holm([judged_board.p_value for judged_board in judged], 1.0 - required.confidence)
    within = sum(judged_board.within for judged_board in judged)
    return FleetEvidence(
        required,
        share,
        tuple(_result(judged_board, exceeds) for judged_board, exceeds in zip(judged, exceed, strict=True)),
        board_rates.share_within(within, len(judged), required.confidence) if judged else 0.0,
        board_rates.boards_needed(len(judged) - within, share, required.confidence),
        tuple(_rates(judged, required)),
    )


def _result(judged: _Judged, exceeds: bool) -> BoardResult:
    board, stated = judged.board, judged.stated
    times: dict[str | None, float] = {}
    for recording in board.recordings:
        if recording.run_id not in judged.unusable_runs:
            load = load_name(recording)
            times[load] = times.get(load, 0.0) + recording.duration_ns
    more_ns = [
        finding.more_ns for judgment in judged.judgments for finding in judgment.findings if finding.more_ns is not None
    ]
    return BoardResult(
        board.name,
        board.names,
        board.identified,
        board.run_ids,
        judged.verdict,
        judged.within and not exceeds,
        exceeds,
        judged.p_value,
        sum(maximum.n for maximum in stated),
        sum(maximum.exceeded for maximum in stated),
        sum(map(_independent_events, stated)),
        max(
            (judgment.maximum_ns for judgment in judged.judgments if judgment.maximum_ns is not None),
            default=None,
        ),
        max((maximum.scale_ns for maximum in stated), default=0.0),
        all(maximum.steady for maximum in stated),
        min(times.values(), default=0.0),
        max(more_ns, default=None),
        judged.reasons,
        judged.missing_loads,
        judged.unusable,
        judged.unusable_runs,
        next(
            (maximum.declared_burst for maximum in stated if maximum.declared_burst is not None),
            None,
        ),
    )


def _independent_events(stated: StatedMaximum) -> int:
    """Disturbances, those that depend on each other counted as one."""
    if stated.scale_ns:
        return stated.clusters
    greatest = stated.disturbances[1]
    return int(np.ceil(min(greatest, max(1.0, stated.independent)))) if greatest else 0


def _free_ns(stated: StatedMaximum) -> float:
    """Time in which an independent event may begin: all, or that further from each cluster than its scale."""
    if not stated.scale_ns:
        return float(stated.duration_ns)
    return stated.every_ns * sequential.events_upper(stated.clusters, stated.confidence)


class _Pool(NamedTuple):
    """The unit of a comparison between boards: one CPU under one load."""

    load: str | None
    series: str
    cpus: tuple[int, ...]


def _rates(judged: Sequence[_Judged], required: Requirement) -> Iterator[RateAcrossBoards]:
    """One for each load, series and CPU that at least two boards were measured on."""
    pools: dict[_Pool, dict[str, list[StatedMaximum]]] = {}
    for judged_board in judged:
        for judgment in judged_board.judgments:
            for stated in judgment.evidence:
                by_board = pools.setdefault(_Pool(judgment.load, stated.series, stated.cpus), {})
                by_board.setdefault(judged_board.board.name, []).append(stated)
    for pool, by_board in pools.items():
        counts = np.array([sum(map(_independent_events, of_board)) for of_board in by_board.values()], dtype=np.int64)
        hours = np.array([sum(map(_free_ns, of_board)) for of_board in by_board.values()]) / _HOUR_NS
        if counts.size > 1 and hours.min() > 0:
            allowed_ns = max(
                _allowed_every_ns(judged_board, required) for of_board in by_board.values() for judged_board in of_board
            )
            yield _rate(pool, counts, hours, allowed_ns, required.confidence)


def _allowed_every_ns(stated: StatedMaximum, required: Requirement) -> float:
    if not required.miss_rate:
        return float(required.return_time_ns)
    mean = stated.exceeded / max(1, _independent_events(stated))
    burst = required.longest_burst or max(1.0, mean)
    return burst / required.miss_rate * stated.duration_ns / stated.n


def _rate(
    pool: _Pool,
    counts: board_rates.CountArray,
    hours: board_rates.FloatArray,
    allowed_every_ns: float,
    confidence: float,
) -> RateAcrossBoards:
    total, measured_ns = int(counts.sum()), float(hours.sum()) * _HOUR_NS
    chance = board_rates.chance_of_homogeneity(counts, hours)
    per_hour = board_rates.rate_of_new_board(counts, hours, confidence)
    homogeneous = chance > HOMOGENEITY_LEVEL
    return RateAcrossBoards(
        pool.series,
        pool.cpus,
        pool.load,
        counts.size,
        total,
        measured_ns,
        chance,
        board_rates.detectable_variation(total, hours, HOMOGENEITY_LEVEL),
        measured_ns / sequential.events_upper(total, confidence) if homogeneous else None,
        None if per_hour is None else _HOUR_NS / per_hour,
        allowed_every_ns,
    )


# --- sentences


def named(names: Sequence[str]) -> str:
    """Names in a sentence, the first few of many."""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def share_text(share: float) -> str:
    """A lower bound of a share, rounded down."""
    return words.percent(words.round_down(share))


def requirement_text(required: Requirement) -> str:
    """The requirement of each board."""
    limit = words.exact_time(required.limit_ns)
    if required.miss_rate:
        return f"at most {words.rate_of(required.miss_rate, 'activations')} above {limit}"
    return f"never above {limit} (return time {words.exact_time(required.return_time_ns)})"


def selection_note(excluded: Sequence[ExcludedRuns], boards: Sequence[str]) -> str:
    """States what was left out of the question; empty where nothing was."""
    worse = sum(run.exceeds for run in excluded)
    parts = [words.counted(len(boards), "board") + f" ({named(boards)})"] if boards else []
    parts += [words.counted(len(excluded), "run")] if excluded else []
    exceed = f", {worse:,} of these runs above the allowed rate" if worse else ""
    return f"only these runs: {' and '.join(parts)} of the same kind excluded{exceed}" if parts else ""


def headline(evidence: FleetEvidence, verdict: Verdict, board_type: str, loads: Sequence[str], note: str) -> str:
    """The verdict as a statement about the type of board."""
    judged, required = len(evidence.boards), evidence.requirement
    load = f"under load {named(loads)}"
    if verdict is Verdict.FAIL:
        worst = named([board.board for board in evidence.boards if board.exceeds])
        text = f"Not every board of this type keeps the limit: {worst} of {words.counted(judged, 'board')} exceeds it"
    else:
        sure = "" if verdict is Verdict.PASS else "Not enough evidence about this type: "
        text = (
            f"{sure}with {words.percent(required.confidence)} confidence at least "
            f"{share_text(evidence.demonstrated_share)} of all boards are within ({evidence.within:,} of "
            f"{words.counted(judged, 'board')} shown; {words.percent(evidence.required_share)} required)"
        )
        if evidence.rests_on_burst:
            declared = words.counted(required.longest_burst or 0, "activation")
            text += f", if no disturbance is longer than declared ({declared})"
    return f"{text}; {board_type}, {load}" + (f" ({note})" if note else "")


def reasons(evidence: FleetEvidence, excluded: Sequence[ExcludedRuns], *, complete: bool) -> Iterator[str]:
    """The reasons against a PASS, board by board."""
    for board in evidence.exceeding:
        yield f"board {board.board}: {_against(board)}"
    if not complete and excluded:
        yield exclusion_text(excluded)
    if len(evidence.boards) < LEAST_BOARDS:
        yield f"{words.counted(len(evidence.boards), 'board')}; a statement about a type needs {LEAST_BOARDS} or more"
    for board in evidence.boards:
        if not board.within and not board.refuses:
            yield f"board {board.board} is not shown to be within: {_undecided(board)}"


def _against(board: BoardResult) -> str:
    worse = [run.text for run in board.unusable if run.exceeds]
    if worse and board.verdict is not Verdict.FAIL:
        return f"exceeds the allowed rate in data that cannot be trusted: {'; '.join(worse)}"
    phrase = "exceeds" if board.exceeds else "exceeds, judged alone,"
    return f"{phrase} the allowed rate: " + next(iter(board.reasons), f"p = {board.p_value:.2g}")


def _undecided(board: BoardResult) -> str:
    if board.missing_loads:
        return f"no usable run under load {named(board.missing_loads)}"
    return next(iter(board.reasons), board.verdict.value)


def next_steps(evidence: FleetEvidence, verdict: Verdict) -> Iterator[str]:
    """Steps that lead to a PASS; none after a verdict."""
    if verdict in (Verdict.PASS, Verdict.FAIL):
        return
    for board in evidence.boards:
        if board.refuses:
            yield f"find out why board {board.board} exceeds the limit"
        elif not board.within and board.more_ns:
            yield f"measure board {board.board} {words.duration(words.round_up(board.more_ns))} longer"
    if not evidence.exceeding:  # which refuse a PASS, however many others there are
        yield from _more_boards(evidence)


def _more_boards(evidence: FleetEvidence) -> Iterator[str]:
    judged, needed = len(evidence.boards), evidence.boards_needed
    if needed is None:
        yield "too many boards are not shown to be within for this share; decide these first, or require a lower share"
        return
    more = max(needed, LEAST_BOARDS) - judged
    if more <= 0:
        return
    longest_ns = max((board.measured_ns for board in evidence.boards if board.within), default=0.0)
    long = f", each for {words.duration(words.round_up(longest_ns))} or longer under each load" if longest_ns else ""
    yield (
        f"measure {words.counted(more, 'more board')} of this type{long}: with all of these within, "
        f"{words.percent(evidence.required_share)} of all boards are shown"
    )


def cautions(
    evidence: FleetEvidence, unpooled: Sequence[str], other_loads: Sequence[str], damaged: Sequence[str]
) -> Iterator[str]:
    """Caveats of the statement."""
    for rate in evidence.rates:
        if rate.differ:
            yield (
                f"{place(rate)}, the boards differ in their rate of disturbances (test of homogeneity, "
                f"p = {rate.homogeneity:.2g}): no one rate of the type is stated"
            )
    if unpooled:
        yield (
            f"{words.counted(len(unpooled), 'board')} of this type not pooled, of another version, configuration or "
            f"setup: {named(unpooled)}"
        )
    if other_loads:
        yield f"Runs under other loads are no part of this question: {named(other_loads)}"
    if damaged:
        failed = words.counted(len(damaged), "run")
        yield f"{failed} failed the integrity check and cannot be assigned to a board: {named(damaged)}"
    if 0 < len(evidence.boards) < LEAST_FOR_PREDICTION:
        yield f"Fewer than {LEAST_FOR_PREDICTION} boards: nothing is known about the variation between boards"
    yield "The boards must be a random sample of their type; boards chosen for their results show nothing"


def place(rate: RateAcrossBoards) -> str:
    """CPU and load of a rate."""
    cpu = words.cpus(rate.cpus) if rate.cpus else rate.series
    return f"{cpu}, load {rate.load or 'unknown'}"


def weakest(evidence: FleetEvidence) -> RateAcrossBoards | None:
    """Of the rates across boards, the one with the least time between disturbances of a new board."""
    known = [rate for rate in evidence.rates if rate.new_board_every_ns is not None]
    return min(known, key=lambda rate: rate.new_board_every_ns or 0.0, default=None)
