# SPDX-License-Identifier: GPL-2.0-or-later
"""Which runs make up a campaign, and which of those that were planned are not there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fastenough.campaign.expand import OWN
from fastenough.model import Outcome
from fastenough.store import RunSummary, Store

_MOST_NAMED = 20
"""More missing runs than these are counted, not named."""


@dataclass(frozen=True)
class KeptCampaign:
    """The runs that stand for a campaign's positions, in the order they were made, and in words what is missing.

    Of several runs of one position the newest stands: the others were begun again by ``--resume``.  A run whose
    summary is damaged may belong to any campaign, so those begun since this one began are among its ``runs`` where
    one of its own is missing, or where nothing newer is known.
    """

    id: str
    runs: tuple[str, ...]
    missing: tuple[str, ...]


def newest_campaign(store: Store) -> KeptCampaign | None:
    """The campaign of the newest run that names one; only its runs are read from the index, and those that name none
    because they are damaged."""
    newest = store.newest_campaign()
    mine = [] if newest is None else store.runs(campaign=newest)
    if newest is None or not mine:
        return None
    by_position = {run.position: run for run in mine}
    missing = _missing(mine, by_position)
    since = mine[0].id if missing else mine[-1].id
    nameless = [run.id for run in store.runs(brief=True, campaign=None, state="damaged") if run.id > since]
    kept = sorted([run.id for run in by_position.values()] + nameless)
    return KeptCampaign(newest, tuple(kept), tuple(missing))


def _missing(mine: Sequence[RunSummary], by_position: dict[int | None, RunSummary]) -> list[str]:
    planned = max((run.planned for run in mine if run.planned), key=len, default=())
    positions = max([len(planned), *(run.positions or 0 for run in mine)])
    absent = [position for position in range(min(positions, 1_000_000)) if position not in by_position]
    absent = [position for position in absent if not _never_made(position, planned, by_position)]
    texts = [f"run {position + 1} of {positions}" + (f" ({planned[position]})" if position < len(planned) else "")
             for position in absent[:_MOST_NAMED]]
    more = len(absent) - len(texts)
    return texts + ([f"and {more} more runs, each of which"] if more > 0 else [])


def _never_made(position: int, planned: Sequence[str], by_position: dict[int | None, RunSummary]) -> bool:
    """Whether it is the board's own recording of a cell that the instrument did not measure to its end."""
    if position >= len(planned) or not planned[position].endswith(OWN):
        return False
    instrument = by_position.get(position - 1)
    return instrument is not None and instrument.outcome in (Outcome.FAILED, Outcome.NOT_APPLICABLE)
