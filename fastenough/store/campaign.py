# SPDX-License-Identifier: GPL-2.0-or-later
"""The runs of a campaign: stored ones, missing ones, and the state of each planned run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase

from fastenough import words
from fastenough.board import Board
from fastenough.board.configuration import SwitchableBoard, SystemParts
from fastenough.campaign import Plan, parse_plan
from fastenough.campaign.expand import OWN, PLAN_FILE, expand, recordings_of
from fastenough.model import BadInput, FastenoughError, Outcome
from fastenough.store import RunSummary, Store

_MOST_NAMED = 20
"""Number of missing runs that are named; further ones are counted."""
_MOST_KNOWN = 1_000_000
"""Maximum number of positions; greater ones are ignored."""


@dataclass(frozen=True)
class StoredCampaign:
    """The runs that count for the positions of a campaign, in order of begin, and descriptions of the missing ones.

    Of several runs of a position the newest counts: ``--resume`` began it again.  A run whose
    summary is damaged may belong to any campaign, so those begun since this one began are among its ``runs`` where
    one of its own is missing, or where nothing newer is known.
    """

    id: str
    runs: tuple[str, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True)
class PlannedRun:
    """State of a planned run of a campaign; ``position`` counts from 1.

    ``run``: the newest run begun for it, None for none.  ``interrupted``: number of earlier runs that were interrupted.
    """

    position: int
    title: str
    state: str
    run: str | None
    reason: str
    interrupted: int = 0

    @property
    def settled(self) -> bool:
        """Whether ``resume`` does not repeat it."""
        return self.state in (DONE, NOT_APPLICABLE)


DONE, NOT_APPLICABLE, FAILED, INTERRUPTED, RUNNING, DAMAGED, OPEN = STATES = (
    "done",
    "not applicable",
    "failed",
    "interrupted",
    "running",
    "damaged",
    "open",
)
_OUTCOMES = {
    Outcome.COMPLETED: DONE,
    Outcome.NOT_APPLICABLE: NOT_APPLICABLE,
    Outcome.FAILED: FAILED,
    Outcome.ABORTED: INTERRUPTED,
}
_WHY_INTERRUPTED = "the bench was killed or lost power"


def planned_runs(store: Store, campaign: str) -> list[PlannedRun]:
    """Every planned run in the order of the plan; empty for a campaign without runs in the store."""
    mine = [run for run in store.runs(campaign=campaign) if run.position is not None]
    begun: dict[int, list[RunSummary]] = {}
    for run in mine:
        begun.setdefault(run.position or 0, []).append(run)
    planned = _planned(mine)
    positions = max([len(planned), *(run.positions or 0 for run in mine)], default=0)
    return [_standing(position, planned, begun.get(position, [])) for position in range(min(positions, _MOST_KNOWN))]


def _standing(position: int, planned: Sequence[str], begun: Sequence[RunSummary]) -> PlannedRun:
    title = planned[position] if position < len(planned) else "?"
    if not begun:
        return PlannedRun(position + 1, title, OPEN, None, "")
    newest = begun[-1]
    state = {"running": RUNNING, "damaged": DAMAGED, "cut-off": INTERRUPTED}.get(newest.state) or (
        _OUTCOMES[Outcome(newest.outcome or Outcome.FAILED)]
    )
    reason = newest.reason or (_WHY_INTERRUPTED if newest.state == "cut-off" else "")
    return PlannedRun(position + 1, title, state, newest.id, reason, sum(run.state == "cut-off" for run in begun[:-1]))


def find_campaign(store: Store, prefix: str | None) -> str:
    """The id of the campaign with this prefix, the newest for None; raises BadInput for none or several."""
    if prefix is None:
        newest = store.newest_campaign()
        if newest is None:
            raise BadInput(f"{store.path} contains no campaign; start one with: fastenough campaign run PLAN")
        return newest
    matches = list(
        dict.fromkeys(
            run.campaign for run in store.runs(brief=True) if run.campaign and run.campaign.startswith(prefix)
        )
    )
    if len(matches) != 1:
        which = f"choose one of {', '.join(matches[:_MOST_NAMED])}" if matches else "see fastenough list --json"
        raise BadInput(
            f"{len(matches) or 'no'} campaign{'s' if len(matches) > 1 else ''} in {store.path} with an id that "
            f"begins with {prefix!r}; {which}"
        )
    return matches[0]


def plan_of(store: Store, campaign: str | None = None) -> tuple[str, Plan]:
    """A campaign and the plan stored with its runs (``campaign`` None: the newest with a plan); raises
    BadInput if there is none or it cannot be read."""
    chosen = store.runs(brief=True) if campaign is None else store.runs(brief=True, campaign=campaign)
    for run in reversed(chosen):
        if run.campaign and PLAN_FILE in run.hashes() and (text := store.attached(run.id, PLAN_FILE)) is not None:
            return run.campaign, parse_plan(text, f"the plan of {run.campaign}")
    what = f"campaign {campaign} has no stored plan" if campaign else "no campaign has a stored plan"
    raise BadInput(f"{store.path}: {what}; name the plan file")


def require_kept_configurations(
    plan: Plan,
    store: Store,
    done: Mapping[int, str],
    known: Mapping[str, Mapping[str, SystemParts]],
    opened: Callable[[str], Board],
) -> None:
    """Raise BadInput if kept runs of a configuration were measured with another kernel or command than the plan states.

    ``done``: ids of the kept runs by position; ``known``: by board, their systems; ``opened``: return the board
    of a name.  A command may be added or removed, since a person may have booted the configuration.
    """
    specs, per_run = expand(plan), len(recordings_of(plan))
    runs: dict[tuple[str, str], list[str]] = {}
    for position in sorted(done):
        spec = specs[position // per_run]
        runs.setdefault((spec.board, spec.configuration), []).append(done[position])
    for (board, name), ids in runs.items():
        change = plan.changes.get(name)
        if change is None or not isinstance(opened(board), SwitchableBoard):
            continue
        kept = known.get(board, {}).get(name)
        release = kept["kernel"] if kept is not None else None
        selects: Iterable[tuple[str, ...]] = _selects(store, ids, name) if change.select else ()
        other = next((select for select in selects if select != change.select), None)
        if change.kernel and release is not None and not fnmatchcase(release, change.kernel):
            reason = f"used kernel {release}, which does not match {change.kernel}"
        elif other is not None:
            reason = f"used the command {' '.join(other)}, not {' '.join(change.select)}"
        else:
            continue
        raise plan.fault(
            f"configuration {name}: {words.counted(len(ids), 'kept run')} on {board} {reason}; "
            "revert the plan, or start a new campaign: fastenough campaign run PLAN",
            "configuration",
        )


def _selects(store: Store, runs: Sequence[str], configuration: str) -> Iterator[tuple[str, ...]]:
    """The commands that select a configuration in the plans stored with runs, as far as they can be read."""
    for text in dict.fromkeys(store.attached(run, PLAN_FILE) for run in runs):
        change = None
        if text is not None:
            with suppress(BadInput):
                change = parse_plan(text, "the stored plan").changes.get(configuration)
        if change is not None and change.select:
            yield change.select


def newest_campaign(store: Store) -> StoredCampaign | None:
    """The campaign of the newest run that belongs to one; only its runs are read from the index, and those without one
    because they are damaged."""
    newest = store.newest_campaign()
    return None if newest is None else stored_campaign(store, newest)


def stored_campaign(store: Store, campaign: str, others: Collection[str] | None = None) -> StoredCampaign | None:
    """The campaign of this id, as `newest_campaign`; None if the store has no run of it.

    ``others``: ids of its runs on other boards, which are left out, as are missing runs on other boards.  None: the
    campaign on all boards.
    """
    runs = store.runs(campaign=campaign)
    if not runs:
        return None
    mine = [run for run in runs if run.id not in (others or ())]
    by_position = {run.position: run for run in mine}
    elsewhere = set() if others is None else _positions_elsewhere(store, runs, others)
    missing = _missing(runs, by_position, elsewhere)
    since = runs[0].id if missing else runs[-1].id
    nameless = [run.id for run in store.runs(brief=True, campaign=None, state="damaged") if run.id > since]
    ids = sorted([run.id for run in by_position.values()] + nameless)
    return StoredCampaign(campaign, tuple(ids), tuple(missing))


def _positions_elsewhere(store: Store, runs: Sequence[RunSummary], others: Collection[str]) -> set[int]:
    """Positions of ``others``, and those of boards in the plan that have none of the remaining runs.

    Only the former if the plan is not stored.
    """
    positions = [(run.id in others, run.position) for run in runs if run.position is not None]
    boards = dict(enumerate(_boards_by_position(store, runs)))
    own = {boards[position] for is_other, position in positions if not is_other and position in boards}
    elsewhere = {position for is_other, position in positions if is_other}
    return elsewhere | {position for position, board in boards.items() if own and board not in own}


def _boards_by_position(store: Store, runs: Sequence[RunSummary]) -> list[str]:
    """The plan's name of the board of each planned run; empty without a stored plan that can be read."""
    for run in reversed(runs):
        try:
            text = store.attached(run.id, PLAN_FILE) if PLAN_FILE in run.hashes() else None
            plan = None if text is None else parse_plan(text, f"the plan of {run.campaign}")
        except FastenoughError:
            continue
        if plan is not None:
            return [spec.board for spec in expand(plan) for _ in recordings_of(plan)]
    return []


def _missing(
    mine: Sequence[RunSummary], by_position: dict[int | None, RunSummary], elsewhere: Collection[int]
) -> list[str]:
    planned = _planned(mine)
    positions = max([len(planned), *(run.positions or 0 for run in mine)])
    absent = [position for position in range(min(positions, _MOST_KNOWN)) if position not in by_position]
    absent = [position for position in absent if position not in elsewhere]
    absent = [position for position in absent if not _is_unmade(position, planned, by_position)]
    texts = [
        f"run {position + 1} of {positions}" + (f" ({planned[position]})" if position < len(planned) else "")
        for position in absent[:_MOST_NAMED]
    ]
    more = len(absent) - len(texts)
    return texts + ([f"and {more} more runs, each of which"] if more > 0 else [])


def _planned(mine: Sequence[RunSummary]) -> Sequence[str]:
    """Titles of the planned runs, by position."""
    return max((run.planned for run in mine if run.planned), key=len, default=())


def _is_unmade(position: int, planned: Sequence[str], by_position: dict[int | None, RunSummary]) -> bool:
    """Whether it is the board's own recording of a cell that the instrument did not complete."""
    if position >= len(planned) or not planned[position].endswith(OWN):
        return False
    instrument = by_position.get(position - 1)
    return instrument is not None and instrument.outcome in (Outcome.FAILED, Outcome.NOT_APPLICABLE)
