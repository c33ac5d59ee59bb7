# SPDX-License-Identifier: GPL-2.0-or-later
"""What is done to a board, each in a process of its own (nursery.py): functions of an order, answered as JSON has it.

``fault`` in an answer is why the act failed, ``lent`` the person who has the place where that is why.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastenough.board import (
    AS_BOOTED,
    Board,
    Booted,
    configuration_in,
    labgrid_act,
    labgrid_console,
    marks_in,
    open_board,
)
from fastenough.board.console import words_of
from fastenough.board.labgrid import LabgridBoard, address_of
from fastenough.campaign import read_plan, run_campaign
from fastenough.campaign.runner import on_board
from fastenough.facts import collect, profile_sha256
from fastenough.farm.nursery import Order
from fastenough.files import replace_whole
from fastenough.jobs.pull import Pulled, Told, pull
from fastenough.link.ring import Ring
from fastenough.model import EMULATED, FastenoughError, Outcome
from fastenough.recording.building import Added
from fastenough.store import Store

Answer = dict[str, Any]
_RETRY_S = 0.5
_MOST_REASONS = 3


class Failed(FastenoughError):
    """labgrid's answer to an act that failed."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        super().__init__(str(answer["fault"]))
        self.answer = dict(answer)


def _labgrid(order: Order, act: str) -> Mapping[str, Any]:
    """One act of labgrid's, in a process of the same group: its managers are singletons of a process.  Raises Failed.

    Nothing waits here: whoever ordered the act ends the group in time.
    """
    ours, theirs = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.environ["LG_COORDINATOR"] = order["coordinator"]
            os.environ["LG_USERNAME"] = order["farm"]
            answer = labgrid_act.main(order["coordinator"], order.get("place", ""), act)
            os.write(theirs, json.dumps(answer).encode())
        finally:
            os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as stream:
        said = stream.read()
    os.waitpid(child, 0)
    answer = json.loads(said or b'{"fault": "labgrid does not say why"}')
    if "fault" in answer:
        raise Failed(answer)
    return dict(answer)


def _answering(work: Callable[[Order], Answer]) -> Callable[[Order], Answer]:
    """labgrid's refusals are answers."""
    def act(order: Order) -> Answer:
        try:
            return work(order)
        except Failed as failed:
            return failed.answer
    return act


def places(order: Order) -> Answer:
    """Who holds which place: ``places`` by name, and ``me``."""
    return _answering(lambda order: dict(_labgrid(order, "places")))(order)


def acquire(order: Order) -> Answer:
    """Hold the place again, which the coordinator has forgotten; nothing is switched."""
    return _answering(_acquired)(order)


def release(order: Order) -> Answer:
    return _answering(lambda order: dict(_labgrid(order, "release")))(order)


def boot(order: Order) -> Answer:
    """Switch the board off and on, and wait until it answers and its service records anew."""
    return _answering(_boot)(order)


def _acquired(order: Order) -> Answer:
    has = _labgrid(order, "acquire")
    service = has.get("service")
    return {"link": f"ssh://{address_of(service)}" if service else "", "console": has.get("console")}


def _boot(order: Order) -> Answer:
    held = _acquired(order) if order.get("place") else {}
    link = order.get("link") or held.get("link") or ""
    if not link:
        return {"fault": f"{order['place']} has no NetworkService, so it cannot be reached; export one, or write link "
                         "in the farm's file"}
    words = _console(held.get("console"))
    if order.get("place"):
        _labgrid(order, "cycle")
    elif not order["ring"]:
        return {"link": link}  # its plan boots it, or finds it up
    try:
        return {"link": link, "newest": _up(order, link)}
    except FastenoughError as error:
        return {"fault": "; ".join((str(error), *words()))}


def _console(port: Mapping[str, Any] | None) -> Callable[[], list[str]]:
    """The console is read from now on; gives what it said last."""
    if not port:
        return list
    reader = labgrid_console.Reader(dict(port))
    threading.Thread(target=reader.follow, daemon=True).start()
    return lambda: words_of(reader.answer())


def _up(order: Order, link: str) -> str:
    """The newest recording of the board's ring once there is a new one, or nothing once it answers; raises
    FastenoughError when that takes too long."""
    deadline, why = time.monotonic() + order["boot_s"], ""
    while time.monotonic() < deadline:
        try:
            with open_board(link).boot(AS_BOOTED) as booted:
                newest = _newest(booted, order)
                if newest != order.get("newest") or not order.get("ring"):
                    return newest
                why = "its service has begun no new recording"
        except FastenoughError as error:
            why = str(error)
        time.sleep(_RETRY_S)
    raise FastenoughError(f"it has not come up within {order['boot_s']:g} s: {why}")


def _newest(booted: Booted, order: Order) -> str:
    if not order.get("ring"):
        return ""
    files = Ring(booted.link.raised, order["ring"]).listed()
    return files[-1].name if files else str(order.get("newest", ""))


class Profiles:
    """A board's profiles by the recordings that began under them: taken when a recording is first seen, and kept in
    the farm's state until it is stored."""

    def __init__(self, order: Order, booted: Booted) -> None:
        self._path = Path(order["state"]) / f"{order['board']}.profiles.json"
        self._board, self._booted = str(order["board"]), booted
        self._marks = (*booted.marks, *((EMULATED,) if order.get("simulated") else ()))
        self._kept: dict[str, dict[str, Any]] = {}
        with suppress(OSError, ValueError):
            self._kept = dict(json.loads(self._path.read_bytes()))

    def added(self, run_id: str) -> Added:
        """What only the bench knows of a recording."""
        if run_id not in self._kept:
            self._kept[run_id] = collect(self._booted.link)
        profile = self._kept[run_id]
        marks = tuple(dict.fromkeys((*self._marks, *marks_in(profile))))
        return Added(self._board, configuration_in(profile), None, profile, profile_sha256(profile), (), marks)

    def keep(self, run_ids: Iterable[str]) -> None:
        """These are on their way, and no others."""
        kept = {run_id: self._kept[run_id] for run_id in run_ids if self.added(run_id)}
        replace_whole(self._path, json.dumps(kept).encode(), 0o600)


def pull_ring(order: Order) -> Answer:
    """What the board's service has recorded since the last pull, into the store."""
    with open_board(order["link"]).boot(AS_BOOTED) as booted:
        profiles = Profiles(order, booted)
        told = Told(order["board"], profiles.added)
        pulled = pull(booted.link.raised, order["ring"], Store(Path(order["store"])), told, lambda: None)
        profiles.keep(one.run_id for one in pulled.under_way)
        newest = _newest(booted, order)
    return {"grown": pulled.bytes > 0, "newest": newest, "bytes": pulled.bytes, **_told(pulled)}


def _told(pulled: Pulled) -> Answer:
    return {"stored": [one.run_id for one in pulled.stored], "under_way": [one.run_id for one in pulled.under_way],
            "gaps": len(pulled.gaps), "refused": [f"{one.name}: {one.reason}" for one in pulled.refused]}


@dataclass(frozen=True)
class NamedBoard:
    """A board under the name that it has in the farm."""

    board: Board
    name: str

    def configurations(self) -> tuple[str, ...]:
        return self.board.configurations()

    def boot(self, configuration: str) -> AbstractContextManager[Booted]:
        return self.board.boot(configuration)


def measure(order: Order) -> Answer:
    """The runs of a plan; ``resume``: an earlier part of this cycle goes on."""
    board = open_board(order["given"]) if order["given"] else LabgridBoard(order["place"], order["boot_s"], kept=True)
    plan, store = on_board(read_plan(Path(order["plan"])), order["board"]), Store(Path(order["store"]))
    os.environ.update(LG_COORDINATOR=order["coordinator"], LG_USERNAME=order["farm"])
    campaign = run_campaign(plan, store, resume=order["resume"], opened=lambda name: NamedBoard(board, name),
                            journal=Path(order["state"]) / f"{order['board']}.journal")
    runs = [store.load(run) for run in campaign.runs]
    failed = [why for run in runs if run.outcome is Outcome.FAILED for why in (run.end.reasons if run.end else ())]
    told = "; ".join(dict.fromkeys(failed[:_MOST_REASONS]))
    return {"stored": list(campaign.runs)} | ({"fault": told or "a run failed"} if failed else {})
