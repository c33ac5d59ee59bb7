# SPDX-License-Identifier: GPL-2.0-or-later
"""Making the runs of a plan, for every command that does: checked, measured with a live view, and told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from pathlib import Path

from fastenough.campaign import Campaign, Entry, Plan, Stopping, run_campaign
from fastenough.campaign.acts import check_cpus, parameters_of_board
from fastenough.campaign.changing import changing, seen_before
from fastenough.campaign.expand import combinations
from fastenough.campaign.ledger import Newest, newest_of
from fastenough.campaign.plan import DEFAULT_BOARD
from fastenough.cli.by_hand import ByHand
from fastenough.cli.live import Display
from fastenough.cli.output import print_json
from fastenough.cli.privileges import boards_for
from fastenough.cli.probes import catalogue
from fastenough.implementations import Implementation, Value, find_implementation
from fastenough.implementations.catalogue import DEADLINE_PARAMETERS, ProbeEntry, check_deadline, in_parameters
from fastenough.implementations.task import Refused
from fastenough.link import LocalLink
from fastenough.model import BadInput, ExitStatus, NotApplicable, Outcome
from fastenough.store import Store

OUTCOME_STATUS = {
    Outcome.COMPLETED: ExitStatus.DONE,
    Outcome.NOT_APPLICABLE: ExitStatus.NOT_APPLICABLE,
    Outcome.FAILED: ExitStatus.BROKEN,
    Outcome.ABORTED: ExitStatus.BROKEN,
}


class Begin(Enum):
    """Which campaign the runs belong to: a new one, the newest unfinished one of the plan, or that, else a new one."""

    NEW = "new"
    RESUMED = "resumed"
    EITHER = "either"


def make_runs(
    plan: Plan, store_path: Path, begin: Begin, *, as_granted: bool, as_json: bool, booted: str | None = None
) -> int:
    """All runs of the plan, or those that are left; the exit status.  ``booted``: what a person has booted already."""
    check_plan(plan)
    if booted is not None and booted not in plan.configurations:
        raise BadInput(f"--booted {booted}: the plan has no such configuration, only {', '.join(plan.configurations)}")
    store = Store(store_path)
    with Display() as display:
        stopping = Stopping()
        opened, plan = boards_for(plan, as_granted, display.tell)
        found = _begun(store, plan, begin)
        if begin is Begin.RESUMED and (whole := _whole(store, found)) is not None:
            display.tell(f"campaign {whole} has all its runs; see: fastenough campaign status")
            return ExitStatus.DONE
        opened = changing(plan, opened, ByHand(display, stopping, booted), seen_before(plan, store, found.done))
        try:
            campaign = run_campaign(
                plan, store, display, resume=begin is not Begin.NEW, opened=opened, stopping=stopping, tell=display.tell
            )
        except Refused as error:
            raise BadInput(in_parameters(str(error))) from error
    _tell(store, campaign, as_json)
    return worst_status(store, campaign)


def _begun(store: Store, plan: Plan, begin: Begin) -> Newest:
    """What there is already of the campaign that the runs will belong to."""
    if begin is Begin.NEW:
        return Newest(None, False, {})
    if begin is Begin.RESUMED:
        store.settle()
    return newest_of(store, plan)


def _whole(store: Store, found: Newest) -> str | None:
    """The newest campaign of the plan where nothing of it is left, None where something is; raises BadInput where none
    was begun."""
    newest = found.campaign
    if newest is None:
        raise BadInput(
            f"{store.path}: no campaign of this plan was begun there, or it was begun with another --board "
            "or --as-granted; see: fastenough campaign status"
        )
    if store.runs(brief=True, campaign=newest, state="running"):
        raise BadInput(f"campaign {newest} is being measured by another bench; wait for it, or end that one")
    return None if found.left else newest


def _tell(store: Store, campaign: Campaign, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "campaign": campaign.id,
                "stopped": campaign.stopped,
                "runs": [run for run in store.runs() if run.id in campaign.runs],
            }
        )
    else:
        print("\n".join(campaign.runs))
        print(f"see: fastenough show {campaign.runs[-1]}" if campaign.runs else "nothing was run")


def worst_status(store: Store, campaign: Campaign) -> int:
    """The status that says how the campaign's runs ended: by a signal, broken, not applicable, done."""
    if campaign.signal:
        return 128 + campaign.signal
    if campaign.stopped:
        return ExitStatus.BROKEN
    outcomes = [store.load(run).outcome for run in campaign.runs]
    statuses = {ExitStatus.BROKEN if outcome is None else OUTCOME_STATUS[outcome] for outcome in outcomes}
    if ExitStatus.BROKEN in statuses:
        return ExitStatus.BROKEN
    return ExitStatus.DONE if ExitStatus.DONE in statuses else ExitStatus.NOT_APPLICABLE


def check_plan(plan: Plan) -> None:
    """What an implementation would refuse is refused before anything is done; a far board's probe is its own judge."""
    try:
        known = catalogue()
    except NotApplicable:
        if "local" in plan.boards:
            raise
        known = {}
    _check_files(plan)
    if DEFAULT_BOARD in (plan.boards or (DEFAULT_BOARD,)):
        check_cpus(plan, LocalLink())
    for entry in plan.entries:
        parameters = parameters_of_board(entry.probe, entry.parameters, plan.instrument is not None)
        for implementation in map(find_implementation, entry.implementations):
            _check_entry(entry, implementation, parameters, known)


def _check_files(plan: Plan) -> None:
    """Raises BadInput where a file that is known of the plan's gauge is missing."""
    instrument = plan.instrument
    files = {"self-test": instrument.self_test, "calibration": instrument.calibration} if instrument else {}
    for key, path in files.items():
        if path and not Path(path).is_file():
            raise plan.fault(f"{key}: there is no file {path}; name one that exists", key)


def _check_entry(
    entry: Entry,
    implementation: Implementation,
    parameters: Mapping[str, tuple[Value, ...]],
    known: Mapping[str, ProbeEntry],
) -> None:
    """Each parameter by itself, so that a complaint names its place."""
    asked: list[tuple[tuple[str, ...], dict[str, tuple[Value, ...]]]] = [(("probe",), {})]
    asked += [(("parameters", name), {name: values}) for name, values in parameters.items()]
    for key, each in asked:
        try:
            implementation.check(entry.probe, each, known)
        except BadInput as error:
            raise entry.fault(str(error), *key) from error
    of_deadline = {name: values for name, values in parameters.items() if name in DEADLINE_PARAMETERS}
    for combination in combinations(replace(entry, parameters=of_deadline)):
        try:
            check_deadline(combination)
        except BadInput as error:
            raise entry.fault(str(error), "parameters") from error
