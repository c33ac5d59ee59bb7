# SPDX-License-Identifier: GPL-2.0-or-later
"""The farm at work: one loop that asks the calendar, the coordinator and the acts what has happened, and does what the
state machine says.  No labgrid is in it, and nothing in it waits for a board."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fastenough import words
from fastenough.campaign import read_plan
from fastenough.campaign.expand import expand
from fastenough.farm import acts, taking
from fastenough.farm.calendar import due
from fastenough.farm.clock import Clock
from fastenough.farm.config import BoardEntry, Farm
from fastenough.farm.kept import Beat, Kept
from fastenough.farm.machine import (
    UP,
    Act,
    BoardState,
    Command,
    Ended,
    Event,
    Phase,
    Seen,
    Start,
    Tick,
    restored,
    shifted,
    step,
)
from fastenough.farm.nursery import Answer, Nursery, Work
from fastenough.history.schema import CYCLE_S
from fastenough.model import BadInput

WORK: Mapping[Act, Work] = {Act.BOOT: acts.boot, Act.ACQUIRE: acts.acquire, Act.PULL: acts.pull_ring,
                            Act.MEASURE: acts.measure, Act.RELEASE: acts.release}
_TICK_S = 0.2
_LABGRID_S = 90.0
"""The coordinator may wait half a minute for an exporter that is silent, and acts wait for each other meanwhile."""
_SWITCHED_S = 10.0
"""What switching a board off and on takes, besides as long again as it may boot."""
_PULL_S = 60.0
_LATE_S = 3600.0
"""How much longer than planned the runs of a plan may take, and a quarter of it besides."""
_TAKE_S = 600.0
_BEAT_S = 60.0
_DAY_S = 86400
_PULLED_S = 3600.0


@dataclass
class Faults:
    """What is wrong with the farm's own surroundings; empty where nothing is."""

    coordinator: str = ""
    history: str = ""


@dataclass
class Backlog:
    """What has come and is not in the history yet: runs in the store, boards of which a cycle has ended with them, and
    by ring what is on its way there."""

    stored: set[str] = field(default_factory=set)
    judge: set[str] = field(default_factory=set)
    under_way: dict[str, dict[str, str]] = field(default_factory=dict)

    def add(self, board: BoardEntry, said: Mapping[str, Any]) -> None:
        stored = said.get("stored", ())
        self.stored.update(stored)
        self.judge.update([board.name] if stored else [])
        for run, name in said.get("under_way", ()):
            self.under_way[board.name] = {"board": board.name, "ring": board.ring, "run": run, "name": name}

    def before(self, later: Backlog) -> Backlog:
        """Both of them."""
        return Backlog(self.stored | later.stored, self.judge | later.judge, self.under_way | later.under_way)


@dataclass
class FarmRun:
    """One farm, from its start to its end.  ``say`` is given a line each minute."""

    farm: Farm
    say: Callable[[str], None]
    beat_s: float = _BEAT_S
    faults: Faults = field(default_factory=Faults)
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self._kept = Kept(self.farm.state)
        self._nursery = Nursery()
        self._boards = {board.name: board for board in self.farm.boards}
        before, (now_s, _) = self._kept.boards(), self.clock.read()
        self.states = {name: restored(before.get(name, BoardState(since_s=now_s)), now_s) for name in self._boards}
        self._tasks: set[asyncio.Task[None]] = set()
        self._backlog = Backlog()
        self._declared: list[dict[str, Any]] = []
        self._closed_day = 0
        self._looked_back = 0
        self._take_s = max(_TICK_S, min(board.times.pull_s for board in self.farm.boards) / 4)
        self._bytes = 0
        self._ending = asyncio.Event()

    def end(self) -> None:
        """Ask it to end in order."""
        self._ending.set()

    async def run(self) -> None:
        """Until it is asked to end; then acts end, and places are let go."""
        loops = [asyncio.ensure_future(one) for one in (
            self._every(_TICK_S, self._tick), self._every(self.farm.reconcile_s, self._reconcile),
            self._every(self.beat_s, self._beat), self._taking(),
            self._every(self.farm.reconcile_s, self._look_back))]
        ending = asyncio.ensure_future(self._ending.wait())
        try:
            done, _ = await asyncio.wait([*loops, ending], return_when=asyncio.FIRST_COMPLETED)
            for one in done:
                one.result()
        finally:
            for one in (*loops, ending):
                one.cancel()
            await asyncio.gather(*loops, ending, return_exceptions=True)
            await self._finish()

    async def _every(self, period_s: float, what: Callable[[], Any]) -> None:
        while True:
            answer = what()
            if answer is not None:
                await answer
            await asyncio.sleep(period_s)

    def _tick(self) -> None:
        now_s = self._now_s()
        for name, board in self._boards.items():
            self._event(name, Tick(due(board.plans, now_s)))

    def _now_s(self) -> float:
        """By the wall clock; where that was set, what is kept of the boards goes with it."""
        now_s, was_set_s = self.clock.read()
        if was_set_s:
            self.states = {name: shifted(state, was_set_s) for name, state in self.states.items()}
        return now_s

    async def _reconcile(self) -> None:
        """Hold what is known of each place against what the coordinator says; it forgets, and people come."""
        if not any(board.place for board in self.farm.boards):
            return
        answer = await self._nursery.act("places", acts.places, self._order(), _LABGRID_S)
        self.faults.coordinator = answer.fault
        if answer.fault:
            return
        said, me = answer.said["places"], answer.said["me"]
        forgot = any(said.get(board.place, {}).get("holder") == "" and self.states[name].phase in UP
                     for name, board in self._boards.items() if board.place)
        for name, board in self._boards.items():
            if board.place:
                place = said.get(board.place, {"holder": None})
                self._event(name, Seen(**place, ours=place["holder"] == me, forgot=forgot))

    def _event(self, name: str, event: Event) -> None:
        now_s = self._now_s()
        before = self.states[name]
        self.states[name], commands = step(self._boards[name], before, event, now_s)
        if self.states[name] != before:
            self._kept.put(name, self.states[name])
        for command in commands:
            self._obey(name, command)

    def _obey(self, name: str, command: Command) -> None:
        if isinstance(command, Start):
            task = asyncio.ensure_future(self._do(name, command))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            self._nursery.stop(f"{command.act} {name}")

    async def _do(self, name: str, start: Start) -> None:
        """One act, and what the state machine makes of its end."""
        board = self._boards[name]
        try:
            order = self._order(board, self.states[name]) | {"plan": str(start.plan or ""), "resume": start.resume}
            answer = await self._nursery.act(f"{start.act} {name}", WORK[start.act], order, _limit_s(board, start))
        except BadInput as error:  # a plan that was changed meanwhile
            answer = Answer({"fault": str(error)})
        self._backlog.add(board, answer.said)
        self._bytes += answer.said.get("bytes", 0)
        self._event(name, _ended(start.act, answer))

    def _order(self, board: BoardEntry | None = None, state: BoardState | None = None) -> dict[str, Any]:
        farm = {"farm": f"fastenough-{self.farm.name}", "coordinator": self.farm.coordinator,
                "store": str(self.farm.store), "state": str(self.farm.state), "database": self.farm.database}
        if board is None or state is None:
            return farm
        return farm | {"board": board.name, "place": board.place, "ring": board.ring, "simulated": board.simulated,
                       "load": board.load and asdict(board.load),
                       "link": board.link or state.link, "given": board.link, "newest": state.newest,
                       "boot_s": board.times.boot_s}

    async def _taking(self) -> None:
        """The history follows the store: everything at first, then what has come; what it cannot take now waits."""
        whole = True
        while True:
            begun_s = time.monotonic()
            answer = await self._take(whole)
            whole = self.faults.history != ""
            pause_s = max(self._take_s, time.monotonic() - begun_s)
            await asyncio.sleep(self.farm.reconcile_s if answer.fault else pause_s)

    async def _take(self, whole: bool) -> Answer:
        backlog, self._backlog = self._backlog, Backlog()
        standing = [taking.said_of(board, self.states[name]) for name, board in self._boards.items()]
        changed = [said for said in standing if said not in self._declared]
        today = int(self._now_s() // _DAY_S)
        order = self._order() | {"all": whole, "boards": changed,
                                 "close": list(self._boards) if today != self._closed_day else [],
                                 "judge": self._required(None if whole else backlog.judge),
                                 "stored": sorted(backlog.stored), "under_way": list(backlog.under_way.values())}
        answer = await self._nursery.act("take", taking.take_runs, order, _TAKE_S)
        self.faults.history = answer.fault
        if answer.fault:
            self._backlog = backlog.before(self._backlog)
        else:
            self._declared, self._closed_day = standing, today
        return answer

    async def _look_back(self) -> None:
        """Once for each cycle, an hour after it has ended, when its boards were pulled: whose tail has changed?"""
        cycle = int((self._now_s() - _PULLED_S) // CYCLE_S)
        if cycle != self._looked_back:
            answer = await self._nursery.act("tails", taking.look_for_tails, self._order(), _TAKE_S)
            self._looked_back = self._looked_back if answer.fault else cycle

    def _required(self, names: Collection[str] | None) -> dict[str, Any]:
        """What is required of these boards, None: of all; but of none whose cycle is under way."""
        chosen = [board for name, board in self._boards.items()
                  if (names is None or name in names) and Act.MEASURE not in self.states[name].busy]
        return {board.name: None if board.requirement is None else asdict(board.requirement) for board in chosen}

    def _beat(self) -> None:
        line = status_line(self.states, self.faults, self._bytes)
        self._bytes = 0
        self._kept.beat(Beat(os.getpid(), self._now_s(), line))
        self.say(line)

    async def _finish(self) -> None:
        """Acts end in order, and the places are let go: their boards go on recording by themselves."""
        await self._nursery.end()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        held = [name for name, board in self._boards.items()
                if board.place and self.states[name].phase not in (Phase.LENT, Phase.OFF, Phase.DEAD)]
        await asyncio.gather(*(self._nursery.act(f"release {name}", acts.release, self._order(
            self._boards[name], self.states[name]), _LABGRID_S) for name in held))
        self._kept.close()


def _ended(act: Act, answer: Answer) -> Ended:
    said = answer.said
    return Ended(act, " ".join(words.said_lines(answer.fault.encode()))[:500], str(said.get("lent", "")),
                 bool(said.get("grown")), str(said.get("link", "")), str(said.get("newest", "")))


def _limit_s(board: BoardEntry, start: Start) -> float:
    """How long an act may take; raises BadInput for a plan that cannot be read any more."""
    if start.plan is not None:
        return _planned_s(start.plan) * 1.25 + _LATE_S
    return {Act.BOOT: 2 * board.times.boot_s + _SWITCHED_S, Act.PULL: max(_PULL_S, board.times.pull_s)}.get(
        start.act, _LABGRID_S)


def _planned_s(plan: Path) -> float:
    return sum(spec.whole_s for spec in expand(read_plan(plan)))


def status_line(states: Mapping[str, BoardState], faults: Faults, pulled_bytes: int) -> str:
    """How the boards stand, worst first, and what is wrong around them."""
    counts = Counter(state.told for state in states.values())
    worst = ("dead", "lent", "off", "booting", "ready", "pulling", "measuring")
    told = ", ".join(f"{counts[word]} {word}" for word in worst if counts[word])
    parts = [f"{words.counted(len(states), 'board')}: {told}", f"{pulled_bytes / 1e6:,.1f} MB pulled"]
    parts += [f"{name}: {fault}" for name, fault in (("coordinator", faults.coordinator), ("history", faults.history))
              if fault]
    return "; ".join(parts)
