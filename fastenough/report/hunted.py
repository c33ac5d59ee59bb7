# SPDX-License-Identifier: GPL-2.0-or-later
"""A hunt as a chapter: what was tried, how it was halved, what was confirmed, and the recipe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from fastenough import words
from fastenough.hunt.asking import Made, Phase, Subject
from fastenough.hunt.recipes import described
from fastenough.hunt.search import Search
from fastenough.hunt.space import Space
from fastenough.hunt.tail import tail_of, typical_ns
from fastenough.report.document import Column, Folded, Part, Section, Source, Table, Text

_NS = words.microseconds
_MOST_LOOKS = 12
_STEPS = (
    ("hunt-fixed", "The fixed loads", (Phase.FIXED,)),
    ("hunt-halving", "Tried by themselves, half of them left after each round", (Phase.HALVING,)),
    ("hunt-confirming", "Confirmation, in turns, by fresh trials", (Phase.CONFIRMING,)),
    ("hunt-smaller", "Stressors left out, then levels set back", (Phase.FEWER, Phase.PLAINER)),
)
_MEANS = (
    "A trial's value is typical of it: the geometric mean of the greatest latencies of its blocks of 250 ms. Of "
    "several trials the least and the greatest such value are told, and their geometric mean."
)


def _what(space: Space, subject: Subject) -> str:
    if isinstance(subject, str):
        return f"load {subject}"
    return described(space, subject[0]) if len(subject) == 1 else f"{len(subject)} recipes in turns"


def _row(name: str, trials: Sequence[Made]) -> tuple[object, ...]:
    tails = [tail_of(made.block_maxima_ns) for made in trials if made.block_maxima_ns]
    seen = (typical_ns(min(tails)), typical_ns(fmean(tails)), typical_ns(max(tails))) if tails else (None,) * 3
    return (name, len(trials), len(trials) - len(tails), *seen)


def _columns(first: str) -> tuple[Column, ...]:
    return (
        Column(first, numeric=False),
        Column("trials"),
        Column("that failed"),
        Column("least [µs]", _NS),
        Column("mean [µs]", _NS),
        Column("greatest [µs]", _NS),
    )


def _phases(made: Sequence[Made]) -> Table:
    rows = [_row(phase, mine) for phase in Phase if (mine := [one for one in made if one.ask.phase is phase])]
    return Table("hunt-phases", "What the trials were made for", _columns("phase"), rows, note=_MEANS)


def _groups(search: Search) -> Table | None:
    """The worst looks: what was chosen from."""
    if not search.looks:
        return None
    worst = sorted(search.looks, key=lambda look: -look.tail)[:_MOST_LOOKS]
    return Table(
        "hunt-groups",
        f"The worst of {words.counted(len(search.looks), 'look')} at groups",
        (Column("recipe", numeric=False), Column("typically at worst [µs]", _NS)),
        [(described(search.space, look.recipe) or "nothing", typical_ns(look.tail)) for look in worst],
    )


def _steps(search: Search, made: Sequence[Made]) -> Iterator[Table]:
    for name, caption, phases in _STEPS:
        by_subject: dict[Subject, list[Made]] = {}
        for one in made:
            if one.ask.phase in phases:
                by_subject.setdefault(one.ask.subject, []).append(one)
        if by_subject:
            yield Table(
                name,
                caption,
                _columns("load"),
                [_row(_what(search.space, subject), mine) for subject, mine in by_subject.items()],
            )


def hunt_section(search: Search, made: Sequence[Made], conclusion: str, recipe: str, culprit: str) -> Section:
    """``recipe``: the load file of what was found, ``culprit``: who delays under it; empty where nothing was found."""
    tables = [table for table in (_groups(search), *_steps(search, made)) if table is not None]
    parts: list[Part] = [_phases(made), *(Folded(table.caption, [table], printed=False) for table in tables)]
    if recipe:
        parts += [Text(f"Under what was found, {culprit}. As a load file:"), Source(recipe)]
    return Section("hunt", "The hunt", f"{conclusion[0].upper()}{conclusion[1:]}.", parts)
