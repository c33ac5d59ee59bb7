# SPDX-License-Identifier: GPL-2.0-or-later
"""Campaigns: a plan expands into runs, each of which is measured, stored, and not measured again on resuming."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fastenough.campaign.plan import Entry, Plan, RunSpec, expand, parse_duration_s, plan_sha256, read_plan
from fastenough.campaign.progress import Clock, Progress
from fastenough.campaign.runner import Keeper, Runner
from fastenough.campaign.stopping import Stopping, listening
from fastenough.campaign.transcript import Transcript
from fastenough.link import Link, find_probe
from fastenough.model import BadInput, Outcome
from fastenough.settings import Settings, tell_settings

__all__ = ["Campaign", "Entry", "Plan", "Progress", "RunSpec", "Stopping", "expand", "parse_duration_s",
           "plan_sha256", "read_plan", "run_campaign"]

_DONE = {Outcome.COMPLETED.value, Outcome.NOT_APPLICABLE.value}


@dataclass(frozen=True)
class Campaign:
    """What came of it: run ids in the order of the plan, those found done at resuming included.

    ``signal``: the number of the signal that stopped it, 0 where it was none.
    """

    id: str
    runs: tuple[str, ...]
    stopped: bool
    signal: int = 0


def _resumable(keeper: Keeper, plan_hash: str, runs: int) -> tuple[str | None, dict[int, str]]:
    """The newest unfinished campaign of this plan and its sound runs, which need not be made again, by position."""
    earlier = [run for run in keeper.runs(plan_sha256=plan_hash) if run.campaign]
    if not earlier:
        return None, {}
    newest = earlier[-1].campaign
    done = {run.position: run.id for run in earlier if run.campaign == newest and run.outcome in _DONE
            and keeper.fault(run.id) is None}
    return (newest, done) if len(done) < runs else (None, {})


def run_campaign(link: Link, plan: Plan, keeper: Keeper, on_progress: Callable[[Progress], None] | None = None, *,
                 resume: bool = False, probe: str | None = None, stopping: Stopping | None = None,
                 journal: Path | None = None, tell: Callable[[str], None] | None = None) -> Campaign:
    """Make every run of the plan, in order, and keep each.

    With ``resume`` the newest unfinished campaign of the same plan in the store goes on.  The plan's settings hold
    from the first run to the last and are put back, by the next campaign if need be (``journal``).  SIGINT and
    SIGTERM end the run in progress in good order (outcome aborted) and the campaign with it.  Raises BadInput for
    what the probe refuses, FastenoughError when the store takes no more; what was recorded stays.  ``tell`` is given
    a line for each setting that an earlier bench left behind, and for each that cannot be made here.
    """
    probe = probe or find_probe(link)
    if link.which(probe) is None:
        raise BadInput(f"{probe}: no such program on the board; name the probe that was built for it")
    stopping = stopping or Stopping()
    keeper.settle()
    specs, plan_hash = expand(plan), plan_sha256(plan)
    found, done = _resumable(keeper, plan_hash, len(specs)) if resume else (None, {})
    campaign = found or f"{plan.name}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secrets.token_hex(2)}"
    origin = {"campaign": campaign, "plan_sha256": plan_hash, "positions": len(specs),
              "planned": tuple(spec.title for spec in specs)}
    clock = Clock([spec for spec in specs if spec.position not in done])

    def report(spec: RunSpec, phase: str, transcript: Transcript | None) -> None:
        if on_progress is not None:
            writer = transcript.writer if transcript else None
            on_progress(Progress(
                campaign, spec.position + 1, len(specs), spec, phase, clock.elapsed_s(), clock.remaining_s(),
                dict(transcript.worst_ns) if transcript else {}, writer.id if writer else None,
                transcript.outcome if transcript else None, reasons=transcript.reasons if transcript else ()))

    with Settings(link, journal) as settings, listening(stopping):
        entries = settings.apply_all(plan.settings)
        tell_settings(settings.put_back, settings.told, entries, tell)
        runner = Runner(link, plan, keeper, probe, stopping, origin, entries)
        for spec in specs:
            if spec.position in done or stopping.asked:
                continue
            clock.begin_run()
            transcript = runner.measure(spec, partial(report, spec))
            clock.end_run()
            report(spec, "ended", transcript)
            assert transcript.writer is not None
            done[spec.position] = transcript.writer.id
    return Campaign(campaign, tuple(done[position] for position in sorted(done)), stopping.asked, stopping.signal)
