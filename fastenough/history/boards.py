# SPDX-License-Identifier: GPL-2.0-or-later
"""Register boards, series and runs, and record what changed between consecutive runs of a board."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict
from typing import Any, Required, TypedDict, Unpack

from sqlalchemy import ColumnElement, Connection, RowMapping, and_, delete, func, insert, select, text, tuple_, update

from fastenough.facts import Profile, profile_sha256
from fastenough.history.database import History, put
from fastenough.history.intervals import HistorySeries
from fastenough.history.profiles import display_facts, packed_profile, profile_differences, unpacked_profile
from fastenough.history.schema import BOARD, CHANGE, CURSOR, PROFILE, REFUSED, RUN, SERIES, SUMMARY
from fastenough.model import BadInput, Identifiers, Requirement, Role, identifiers_of, is_same_machine
from fastenough.recording import Head

CONFIGURATION = "configuration"
_MOST_CHANGES = 500
"""Maximum number of changes between two runs."""
_MOST_REFUSED = 1000
"""Maximum number of refused recordings of a board; the oldest are deleted."""
_MOST_REASON = 500
"""Maximum length of a reason, in characters."""
MOST_NAME = 200
"""Maximum length of the name of a board."""
_MOST_PROFILES = 50
"""Number of the newest profiles of a board that identify its machine."""


class BoardColumns(TypedDict, total=False):
    """The farm's declaration of a board.

    ``requirement``: JSON, with the limit that is also in ``limit_ns``; empty for none.  ``state``: ok, reserved
    (by a person), dead or retired, with ``reason``.  ``due_s``: longest time until new data.  ``former_names``: former
    names, as a JSON list.  ``verdict`` covers the evaluation window, from ``judged_from_s`` on, ``cycle_verdict`` the
    newest cycle.  ``judged_by``: the requirement of both, as `requirement_text`; ``plan_limit_ns``: its limit if the
    runs of the newest cycle state it.
    """

    rack: str
    type: str
    site: str
    public: bool
    limit_ns: int | None
    requirement: str
    state: str
    reason: str
    due_s: int
    farm: str
    former_names: str
    verdict: str
    verdict_reason: str
    cycle_verdict: str
    cycle_reason: str
    judged_from_s: int | None
    judged_by: str
    plan_limit_ns: int | None


class BoardDeclaration(BoardColumns):
    """The farm's data on the board of that name."""

    name: Required[str]


def requirement_text(requirement: Requirement | None) -> str:
    """A requirement as JSON, as the history stores it; empty for none."""
    return "" if requirement is None else json.dumps(asdict(requirement))


def declare(history: History, name: str, **columns: Unpack[BoardColumns]) -> None:
    """Store the farm's data on a board, which need not have measured yet.

    Other columns do not change.  A board that no farm declared is not public and never counts as silent.
    """
    with history.writing() as connection:
        declare_boards(connection, {_board_number(connection, name): columns})


def declare_boards(connection: Connection, columns: Mapping[int, BoardColumns]) -> None:
    """Store changed declarations, by number of the board."""
    rows = connection.execute(select(BOARD).where(BOARD.c.id.in_(columns))).mappings().all()
    for row in rows:
        declared: dict[str, Any] = {"is_declared": True, **columns[row["id"]]}
        if any(row[name] != value for name, value in declared.items()):
            connection.execute(update(BOARD).where(BOARD.c.id == row["id"]).values(**declared))
            mark_outdated(connection, BOARD.c.id == row["id"])


def mark_outdated(connection: Connection, boards: ColumnElement[bool]) -> None:
    """The summaries of these boards are to be computed again."""
    numbers = select(BOARD.c.id).where(boards)
    connection.execute(update(SUMMARY).where(SUMMARY.c.board.in_(numbers), SUMMARY.c.at_s != 0).values(at_s=0))


def _board_number(connection: Connection, name: str) -> int:
    lock_boards(connection, (name,))
    number = connection.execute(select(BOARD.c.id).where(BOARD.c.name == name)).scalar()
    if number is None:
        number = next(iter(_renamed(connection, name)), None)
    if number is None:
        number = connection.execute(insert(BOARD).values(name=name).returning(BOARD.c.id)).scalar_one()
    return int(number)


def _renamed(connection: Connection, name: str) -> list[int]:
    """The numbers of the boards that recorded under this name before."""
    rows = connection.execute(
        select(BOARD.c.id, BOARD.c.former_names).where(BOARD.c.former_names != "").order_by(BOARD.c.id)
    )
    return [int(number) for number, former_names in rows if name in json.loads(former_names)]


def rename(history: History, name: str, new: str, former_names: Iterable[str]) -> None:
    """Give a board another name, with all that it recorded under the former ones; raises BadInput for a name that
    another board has."""
    with history.writing() as connection:
        names = set(connection.scalars(select(BOARD.c.name).where(BOARD.c.name.in_((name, new)))))
        if names == {new} and _renamed(connection, name):
            return  # an interrupted change has already renamed it
        if new in names:
            raise BadInput(f"the history already has a board {new}; choose another name")
        connection.execute(
            update(BOARD).where(BOARD.c.name == name).values(name=new, former_names=json.dumps(list(former_names)))
        )
        mark_outdated(connection, BOARD.c.name == new)


def disown(history: History, farm: str, names: Collection[str]) -> None:
    """Boards that the farm's file no longer names become non-public and are not expected to send data."""
    disowned = and_(BOARD.c.farm == farm, BOARD.c.farm != "", BOARD.c.name.not_in(names))
    with history.writing() as connection:
        mark_outdated(connection, disowned)
        connection.execute(
            update(BOARD)
            .where(disowned)
            .values(
                is_declared=False,
                public=False,
                state="ok",
                reason="",
                verdict="",
                verdict_reason="",
                cycle_verdict="",
                cycle_reason="",
                judged_by="",
                plan_limit_ns=None,
                farm="",
            )
        )


def lock_boards(connection: Connection, boards: Iterable[str]) -> None:
    """Lock boards for this transaction, always in the same order, so that no two transactions wait for each other."""
    if connection.dialect.name == "postgresql":
        connection.execute(
            text(
                "SELECT pg_advisory_xact_lock(7701, key) "
                "FROM (SELECT hashtext(unnest(CAST(:boards AS text[]))) AS key ORDER BY 1) AS keys"
            ),
            {"boards": sorted(set(boards))},
        )


def series_numbers(connection: Connection, sources: Iterable[HistorySeries]) -> dict[str, int]:
    """Numbers of series by name; new series are inserted."""
    series_of = {source.name: source.series for source in sources}
    known = _known(connection, series_of)
    missing = sorted(series_of.keys() - known.keys())
    if missing:
        put(
            connection,
            SERIES,
            [
                {
                    "name": name,
                    "for_verdict": series_of[name].role is Role.VERDICT,
                    "from_event": series_of[name].from_event,
                    "to_event": series_of[name].to_event,
                }
                for name in missing
            ],
            keys=("name",),
        )
        known = _known(connection, series_of)
    return known


def _known(connection: Connection, names: Iterable[str]) -> dict[str, int]:
    rows = connection.execute(select(SERIES.c.name, SERIES.c.id).where(SERIES.c.name.in_(list(names))))
    return {name: number for name, number in rows}


def enter_run(connection: Connection, run_id: str, head: Head, begin_s: int, end_s: int | None) -> tuple[int, int]:
    """Numbers of a run's board and of the run.

    ``end_s``: end of its data so far, if known.  Raises BadInput if the history has the run under another board, or if
    several boards have or had the name in the recording and its machine does not identify one of them.
    """
    numbers = _board_numbers(connection, board_name(head))  # locks the name: no other process enters the run meanwhile
    entered = connection.execute(select(RUN).where(RUN.c.name == run_id)).mappings().one_or_none()
    board = _board_of_machine(connection, run_id, head, numbers) if entered is None else int(entered["board"])
    if board not in numbers:
        raise BadInput(f"{run_id}: the history already has a run with this ID from another board")
    if entered is not None and connection.execute(select(CURSOR).where(CURSOR.c.run == entered["id"])).first() is None:
        connection.execute(delete(RUN).where(RUN.c.id == entered["id"]))  # `keep_boards` kept only its board
        entered = None
    if entered is not None:
        if end_s is not None and end_s > entered["end_s"]:
            connection.execute(update(RUN).where(RUN.c.id == entered["id"]).values(end_s=end_s))
        return board, int(entered["id"])
    return board, _new_run(connection, (board, begin_s, end_s), run_id, head)


def _board_numbers(connection: Connection, name: str) -> list[int]:
    """The numbers of the boards that have or had a name, at least one, the present one first."""
    return list(dict.fromkeys((_board_number(connection, name), *_renamed(connection, name))))


def _board_of_machine(connection: Connection, run_id: str, head: Head, boards: list[int]) -> int:
    """The board of a new run among those of its name: the only one that is its machine.

    If none is known to be it, the first board, unless its machine or that of another one leaves a doubt.
    """
    if len(boards) == 1:
        return boards[0]
    machine = identifiers_of(head.profile)
    same = {board: is_machine(connection, board, machine) for board in boards}
    alike = [board for board in boards if same[board]]
    if len(alike) == 1:
        return alike[0]
    if same[boards[0]] is None and all(same[board] is False for board in boards[1:]):
        return boards[0]
    raise BadInput(
        f"{run_id}: several boards have or had the name {board_name(head)}, and the machine in the profile of this run "
        "does not identify one of them; give each board of the farm a name that no other board had"
    )


def is_machine(connection: Connection, board: int, machine: Identifiers) -> bool | None:
    """Whether a board is a machine, by its newest profiles; None if the machine of either is unknown."""
    newest = (
        select(RUN.c.profile)
        .where(RUN.c.board == board, RUN.c.profile.is_not(None))
        .group_by(RUN.c.profile)
        .order_by(func.max(RUN.c.begin_s).desc())
        .limit(_MOST_PROFILES)
    )
    contents = connection.scalars(select(PROFILE.c.content).where(PROFILE.c.sha256.in_(newest)))
    known = {is_same_machine(machine, identifiers_of(unpacked_profile(content))) for content in contents} - {None}
    return True in known if known else None


def runs_of_shared_names(
    connection: Connection, stored: Mapping[str, str | None], others: Collection[int]
) -> list[tuple[str, int]]:
    """Runs, each with the number of its board, whose recordings have a name that several boards have or had.

    ``stored``: the name in each recording of the store, by run; ``others``: boards whose runs are left out.
    """
    names = connection.execute(select(BOARD.c.name, BOARD.c.former_names)).all()
    counts = Counter(name for own, former in names for name in {own, *(json.loads(former) if former else ())})
    runs = connection.execute(select(RUN.c.name, RUN.c.board).where(RUN.c.board.not_in(others)).order_by(RUN.c.id))
    return [(run, board) for run, board in runs if counts[stored.get(run) or ""] > 1]


def keep_boards(connection: Connection, runs: Iterable[tuple[str, int]]) -> None:
    """Enter runs that are to be read again, by name, with the number of their board, as far as that board is left."""
    left = set(connection.scalars(select(BOARD.c.id)))
    rows = [
        {"name": name, "board": board, "begin_s": 0, "end_s": 0, "load": "", "configuration": ""}
        for name, board in runs
        if board in left
    ]
    if rows:
        connection.execute(insert(RUN), rows)


def board_name(head: Head) -> str:
    """Name of a board: that in its recordings, else the name of its host."""
    hostname = (head.profile or {}).get("hostname")
    return (head.board or (hostname if isinstance(hostname, str) else None) or "unnamed")[:MOST_NAME]


def _new_run(connection: Connection, when: tuple[int, int, int | None], run_id: str, head: Head) -> int:
    """Insert a run; ``when``: its board, begin and end."""
    board, begin_s, end_s = when
    profile = None
    if head.profile:
        profile = profile_sha256(head.profile)
        put(connection, PROFILE, [{"sha256": profile, "content": packed_profile(head.profile)}])
    run = int(
        connection.execute(
            insert(RUN)
            .values(
                name=run_id,
                board=board,
                begin_s=begin_s,
                end_s=begin_s if end_s is None else end_s,
                load=head.load.name[:200] if head.load else "",
                profile=profile,
                configuration=head.configuration.name[:200] if head.configuration else "",
            )
            .returning(RUN.c.id)
        ).scalar_one()
    )
    if profile is not None:
        before, after = _neighbours(connection, board, (begin_s, run_id))
        _note_changes(connection, before, _run(connection, run))
        _note_changes(connection, _run(connection, run), after)
    _note_newest(connection, board)
    return run


def _run(connection: Connection, run: int) -> RowMapping:
    return connection.execute(select(RUN).where(RUN.c.id == run)).mappings().one()


def _neighbours(
    connection: Connection, board: int, place: tuple[int, str]
) -> tuple[RowMapping | None, RowMapping | None]:
    """The nearest runs of a board with a profile before and after a run: successive runs are compared in whatever order
    they are read."""
    mine = select(RUN).where(RUN.c.board == board, RUN.c.profile.is_not(None)).limit(1)
    order = tuple_(RUN.c.begin_s, RUN.c.name)
    before = mine.where(order < place).order_by(RUN.c.begin_s.desc(), RUN.c.name.desc())
    after = mine.where(order > place).order_by(RUN.c.begin_s, RUN.c.name)
    return (connection.execute(before).mappings().one_or_none(), connection.execute(after).mappings().one_or_none())


def _note_changes(connection: Connection, before: RowMapping | None, after: RowMapping | None) -> None:
    """Record the differences between two successive runs in place of those recorded before."""
    if after is None or after["profile"] is None:
        return
    connection.execute(delete(CHANGE).where(CHANGE.c.run == after["id"], CHANGE.c.kind == CONFIGURATION))
    if before is None or before["profile"] in (None, after["profile"]):
        return
    was, now = (_profile(connection, run["profile"]) for run in (before, after))
    rows = [
        {
            "board": after["board"],
            "at_s": after["begin_s"],
            "kind": CONFIGURATION,
            "key": difference.key,
            "was": difference.was,
            "now": difference.now,
            "latency": difference.latency,
            "last_run": before["id"],
            "run": after["id"],
        }
        for difference in profile_differences(was, now)[:_MOST_CHANGES]
    ]
    if rows:
        connection.execute(insert(CHANGE), rows)


def _profile(connection: Connection, sha256: str) -> Profile:
    content = connection.execute(select(PROFILE.c.content).where(PROFILE.c.sha256 == sha256)).scalar_one()
    return unpacked_profile(content)


def _note_newest(connection: Connection, board: int) -> None:
    """Update the displayed facts of a board from its newest run with a profile."""
    newest = (
        connection.execute(
            select(RUN.c.configuration, RUN.c.profile)
            .where(RUN.c.board == board)
            .order_by(RUN.c.profile.is_(None), RUN.c.begin_s.desc(), RUN.c.name.desc())
            .limit(1)
        )
        .mappings()
        .one()
    )
    changed = select(func.max(CHANGE.c.at_s)).where(CHANGE.c.board == board, CHANGE.c.kind == CONFIGURATION)
    connection.execute(
        update(BOARD)
        .where(BOARD.c.id == board)
        .values(
            configuration=newest["configuration"],
            display_facts=json.dumps(
                display_facts(_profile(connection, newest["profile"])) if newest["profile"] else {}
            ),
            changed_s=connection.execute(changed).scalar(),
        )
    )


def note_refused(history: History, board: str, refused: Iterable[tuple[str, str, str]]) -> None:
    """Record refused and incomplete recordings of a board: (name, kind, reason), each once."""
    rows = list(refused)
    if rows:
        with history.writing() as connection:
            number = _board_number(connection, board)
            _enter_refused(connection, number, rows, int(history.wall_s()))
            mark_outdated(connection, BOARD.c.id == number)


def note_refused_run(history: History, name: str, run_id: str, kind: str, reason: str) -> None:
    """Record a refused or incomplete run of the store, with the name in its recording.

    It is not recorded if several boards have or had the name and the history does not have the run: its board is
    unknown, and a viewer of another board must not see it.
    """
    with history.writing() as connection:
        number = connection.execute(select(RUN.c.board).where(RUN.c.name == run_id)).scalar()
        numbers = _board_numbers(connection, name) if number is None else [number]
        if len(numbers) == 1:
            _enter_refused(connection, numbers[0], [(run_id, kind, reason)], int(history.wall_s()))
            mark_outdated(connection, BOARD.c.id == numbers[0])


def _enter_refused(connection: Connection, board: int, rows: Iterable[tuple[str, str, str]], now_s: int) -> None:
    known = {
        row.name: (row.kind, row.reason, row.at_s)
        for row in connection.execute(select(REFUSED).where(REFUSED.c.board == board))
    }
    put(
        connection,
        REFUSED,
        [
            {
                "board": board,
                "name": name[:200],
                "kind": kind,
                "reason": reason[:_MOST_REASON],
                "at_s": known[name[:200]][2] if name[:200] in known else now_s,
            }
            for name, kind, reason in rows
            if known.get(name[:200], ("", ""))[:2] != (kind, reason[:_MOST_REASON])
        ],
    )
    newest = (
        select(REFUSED.c.name)
        .where(REFUSED.c.board == board)
        .order_by(REFUSED.c.at_s.desc(), REFUSED.c.name.desc())
        .limit(_MOST_REFUSED)
    )
    connection.execute(delete(REFUSED).where(REFUSED.c.board == board, REFUSED.c.name.not_in(newest)))


def boards_under_rebuild(history: History) -> set[str]:
    """The boards whose data a rebuild has deleted and not read again yet."""
    with history.reading() as connection:
        return set(connection.scalars(select(BOARD.c.name).where(BOARD.c.rebuilt_from != "")))


def boards_with_new_runs(history: History, after: int | None, announced: Collection[str] = ()) -> tuple[int, set[str]]:
    """The number of the newest run, and the names of the boards with runs of greater numbers than ``after``, besides
    the ``announced`` ones."""
    with history.reading() as connection:
        newest = int(connection.scalar(select(func.max(RUN.c.id))) or 0)
        if after is None or newest <= after:
            return newest, set()
        question = select(BOARD.c.name, RUN.c.name).join(RUN, RUN.c.board == BOARD.c.id).where(RUN.c.id > after)
        return newest, {board for board, run in connection.execute(question) if run not in announced}


def is_declared(history: History) -> bool:
    """Whether any board was declared by a farm, so that the farm decides which boards are public."""
    with history.reading() as connection:
        return connection.execute(select(BOARD.c.id).where(BOARD.c.is_declared).limit(1)).first() is not None
