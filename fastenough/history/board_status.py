# SPDX-License-Identifier: GPL-2.0-or-later
"""The status of one board and of all boards."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from sqlalchemy import Connection, RowMapping, Select, func, or_, select

from fastenough import words
from fastenough.history.access import board_view, seen_by
from fastenough.history.boards import is_machine
from fastenough.history.database import History
from fastenough.history.intervals import main_place
from fastenough.history.packed_maxima import STEPS, HourMaxima, MaximaRing
from fastenough.history.results import (
    NOTHING,
    BoardCondition,
    BoardInfo,
    BoardSeries,
    BoardStatus,
    RefusedRecording,
    Viewer,
)
from fastenough.history.rollups import DAY_S
from fastenough.history.schema import BOARD, HOUR, HOUR_S, NOW, REFUSED, RUN, SERIES, STEP_S
from fastenough.model import LEAST_CONFIDENCE, LEAST_MISS_RATE, Identifiers, Requirement, Verdict

DAYS_SHOWN = 30
WINDOW_S = DAYS_SHOWN * DAY_S
"""Age up to which recordings count for a board's verdict and maxima."""
NOT_DUE = (BoardCondition.RESERVED, BoardCondition.DEAD, BoardCondition.RETIRED)
"""Conditions in which the farm states the reason for missing data."""
_PAUSE_S = DAY_S
"""Age up to which a series counts as one that its board still measures: plans may alternate between series."""
_MOST_NAMED = 10_000
"""Names in one query; SQLite takes 32,766."""


def board_of(history: History, viewer: Viewer, name: str) -> BoardInfo:
    """Raises UnknownBoard."""
    with board_view(history, viewer, name) as (connection, number):
        (known,) = _boards(connection, select(BOARD.c.id).where(BOARD.c.id == number))
    return known.board


def names_of_run_board(history: History, run: str) -> list[str]:
    """The present name of the board of a run, then its former ones; empty if the history has no such run.

    The viewer may not see the board.
    """
    question = select(BOARD.c.name, BOARD.c.former_names).join(RUN, RUN.c.board == BOARD.c.id)
    with history.reading() as connection:
        row = connection.execute(question.where(RUN.c.name == run)).one_or_none()
    return [] if row is None else [row.name, *_names(row.former_names)]


def boards_of_runs(history: History, runs: Collection[str]) -> dict[str, str]:
    """By run, the present name of its board, which the viewer may not see; without runs that the history does not
    have."""
    question = select(RUN.c.name, BOARD.c.name).join(BOARD, RUN.c.board == BOARD.c.id)
    names = list(runs)
    with history.reading() as connection:
        return {
            run: board
            for at in range(0, len(names), _MOST_NAMED)
            for run, board in connection.execute(question.where(RUN.c.name.in_(names[at : at + _MOST_NAMED])))
        }


def runs_of_board(
    history: History, board: str, runs: Mapping[str, str], machine_of: Callable[[str], Identifiers]
) -> set[str]:
    """Return those of ``runs`` (id: board name in the recording) that belong to a board.

    The history does not have refused and damaged runs.  Such a run with a name of several boards belongs to the one
    that is its machine (``machine_of``: by run id).  If no board is known to be, it belongs to the one that has the
    name at present, unless that one is another machine.
    """
    entered = boards_of_runs(history, runs)
    with history.reading() as connection:
        rows = connection.execute(select(BOARD.c.id, BOARD.c.name, BOARD.c.former_names)).all()
    of_others = {name for _, own, former in rows if own != board for name in (own, *_names(former))}
    number = next((number for number, own, _ in rows if own == board), None)

    def belongs(run: str, name: str) -> bool:
        if run in entered:
            return entered[run] == board
        if name not in of_others:
            return True
        machine = machine_of(run)
        identified = board_of_machine(history, name, machine) if machine else ""
        return identified == board if identified else name == board and not _is_other(history, number, machine)

    return {run for run, name in runs.items() if belongs(run, name)}


def _is_other(history: History, board: int | None, machine: Identifiers) -> bool:
    """Whether a board is known to be another machine."""
    with history.reading() as connection:
        return board is not None and is_machine(connection, board, machine) is False


def board_of_machine(history: History, name: str, machine: Identifiers) -> str:
    """The present name of the board that has or had a name and is a machine, by the profiles of its runs.

    Empty if there is none, also if the machine of the board is unknown.  The viewer may not see the board.
    """
    with history.reading() as connection:
        rows = connection.execute(
            select(BOARD.c.id, BOARD.c.name, BOARD.c.former_names)
            .where(or_(BOARD.c.name == name, BOARD.c.former_names != ""))
            .order_by(BOARD.c.id)
        ).all()
        named = [(number, known) for number, known, former in rows if known == name or name in _names(former)]
        return next((known for number, known in named if is_machine(connection, number, machine)), "")


def _names(former_names: str) -> list[str]:
    return [str(name) for name in json.loads(former_names)] if former_names else []


def board_status(history: History, viewer: Viewer, name: str, now_s: int) -> BoardStatus:
    """The status of one board; raises UnknownBoard."""
    with board_view(history, viewer, name) as (connection, number):
        return statuses_of(connection, select(BOARD.c.id).where(BOARD.c.id == number), now_s)[0]


def board_statuses(history: History, viewer: Viewer, now_s: int) -> list[BoardStatus]:
    """The status of all boards, the most urgent first, then by name."""
    with history.reading() as connection:
        statuses = statuses_of(connection, seen_by(select(BOARD.c.id), viewer), now_s)
    return sorted(statuses, key=lambda status: (status.state.rank, status.board.name))


def refusals(history: History, viewer: Viewer, name: str, most: int) -> list[RefusedRecording]:
    """The newest recordings of a board that were refused, damaged or cut off; raises UnknownBoard."""
    with board_view(history, viewer, name) as (connection, number):
        rows = connection.execute(
            select(REFUSED)
            .where(REFUSED.c.board == number)
            .order_by(REFUSED.c.at_s.desc(), REFUSED.c.name.desc())
            .limit(most)
        ).mappings()
        return [_refusal(row) for row in rows]


def _refusal(row: RowMapping) -> RefusedRecording:
    return RefusedRecording(row["name"], row["kind"], row["reason"], row["at_s"])


def main_series(connection: Connection, boards: Collection[int] | None = None) -> dict[int, int]:
    """By board, the number of the series that its maxima are of; ``boards`` None: of all."""
    question = (
        select(NOW.c.board, NOW.c.seen_s, NOW.c.step_s, BOARD.c.due_s, SERIES)
        .join(SERIES, NOW.c.series == SERIES.c.id)
        .join(BOARD, NOW.c.board == BOARD.c.id)
    )
    if boards is not None:
        question = question.where(NOW.c.board.in_(boards))
    nows: dict[int, list[RowMapping]] = {}
    for row in connection.execute(question).mappings():
        nows.setdefault(row["board"], []).append(row)
    return {board: _by_importance(rows[0]["due_s"], rows)[0]["id"] for board, rows in nows.items()}


@dataclass(frozen=True)
class _BoardRows:
    """A board, its row, and the rows of ``now`` of its series, that of the main series first."""

    board: BoardInfo
    row: RowMapping
    nows: Sequence[RowMapping]

    @property
    def now(self) -> RowMapping | None:
        return self.nows[0] if self.nows else None

    @property
    def newest(self) -> RowMapping | None:
        """The row of the series with the newest interval."""
        return max(self.nows, key=lambda now: (now["seen_s"], now["step_s"]), default=None)


def _boards(connection: Connection, numbers: Select[tuple[int]]) -> list[_BoardRows]:
    """The status of the boards that a query of numbers selects."""
    nows: dict[int, list[RowMapping]] = {}
    for now in connection.execute(
        select(NOW, SERIES).join(SERIES, NOW.c.series == SERIES.c.id).where(NOW.c.board.in_(numbers))
    ).mappings():
        nows.setdefault(now["board"], []).append(now)
    rows = connection.execute(select(BOARD).where(BOARD.c.id.in_(numbers))).mappings()
    return [_board(row, nows.get(row["id"], [])) for row in rows]


def statuses_of(connection: Connection, numbers: Select[tuple[int]], now_s: int) -> list[BoardStatus]:
    """The status of each board that a query of numbers selects, in no particular order."""
    edges, refused = _Edges.of(connection, numbers, now_s), _refused(connection, numbers, now_s)
    boards = _boards(connection, numbers)
    recents = _recents(connection, numbers, boards, edges)
    return [
        _board_status(connection, known, recents[known.row["id"]], edges, refused.get(known.row["id"], []))
        for known in boards
    ]


def _recents(
    connection: Connection, numbers: Select[tuple[int]], boards: Sequence[_BoardRows], edges: _Edges
) -> dict[int, _Recent]:
    """The recent maxima of the main series of boards, by number of the board.

    The hours of the first of 31 days are read only for boards for which they make a difference, which are few.
    """
    recents = {known.row["id"]: _Recent.of(known.now, edges) for known in boards}
    unsure = [number for number, recent in recents.items() if recent.depends_on_first_day]
    if unsure:
        chosen = numbers if len(unsure) > _MOST_NAMED else select(BOARD.c.id).where(BOARD.c.id.in_(unsure))
        first_ns = _rest_of_day(connection, chosen, edges.now_s - DAY_S - WINDOW_S)
        series = {known.row["id"]: known.now["series"] for known in boards if known.now is not None}
        for number in unsure:
            part_ns = first_ns.get((number, series[number]), NOTHING)
            recents[number] = replace(recents[number], before_ns=max(recents[number].before_ns, part_ns))
    return recents


def _refused(connection: Connection, numbers: Select[tuple[int]], now_s: int) -> dict[int, list[RowMapping]]:
    """Recordings first refused within the window, by board, newest first."""
    refused_of: dict[int, list[RowMapping]] = {}
    for row in connection.execute(
        select(REFUSED)
        .where(REFUSED.c.board.in_(numbers), REFUSED.c.at_s > now_s - WINDOW_S)
        .order_by(REFUSED.c.at_s.desc(), REFUSED.c.name.desc())
    ).mappings():
        refused_of.setdefault(row["board"], []).append(row)
    return refused_of


def _by_importance(due_s: int, nows: Sequence[RowMapping]) -> Sequence[RowMapping]:
    """Rows of a board's series, first the main one, whose maxima are those of the board.

    Series that the board still measures come first, and judged ones before others.
    """
    if len(nows) < 2:
        return nows
    newest_s = max(now["seen_s"] for now in nows)

    def importance(now: RowMapping) -> tuple[bool, bool, int, str]:
        has_ended = newest_s - now["seen_s"] > max(_PAUSE_S, _silent_after_s(due_s, now))
        return has_ended, not now["for_verdict"], main_place(now["name"]), now["name"]

    return sorted(nows, key=importance)


def _board(row: RowMapping, nows: Sequence[RowMapping]) -> _BoardRows:
    facts = json.loads(row["display_facts"])
    series = _by_importance(row["due_s"], nows)
    stated = _farm_requirement(row)
    required = stated if row["plan_limit_ns"] is None else _stored_requirement(row["judged_by"])
    board = BoardInfo(
        name=row["name"],
        rack=row["rack"],
        public=row["public"],
        cpus=facts.get("cpus", 0),
        arch=facts.get("arch", ""),
        model=facts.get("model", ""),
        kernel=facts.get("kernel", ""),
        preemption=facts.get("preemption", ""),
        configuration=row["configuration"],
        limit_ns=None if required is None else required.limit_ns,
        facts=facts.get("facts", {}),
        series=tuple(
            BoardSeries(now["name"], now["for_verdict"], now["from_event"], now["to_event"]) for now in series
        ),
        main=series[0]["name"] if series else "",
        requirement=required,
        type=row["type"],
        site=row["site"],
        farm_requirement=stated,
    )
    return _BoardRows(board, row, series)


def _farm_requirement(row: RowMapping) -> Requirement | None:
    if row["requirement"]:
        return _stored_requirement(row["requirement"])
    return Requirement(row["limit_ns"]) if row["limit_ns"] else None


def _stored_requirement(text: str) -> Requirement | None:
    if not text:
        return None
    stored = json.loads(text)
    # older versions accepted smaller numbers
    for name, least in (("miss_rate", LEAST_MISS_RATE), ("confidence", LEAST_CONFIDENCE)):
        if 0 < stored.get(name, 0) < least:
            stored[name] = least
    return Requirement(**stored)


def _board_status(
    connection: Connection, known: _BoardRows, recent: _Recent, edges: _Edges, refused: Sequence[RowMapping]
) -> BoardStatus:
    board, row, now, newest, now_s = known.board, known.row, known.now, known.newest, edges.now_s
    above_ns = _above_limit_ns(connection, known, recent, edges)
    judged_by = _stored_requirement(row["judged_by"])
    is_judged = judged_by == board.requirement
    verdict, why = _verdict(board, row, above_ns) if is_judged else ("", _other_verdict(board, row, judged_by))
    refusal = _refusal(refused[0]) if refused else None
    after_s = _silent_after_s(row["due_s"], newest)
    latest = now if now and newest and _is_latest(now, newest) and now["max_5min_ns"] != NOTHING else None
    is_due = row["is_declared"] and row["state"] not in NOT_DUE
    silence = (_silence(newest, after_s, refusal, now_s) or _judged_silence(known, now_s)) if is_due else ""
    status = BoardStatus(
        board,
        BoardCondition.OK,
        "",
        newest["seen_s"] if newest else None,
        latest["max_5min_ns"] if latest else None,
        _value(recent.day_ns),
        _value(recent.month_ns),
        _value(now["max_ever_ns"] if now else NOTHING),
        now["max_ever_at_s"] if now and now["max_ever_ns"] != NOTHING else None,
        tuple(_value(value) for value in recent.daily_ns),
        verdict,
        why,
        row["changed_s"],
        recent.more_ns,
        row["cycle_verdict"] if is_judged else "",
        row["cycle_reason"] if is_judged else "",
        row["judged_from_s"] if is_judged else None,
        silence,
        after_s,
        len(refused),
        refusal,
        above_ns,
        now["seen_s"] if now else None,
        latest["newest_s"] if latest else None,
    )
    state, reason = next(_states(status, row, recent, now_s))
    return replace(status, state=state, reason=reason)


def _is_latest(now: RowMapping, newest: RowMapping) -> bool:
    """Whether the newest values of a series are among the newest of its board."""
    return bool(newest["seen_s"] - now["seen_s"] <= STEP_S + now["step_s"])


def _value(value: int) -> int | None:
    return None if value == NOTHING else value


@dataclass(frozen=True)
class _Edges:
    """Maxima of partial hours and days at the begins of the last 24 hours and of the last 30 days, by (board, series).

    ``before_ns``, ``day_ns``: maxima of the hour 24 hours ago, before and after that instant.  ``month_ns``: maximum of
    the day 30 days ago, after that instant.
    """

    now_s: int
    before_ns: Mapping[tuple[int, int], int]
    day_ns: Mapping[tuple[int, int], int]
    month_ns: Mapping[tuple[int, int], int]

    @classmethod
    def of(cls, connection: Connection, numbers: Select[tuple[int]], now_s: int) -> _Edges:
        before_ns, day_ns = _split_hour(connection, numbers, now_s - DAY_S)
        return cls(now_s, before_ns, day_ns, _rest_of_day(connection, numbers, now_s - WINDOW_S))


def _rest_of_day(connection: Connection, numbers: Select[tuple[int]], at_s: int) -> dict[tuple[int, int], int]:
    """Maxima by board and series of the five-minute rows from an instant to the end of its day."""
    _, max_ns = _split_hour(connection, numbers, at_s)
    hours = connection.execute(
        select(HOUR.c.board, HOUR.c.series, func.max(HOUR.c.max_ns))
        .where(
            HOUR.c.board.in_(numbers),
            HOUR.c.begin_s >= at_s // HOUR_S * HOUR_S + HOUR_S,
            HOUR.c.begin_s < at_s // DAY_S * DAY_S + DAY_S,
        )
        .group_by(HOUR.c.board, HOUR.c.series)
    )
    for board, series, hour_ns in hours:
        max_ns[board, series] = max(max_ns.get((board, series), NOTHING), hour_ns)
    return max_ns


def _split_hour(
    connection: Connection, numbers: Select[tuple[int]], at_s: int
) -> tuple[dict[tuple[int, int], int], dict[tuple[int, int], int]]:
    """Maxima by board and series of the five-minute rows before and after an instant within its hour."""
    hour_s = at_s // HOUR_S * HOUR_S
    rows = connection.execute(
        select(HOUR.c.board, HOUR.c.series, HOUR.c.maxima).where(HOUR.c.board.in_(numbers), HOUR.c.begin_s == hour_s)
    ).all()
    hours, place = {(board, series): HourMaxima.of(data) for board, series, data in rows}, (at_s - hour_s) // STEP_S
    return (
        {key: hour.worst_within(0, place) for key, hour in hours.items()},
        {key: hour.worst_within(place, STEPS) for key, hour in hours.items()},
    )


def _max_since(connection: Connection, now: RowMapping, since_s: int) -> int:
    """Maximum of a board's series since an instant, exact to five minutes."""
    _, edge = _split_hour(connection, select(BOARD.c.id).where(BOARD.c.id == now["board"]), since_s)
    rest = connection.execute(
        select(func.max(HOUR.c.max_ns)).where(
            HOUR.c.board == now["board"],
            HOUR.c.series == now["series"],
            HOUR.c.begin_s >= since_s // HOUR_S * HOUR_S + HOUR_S,
        )
    ).scalar()
    return max(edge.get((now["board"], now["series"]), NOTHING), NOTHING if rest is None else int(rest))


@dataclass(frozen=True)
class _Recent:
    """Maxima of the last 24 hours and of the 30 days before those, of the last 30 days, and of each calendar day of
    these; to five minutes.

    ``before_ns`` has no value of the calendar day in which these 30 days begin; ``first_day_ns`` is of that whole day.
    """

    day_ns: int
    before_ns: int
    first_day_ns: int
    month_ns: int
    daily_ns: tuple[int, ...]

    @property
    def depends_on_first_day(self) -> bool:
        """Whether the excess over the 30 days before depends on the time of values in the day in which they begin."""
        return self.before_ns < min(self.day_ns, self.first_day_ns)

    @property
    def more_ns(self) -> int | None:
        """Excess of the maximum of 24 hours over that of the 30 days before; None if there is none."""
        return self.day_ns - self.before_ns if self.day_ns > self.before_ns > NOTHING else None

    @classmethod
    def of(cls, now: RowMapping | None, edges: _Edges) -> _Recent:
        if now is None:
            return cls(NOTHING, NOTHING, NOTHING, NOTHING, (NOTHING,) * DAYS_SHOWN)
        key = now["board"], now["series"]
        hours, days = (
            MaximaRing.of(now["hours"], now["newest_s"] // HOUR_S),
            MaximaRing.of(now["days"], now["newest_s"] // DAY_S),
        )
        hour, today = edges.now_s // HOUR_S, edges.now_s // DAY_S
        since, first_day = hour - 24, today - DAYS_SHOWN - 1
        all_days = days.at(np.arange(first_day, today + 1))
        daily = all_days[2:]
        before = np.concatenate(
            (
                hours.at(np.arange(since * HOUR_S // DAY_S * 24, since)),
                all_days[1 : since * HOUR_S // DAY_S - first_day],
            )
        )
        of_day = int(hours.at(np.arange(since + 1, hour + 1)).max())
        day_ns, before_ns, month_ns = (
            max(int(most), edge.get(key, NOTHING))
            for most, edge in ((of_day, edges.day_ns), (before.max(), edges.before_ns), (daily.max(), edges.month_ns))
        )
        return cls(day_ns, before_ns, int(all_days[0]), month_ns, tuple(daily.tolist()))


def _above_limit_ns(connection: Connection, known: _BoardRows, recent: _Recent, edges: _Edges) -> int | None:
    """The maximum of all judged series in the judged configuration if it is above a limit that must never be exceeded,
    else None."""
    required, since_s = known.board.requirement, known.row["judged_from_s"]
    if required is None or required.miss_rate:
        return None
    greatest = NOTHING
    for now in known.nows:
        if not now["for_verdict"] or now["max_ever_ns"] <= required.limit_ns:
            continue
        month_ns = (recent if now is known.now else _Recent.of(now, edges)).month_ns
        if month_ns > required.limit_ns and since_s is not None and since_s > edges.now_s - WINDOW_S:
            month_ns = _max_since(connection, now, since_s)
        greatest = max(greatest, month_ns)
    return greatest if greatest > required.limit_ns else None


def _verdict(board: BoardInfo, row: RowMapping, above_ns: int | None) -> tuple[str, str]:
    """The verdict of the farm, but never PASS with a value above the limit: later data may not be judged yet."""
    if row["verdict"] != Verdict.PASS or above_ns is None:
        return row["verdict"], row["verdict_reason"]
    return str(Verdict.INCONCLUSIVE), (
        f"Not judged yet: a new recording contains {words.latency(above_ns)}, above the limit of "
        f"{words.exact_time(board.limit_ns)}. Previous verdict: {row['verdict_reason']}"
    )


def _other_verdict(board: BoardInfo, row: RowMapping, judged_by: Requirement | None) -> str:
    """The last verdict, which is on another requirement than the present one; empty if either is missing."""
    if not row["verdict"] or board.requirement is None:
        return ""
    by = "an unknown requirement" if judged_by is None else f"the limit of {words.exact_time(judged_by.limit_ns)}"
    return f"Not judged yet by the present requirement. Last verdict, on {by}: {row['verdict']}"


def _silent_after_s(due_s: int, now: RowMapping | None) -> int:
    """One pull, or interval, may be missing: so old may the newest interval be."""
    step_s = now["step_s"] if now else 0
    return int(2 * max(due_s, step_s) + step_s)


def _silence(now: RowMapping | None, after_s: int, refusal: RefusedRecording | None, now_s: int) -> str:
    """Why the present state of a board is unknown; empty if it is known."""
    if now is None:
        return (
            "no data yet"
            if refusal is None
            else (f"no recording was accepted yet; last refused: {refusal.name}: {refusal.reason}")
        )
    ago_s = now_s - now["seen_s"]
    if abs(ago_s) <= after_s:
        return ""
    lasted = words.duration(abs(ago_s) * 10**9)
    return (
        f"the last interval ended {lasted} ago"
        if ago_s > 0
        else f"the clock of the board is {lasted} ahead; the time of its last interval is unknown"
    )


def _judged_silence(known: _BoardRows, now_s: int) -> str:
    """Why the verdict is outdated: no recent judged interval; empty if there is one."""
    judged = max((now for now in known.nows if now["for_verdict"]), key=lambda now: now["seen_s"], default=None)
    if judged is None or not known.row["verdict"]:
        return ""
    ago_s = now_s - judged["seen_s"]
    if ago_s <= max(_judged_pause_s(judged), _silent_after_s(known.row["due_s"], judged)):
        return ""
    return f"the last judged interval ended {words.duration(ago_s * 10**9)} ago; only diagnostic series are recent"


def _judged_pause_s(judged: RowMapping) -> int:
    """Longest usual pause between the cycles of a judged series: plans may run less often than data are pulled.

    A pause of several days is usual if it occurred twice, or if there was no other pause.  A single longer one may have
    been an outage.
    """
    days = MaximaRing.of(judged["days"], judged["newest_s"] // DAY_S)
    distances = np.sort(np.diff(days.units[days.at(days.units) != NOTHING]))[-2:]
    usual = int(distances[0]) if distances.size else 1
    return max(_PAUSE_S, (usual + 1) * DAY_S if usual > 1 else 0)


def _states(status: BoardStatus, row: RowMapping, recent: _Recent, now_s: int) -> Iterator[tuple[BoardCondition, str]]:
    """The conditions of a board with reasons, the most urgent first."""
    if row["state"] in (BoardCondition.RETIRED, BoardCondition.DEAD):
        yield BoardCondition(row["state"]), row["reason"]
    if status.verdict == Verdict.FAIL:
        yield BoardCondition.FAIL, status.verdict_reason
    if recent.more_ns is not None:
        yield (
            BoardCondition.NEW_MAXIMUM,
            (
                f"{words.latency(recent.day_ns)} within 24 hours; the maximum of the 30 days before is "
                f"{words.latency(recent.before_ns)}"
            ),
        )
    if status.above_ns is not None:
        yield (
            BoardCondition.ABOVE,
            (
                f"{words.latency(status.above_ns)} within {DAYS_SHOWN} days, above the limit of "
                f"{words.exact_time(status.board.limit_ns)}"
            ),
        )
    if row["state"] == BoardCondition.RESERVED:
        yield BoardCondition.RESERVED, row["reason"]
    if status.silence:
        yield BoardCondition.SILENT, status.silence
    if status.refusal is not None and status.refusal.at_s > now_s - DAY_S:
        yield BoardCondition.REFUSED, f"{status.refusal.name}: {status.refusal.reason}"
    if status.changed_s is not None and now_s - DAY_S < status.changed_s <= now_s:
        yield BoardCondition.CHANGED, "the configuration changed within 24 hours"
    if not status.verdict and status.verdict_reason:
        yield BoardCondition.NOT_JUDGED, status.verdict_reason
    yield (
        (BoardCondition.OK, "")
        if status.seen_s is not None
        else (BoardCondition.NO_DATA, "no run records when it was measured")
    )
