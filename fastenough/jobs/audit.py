# SPDX-License-Identifier: GPL-2.0-or-later
"""Audit: apply all checks to the facts of a board, and measure the changes that its findings recommend.

A measured audit A/B-tests each available change under each load, repeats those with an effect, then tests them
combined.  Each test is one of :mod:`ab` with a fixed number of rounds: many changes judged together need smaller errors
than evidence that is valid after every round can reach in few rounds.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fastenough import report
from fastenough.analysis import judge
from fastenough.analysis.change_effects import ChangeEffect, effect_of, helpful_changes, judge_effects
from fastenough.analysis.machine import emulation_cautions
from fastenough.analysis.paired import LEAST_OF_ORDER
from fastenough.audit import Finding, FindingState, Severity, audit
from fastenough.campaign import Plan
from fastenough.campaign.runner import ChangedSystem
from fastenough.facts import collect
from fastenough.jobs.ab import IDLE_LATENCY, AbRuns, AbTest, RunFailed
from fastenough.jobs.job_store import store_conclusion
from fastenough.link import Link
from fastenough.model import BadInput, NotApplicable
from fastenough.report.conclusions import effects_section
from fastenough.report.document import Section
from fastenough.store import Store


@dataclass(frozen=True)
class Audit:
    """The findings on a board.  ``machine``: its host name, CPU model and kernel release."""

    board: str
    machine: str
    findings: tuple[Finding, ...]

    def of(self, state: FindingState, severity: Severity | None = None) -> list[Finding]:
        return [finding for finding in self.findings if finding.state is state and severity in (None, finding.severity)]


def audit_of(board: str, profile: Mapping[str, Any]) -> Audit:
    """The audit of a machine with a known profile."""
    return Audit(board, _machine(profile), tuple(audit(profile)))


def audit_board(board: str, link: Link) -> Audit:
    """The audit of a board; changes nothing on it."""
    return audit_of(board, collect(link))


def _machine(profile: Mapping[str, Any]) -> str:
    kernel, cpu = profile.get("kernel") or {}, profile.get("cpu") or {}
    known = (profile.get("hostname"), cpu.get("model"), kernel.get("release"))
    return ", ".join(str(part) for part in known if part) or "unknown machine"


BOOT = "boot"
"""Key used instead of a setting name if the change is a configuration of the board."""


@dataclass(frozen=True)
class AuditTrials:
    """Effects of the tests.

    ``single``: each change under each load, judged together.  ``refused``: changes that were not tested, or whose test
    failed, with reasons.  ``repeated``: second tests of the changes with a significant effect and no incomplete test,
    judged on these runs only.  ``best``: changes that help in both tests, of those without an incomplete test.
    ``combined``: effect of all settings among them at once; empty if fewer than two.  ``signal``: number of the signal
    that stopped it, or 0.  ``cautions``: caveats of the result.  ``incomplete``: names of changes of which a test was
    refused or failed.
    """

    single: tuple[ChangeEffect, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    repeated: tuple[ChangeEffect, ...] = ()
    best: Mapping[str, str] | None = None
    combined: tuple[ChangeEffect, ...] = ()
    signal: int = 0
    cautions: tuple[str, ...] = ()
    incomplete: frozenset[str] = frozenset()


def audit_name(request: object, store: Store, *, resume: bool) -> str:
    """The name of an audit, with which the campaigns of its tests begin.

    ``request``: all that decides which tests are made and where, with a reproducible text.  ``resume``: the name of the
    latest audit of the same request, if the store has a run of it; otherwise a new name.
    """
    same = f"audit-{hashlib.sha256(repr(request).encode()).hexdigest()[:8]}-"
    begun = [run.campaign for run in store.runs(brief=True) if run.campaign and run.campaign.startswith(same)]
    return begun[-1][: len(same) + 6] if resume and begun else f"{same}{secrets.token_hex(3)}"


def trials(plan: Plan, changes: Mapping[str, str], loads: Sequence[str], rounds: int) -> list[AbTest]:
    """One A/B test per change and load; ``plan``: one run, of any load."""
    return [_trial(plan, {name: value}, load, rounds) for name, value in changes.items() for load in loads]


def _trial(plan: Plan, change: Mapping[str, str], load: str, rounds: int) -> AbTest:
    """A change of idle states is tested with ``latency=off``: the probe would prevent these states in both arms."""
    allowed = {"latency": ("off",)} if IDLE_LATENCY in change else {}
    entries = tuple(replace(entry, loads=(load,), parameters={**entry.parameters, **allowed}) for entry in plan.entries)
    return AbTest(replace(plan, entries=entries), dict(change), rounds, least_of_order=LEAST_OF_ORDER)


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
    """Run all tests one after the other.  A change that the board refuses, and a test of which a run fails, are noted,
    and the others continue.

    ``boots``: configurations of the board to compare with that of the plan, each alone.  Raises ChangedSystem if the
    board is not the system of the stored runs, to which complete tests belong.
    """
    planned = trials(plan, changes, loads, rounds)
    planned += [replace(_trial(plan, {}, load, rounds), booted=name) for name in boots for load in loads]
    first = _run_trials(planned, store, make)
    single = judge_effects(first.effects)
    if first.signal:
        return AuditTrials(
            single, first.refused, signal=first.signal, cautions=first.cautions, incomplete=first.incomplete
        )
    significant = {
        (effect.name, effect.load) for effect in single if effect.significant and effect.name not in first.incomplete
    }
    once_more = [replace(trial, again=True) for trial in planned if _known_as(trial) in significant]
    second = _run_trials(once_more, store, make)
    refused, incomplete = first.refused + second.refused, first.incomplete | second.incomplete
    repeated = judge_effects(second.effects)
    best = helpful_changes([effect for effect in repeated if effect.name not in incomplete])
    settings = {name: value for name, value in best.items() if name in changes}
    measured = AuditTrials(single, refused, repeated, best, (), second.signal, first.cautions, incomplete)
    if second.signal or len(settings) < 2:
        return measured
    last = _run_trials([_trial(plan, settings, load, rounds) for load in loads], store, make)
    return replace(measured, refused=refused + last.refused, combined=judge_effects(last.effects), signal=last.signal)


def conclude_trials(measured: AuditTrials, conclusions: Sequence[str], store: Store) -> Section:
    """The result of all tests as a section, which is also stored."""
    section = effects_section(conclusions, _tables(measured), measured.refused, measured.cautions)
    store_conclusion(store, _runs(measured, store), section)
    return section


def report_trials(measured: AuditTrials, section: Section, store: Store, out: Path) -> None:
    """Report on all runs of the tests, with the result first."""
    runs = list(map(store.load, _runs(measured, store)))
    report.write_report(runs, judge(runs), out, answers=(section,))


def _tables(measured: AuditTrials) -> tuple[tuple[str, tuple[ChangeEffect, ...]], ...]:
    return (
        ("Each change alone", measured.single),
        ("Second trial, to confirm", measured.repeated),
        ("All of these together", measured.combined),
    )


def _runs(measured: AuditTrials, store: Store) -> list[str]:
    campaigns = dict.fromkeys(effect.campaign for _, effects in _tables(measured) for effect in effects)
    return [run.id for campaign in campaigns for run in store.runs(campaign=campaign, brief=True)]


def _change(trial: AbTest) -> dict[str, str]:
    return dict(trial.change) or {BOOT: trial.booted}


def _known_as(trial: AbTest) -> tuple[str, str]:
    """Name of the change and load, which identify the result of a test."""
    return (" ".join(f"{name}={value}" for name, value in _change(trial).items()), trial.plan.entries[0].loads[0])


@dataclass(frozen=True)
class _FinishedTests:
    """``refused``: changes that the board refused, and tests that failed, with reasons; ``incomplete``: changes with
    a refused or failed test, so that a harm under its load is unknown; ``signal``: number of the signal that stopped
    it, or 0."""

    effects: Sequence[ChangeEffect]
    refused: tuple[tuple[str, str], ...]
    incomplete: frozenset[str]
    signal: int
    cautions: tuple[str, ...]


def _run_trials(planned: Sequence[AbTest], store: Store, make: Callable[[AbTest], AbRuns]) -> _FinishedTests:
    effects: list[ChangeEffect] = []
    refused: dict[str, str] = {}
    incomplete: set[str] = set()
    signal = 0
    cautions: list[str] = []
    for trial in planned:
        change, load = _known_as(trial)
        if trial.name in refused or signal:
            continue
        try:
            made = make(trial)
        except ChangedSystem:
            raise
        except (NotApplicable, BadInput) as reason:
            refused[trial.name] = str(reason)
            incomplete.add(change)
        except RunFailed as reason:
            refused[f"{trial.name} under load {load}"] = str(reason)
            incomplete.add(change)
        else:
            pairs = made.pairs(store.load)
            effects.append(effect_of(pairs, _change(trial), load, made.campaign))
            runs = [run for pair in pairs for run in (pair.without, pair.with_change)]
            cautions = cautions or emulation_cautions(runs)
            signal = made.signal
    return _FinishedTests(effects, tuple(refused.items()), frozenset(incomplete), signal, tuple(cautions))
