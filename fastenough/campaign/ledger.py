# SPDX-License-Identifier: GPL-2.0-or-later
"""The runs of a campaign that are stored, by position."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from fastenough.campaign.expand import PLAN_FILE, RunSpec, expand, plan_sha256, recordings_of, titles
from fastenough.campaign.plan import Plan
from fastenough.campaign.transcript import RunStore, Writer
from fastenough.model import Outcome

_DONE = {Outcome.COMPLETED.value, Outcome.NOT_APPLICABLE.value}


def find_unfinished(
    store: RunStore, plan_hash: str, positions: int, per_run: int = 1
) -> tuple[str | None, dict[int, str]]:
    """Return the newest unfinished campaign of this plan, and its sound runs by position; resuming skips these.

    Each run of the plan has ``per_run`` positions; the first one decides whether the run is done.
    """
    newest, sound = _newest_sound(store, plan_hash)
    complete = {position for position in sound if position % per_run == 0}
    if newest is None or len(complete) * per_run >= positions:
        return None, {}
    return newest, {position: run for position, run in sound.items() if position - position % per_run in complete}


def complete_runs(store: RunStore, plan: Plan) -> tuple[str, tuple[str, ...]] | None:
    """Return the newest campaign of a plan and its runs in their order; None unless it is complete and sound."""
    specs = expand(plan)
    newest, sound = _newest_sound(store, plan_sha256(plan, specs))
    if newest is None or len(sound) < len(specs) * len(recordings_of(plan)):
        return None
    return newest, tuple(sound[position] for position in sorted(sound))


def _newest_sound(store: RunStore, plan_hash: str) -> tuple[str | None, dict[int, str]]:
    """The newest campaign of a plan, and its sound runs by position."""
    earlier = [run for run in store.runs(plan_sha256=plan_hash) if run.campaign]
    newest = earlier[-1].campaign if earlier else None
    return newest, {
        run.position: run.id
        for run in earlier
        if run.campaign == newest and run.outcome in _DONE and store.fault(run.id) is None
    }


def new_campaign(name: str) -> str:
    """Return a unique name for a campaign that begins now."""
    return f"{name}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secrets.token_hex(2)}"


@dataclass(frozen=True)
class NewestCampaign:
    """The newest campaign of a plan, None if there is none; ``left``: whether runs remain; ``done``: if so, its sound
    runs by position."""

    campaign: str | None
    left: bool
    done: Mapping[int, str]


def newest_campaign(store: RunStore, plan: Plan) -> NewestCampaign:
    """Return the newest stored campaign of a plan."""
    specs, per_run = expand(plan), len(recordings_of(plan))
    plan_hash = plan_sha256(plan, specs)
    begun = [run.campaign for run in store.runs(plan_sha256=plan_hash) if run.campaign]
    unfinished, done = find_unfinished(store, plan_hash, len(specs) * per_run, per_run)
    return NewestCampaign(begun[-1] if begun else None, unfinished is not None, done)


@dataclass
class Ledger:
    """The runs of one campaign by position in the store; each run of the plan has one position per recording.

    ``recordings``: title suffixes of a run's recordings.  ``text``: text of the plan, stored with each recording.
    """

    campaign: str
    plan_hash: str
    planned: tuple[str, ...]
    recordings: tuple[str, ...]
    text: str = ""
    done: dict[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: Plan, specs: list[RunSpec], store: RunStore, resume: bool) -> Ledger:
        """Return a new ledger, or with ``resume`` the newest unfinished one; ``specs``: runs of the plan."""
        plan_hash, planned, recordings = plan_sha256(plan, specs), titles(plan, specs), recordings_of(plan)
        unfinished, done = find_unfinished(store, plan_hash, len(planned), len(recordings)) if resume else (None, {})
        return cls(unfinished or new_campaign(plan.name), plan_hash, planned, recordings, plan.text, done)

    def has(self, spec: RunSpec) -> bool:
        return spec.position * len(self.recordings) in self.done

    def begin(self, store: RunStore, spec: RunSpec, which: str) -> Writer:
        """Begin the recording of a run that has the title suffix ``which``."""
        position = spec.position * len(self.recordings) + self.recordings.index(which)
        writer = store.begin(
            {
                "campaign": self.campaign,
                "plan_sha256": self.plan_hash,
                "position": position,
                "positions": len(self.planned),
                "planned": self.planned,
            }
        )
        if self.text:
            writer.attach(PLAN_FILE, self.text.encode())
        self.done[position] = writer.id
        return writer
