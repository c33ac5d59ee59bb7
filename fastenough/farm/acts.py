# SPDX-License-Identifier: GPL-2.0-or-later
"""The acts on a board.  Each is a function of an order, runs in a process of its own (`processes.py`) and returns JSON.

``fault`` in a result is why the act failed.  ``reservation`` is the place's entry of
`places`, if the reason is that a person has reserved it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any, TypedDict

from fastenough.board import AS_BOOTED, Board, Booted, labgrid_act, labgrid_console, open_board
from fastenough.board.console import console_sentence
from fastenough.board.labgrid import LabgridBoard, address_of, stoppable
from fastenough.campaign import Plan, read_plan, run_campaign
from fastenough.campaign.plan_check import check_plan
from fastenough.campaign.runner import ChangedSystem, on_board
from fastenough.campaign.stop import StopRequest
from fastenough.farm.child_process import end_with_parent
from fastenough.jobs.pull import BoardAnnotations, BoardNames, PullResult, pull
from fastenough.link.ring import Ring
from fastenough.model import EMULATED, BadInput, FastenoughError, Outcome
from fastenough.recording.parsing import parsed_load
from fastenough.store import Store


class ActAnswer(TypedDict, total=False):
    """The answer of an act.

    ``fault``: why it failed; ``refusal``: why runs of a plan were refused, which booting the board does not mend;
    ``reservation``: the place, if the reason is that a person reserved it.  ``link`` and
    ``console``: how the board is reached, and its console port.  ``newest``: the newest recording seen in its ring.
    ``stored``: ids of the runs that are in the store now; ``under_way``: id and file name of growing recordings;
    ``refused``: name of each refused recording, and the reason.  ``places`` and ``me``: as labgrid reports them.
    """

    fault: str
    refusal: str
    reservation: labgrid_act.PlaceReservation
    link: str
    console: Mapping[str, Any] | None
    newest: str
    grown: bool
    bytes: int
    stored: Sequence[str]
    under_way: Sequence[Sequence[str]]
    gaps: int
    refused: Sequence[Sequence[str]]
    places: Mapping[str, labgrid_act.PlaceReservation]
    me: str


class FarmOrder(TypedDict):
    """Part of every order: the name of the farm at labgrid's coordinator, its folders and its database."""

    farm: str
    coordinator: str
    store: str
    state: str
    database: str


class BoardOrder(FarmOrder, total=False):
    """An act on one board.

    ``link``: how the board is reached; ``stated_link``: the link of the farm file, empty if there is none.
    ``newest``: the newest recording seen in its ring.  ``plan`` and ``resume``: for `measure` only.
    """

    board: str
    former_names: Sequence[str]
    place: str
    ring: str
    simulated: bool
    load: Mapping[str, Any] | None
    link: str
    stated_link: str
    newest: str
    boot_s: float
    plan: str
    resume: bool


_RETRY_S = 0.5
_ANSWER_S = 5.0
_MOST_BYTES = 65536
_MOST_REASONS = 3


class LabgridFailure(FastenoughError):
    """labgrid's answer to an act that failed."""

    def __init__(self, answer: labgrid_act.LabgridAnswer) -> None:
        super().__init__(answer["fault"])
        self.answer = ActAnswer(fault=answer["fault"])
        if "reservation" in answer:
            self.answer["reservation"] = answer["reservation"]


def _labgrid(order: BoardOrder, act: str) -> labgrid_act.LabgridAnswer:
    """Run one labgrid act in a child process: labgrid's managers are singletons of a process.  Raises LabgridFailure.

    There is no time-out here: the process that ordered the act ends the group in time.
    """

    def act_there(pipe: socket.socket) -> None:
        os.environ.update(LG_COORDINATOR=order["coordinator"], LG_USERNAME=order["farm"])
        pipe.sendall(json.dumps(labgrid_act.main(order["coordinator"], order.get("place", ""), act)).encode())

    with _fork(act_there) as pipe:
        reply = b"".join(iter(lambda: pipe.recv(65536), b""))
    answer: labgrid_act.LabgridAnswer = json.loads(reply or b'{"fault": "labgrid returned no answer"}')
    if "fault" in answer:
        raise LabgridFailure(answer)
    return answer


@contextmanager
def _fork(work: Callable[[socket.socket], None]) -> Iterator[socket.socket]:
    """While inside, a process of the same group is at work; it has the other end of the socket.

    No thread is started in the process that forks: one that is forked beside a thread may wait for its locks for ever.
    """
    ours, theirs = socket.socketpair()
    if (child := os.fork()) == 0:
        try:
            end_with_parent()
            ours.close()
            work(theirs)
        finally:
            os._exit(0)
    theirs.close()
    try:
        yield ours
    finally:
        ours.close()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _act(work: Callable[[BoardOrder], ActAnswer]) -> Callable[[BoardOrder], ActAnswer]:
    """labgrid's refusals are answers.  An act keeps its name: another process finds it by that."""

    @wraps(work)
    def act(order: BoardOrder) -> ActAnswer:
        try:
            return work(order)
        except LabgridFailure as failed:
            return failed.answer

    return act


@_act
def places(order: BoardOrder) -> ActAnswer:
    """Return the holder of each place: ``places`` by name, and ``me``, the name of this farm."""
    answer = _labgrid(order, "places")
    return {"places": answer["places"], "me": answer["me"]}


@_act
def acquire(order: BoardOrder) -> ActAnswer:
    """Acquire the place again after the coordinator lost the reservation; switches nothing."""
    return _acquire(order)


@_act
def release(order: BoardOrder) -> ActAnswer:
    _labgrid(order, "release")
    return {}


def _acquire(order: BoardOrder) -> ActAnswer:
    resources = _labgrid(order, "acquire")
    service = resources.get("service")
    return {"link": f"ssh://{address_of(service)}" if service else "", "console": resources.get("console")}


@_act
def boot(order: BoardOrder) -> ActAnswer:
    """Power-cycle the board and wait until it answers and its service has started a new recording."""
    acquired: ActAnswer = _acquire(order) if order.get("place") else {}
    link = order.get("link") or acquired.get("link") or ""
    if not link:
        return {"fault": f"place {order['place']} has no NetworkService; export one, or set link in farm.toml"}
    if not order.get("place"):
        return {"link": link, "newest": _wait_until_up(order, link)} if order["ring"] else {"link": link}
    with _console(acquired.get("console")) as last_lines:
        _labgrid(order, "cycle")
        try:
            return {"link": link, "newest": _wait_until_up(order, link)}
        except FastenoughError as error:
            return {"fault": "; ".join((str(error), *last_lines()))}


@contextmanager
def _console(port: Mapping[str, Any] | None) -> Iterator[Callable[[], list[str]]]:
    """Reads the console while inside; yields a function that returns its last lines."""
    if not port:
        yield list
        return

    def read_there(pipe: socket.socket) -> None:
        reader = labgrid_console.Reader(dict(port))
        threading.Thread(target=reader.follow, daemon=True).start()
        for _ in pipe.makefile("rb"):
            pipe.sendall(reader.answer().encode() + b"\n")

    with _fork(read_there) as pipe, pipe.makefile("rb") as answers:
        pipe.settimeout(_ANSWER_S)

        def last_lines() -> list[str]:
            try:
                pipe.sendall(b"\n")
                return console_sentence(answers.readline(_MOST_BYTES))
            except (OSError, ValueError):
                return ["the console cannot be read: no answer from labgrid"]

        yield last_lines


def _wait_until_up(order: BoardOrder, link: str) -> str:
    """Wait until the board answers and its ring has a new recording; returns the name of the recording, empty without a
    ring.

    Raises FastenoughError if that takes longer than the time to boot.
    """
    deadline, why = time.monotonic() + order["boot_s"], ""
    while time.monotonic() < deadline:
        try:
            with open_board(link).boot(AS_BOOTED) as booted:
                newest = _newest(booted, order)
                if newest != order.get("newest", "") or not order.get("ring"):
                    return newest
                why = "the service started no new recording"
        except FastenoughError as error:
            why = str(error)
        time.sleep(_RETRY_S)
    raise FastenoughError(f"the board did not boot within {order['boot_s']:g} s: {why}")


def _newest(booted: Booted, order: BoardOrder) -> str:
    if not order.get("ring"):
        return ""
    files = Ring(booted.link.raised, order["ring"]).list_files()
    return files[-1].name if files else str(order.get("newest", ""))


def pull_ring(order: BoardOrder) -> ActAnswer:
    """Copy what the board's service has recorded since the last pull into the store."""
    with open_board(order["link"]).boot(AS_BOOTED) as booted:
        names = BoardNames(order["board"], _annotations(order, booted).added, tuple(order.get("former_names", ())))
        pulled = pull(booted.link.raised, order["ring"], opened_store(order["store"]), names, lambda: None)
    newest = pulled.newest or str(order.get("newest", ""))
    return {"grown": pulled.bytes > 0, "newest": newest, "bytes": pulled.bytes, **_pull_result(pulled)}


@lru_cache(maxsize=1)
def opened_store(path: str) -> Store:
    """Return the store, opened once per process, because opening one reads every run in it."""
    return Store(Path(path))


def _annotations(order: BoardOrder, booted: Booted) -> BoardAnnotations:
    marks = (EMULATED,) if order.get("simulated") else ()
    return BoardAnnotations(order["board"], booted, parsed_load(order.get("load")), marks)


def _pull_result(pulled: PullResult) -> ActAnswer:
    return {
        "stored": [recording.run_id for recording in pulled.stored],
        "under_way": [[recording.run_id, recording.name] for recording in pulled.under_way],
        "gaps": len(pulled.gaps),
        "refused": [[recording.name, recording.reason] for recording in pulled.refused],
    }


@dataclass(frozen=True)
class NamedBoard:
    """A board under the name that it has in the farm."""

    board: Board
    name: str

    def configurations(self) -> tuple[str, ...]:
        return self.board.configurations()

    def boot(self, configuration: str) -> AbstractContextManager[Booted]:
        return self.board.boot(configuration)


def measure(order: BoardOrder) -> ActAnswer:
    """Measure the runs of a plan; with ``resume``, continue an interrupted cycle.

    A plan that is refused, before or at its first run, says nothing against the board; another system than that of the
    kept runs does.
    """
    try:
        plan = on_board(read_plan(Path(order["plan"])), order["board"])
        check_plan(plan)
        return _measure(order, plan)
    except ChangedSystem:
        raise
    except BadInput as error:
        return {"refusal": str(error)}


def _measure(order: BoardOrder, plan: Plan) -> ActAnswer:
    stopping = StopRequest()
    board = stoppable(
        open_board(order["stated_link"])
        if order["stated_link"]
        else LabgridBoard(order["place"], order["boot_s"], keep_acquired=True),
        stopping.sleep,
    )
    store = Store(Path(order["store"]))
    os.environ.update(LG_COORDINATOR=order["coordinator"], LG_USERNAME=order["farm"])
    if len(plan.configurations) > 1 and board.configurations() == (AS_BOOTED,):
        raise BadInput(
            f"{order['plan']} has several configurations ({', '.join(plan.configurations)}), but {order['board']} "
            "cannot boot them; remove configurations from the plan"
        )
    campaign = run_campaign(
        plan,
        store,
        resume=order["resume"],
        opened=lambda name: NamedBoard(board, name),
        stopping=stopping,
        journal=Path(order["state"]) / f"{order['board']}.journal",
    )
    answer: ActAnswer = {"stored": list(campaign.runs)}
    if campaign.refused:
        answer["refusal"] = _reasons(store, campaign.refused)
    unrefused = [run for run in campaign.runs if run not in campaign.refused]
    if failed := [run for run in unrefused if store.load(run).outcome is Outcome.FAILED]:
        answer["fault"] = _reasons(store, failed)
    return answer


def _reasons(store: Store, runs: Sequence[str]) -> str:
    """The distinct reasons of failed runs, those of the first ones."""
    reasons = [reason for run in runs for reason in store.load(run).reasons]
    return "; ".join(dict.fromkeys(reasons[:_MOST_REASONS])) or "a run failed; no reason was recorded"
