# SPDX-License-Identifier: GPL-2.0-or-later
"""Update the history with new recordings and the states of boards, in one process at a time.

Boards are pulled even while the database is away; their recordings wait in the store.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, TypedDict

from fastenough.farm.acts import FarmOrder, opened_store
from fastenough.farm.config import BoardEntry, due_s
from fastenough.farm.judging import verdicts_on
from fastenough.farm.state_machine import BoardPhase, BoardState
from fastenough.history import (
    BoardDeclaration,
    History,
    catch_up,
    close_months,
    declare,
    disown,
    ingest_noting_faults,
    ingest_stream,
    note_refused,
    refresh_summaries,
    requirement_text,
)
from fastenough.history.boards import boards_with_new_runs
from fastenough.history.ingest import ClockAhead
from fastenough.history.tail import TailWatch
from fastenough.model import BadInput
from fastenough.store import Store

_DECLARED_STATES = (BoardPhase.RESERVED, BoardPhase.DEAD)
"""The phases that pages show."""


def declaration_of(board: BoardEntry, state: BoardState, farm: str = "") -> BoardDeclaration:
    """Return the columns that the history stores for a board of a farm."""
    phase = str(state.phase) if state.phase in _DECLARED_STATES else "ok"
    condition = "retired" if board.retired else phase
    required = board.requirement
    return {
        "name": board.name,
        "rack": board.rack,
        "type": board.type,
        "site": board.site,
        "public": board.public,
        "limit_ns": None if required is None else required.limit_ns,
        "requirement": requirement_text(required),
        "state": condition,
        "farm": farm,
        "former_names": json.dumps(board.former_names) if board.former_names else "",
        "reason": state.reason if condition != "ok" else "",
        "due_s": round(due_s(board)),
    }


class GrowingRecording(TypedDict):
    """A recording that its board still writes.  ``spool``: the name under which the board's recordings are stored."""

    board: str
    spool: str
    ring: str
    run: str
    name: str


class JudgedBoard(TypedDict):
    """``required``: the fields of a `Requirement`, None if the farm requires nothing; ``former_names``: names under
    which the board recorded before."""

    required: Mapping[str, Any] | None
    former_names: Sequence[str]


class HistoryOrder(FarmOrder):
    """The input of `update_history`."""

    all: bool
    boards: Sequence[BoardDeclaration]
    id: str
    names: Sequence[str]
    close: Sequence[str]
    judge: Mapping[str, JudgedBoard]
    stored: Sequence[str]
    under_way: Sequence[GrowingRecording]
    refused: Mapping[str, Sequence[Sequence[str]]]
    interrupted: Sequence[str]
    newest_run: int | None


class HistoryAnswer(TypedDict):
    """``damaged``: runs that were not read to their end, with reasons.  ``newest_run``: number of the newest run in the
    history.  ``entered``: other boards than the judged ones that got runs which no act of the farm announces, such as
    uploads."""

    damaged: Sequence[str]
    newest_run: int
    entered: Sequence[str]


def update_history(order: HistoryOrder) -> HistoryAnswer:
    """Update the history.

    ``boards``: changed declarations.  ``stored``: sealed runs; with ``all`` every run of the store.  ``under_way``:
    partly pulled recordings: board, ring, run and file name of each.  ``refused``: by board, name and reason of the
    recordings that its last pull refused.  ``judge``: boards whose cycle has ended, with their requirements.
    ``close``: boards whose old months are archived.  ``interrupted``: boards whose plan ended without an answer.
    ``newest_run``: number of the newest run after the last update, None at the first one.
    """
    store = opened_store(order["store"])
    with closing(History.of(store, order["database"])) as history:
        for declaration in order["boards"]:
            declare(history, **declaration)
        if order["all"]:
            disown(history, order["id"], order["names"])
        faults = list(_read_stored(history, store, order))
        for growing in order["under_way"]:
            _update_growing(history, store, growing)
        announced = {*order["stored"], *(growing["run"] for growing in order["under_way"]), *_running(store)}
        newest, entered = boards_with_new_runs(history, order["newest_run"], announced)
        for board, refused in order["refused"].items():
            note_refused(history, board, [(name, "refused", why) for name, why in refused])
        for board, question in order["judge"].items():
            required, former_names = question["required"], question["former_names"]
            declare(history, board, **verdicts_on(store, board, required, former_names=former_names, history=history))
        if order["close"]:
            close_months(history, int(time.time()), order["close"])
        refresh_summaries(history, int(time.time()))
    return {"damaged": faults, "newest_run": newest, "entered": sorted(entered - order["judge"].keys())}


def _read_stored(history: History, store: Store, order: HistoryOrder) -> Iterator[str]:
    """Read the runs of the store that an order names; yields those that were not read to their end, with reasons."""
    if order["all"] or order["interrupted"]:
        caught = catch_up(history, store, None if order["all"] else order["interrupted"])
        yield from (f"{run}: {why}" for run, why in caught.faults.items())
    for run_id in dict.fromkeys((*order["stored"], *_running(store))):
        try:
            for run in store.own_runs(id=run_id):
                ingest_noting_faults(history, store, run)
        except BadInput as error:  # noted among its board's; the others come
            yield f"{run_id}: {error}"


def _running(store: Store) -> list[str]:
    return [run.id for run in store.own_runs(state="running")]


class TailOrder(FarmOrder):
    """The input of `find_tail_changes`.  ``names``: all boards of the farm; ``false_changes``: as in its file."""

    names: Sequence[str]
    false_changes: float


def find_tail_changes(order: TailOrder) -> dict[str, list[str]]:
    """Note in the history the boards whose maxima of cycles have changed."""
    store = opened_store(order["store"])
    with closing(History.of(store, order["database"])) as history:
        return {"changed": list(TailWatch(order["names"], order["false_changes"]).look(history))}


def _update_growing(history: History, store: Store, growing: GrowingRecording) -> None:
    """The data received so far of a growing recording, under its head in the store."""
    try:
        whole = store.arriving(growing["spool"], growing["ring"], growing["name"])
        ingest_stream(history, growing["run"], io.BytesIO(whole))
    except OSError:
        return  # it came into the store meanwhile, from where it is taken
    except BadInput as error:
        kind = "clock" if isinstance(error, ClockAhead) else "damaged"
        note_refused(history, growing["board"], [(growing["run"], kind, str(error))])
