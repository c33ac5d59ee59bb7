# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough audit --measure``: the effect of each change alone, then of the best changes together."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from fastenough import words
from fastenough.analysis.change_effects import ChangeEffect
from fastenough.analysis.compare import finding
from fastenough.analysis.paired import ROUND, TAIL_QUANTILE
from fastenough.audit import changeable_now
from fastenough.audit.emit.lines import Remark
from fastenough.board import AS_BOOTED, open_board
from fastenough.campaign import Entry, Plan
from fastenough.campaign.expand import expand, plan_sha256
from fastenough.campaign.plan_check import check_plan
from fastenough.cli.output import micros, print_table, say
from fastenough.cli.privileges import boards_for
from fastenough.cli.progress import Display
from fastenough.files import Untrusted, refusal_text
from fastenough.folder import Folder
from fastenough.jobs.ab import AbRuns, AbTest, is_begun, make_ab_test
from fastenough.jobs.audit import Audit, AuditTrials, audit_name, measure
from fastenough.model import BadInput, ExitStatus, NotApplicable
from fastenough.store import Store

_BESIDE_S = 3.5
"""Approximate time of a run beyond its measuring time."""


@dataclass(frozen=True)
class MeasureArguments:
    """Arguments of ``--measure``.

    ``only``: settings, empty for all.  ``boots``: configurations of the board, the first is the base of the comparison.
    ``cpus``: measured CPUs, empty for all.
    """

    board: str
    loads: Sequence[str]
    rounds: int
    duration_ns: int
    interval: str
    only: Sequence[str]
    as_granted: bool
    resume: bool
    boots: Sequence[str] = ()
    cpus: str = ""

    @property
    def plan(self) -> Plan:
        parameters = {"interval": (self.interval,)} | ({"affinity": (self.cpus,)} if self.cpus else {})
        entry = Entry("timer", (self.loads[0],), self.duration_ns / 1e9, parameters)
        return Plan("audit", (entry,), boards=(self.board,), configurations=(self.configuration,))

    @property
    def configuration(self) -> str:
        """Configuration of all runs but those that try another."""
        return self.boots[0] if self.boots else AS_BOOTED

    @property
    def runs(self) -> int:
        """Number of runs of one change."""
        return ROUND * self.rounds * len(self.loads)

    def changes(self, audit: Audit) -> dict[str, str]:
        """Name and value of each setting to try: with ``boots`` only those of ``only``; raises BadInput for a setting
        that no finding changes."""
        available = {name: value for name, (_, value) in changeable_now(audit.findings).items()}
        strange = [name for name in self.only if name not in available]
        if strange:
            raise BadInput(
                f"--only {', '.join(strange)}: no finding of this system is fixed by that setting; available: "
                f"{', '.join(available) or 'none'}"
            )
        everything = not self.only and not self.boots
        return {name: value for name, value in available.items() if everything or name in self.only}


def measured_audit(arguments: MeasureArguments, audit: Audit, store: Store) -> AuditTrials:
    """Make all trials; raises BadInput if nothing can be changed."""
    if arguments.boots and open_board(arguments.board).configurations() == (AS_BOOTED,):
        raise NotApplicable(
            f"--boot: board {arguments.board} does not boot by itself; a plan with [[configuration]] states "
            "how to boot each (docs/plans.md)"
        )
    changes = arguments.changes(audit)
    if not changes and not arguments.boots[1:]:
        raise BadInput(
            "no finding can be changed while the system runs, so there is nothing to measure; for changes at boot "
            "or in the kernel use --boot, if the board boots by itself, or a campaign"
        )
    check_plan(arguments.plan)
    _print_plan(arguments, [*changes, *(f"booted {name}" for name in arguments.boots[1:])])
    return measure(
        arguments.plan,
        changes,
        arguments.loads,
        arguments.rounds,
        store=store,
        make=_making(arguments, store, audit_name(_request(arguments, audit), store, resume=arguments.resume)),
        boots=arguments.boots[1:],
    )


def _print_plan(arguments: MeasureArguments, changes: Sequence[str]) -> None:
    runs = arguments.runs * len(changes)
    with Display() as display:
        display.tell(
            f"{words.counted(len(changes), 'change')} ({', '.join(changes)}) under "
            f"{words.counted(len(arguments.loads), 'load')}: {runs} runs, about "
            f"{words.duration(runs * (arguments.duration_ns + _BESIDE_S * 1e9))}; settings are restored after each run"
        )


def _request(arguments: MeasureArguments, audit: Audit) -> object:
    """What all trials of an audit have in common, and the machine with its kernel.

    Without the changes: each trial has its own, and a finding that appears or disappears costs no other trial.
    """
    plan_hash = plan_sha256(arguments.plan, expand(arguments.plan))
    loads, boots = list(arguments.loads), list(arguments.boots)
    return (audit.machine, plan_hash, loads, arguments.rounds, boots)


def _making(arguments: MeasureArguments, store: Store, audit: str) -> Callable[[AbTest], AbRuns]:
    """``audit``: name of the audit, whose earlier runs are used."""
    compared: set[str] = set()

    def make(requested: AbTest) -> AbRuns:
        trial = replace(requested, audit=audit)
        with Display() as display:
            opened, granted = boards_for(trial.with_change(), arguments.as_granted, lambda line: None)
            ready = trial.measured_by(granted)
            return make_ab_test(
                ready,
                store,
                display,
                opened=opened,
                tell=display.tell,
                resume=is_begun(ready, store),
                compared=compared,
            )

    return make


def _row(trial: ChangeEffect) -> tuple[str, ...]:
    effect, tail = trial.effect, trial.tail
    if tail is None:
        return (trial.name, trial.load, *("–",) * 6, "; ".join(trial.reasons) or "too little data")
    of_quantile = (
        (*("–",) * 4, "; ".join(trial.reasons))
        if effect is None
        else (
            words.percent(effect.quantile),
            micros(effect.without_ns),
            micros(effect.effect_ns),
            words.microseconds_interval(*effect.ends),
            finding(effect),
        )
    )
    return (
        trial.name,
        trial.load,
        *of_quantile,
        f"{words.rate(tail.without)} -> {words.rate(tail.with_change)}",
        finding(tail),
    )


_COLUMNS = ("change", "load", "at", "without", "effect", "95 % interval", "quantile", "above the limit", "rate")


def effect_text(trial: ChangeEffect) -> str:
    """The measured effect of one change under one load, without the name of the change."""
    effect, tail = trial.effect, trial.tail
    nothing = f"no conclusion ({'; '.join(trial.reasons)})"
    if tail is None:
        return f"under load {trial.load}: {nothing}"
    effects = []
    if effect is not None:
        interval = f"{words.microseconds_interval(effect.lower_ns, effect.upper_ns)} us"
        nothing = f"no significant effect ({words.percent(effect.quantile)}: {interval})"
    if effect is not None and effect.direction:
        effects.append(
            f"{words.percent(effect.quantile)} {_direction(effect.direction)} by {micros(effect.effect_ns)} us "
            f"({interval})"
        )
    if tail.direction:
        effects.append(
            f"rate of values above {micros(tail.limit_ns)} us {_direction(tail.direction)}: "
            f"{words.rate(tail.with_change)} instead of {words.rate(tail.without)}"
        )
    return f"under load {trial.load}: {'; '.join(effects) or nothing}"


def _direction(direction: int) -> str:
    return "smaller" if direction < 0 else "greater"


def remarks(measured: AuditTrials) -> dict[str, Remark]:
    """The comment on each setting in files for other tools."""
    texts: dict[str, list[str]] = {}
    confirmed = {(trial.name, trial.load): trial for trial in measured.repeated}
    for trial in measured.single:
        for name in trial.change:
            texts.setdefault(name, []).append(effect_text(confirmed.get((trial.name, trial.load), trial)))
    for name in {name for trial in measured.single if trial.name in measured.incomplete for name in trial.change}:
        texts[name].append("another trial had no result")
    return {name: Remark("; ".join(effects), name in (measured.best or {})) for name, effects in texts.items()}


def conclusions(measured: AuditTrials) -> Iterator[str]:
    """The conclusions of all trials, one sentence each."""
    best, trials = measured.best or {}, measured.single
    if not trials:
        yield "nothing was measured"
    elif best:
        named = ", ".join(f"{name}={value}" for name, value in best.items())
        yield f"smaller tail, confirmed in a second trial: {named}"
    elif significant := {trial.name for trial in trials if trial.significant}:
        incomplete = " or a trial without result" if measured.incomplete & significant else ""
        yield f"no change is recommended: none had a smaller tail in both trials without a greater one{incomplete}"
    else:
        names = list(dict.fromkeys(trial.name for trial in trials))
        of = names[0] if len(names) == 1 else f"any of {len(names)} changes"
        yield f"no significant effect of {of}; this does not prove that there is none"
    for trial in measured.combined:
        yield f"all of these together, {effect_text(trial)}"


def print_measured(measured: AuditTrials) -> None:
    """Print the conclusions, tables, and the meaning of their columns."""
    print()
    for text in conclusions(measured):
        say(text)
    for text in measured.cautions:
        say(f"caveat: {text}")
    if measured.single:
        print_table(
            "\nEach change alone, in µs, from pairs of runs without and with it in random order",
            _COLUMNS,
            [_row(trial) for trial in measured.single],
            texts=2,
        )
        for title, trials in (
            ("Second trial, to confirm", measured.repeated),
            ("All of these together", measured.combined),
        ):
            if trials:
                print_table(f"\n{title}", _COLUMNS, [_row(trial) for trial in trials], texts=2)
        say(
            f'"at": {words.percent(TAIL_QUANTILE)}, or a lower quantile if the runs are too short; the interval is the '
            "wider of the interval of the pairs (Student's t) and of a block bootstrap over time"
        )
        say('"above the limit": rate of values above the middle between the median runs without and with the change')
        say('"smaller" and "greater" are significant for all changes and loads together (Holm)')
    for name, reason in measured.refused:
        say(f"no result: {name}: {reason}")


@dataclass(frozen=True)
class AuditMeasurement:
    """The trials of an audit, as ``--json`` prints them; the fields are those of `AuditTrials`.

    ``campaigns``: those of ``single``, ``repeated`` and ``combined``, in this order.
    """

    conclusions: Sequence[str]
    single: Sequence[ChangeEffect]
    repeated: Sequence[ChangeEffect]
    best: Mapping[str, str] | None
    combined: Sequence[ChangeEffect]
    refused: Mapping[str, str]
    cautions: Sequence[str]
    campaigns: Sequence[str]

    @classmethod
    def of(cls, measured: AuditTrials) -> AuditMeasurement:
        """The document of these trials."""
        return cls(
            list(conclusions(measured)),
            measured.single,
            measured.repeated,
            measured.best,
            measured.combined,
            dict(measured.refused),
            measured.cautions,
            [trial.campaign for trial in (*measured.single, *measured.repeated, *measured.combined)],
        )


def status_of(measured: AuditTrials) -> int:
    """Exit status: 0 if an effect was measured, 3 if there is no conclusion on any change."""
    if measured.signal:
        return 128 + measured.signal
    return ExitStatus.DONE if any(trial.tail for trial in measured.single) else ExitStatus.INCONCLUSIVE


@contextmanager
def _folder_of(path: Path, names: Iterable[str]) -> Iterator[Folder]:
    """The folder, made if needed; raises BadInput if it has one of these files or cannot be written."""
    try:
        with Folder.at(path, make=True) as folder:
            existing = sorted(set(names) & set(folder.names()))
            if existing:
                raise BadInput(f"--emit {path}: {existing[0]} exists; name an empty folder")
            folder.require_room()
            yield folder
    except (OSError, Untrusted) as error:
        reason = refusal_text(error, "name another folder")
        raise BadInput(f"--emit {path}: cannot be written: {reason}") from error


def make_folder(folder: Path, names: Iterable[str]) -> None:
    """Make the folder of these files; raises BadInput if one of them exists or none can be written."""
    with _folder_of(folder, names):
        pass


def write_files(texts: Mapping[str, str], folder: Path) -> None:
    """Write new files into a folder, made if needed; raises BadInput if one of them exists or cannot be written."""
    with _folder_of(folder, texts) as opened:
        for name, text in texts.items():
            with os.fdopen(opened.create(name), "w", encoding="utf-8") as stream:
                stream.write(text)
