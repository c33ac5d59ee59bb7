# SPDX-License-Identifier: GPL-2.0-or-later
"""A/B test on a deterministic board: the runs without a change, then those with it.

Order and repetitions have no influence on such a board.  Without load, one run of each shows the exact effect.  Under
load, as many phases are measured as the interval of a mean requires.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from fastenough.analysis.instructions import LEAST_PHASES, NO_LOAD
from fastenough.campaign import Campaign, Plan, Progress, StopRequest, run_campaign
from fastenough.jobs.ab import AbTest, Opened, require_changeable, require_measured
from fastenough.store import Store

_WARM_UP_S = 0.1
"""Under load, a second of a deterministic guest takes up to some minutes."""


@dataclass(frozen=True)
class AbSets:
    """The campaigns without and with the change; the second is None if the first was stopped."""

    without: Campaign
    with_change: Campaign | None

    @property
    def signal(self) -> int:
        """Number of the signal that stopped the test, or 0."""
        return self.without.signal or (self.with_change.signal if self.with_change else 0)


def in_phases(plan: Plan) -> Plan:
    """The plan of one run, in as many phases as its load requires, with a short warm-up for each."""
    (entry,) = plan.entries
    phases = 1 if entry.loads[0] in NO_LOAD else LEAST_PHASES
    return replace(plan, entries=(replace(entry, phases=phases, warm_up_s=_WARM_UP_S),))


@dataclass(frozen=True)
class _Labelled:
    """Progress of the runs of one side."""

    report: Callable[[Progress, str], None]
    label: str

    def __call__(self, progress: Progress) -> None:
        self.report(progress, self.label)


def make_deterministic_test(
    trial: AbTest,
    store: Store,
    on_progress: Callable[[Progress, str], None],
    *,
    opened: Opened,
    tell: Callable[[str], None] | None = None,
) -> AbSets:
    """Make the runs without and with the change.  ``on_progress`` is also given the label of the side.

    Raises as ``make_ab_test`` does.
    """
    require_changeable(trial, opened)
    stopping = StopRequest()
    made: list[Campaign] = []
    for arm, plan, change in (("A", trial.plan, {}), ("B", trial.with_change(), trial.change)):
        labelled = _Labelled(on_progress, trial.label(arm))
        campaign = run_campaign(in_phases(plan), store, labelled, opened=opened, stopping=stopping, tell=tell)
        made.append(campaign)
        if campaign.stopped:
            break
        for run in campaign.runs:
            require_measured(store.load(run), change)
    return AbSets(made[0], made[1] if len(made) > 1 else None)
