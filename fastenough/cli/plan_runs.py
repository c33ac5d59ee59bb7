# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs of a plan on the command line: options for plans and loads, checks, manual boots, the result."""

from __future__ import annotations

import select
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from fastenough.campaign import Campaign, Plan, StopRequest, run_campaign
from fastenough.campaign.ledger import NewestCampaign, newest_campaign
from fastenough.campaign.load_file import SUFFIX, named_loads
from fastenough.campaign.plan import shipped_plans
from fastenough.campaign.plan_check import check_plan
from fastenough.campaign.runner import known_systems, with_configurations
from fastenough.cli.options import Names
from fastenough.cli.output import clean, print_json
from fastenough.cli.privileges import boards_for
from fastenough.cli.progress import Display
from fastenough.implementations.catalogue import in_parameters
from fastenough.implementations.task import Refused
from fastenough.loads import LOADS, Load
from fastenough.model import BadInput, ExitStatus, Outcome
from fastenough.store import Store
from fastenough.store.campaign import planned_runs, require_kept_configurations

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
    """Make the remaining runs of the plan; returns the exit status.  ``booted``: configuration booted already."""
    check_plan(plan)
    if booted is not None and booted not in plan.configurations:
        raise BadInput(f"--booted {booted}: no such configuration in the plan; it has {', '.join(plan.configurations)}")
    store = Store(store_path)
    with Display() as display:
        stopping = StopRequest()
        opened, plan = boards_for(plan, as_granted, display.tell)
        newest = _begun(store, plan, begin)
        if begin is Begin.RESUMED and (complete := _complete(store, newest)) is not None:
            display.tell(f"campaign {complete} is complete; see: fastenough campaign status")
            if as_json:
                runs = tuple(run.run for run in planned_runs(store, complete) if run.run)
                _print_json(store, Campaign(complete, runs, stopped=False))
            return ExitStatus.DONE
        known = known_systems(plan, store, newest.done)
        opened = with_configurations(plan, opened, ManualBoot(display, stopping, booted), known, stopping.sleep)
        require_kept_configurations(plan, store, newest.done, known, opened)
        try:
            campaign = run_campaign(
                plan, store, display, resume=begin is not Begin.NEW, opened=opened, stopping=stopping, tell=display.tell
            )
        except Refused as error:
            raise BadInput(in_parameters(str(error))) from error
    _print_result(store, campaign, as_json)
    return worst_status(store, campaign)


def _begun(store: Store, plan: Plan, begin: Begin) -> NewestCampaign:
    """The campaign that the runs will belong to, as far as it is stored."""
    if begin is Begin.NEW:
        return NewestCampaign(None, False, {})
    if begin is Begin.RESUMED:
        store.settle()
    return newest_campaign(store, plan)


def _complete(store: Store, begun: NewestCampaign) -> str | None:
    """The newest campaign of the plan if it is complete, else None; raises BadInput if there is none."""
    campaign = begun.campaign
    if campaign is None:
        raise BadInput(
            f"{store.path}: no campaign of this plan, or only with another --board or --as-granted; "
            "see: fastenough campaign status"
        )
    if store.runs(brief=True, campaign=campaign, state="running"):
        raise BadInput(f"campaign {campaign} is being measured by another process; wait for it, or stop it")
    return None if begun.left else campaign


def _print_json(store: Store, campaign: Campaign) -> None:
    runs = [run for run in store.runs() if run.id in campaign.runs]
    print_json({"campaign": campaign.id, "stopped": campaign.stopped, "runs": runs})


def _print_result(store: Store, campaign: Campaign, as_json: bool) -> None:
    if as_json:
        _print_json(store, campaign)
    else:
        print("\n".join(campaign.runs))
        print(f"see: fastenough show {campaign.runs[-1]}" if campaign.runs else "no run was made")


def worst_status(store: Store, campaign: Campaign) -> int:
    """Exit status of the campaign: stopped by a signal, broken, not applicable, done."""
    if campaign.signal:
        return 128 + campaign.signal
    if campaign.stopped:
        return ExitStatus.BROKEN
    outcomes = [store.load(run).outcome for run in campaign.runs]
    statuses = {ExitStatus.BROKEN if outcome is None else OUTCOME_STATUS[outcome] for outcome in outcomes}
    if ExitStatus.BROKEN in statuses:
        return ExitStatus.BROKEN
    return ExitStatus.DONE if ExitStatus.DONE in statuses else ExitStatus.NOT_APPLICABLE


_LOOK_S = 0.2


@dataclass
class ManualBoot:
    """``booted``: the configuration that is booted already, for which there is no prompt."""

    display: Display
    stopping: StopRequest
    booted: str | None = None

    def __call__(self, board: str, configuration: str, why: str) -> None:
        """Returns when the person has pressed Enter; raises BadInput without a terminal, KeyboardInterrupt to end."""
        if self.booted == configuration and not why:
            self.booted = None
            return
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            because = f"{why}; " if why else ""
            raise BadInput(
                f"{because}{board} must be booted manually as {configuration}, and there is no terminal for a "
                f"prompt; boot it, then run: fastenough campaign resume --booted {configuration}"
            )
        with self.display.still():
            if why:
                self.display.tell(why)
            self.display.tell(
                f"boot {board} as {configuration}, then press Enter (Ctrl-C stops; "
                "resume later with: fastenough campaign resume)"
            )
            self._wait()

    def _wait(self) -> None:
        while not select.select([sys.stdin], [], [], _LOOK_S)[0]:
            if self.stopping.requested:
                raise KeyboardInterrupt
        if not clean(sys.stdin.readline()):
            raise BadInput("no answer: standard input is closed; resume with: fastenough campaign resume")


class _NamesOrFiles(Names):
    """Load names; a name with a plan's suffix is a file."""

    def knows(self, name: str) -> bool:
        return super().knows(name) or name.endswith(SUFFIX)


_NAMES = _NamesOrFiles("load", list(LOADS))


class Loads(click.ParamType[dict[str, Load]]):
    """Comma-separated loads by name, in the order given."""

    name = "names"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, Load]:
        if isinstance(value, dict):
            return value
        return named_loads(_NAMES.convert(value, param, ctx))

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        return _NAMES.shell_complete(ctx, param, incomplete)


def loads_of_files(loads: Mapping[str, Load]) -> dict[str, Load]:
    """The loads that come from files."""
    return {name: load for name, load in loads.items() if name not in LOADS}


class PlanFile(click.Path):
    """A path; a bare word that is not a file is the name of a shipped plan."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, dir_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(value)
        if path.name != str(value) or path.suffix or path.exists():
            return super().convert(value, param, ctx)
        plans = shipped_plans()
        if str(value) not in plans:
            self.fail(
                f"no file {value}, and no shipped plan of that name; shipped plans: {', '.join(plans)}",
                param,
                ctx,
            )
        return plans[str(value)]

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        names = [CompletionItem(name) for name in shipped_plans() if name.startswith(incomplete)]
        return [*names, *super().shell_complete(ctx, param, incomplete)]
