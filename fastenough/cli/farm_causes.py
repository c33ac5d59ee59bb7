# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough farm causes``: rank the causes of long latencies over all boards of an archive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import click
import numpy as np
import pyarrow as arrow
from pyarrow import compute

from fastenough import words
from fastenough.cli.archive_options import ArchiveOptions, archive_options, print_first_rows
from fastenough.cli.commands import Command
from fastenough.cli.options import DURATION, INSTANT, json_option
from fastenough.cli.output import micros, print_json, say, say_list
from fastenough.fleet.archive import EVENTS
from fastenough.fleet.board_rows import BoardRows, IntArray, integers
from fastenough.recording.culprits import general_cause

_EVER_NS = -(2**63)
_UNKNOWN = "unknown"


@dataclass(frozen=True)
class BoardCause:
    """A cause on one board (`general_cause`), None if unknown; ``at_ns``: the first time of its greatest latency."""

    cause: str | None
    events: int
    latency_ns: int
    at_ns: int


@dataclass(frozen=True)
class BoardCauses:
    """The causes on a board, in the order of their names.

    ``recordings``: with intervals in the time in question; ``recorded``: of these, those with events.  ``partial``:
    the threshold of one of them is above the limit, so that exceedances that were no new maximum are missing.
    """

    board: str
    type: str
    recordings: int
    recorded: int
    partial: bool
    causes: tuple[BoardCause, ...]


@dataclass(frozen=True)
class RankedCause:
    """A cause, None if unknown, over boards.

    ``board_share``: of all boards.  ``event_share``: of all events, that is of all recorded exceedances.
    ``latency_ns``: the greatest one, which occurred on ``board`` at ``at_s``.
    """

    cause: str | None
    boards: int
    board_share: float
    events: int
    event_share: float
    latency_ns: int
    board: str
    at_s: int


@dataclass(frozen=True)
class CausesOfType:
    """The causes on the boards of a type: those on most boards first, the unknown one last.

    ``type``: None for all types together.  ``boards``: with intervals in the time in question.  ``unnamed``: boards
    with events, but without any known cause.  ``partial``: boards on which some exceedances are not recorded.
    ``recordings``: those of all boards; ``recorded``: of these, those with events.
    """

    type: str | None
    boards: int
    unnamed: int
    partial: int
    recordings: int
    recorded: int
    events: int
    causes: tuple[RankedCause, ...]


@dataclass(frozen=True)
class CauseRanking:
    """``limit_ns``: of the events; None: one event for each recording and CPU, its maximum."""

    limit_ns: int | None
    since_s: int | None
    total: CausesOfType
    types: tuple[CausesOfType, ...]


@dataclass(frozen=True)
class FindCauses:
    """The job: the causes of a board's events above a limit; without one, of the maximum of each recording and CPU.

    ``since_s``: earlier events, and recordings that ended earlier, are omitted; a maximum is that of the later events.
    """

    limit_ns: int | None = None
    since_s: int | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return ("end_ns",)

    @property
    def event_columns(self) -> tuple[str, ...]:
        return "at_ns", "mono_ns", "latency_ns", "task", "cause", "threshold_ns"

    def of_board(self, board: BoardRows, boards: int) -> BoardCauses:
        """The causes of a board."""
        events = EVENTS.table_of(()) if board.events is None else board.events
        since_ns = _EVER_NS if self.since_s is None else self.since_s * 10**9
        of_time = integers(events.column("at_ns")) >= since_ns
        runs = set(board.rows.column("run").filter(arrow.array(board.numbers("end_ns") > since_ns)).to_pylist())
        of_runs = np.asarray(compute.is_in(events.column("run"), arrow.array(sorted(runs), arrow.string())), dtype=bool)
        threshold_ns = integers(events.column("threshold_ns"))[of_runs | of_time]
        limit_ns = self.limit_ns
        partial = limit_ns is not None and bool(((threshold_ns == 0) | (threshold_ns > limit_ns)).any())
        recent = events.filter(arrow.array(of_time))
        return BoardCauses(
            board.board,
            board.type,
            len(runs),
            len(runs & set(events.column("run").to_pylist())),
            partial,
            tuple(_causes(recent, self._chosen(recent).tolist())),
        )

    def _chosen(self, events: arrow.Table) -> IntArray:
        """Places of the events in question, of each wake-up one: its events may be in two intervals."""
        latency_ns, mono_ns, cpu = (integers(events.column(name)) for name in ("latency_ns", "mono_ns", "cpu"))
        run, task = (_codes(events.column(name))[0] for name in ("run", "task"))
        chosen = _first_of_each((run, cpu, mono_ns, task), (-latency_ns,))
        if self.limit_ns is not None:
            return chosen[latency_ns[chosen] > self.limit_ns]
        return chosen[_first_of_each((run[chosen], cpu[chosen]), (-latency_ns[chosen], mono_ns[chosen]))]


def _codes(column: arrow.ChunkedArray) -> tuple[IntArray, list[str]]:
    """A number for each text of a column, -1 for null, and the texts by number."""
    encoded = column.combine_chunks().dictionary_encode()
    return np.asarray(encoded.indices.fill_null(-1).to_numpy(), dtype=np.int64), encoded.dictionary.to_pylist()


def _general(codes: IntArray, causes: Sequence[str]) -> tuple[IntArray, list[str]]:
    """The same causes without numbers of CPUs, kernel workers and interrupts, each of them once."""
    general = [general_cause(cause) for cause in causes]
    names = sorted(set(general))
    place = {name: number for number, name in enumerate(names)}
    numbers = np.array([*(place[name] for name in general), -1], dtype=np.int64)  # the code -1 is that of null
    return numbers[codes], names


def _first_of_each(keys: Sequence[IntArray], order: Sequence[IntArray]) -> IntArray:
    """Places of the first row of each combination of keys; ``order``: of rows with the same keys, ascending."""
    places = np.lexsort((*reversed(order), *reversed(keys)))
    differs = (np.diff(np.stack([key[places] for key in keys])) != 0).any(axis=0)
    return np.asarray(places[np.r_[True, differs][: places.size]], dtype=np.int64)


def _causes(events: arrow.Table, places: Sequence[int]) -> Iterator[BoardCause]:
    """The causes of the events at these places, in the order of their names, the unknown one last."""
    chosen = events.take(arrow.array(places, arrow.int64()))
    latency_ns, at_ns = (integers(chosen.column(name)) for name in ("latency_ns", "at_ns"))
    cause, names = _general(*_codes(chosen.column("cause")))
    greatest = {int(cause[place]): place for place in _first_of_each((cause,), (-latency_ns, at_ns)).tolist()}
    for number in sorted(greatest, key=lambda number: (number < 0, names[number] if number >= 0 else "")):
        place = greatest[number]
        name = names[number] if number >= 0 else None
        yield BoardCause(name, int((cause == number).sum()), int(latency_ns[place]), int(at_ns[place]))


def ranked_causes(boards: Sequence[BoardCauses], limit_ns: int | None, since_s: int | None) -> CauseRanking:
    """The causes over all boards, and over those of each type."""
    kinds = sorted({board.type for board in boards})
    types = [_of_type(kind, [board for board in boards if board.type == kind]) for kind in kinds]
    return CauseRanking(limit_ns, since_s, _of_type(None, boards), tuple(types))


def _of_type(kind: str | None, boards: Sequence[BoardCauses]) -> CausesOfType:
    present = [board for board in boards if board.recordings or board.causes]
    by_cause: dict[str | None, list[tuple[BoardCause, str]]] = {}
    for board in present:
        for found in board.causes:
            by_cause.setdefault(found.cause, []).append((found, board.board))
    events = sum(found.events for board in present for found in board.causes)
    ranked = [_ranked(cause, found, len(present), events) for cause, found in by_cause.items()]
    ranked.sort(key=lambda row: (row.cause is None, -row.boards, -row.latency_ns, row.cause or ""))
    return CausesOfType(
        kind,
        len(present),
        sum(bool(board.causes) and all(found.cause is None for found in board.causes) for board in present),
        sum(board.partial for board in present),
        sum(board.recordings for board in present),
        sum(board.recorded for board in present),
        events,
        tuple(ranked),
    )


def _ranked(cause: str | None, found: Sequence[tuple[BoardCause, str]], boards: int, events: int) -> RankedCause:
    greatest, board = min(found, key=lambda pair: (-pair[0].latency_ns, pair[0].at_ns, pair[1]))
    mine = sum(one.events for one, _ in found)
    return RankedCause(
        cause,
        len(found),
        len(found) / boards,
        mine,
        mine / events,
        greatest.latency_ns,
        board,
        greatest.at_ns // 10**9,
    )


def print_ranking(ranking: CauseRanking) -> None:
    """Print the table of all boards, one for each type if there are several, and caveats."""
    total = ranking.total
    boards = words.counted(total.boards, "board")
    if not total.causes:
        say(f"{_events_text(ranking)} on {boards}.")
    else:
        known = sum(row.cause is not None for row in total.causes)
        say(f"{_events_text(ranking)} on {boards}: {words.counted(known, 'known cause')}.")
        _print_causes("All boards", total)
        for of_type in ranking.types if len(ranking.types) > 1 else ():
            if of_type.causes:
                print()
                _print_causes(f"Type {of_type.type} ({words.counted(of_type.boards, 'board')})", of_type)
    say_list("Caveats", list(_caveats(ranking)))


def _events_text(ranking: CauseRanking) -> str:
    events = ranking.total.events
    if ranking.limit_ns is not None:
        return f"{words.counted(events, 'event')} above {words.exact_time(ranking.limit_ns)}"
    return f"{events:,} {'maximum' if events == 1 else 'maxima'} of recordings and CPUs"


def _print_causes(title: str, of_type: CausesOfType) -> None:
    rows = [
        (
            _UNKNOWN if row.cause is None else row.cause,
            f"{row.boards:,}",
            _percent(row.board_share),
            f"{row.events:,}",
            _percent(row.event_share),
            micros(row.latency_ns),
            row.board,
            words.iso(row.at_s),
        )
        for row in of_type.causes
    ]
    columns = ("cause", "boards", "of boards", "events", "of events", "maximum [µs]", "on board", "at")
    print_first_rows(title, columns, rows, texts=1)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _caveats(ranking: CauseRanking) -> Iterator[str]:
    total = ranking.total
    if total.partial and ranking.limit_ns is not None:
        limit = words.exact_time(ranking.limit_ns)
        yield (
            f"{words.counted(total.partial, 'board')} recorded only new maxima, or values above a higher threshold. "
            f"Other events above {limit} are missing there. To record all, run fastenough-monitor with --threshold "
            f"{limit.replace(' ', '').replace('µ', 'u')}."
        )
    if total.recorded < total.recordings:
        yield (
            f"{total.recordings - total.recorded:,} of {words.counted(total.recordings, 'recording')} have no events "
            "in the archive. Takers of earlier versions stored none."
        )
    if total.unnamed:
        yield (
            f"No cause is known for any event of {words.counted(total.unnamed, 'board')}. Only fastenough-monitor "
            "records causes."
        )


@click.command("causes", cls=Command, example="fastenough farm causes --archive archive --above 100us")
@click.option(
    "--above",
    "limit_ns",
    type=DURATION,
    help="Events with a greater latency  [default: the maximum of each recording and CPU]",
)
@click.option("--since", "since_s", type=INSTANT, metavar="TIME", help="Events from this time on, as in 2026-11-28.")
@archive_options
@json_option
def command(*, limit_ns: int | None, since_s: int | None, of_archive: ArchiveOptions, as_json: bool) -> None:
    """Rank the causes of long latencies over all boards.

    Prints each cause that monitors named, the number of boards on which it occurred, and its greatest latency.  Causes
    are ranked by the number of boards, so that a single board with many events does not hide the others.  Events whose
    cause is not known are a row of their own.  Kernel threads that differ only by the number of a CPU, a worker or an
    interrupt are one cause.  With several types of boards, each also has its own table.

    The takers of boards store the events of recordings, with their causes, in the archive.
    """
    ranking = ranked_causes(of_archive.compute(FindCauses(limit_ns, since_s)), limit_ns, since_s)
    if as_json:
        print_json(asdict(ranking))
    else:
        print_ranking(ranking)
