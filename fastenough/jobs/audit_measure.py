# SPDX-License-Identifier: GPL-2.0-or-later
"""Measured audit: A/B-test each available change under each load, repeat those with an effect, then test them combined.

Each test is one of :mod:`ab`: runs without and with the change alternate, and the change is undone after each run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fastenough import report
from fastenough.analysis import judge
from fastenough.analysis.change_effects import ChangeEffect, best_of, effect_of, judge_effects
from fastenough.campaign import Plan
from fastenough.jobs.ab import AbRuns, AbTest
from fastenough.jobs.job_store import store_conclusion
from fastenough.model import BadInput, NotApplicable
from fastenough.report.conclusions import tried_section
from fastenough.report.document import Section
from fastenough.store import Store

BOOT = "boot"
"""What stands for the name of a setting where a configuration of the board is the change."""


@dataclass(frozen=True)
class AuditTrials:
    """``alone``: each change under each load, judged together; ``refused``: the change and why it was not tried.

    ``again``: those shown to do something, tried once more and judged by these runs alone.  ``best``: the changes that
    help both times, and ``together`` what the settings among them do at once; empty where
    fewer than two do.  ``signal``:
    the number of what stopped it, or 0.
    """

    alone: tuple[ChangeEffect, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    again: tuple[ChangeEffect, ...] = ()
    best: Mapping[str, str] | None = None
    together: tuple[ChangeEffect, ...] = ()
    signal: int = 0


def trials(plan: Plan, changes: Mapping[str, str], loads: Sequence[str], rounds: int) -> list[AbTest]:
    """Each change alone under each load; ``plan``: one run, of any load."""
    return [_trial(plan, {name: value}, load, rounds) for name, value in changes.items() for load in loads]


def _trial(plan: Plan, change: Mapping[str, str], load: str, rounds: int) -> AbTest:
    entries = tuple(replace(entry, loads=(load,)) for entry in plan.entries)
    return AbTest(replace(plan, entries=entries), dict(change), rounds)


def measure(
    plan: Plan,
    changes: Mapping[str, str],
    loads: Sequence[str],
    rounds: int,
    *,
    store: Store,
    make: Callable[[AbTest], AbRuns],
    boots: Sequence[str] = (),
) -> AuditTrials:
    """All trials, one after the other.  What the board refuses is told, and the others go on.

    ``boots``: configurations of the board that are tried against the plan's, each by itself.
    """
    planned = trials(plan, changes, loads, rounds)
    planned += [replace(_trial(plan, {}, load, rounds), booted=name) for name in boots for load in loads]
    alone, refused, signal = _made(planned, store, make)
    found = judge_effects(alone)
    if signal:
        return AuditTrials(found, refused, signal=signal)
    shown = {(each.name, each.load) for each in found if each.helps or each.harms}
    once_more = [replace(trial, again=True) for trial in planned if _known_as(trial) in shown]
    repeated, more, signal = _made(once_more, store, make)
    again = judge_effects(repeated)
    best = best_of(again)
    settings = {name: value for name, value in best.items() if name in changes}
    if signal or len(settings) < 2:
        return AuditTrials(found, refused + more, again, best, (), signal)
    whole, last, signal = _made([_trial(plan, settings, load, rounds) for load in loads], store, make)
    return AuditTrials(found, refused + more + last, again, best, judge_effects(whole), signal)


def conclude_trials(measured: AuditTrials, conclusions: Sequence[str], store: Store) -> Section:
    """What follows from all trials, as a chapter, which the store keeps."""
    section = tried_section(conclusions, _tables(measured), measured.refused)
    store_conclusion(store, _runs(measured, store), section)
    return section


def report_trials(measured: AuditTrials, section: Section, store: Store, out: Path) -> None:
    """A report on all runs of the trials, what follows from them first."""
    runs = list(map(store.load, _runs(measured, store)))
    report.write_report(runs, judge(runs), out, answers=(section,))


def _tables(measured: AuditTrials) -> tuple[tuple[str, tuple[ChangeEffect, ...]], ...]:
    return (
        ("Each change alone", measured.alone),
        ("Once more, to confirm", measured.again),
        ("All of these at once", measured.together),
    )


def _runs(measured: AuditTrials, store: Store) -> list[str]:
    campaigns = dict.fromkeys(each.campaign for _, tried in _tables(measured) for each in tried)
    return [run.id for campaign in campaigns for run in store.runs(campaign=campaign, brief=True)]


def _change(trial: AbTest) -> dict[str, str]:
    return dict(trial.change) or {BOOT: trial.booted}


def _known_as(trial: AbTest) -> tuple[str, str]:
    """The name and the load by which a trial's result is known."""
    return (" ".join(f"{name}={value}" for name, value in _change(trial).items()), trial.plan.entries[0].loads[0])


def _made(
    planned: Sequence[AbTest], store: Store, make: Callable[[AbTest], AbRuns]
) -> tuple[list[ChangeEffect], tuple[tuple[str, str], ...], int]:
    """What was tried, what was refused, and the signal that ended it."""
    tried: list[ChangeEffect] = []
    refused: dict[str, str] = {}
    for trial in planned:
        name = trial.name
        if name in refused:
            continue
        try:
            made = make(trial)
        except (NotApplicable, BadInput) as reason:
            refused[name] = str(reason)
            continue
        _, load = _known_as(trial)
        tried.append(effect_of(made.pairs(store.load), _change(trial), load, made.campaign))
        if made.signal:
            return tried, tuple(refused.items()), made.signal
    return tried, tuple(refused.items()), 0
