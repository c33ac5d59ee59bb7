# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough audit --measure``: each change on trial by itself, told as a table, then the best of them at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastenough import words
from fastenough.analysis.compare_wording import finding
from fastenough.analysis.paired import AT, ROUND
from fastenough.analysis.tried import Tried
from fastenough.audit import changeable_now
from fastenough.audit.emit.lines import Remark
from fastenough.board import AS_BOOTED, open_board
from fastenough.campaign import Entry, Plan
from fastenough.cli.live import Display
from fastenough.cli.making import check_plan
from fastenough.cli.output import micros, print_table, say
from fastenough.cli.privileges import boards_for
from fastenough.jobs.ab import Made, Trial, is_begun, make_trial
from fastenough.jobs.audit import Audit
from fastenough.jobs.audit_measure import Measured, measure
from fastenough.model import BadInput, ExitStatus, NotApplicable
from fastenough.store import Store

_BESIDE_S = 3.5
"""What a run takes beyond its measuring, about."""


@dataclass(frozen=True)
class Asked:
    """How to measure: ``only``: these settings, all of them where it is empty.  ``boots``: configurations of the board,
    the first of which is what the others are tried against.  ``cpus``: measured ones, all of them where it is empty."""

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
        """What is booted in all runs but those that try another."""
        return self.boots[0] if self.boots else AS_BOOTED

    @property
    def runs(self) -> int:
        """Of one change."""
        return ROUND * self.rounds * len(self.loads)

    def changes(self, audit: Audit) -> dict[str, str]:
        """Name and value of each setting that is tried: with ``boots`` only what is named; raises BadInput for one that
        is no finding here."""
        found = {name: value for name, (_, value) in changeable_now(audit.findings).items()}
        strange = [name for name in self.only if name not in found]
        if strange:
            raise BadInput(
                f"--only {', '.join(strange)}: no finding here is changed by it; there are: "
                f"{', '.join(found) or 'none'}"
            )
        everything = not self.only and not self.boots
        return {name: value for name, value in found.items() if everything or name in self.only}


def measured_audit(asked: Asked, audit: Audit, store: Store) -> Measured:
    """Make all trials; raises BadInput where nothing can be changed."""
    if asked.boots and open_board(asked.board).configurations() == (AS_BOOTED,):
        raise NotApplicable(
            f"--boot: board {asked.board} does not boot by itself; a plan with [[configuration]] says "
            "how it is brought into each: fastenough campaign plan"
        )
    changes = asked.changes(audit)
    if not changes and not asked.boots[1:]:
        raise BadInput(
            "no finding here can be changed while the system runs: there is nothing to measure; what is "
            "changed at boot or by a rebuild: --boot, where the board boots by itself, or a campaign"
        )
    check_plan(asked.plan)
    _tell_before(asked, [*changes, *(f"booted {name}" for name in asked.boots[1:])])
    return measure(
        asked.plan, changes, asked.loads, asked.rounds, store=store, make=_making(asked, store), boots=asked.boots[1:]
    )


def _tell_before(asked: Asked, changes: Sequence[str]) -> None:
    runs = asked.runs * len(changes)
    with Display() as display:
        display.tell(
            f"{words.counted(len(changes), 'change')} ({', '.join(changes)}) under "
            f"{words.counted(len(asked.loads), 'load')}: {runs} runs, about "
            f"{words.duration(runs * (asked.duration_ns + _BESIDE_S * 1e9))}; each is put back after its run"
        )


def _making(asked: Asked, store: Store) -> Callable[[Trial], Made]:
    def make(trial: Trial) -> Made:
        with Display() as display:
            opened, granted = boards_for(trial.with_change(), asked.as_granted, lambda said: None)
            ready = trial.measured_by(granted)
            return make_trial(
                ready, store, display, opened=opened, tell=display.tell, resume=asked.resume and is_begun(ready, store)
            )

    return make


def _row(tried: Tried) -> tuple[str, ...]:
    effect, tail = tried.effect, tried.tail
    if effect is None or tail is None:
        return (tried.name, tried.load, *("–",) * 6, "; ".join(tried.reasons) or "nothing can be said")
    return (
        tried.name,
        tried.load,
        words.percent(effect.quantile),
        micros(effect.without_ns),
        micros(effect.effect_ns),
        words.microseconds_interval(*effect.ends),
        finding(effect),
        f"{words.rate(tail.without)} -> {words.rate(tail.with_it)}",
        finding(tail),
    )


_COLUMNS = ("change", "load", "at", "without", "effect", "95 % interval", "quantile", "beyond the limit", "rate")


def said_of(tried: Tried) -> str:
    """What was measured of one change under one load, in a sentence without its name."""
    effect, tail = tried.effect, tried.tail
    if effect is None or tail is None:
        return f"under load {tried.load}: nothing can be said ({'; '.join(tried.reasons)})"
    interval = f"{words.microseconds_interval(effect.lower_ns, effect.upper_ns)} us"
    said = []
    if effect.direction:
        said.append(
            f"{words.percent(effect.quantile)} {_direction(effect.direction)} by {micros(effect.effect_ns)} us "
            f"({interval})"
        )
    if tail.direction:
        said.append(
            f"values beyond {micros(tail.limit_ns)} us {_direction(tail.direction)}: "
            f"{words.rate(tail.with_it)} instead of {words.rate(tail.without)}"
        )
    nothing = f"no effect could be shown ({words.percent(effect.quantile)}: {interval})"
    return f"under load {tried.load}: {'; '.join(said) or nothing}"


def _direction(direction: int) -> str:
    return "smaller" if direction < 0 else "greater"


def remarks(measured: Measured) -> dict[str, Remark]:
    """What is said of each setting in files for other tools."""
    by: dict[str, list[Tried]] = {}
    confirmed = {(each.name, each.load): each for each in measured.again}
    for each in measured.alone:
        for name in each.change:
            by.setdefault(name, []).append(confirmed.get((each.name, each.load), each))
    return {name: Remark("; ".join(map(said_of, tried)), name in (measured.best or {})) for name, tried in by.items()}


def conclusions(measured: Measured) -> Iterator[str]:
    """What follows from all trials."""
    best, tried = measured.best or {}, measured.alone
    if not tried:
        yield "nothing was measured"
    elif best:
        named = ", ".join(f"{name}={value}" for name, value in best.items())
        yield f"shown to make the tail smaller, and shown again when tried once more: {named}"
    elif measured.again:
        yield "what was shown to do something was not shown to help when it was tried once more: nothing is recommended"
    else:
        names = list(dict.fromkeys(each.name for each in tried))
        of = names[0] if len(names) == 1 else f"any of {len(names)} changes"
        yield f"no effect of {of} could be shown; this is no proof that there is none"
    for each in measured.together:
        yield f"all of these at once, {said_of(each)}"


def print_measured(measured: Measured) -> None:
    """The conclusion, a table, and what its words mean."""
    print()
    for text in conclusions(measured):
        say(text)
    if measured.alone:
        print_table(
            "\nEach change alone, in µs, from pairs of runs without and with it in random order",
            _COLUMNS,
            [_row(each) for each in measured.alone],
            texts=2,
        )
        for title, tried in (("Once more, to confirm", measured.again), ("All of these at once", measured.together)):
            if tried:
                print_table(f"\n{title}", _COLUMNS, [_row(each) for each in tried], texts=2)
        say(
            f'"at": {words.percent(AT)}, or less where the runs are too short for it; the interval is the wider of '
            "that of the pairs (Student's t) and of a block bootstrap over time"
        )
        say('"beyond the limit": how often a value lies beyond the middle of the median runs without and with it')
        say('"smaller" and "greater", of quantile and rate, hold for all changes and loads together (Holm)')
    for name, reason in measured.refused:
        say(f"not tried: {name}: {reason}")


def as_document(measured: Measured) -> dict[str, Any]:
    """For --json."""
    return {
        "conclusions": list(conclusions(measured)),
        "alone": measured.alone,
        "again": measured.again,
        "best": measured.best,
        "together": measured.together,
        "refused": dict(measured.refused),
        "campaigns": [each.campaign for each in (*measured.alone, *measured.again, *measured.together)],
    }


def status_of(measured: Measured) -> int:
    """0 where something was measured, 3 where nothing could be said of any change."""
    if measured.signal:
        return 128 + measured.signal
    return ExitStatus.DONE if any(each.effect for each in measured.alone) else ExitStatus.INCONCLUSIVE


def make_folder(folder: Path, names: Iterable[str]) -> None:
    """For these files, where it is not there; raises BadInput where one of them is there already."""
    there = [name for name in names if (folder / name).exists()]
    if there:
        raise BadInput(f"--emit {folder}: {there[0]} is there already; name an empty folder")
    folder.mkdir(parents=True, exist_ok=True)


def write_files(texts: Mapping[str, str], folder: Path) -> None:
    """Into a folder that is made where it is not there; raises BadInput where one of the files is there already."""
    make_folder(folder, texts)
    for name, text in texts.items():
        (folder / name).write_text(text)
