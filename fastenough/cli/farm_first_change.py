# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough farm first-change``: find the first board of an archive whose latencies changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import click

from fastenough import words
from fastenough.analysis.surveillance import LEAST_BEFORE
from fastenough.cli.archive_options import ArchiveOptions, archive_options, print_first_rows
from fastenough.cli.commands import Command
from fastenough.cli.options import FiniteRange, json_option
from fastenough.cli.output import micros, print_json, say
from fastenough.farm.config import FALSE_CHANGES
from fastenough.fleet.board_rows import BoardRows, IntArray, sums_and_maxima
from fastenough.history.schema import CYCLE_S
from fastenough.history.tail import TailPoint, mean_between, tail_points

_NUMBERS = ("begin_ns", "end_ns", "count", "max_ns")


@dataclass(frozen=True)
class SeriesCourse:
    """The changes of a series of a board that are not withdrawn.

    ``cycles``: number of complete cycles with values; ``intervals``: number of intervals with values.
    """

    series: str
    cycles: int
    intervals: int
    changes: tuple[TailPoint, ...]

    @property
    def too_short(self) -> bool:
        return self.cycles <= LEAST_BEFORE


@dataclass(frozen=True)
class ArchivedCourse:
    """The series of a board that have values, in the order of names."""

    board: str
    type: str
    series: tuple[SeriesCourse, ...]

    @property
    def too_short(self) -> bool:
        return all(of_series.too_short for of_series in self.series)


@dataclass(frozen=True)
class ArchivedChange:
    """A change of a board: the maxima of cycles were about ``was_ns``, and about ``now_ns`` from ``at_s`` on.

    ``until_s``: end of a trend, None for a step.  ``noted_s``: end of the cycle that showed the change.
    """

    board: str
    type: str
    series: str
    at_s: int
    until_s: int | None
    was_ns: int
    now_ns: int
    noted_s: int


@dataclass(frozen=True)
class FirstChange:
    """``first``: the earliest of ``changes``, None without any.  ``too_short``: boards with too few cycles.

    ``excluded_intervals``: intervals of series with too few cycles, on boards of which another series is searched.
    """

    boards: int
    too_short: int
    excluded_intervals: int
    first: ArchivedChange | None
    changes: tuple[ArchivedChange, ...]


@dataclass(frozen=True)
class FindChanges:
    """The job: changes of a board's tail, by the method of the farm.

    ``false_changes``: accepted number per year for all boards together.
    """

    false_changes: float

    @property
    def columns(self) -> tuple[str, ...]:
        return *_NUMBERS, "series"

    def of_board(self, board: BoardRows, boards: int) -> ArchivedCourse:
        """The changes of the greatest values of its cycles: of each series by itself, all CPUs together."""
        begin_ns, end_ns, count, maximum = map(board.numbers, _NUMBERS)
        cycle = begin_ns // (CYCLE_S * 10**9)
        complete = cycle < end_ns.max() // (CYCLE_S * 10**9)
        measured = {series: rows & (count > 0) for series, rows in board.by_series().items()}
        cycles = {
            series: sums_and_maxima(cycle[rows & complete], count[rows & complete], maximum[rows & complete])
            for series, rows in measured.items()
        }
        searched = sum(numbers.size > LEAST_BEFORE for numbers, _, _ in cycles.values())
        # each searched series is another chance of a false change
        between = mean_between(boards * max(1, searched), self.false_changes)
        return ArchivedCourse(
            board.board,
            board.type,
            tuple(
                SeriesCourse(series, int(cycles[series][0].size), int(rows.sum()), _changes(*cycles[series], between))
                for series, rows in measured.items()
                if rows.any()
            ),
        )


def _changes(cycles: IntArray, counts: IntArray, maxima: IntArray, between: float) -> tuple[TailPoint, ...]:
    """The changes of cycles that are not withdrawn."""
    points = tail_points((cycles * CYCLE_S).tolist(), maxima.tolist(), counts.tolist(), between)
    return tuple(point for point in points if point.withdrawn_s is None)


def first_change(courses: Sequence[ArchivedCourse]) -> FirstChange:
    """The changes of all boards in the order of time; those of one instant in the order in which they were noted."""
    changes = [
        ArchivedChange(
            course.board,
            course.type,
            of_series.series,
            point.at_s,
            point.until_s,
            point.was_ns,
            point.now_ns,
            point.noted_s,
        )
        for course in courses
        for of_series in course.series
        for point in of_series.changes
    ]
    changes.sort(key=lambda change: (change.at_s, change.noted_s, change.board, change.series))
    too_short = sum(course.too_short for course in courses)
    excluded_intervals = sum(
        of_series.intervals
        for course in courses
        if not course.too_short
        for of_series in course.series
        if of_series.too_short
    )
    return FirstChange(len(courses), too_short, excluded_intervals, changes[0] if changes else None, tuple(changes))


def _print(found: FirstChange) -> None:
    if found.boards == found.too_short:
        say("No board was searched for changes.")
    elif found.first is None:
        say(f"No change found on {words.counted(found.boards - found.too_short, 'board')}.")
    else:
        first = found.first
        changed = len({change.board for change in found.changes})
        say(
            f"The first of {changed:,} changed boards ({found.boards:,} in all) is {first.board}, "
            f"from {words.iso(first.at_s)} on: maxima of {words.latency(first.was_ns)} before, "
            f"{words.latency(first.now_ns)} after"
        )
        print_first_rows(
            "Changes",
            ("board", "type", "series", "from", "to", "before [µs]", "after [µs]"),
            [
                (
                    change.board,
                    change.type,
                    change.series,
                    words.iso(change.at_s),
                    "" if change.until_s is None else words.iso(change.until_s),
                    micros(change.was_ns),
                    micros(change.now_ns),
                )
                for change in found.changes
            ],
            texts=5,
        )
    _print_excluded(found)


def _print_excluded(found: FirstChange) -> None:
    cycles = f"more than {LEAST_BEFORE} complete cycles of {CYCLE_S // 3600} h"
    if found.too_short:
        say(f"Not searched: {words.counted(found.too_short, 'board')} without a series of {cycles}.")
    if found.excluded_intervals:
        intervals = words.counted(found.excluded_intervals, "interval")
        say(f"Excluded: {intervals} of other series, which have no {cycles}.")
        say("Values of different series are not compared.")


@click.command("first-change", cls=Command, example="fastenough farm first-change --archive archive")
@click.option(
    "--false-changes",
    type=FiniteRange(0.001, 1000.0),
    default=FALSE_CHANGES,
    show_default=True,
    help="Accepted number of changes found by chance per year, all boards together.",
)
@archive_options
@json_option
def command(*, false_changes: float, of_archive: ArchiveOptions, as_json: bool) -> None:
    """Find the first board of an archive that changed.

    Searches the greatest values of each 12 hours of every board for steps and trends, as the pages of a farm do, and
    prints all changes in the order of time.  The first changed board often has the first new kernel or part.  Boards
    with 20 or fewer complete cycles of 12 hours are not searched.

    Only values of one series are compared.  If the archive has several series of a board, each is searched by itself.
    """
    found = first_change(of_archive.compute(FindChanges(false_changes)))
    if as_json:
        print_json(asdict(found))
    else:
        _print(found)
