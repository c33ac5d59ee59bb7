# SPDX-License-Identifier: GPL-2.0-or-later
"""Audit, measured: each change that can be made now on trial by itself under each load, then the best of them at once.

A trial is that of :mod:`ab`: runs without and with the change take turns, and the change is put back after each run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from fastenough.analysis.tried import Tried, best_of, judged_together, try_out
from fastenough.campaign import Plan
from fastenough.jobs.ab import Made, Trial
from fastenough.model import BadInput, NotApplicable
from fastenough.store import Store


@dataclass(frozen=True)
class Measured:
    """``alone``: each change under each load, judged together; ``refused``: the change and why it was not tried.

    ``best``: the changes that help, and ``together`` what they do at once; empty where fewer than two do.  ``signal``:
    the number of what stopped it, or 0.
    """

    alone: tuple[Tried, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    best: Mapping[str, str] | None = None
    together: tuple[Tried, ...] = ()
    signal: int = 0


def trials(plan: Plan, changes: Mapping[str, str], loads: Sequence[str], rounds: int) -> list[Trial]:
    """Each change alone under each load; ``plan``: one run, of any load."""
    return [_trial(plan, {name: value}, load, rounds) for name, value in changes.items() for load in loads]


def _trial(plan: Plan, change: Mapping[str, str], load: str, rounds: int) -> Trial:
    entries = tuple(replace(entry, loads=(load,)) for entry in plan.entries)
    return Trial(replace(plan, entries=entries), dict(change), rounds)


def measure(plan: Plan, changes: Mapping[str, str], loads: Sequence[str], rounds: int, *, store: Store,
            make: Callable[[Trial], Made]) -> Measured:
    """All trials, one after the other.  What the board refuses is told, and the others go on."""
    alone, refused, signal = _made(trials(plan, changes, loads, rounds), store, make)
    found = judged_together(alone)
    best = best_of(found)
    if signal or len(best) < 2:
        return Measured(found, refused, best, (), signal)
    whole, more, signal = _made([_trial(plan, best, load, rounds) for load in loads], store, make)
    return Measured(found, (*refused, *more), best, judged_together(whole), signal)


def _made(planned: Sequence[Trial], store: Store,
          make: Callable[[Trial], Made]) -> tuple[list[Tried], tuple[tuple[str, str], ...], int]:
    """What was tried, what was refused, and the signal that ended it."""
    tried: list[Tried] = []
    refused: dict[str, str] = {}
    for trial in planned:
        name = trial.label(1).removeprefix("B: ")
        if name in refused:
            continue
        try:
            made = make(trial)
        except (NotApplicable, BadInput) as reason:
            refused[name] = str(reason)
            continue
        tried.append(try_out(made.rounds(store.load), trial.change, trial.plan.entries[0].loads[0], made.campaign))
        if made.signal:
            return tried, tuple(refused.items()), made.signal
    return tried, tuple(refused.items()), 0
