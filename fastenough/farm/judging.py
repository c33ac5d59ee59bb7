# SPDX-License-Identifier: GPL-2.0-or-later
"""The verdict on a board's newest cycle: the runs of a plan together, or one recording of its ring.

Each cycle is judged by itself, as a gate judges a night: it is no further look at the ones before it.  What a plan
requires of its runs comes before what the farm's file requires of the board.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastenough.analysis import judge
from fastenough.model import FastenoughError, Requirement, Verdict
from fastenough.recording.wakeups import MONITOR
from fastenough.store import RunSummary, Store
from fastenough.store.campaign import KeptCampaign, kept_campaign

_LOOKED_BACK = 20
"""Runs of a board among which its newest cycle is looked for: recordings of the monitor lie between, which are never
judged."""
_MOST_WORDS = 1000
"""Characters of a reason."""


def verdict_on(store: Store, board: str, required: Mapping[str, Any] | None) -> dict[str, str]:
    """What the history is told of the newest cycle that has ended: ``verdict`` and ``verdict_reason``, both empty where
    there is none, or nothing is required of it."""
    cycle = _cycle_of(store, board)
    try:
        recordings = [store.load(run) for run in cycle.runs] if cycle else []
    except FastenoughError as error:
        return _told(Verdict.BROKEN, str(error))
    own = any(recording.head.requirement is not None for recording in recordings)
    if cycle is None or not (own or required):
        return _told("", "")
    given = Requirement(**required) if required and not own else None
    assessment = judge(recordings, given, missing=cycle.missing)
    return _told(assessment.verdict, "; ".join((assessment.headline, *assessment.reasons)))


def _told(verdict: str, why: str) -> dict[str, str]:
    return {"verdict": str(verdict), "verdict_reason": why[:_MOST_WORDS]}


def _cycle_of(store: Store, board: str) -> KeptCampaign | None:
    newest = next((run for run in reversed(store.runs(board=board, last=_LOOKED_BACK)) if _counts(run)), None)
    if newest is None:
        return None
    whole = kept_campaign(store, newest.campaign) if newest.campaign else None
    return whole or KeptCampaign("", (newest.id,), ())


def _counts(run: RunSummary) -> bool:
    return run.state != "running" and run.probe != MONITOR
