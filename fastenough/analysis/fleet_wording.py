# SPDX-License-Identifier: GPL-2.0-or-later
"""Evidence about a type of board in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fastenough import words
from fastenough.analysis.board_rates import LEAST_FOR_PREDICTION
from fastenough.analysis.excluded_runs import ExcludedRuns, exclusion_text
from fastenough.analysis.fleet import LEAST_BOARDS, BoardResult, FleetEvidence, RateAcrossBoards
from fastenough.model import Requirement, Verdict

_MOST_NAMED = 5


def named(names: Sequence[str]) -> str:
    """Names in a sentence, the first few of many."""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def share_text(share: float) -> str:
    """A lower bound of a share, rounded down."""
    return words.percent(words.round_down(share))


def requirement_text(required: Requirement) -> str:
    """What each board must keep."""
    limit = words.exact_time(required.limit_ns)
    if required.miss_rate:
        return f"at most {words.rate_of(required.miss_rate, 'activations')} above {limit}"
    return f"never above {limit} (return time {words.exact_time(required.return_time_ns)})"


def selection_note(excluded: Sequence[ExcludedRuns], boards: Sequence[str]) -> str:
    """States what was left out of the question; empty where nothing was."""
    worse = sum(one.exceeds for one in excluded)
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
            f"{sure}with {words.percent(required.confidence)} confidence at least {share_text(evidence.share_shown)} "
            f"of all boards are within ({evidence.within:,} of {words.counted(judged, 'board')} shown; "
            f"{words.percent(evidence.required_share)} required)"
        )
        if evidence.rests_on_burst:
            declared = words.counted(required.longest_burst or 0, "activation")
            text += f", if no disturbance is longer than declared ({declared})"
    return f"{text}; {board_type}, {load}" + (f" ({note})" if note else "")


def reasons(evidence: FleetEvidence, excluded: Sequence[ExcludedRuns], *, complete: bool) -> Iterator[str]:
    """What refuses a PASS, board by board."""
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
    worse = [one.text for one in board.unusable if one.exceeds]
    if worse and board.verdict is not Verdict.FAIL:
        return f"exceeds the allowed rate in data that cannot be trusted: {'; '.join(worse)}"
    shown = "exceeds" if board.exceeds else "exceeds, judged alone,"
    return f"{shown} the allowed rate: " + next(iter(board.reasons), f"p = {board.p_value:.2g}")


def _undecided(board: BoardResult) -> str:
    if board.missing_loads:
        return f"no usable run under load {named(board.missing_loads)}"
    return next(iter(board.reasons), board.verdict.value)


def next_steps(evidence: FleetEvidence, verdict: Verdict) -> Iterator[str]:
    """What leads to a PASS; nothing after a verdict."""
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
