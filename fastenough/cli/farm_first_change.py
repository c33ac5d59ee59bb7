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
from fastenough.cli.options import json_option
from fastenough.cli.output import micros, print_json, say
from fastenough.farm.config import FALSE_CHANGES
from fastenough.fleet.board_rows import BoardRows, sums_and_maxima
from fastenough.history.schema import CYCLE_S
from fastenough.history.tail import TailPoint, mean_between, tail_points


@dataclass(frozen=True)
class ArchivedCourse:
    """The changes of a board that are not withdrawn; ``cycles``: number of complete cycles with values."""

    board: str
    type: str
    cycles: int
    changes: tuple[TailPoint, ...]


@dataclass(frozen=True)
class ArchivedChange:
    """A change of a board: the maxima of cycles were about ``was_ns``, and about ``now_ns`` from ``at_s`` on.

    ``until_s``: end of a trend, None for a step.  ``noted_s``: end of the cycle that showed the change.
    """

    board: str
    type: str
    at_s: int
    until_s: int | None
    was_ns: int
    now_ns: int
    noted_s: int


@dataclass(frozen=True)
class FirstChange:
    """``first``: the earliest of ``changes``, None without any.  ``too_short``: boards with too few cycles."""

    boards: int
    too_short: int
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
        return "begin_ns", "end_ns", "count", "max_ns"

    def of_board(self, board: BoardRows, boards: int) -> ArchivedCourse:
        """The changes of the greatest values of its cycles, all CPUs together."""
        begin_ns, end_ns, count, maximum = map(board.numbers, self.columns)
        cycle = begin_ns // (CYCLE_S * 10**9)
        complete = (count > 0) & (cycle < end_ns.max() // (CYCLE_S * 10**9))
        cycles, counts, maxima = sums_and_maxima(cycle[complete], count[complete], maximum[complete])
        between = mean_between(boards, self.false_changes)
        points = tail_points((cycles * CYCLE_S).tolist(), maxima.tolist(), counts.tolist(), between)
        lasting = tuple(point for point in points if point.withdrawn_s is None)
        return ArchivedCourse(board.board, board.type, int(cycles.size), lasting)


def first_change(courses: Sequence[ArchivedCourse]) -> FirstChange:
    """The changes of all boards in the order of time; those of one instant in the order in which they were noted."""
    changes = [
        ArchivedChange(course.board, course.type, point.at_s, point.until_s, point.was_ns, point.now_ns, point.noted_s)
        for course in courses
        for point in course.changes
    ]
    changes.sort(key=lambda change: (change.at_s, change.noted_s, change.board))
    too_short = sum(course.cycles <= LEAST_BEFORE for course in courses)
    return FirstChange(len(courses), too_short, changes[0] if changes else None, tuple(changes))


def _print(found: FirstChange) -> None:
    boards = words.counted(found.boards, "board")
    if found.first is None:
        say(f"No change found on {boards}.")
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
            ("board", "type", "from", "to", "before [µs]", "after [µs]"),
            [
                (
                    change.board,
                    change.type,
                    words.iso(change.at_s),
                    "" if change.until_s is None else words.iso(change.until_s),
                    micros(change.was_ns),
                    micros(change.now_ns),
                )
                for change in found.changes
            ],
            texts=4,
        )
    if found.too_short:
        say(
            f"Not searched: {words.counted(found.too_short, 'board')} with {LEAST_BEFORE} or fewer complete cycles of "
            f"{CYCLE_S // 3600} h."
        )


@click.command("first-change", cls=Command, example="fastenough farm first-change --archive archive")
@click.option(
    "--false-changes",
    type=click.FloatRange(0.001, 1000.0),
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
    """
    found = first_change(of_archive.compute(FindChanges(false_changes)))
    if as_json:
        print_json(asdict(found))
    else:
        _print(found)
