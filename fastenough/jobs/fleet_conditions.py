# SPDX-License-Identifier: GPL-2.0-or-later
"""Conditions of a statement about a type of board, after IEC 61508-7:2010, D.2.1: each checked, or named as assumed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fastenough import words
from fastenough.analysis.board_rates import MOST_VARIATION
from fastenough.analysis.board_types import POOLED_KEYS, BoardRuns
from fastenough.analysis.fleet import FleetEvidence, share_text
from fastenough.pack.assumptions import CONTRADICTED, HOLDS, Assumption, checked, declared

ASSUMED = "assumed"
_NOT_CHECKED = "not in the recordings"


def conditions_of(
    boards: Sequence[BoardRuns], evidence: FleetEvidence, unpooled: Sequence[str], left_out: Sequence[str]
) -> Iterator[Assumption]:
    """All conditions.  ``unpooled``: boards of another version; ``left_out``: runs and boards of the same kind."""
    yield Assumption(
        "All boards have the same type, version and configuration",
        f"comparison of {len(POOLED_KEYS)} keys of each run (processor, kernel, settings, parameters, measuring "
        "program, …); boards that differ are not pooled",
        HOLDS,
        tuple(unpooled),
    )
    yield from _profile_of_use(evidence)
    yield from _independence(boards, evidence)
    yield checked(
        "Each failure is detected",
        "data check of each recording: nothing lost, each period accounted for, loads ran, settings in effect; runs "
        "that do not pass it are not judged",
        [f"run {run}" for board in evidence.boards for run in board.unusable_runs],
    )
    share = evidence.demonstrated_share
    enough = f"{share_text(share)} of all boards shown, {words.percent(evidence.required_share)} required"
    yield checked(
        "The number of activations and of boards is large enough; failures are counted",
        "sequential evidence of each board, and of the number of boards",
        [enough] if share < evidence.required_share else [],
    )
    yield checked("All boards and runs of this kind are data", "search of the store, deleted runs included", left_out)
    yield from _of_the_question(evidence)


def _profile_of_use(evidence: FleetEvidence) -> Iterator[Assumption]:
    lacking = [
        f"board {result.board}: {', '.join(result.missing_loads)}" for result in evidence.boards if result.missing_loads
    ]
    yield checked("Each board was measured under the same loads", "comparison of the loads of all boards", lacking)
    yield Assumption("The loads are at least as hard as those in operation", _NOT_CHECKED, ASSUMED)


def _independence(boards: Sequence[BoardRuns], evidence: FleetEvidence) -> Iterator[Assumption]:
    anonymous = tuple(f"board {board.name}: no identifiers" for board in boards if not board.identified)
    several = tuple(
        f"{', '.join(board.names)} are one machine and count once" for board in boards if len(board.names) > 1
    )
    yield Assumption(
        "Each board is another machine",
        "identifiers of the hardware; where there are none, the name",
        ASSUMED if anonymous else HOLDS,
        anonymous + several,
    )
    copies = [
        f"run {recording.run_id}: {recording.damage}"
        for board in boards
        for recording in board.recordings
        if recording.damage
    ]
    yield checked("No recording is a copy of another", "comparison of the data of all recordings", copies)
    unsteady = [f"board {result.board}: not stationary" for result in evidence.boards if not result.steady]
    dependent = tuple(
        f"board {result.board}: up to {words.duration(words.round_up(result.scale_ns))} apart"
        for result in evidence.boards
        if result.scale_ns
    )
    yield Assumption(
        "A disturbance does not depend on earlier ones",
        "tests of dependence and of stationarity of each board, and of the number of boards that are not stationary; "
        "dependent disturbances count as one, and a board that is not stationary is not shown to be within",
        CONTRADICTED if evidence.drifting else HOLDS,
        (*unsteady, *dependent),
    )
    yield Assumption("Boards have no common cause of disturbances, as a network or a job on all", _NOT_CHECKED, ASSUMED)
    yield Assumption("The boards are a random sample of all boards of the type", _NOT_CHECKED, ASSUMED)


def _of_the_question(evidence: FleetEvidence) -> Iterator[Assumption]:
    required = evidence.requirement
    if any(rate.new_board_every_ns is not None for rate in evidence.rates):
        yield Assumption(
            "Rates of boards are gamma-distributed, with a coefficient of variation of at most "
            f"{MOST_VARIATION:g} (for the rate of a new board; no part of the verdict)",
            "a test needs hundreds of boards",
            ASSUMED,
        )
    yield from declared(required, ASSUMED)
