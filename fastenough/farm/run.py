# SPDX-License-Identifier: GPL-2.0-or-later
"""Run a farm: one loop passes events of the calendar, the coordinator and the acts to the state machine and executes
its commands.  The loop imports no labgrid and never waits for a board."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from fastenough import words
from fastenough.campaign import read_plan
from fastenough.campaign.expand import expand
from fastenough.farm import acts, history_update
from fastenough.farm.acts import ActAnswer, BoardOrder, FarmOrder
from fastenough.farm.calendar import BenchClock, due
from fastenough.farm.config import BoardEntry, Farm
from fastenough.farm.history_update import GrowingRecording, HistoryOrder, JudgedBoard
from fastenough.farm.processes import ActProcesses, ActResult, Work, WorkerPool
from fastenough.farm.state_file import Beat, FarmState
from fastenough.farm.state_machine import (
    UP,
    ActEnded,
    BoardAct,
    BoardPhase,
    BoardState,
    Command,
    Event,
    PlaceStatus,
    Start,
    Tick,
    restore,
    shift_times,
    step,
)
from fastenough.history import BoardDeclaration
from fastenough.history.schema import CYCLE_S
from fastenough.model import BadInput

WORK: Mapping[BoardAct, Work] = {
    BoardAct.BOOT: acts.boot,
    BoardAct.ACQUIRE: acts.acquire,
    BoardAct.PULL: acts.pull_ring,
    BoardAct.MEASURE: acts.measure,
    BoardAct.RELEASE: acts.release,
}
_TICK_S = 0.2
_LABGRID_S = 90.0
"""The coordinator may wait half a minute for an exporter that is silent, and acts wait for each other meanwhile."""
_SWITCHED_S = 10.0
"""Time to power-cycle a board, in addition to twice its time to boot."""
_PULL_S = 60.0
_LATE_S = 3600.0
"""Permitted excess over the planned time of a plan, in addition to a quarter of it."""
_TAKE_S = 600.0
_BEAT_S = 60.0
_DAY_S = 86400
_PULLED_S = 3600.0
_JUDGED = 10
"""Maximum number of boards judged per update; each is judged by all recordings of a month."""
_PULLS = 8
"""Maximum number of simultaneous pulls."""
_PULLS_AGAIN = 4
"""Besides, of boards whose last pull failed: they may hang, and hold up no others."""


@dataclass
class Faults:
    """Faults of the coordinator and of the history; empty if there is none."""

    coordinator: str = ""
    history: str = ""


@dataclass
class Backlog:
    """Data for the next update of the history: ``stored`` runs, boards to ``judge`` in this order, the growing
    recording of each ring, the recordings that the last pull of each board refused, and the boards whose plan was
    ``interrupted``."""

    stored: set[str] = field(default_factory=set)
    judge: dict[str, None] = field(default_factory=dict)
    under_way: dict[str, GrowingRecording] = field(default_factory=dict)
    refused: dict[str, list[list[str]]] = field(default_factory=dict)
    interrupted: set[str] = field(default_factory=set)

    def add(self, board: BoardEntry, act: BoardAct, answer: ActAnswer) -> None:
        if act is BoardAct.MEASURE and "stored" not in answer:
            self.interrupted.add(board.name)
            self.judge[board.name] = None
        stored = answer.get("stored", ())
        self.stored.update(stored)
        if stored:
            self.judge[board.name] = None
        for run, name in answer.get("under_way", ()):
            self.under_way[board.name] = {
                "board": board.name,
                "spool": board.first_name,
                "ring": board.ring,
                "run": run,
                "name": name,
            }
        if answer.get("refused"):
            self.refused[board.name] = [list(pair) for pair in answer["refused"]]

    def before(self, later: Backlog) -> Backlog:
        """The data of both."""
        return Backlog(
            self.stored | later.stored,
            self.judge | later.judge,
            self.under_way | later.under_way,
            self.refused | later.refused,
            self.interrupted | later.interrupted,
        )


@dataclass
class FarmRun:
    """One farm, from start to end.  ``say`` gets a status line each minute."""

    farm: Farm
    say: Callable[[str], None]
    beat_s: float = _BEAT_S
    faults: Faults = field(default_factory=Faults)
    clock: BenchClock = field(default_factory=BenchClock)

    def __post_init__(self) -> None:
        self._state_file = FarmState(self.farm.state)
        self._acts = ActProcesses()
        self._pulling, self._pulling_again, self._updating = (WorkerPool(most) for most in (_PULLS, _PULLS_AGAIN, 1))
        self._boards = {board.name: board for board in self.farm.boards if not board.retired}
        before, (now_s, _) = self._state_file.boards(), self.clock.read()
        self.states = {name: restore(before.get(name, BoardState(since_s=now_s)), now_s) for name in self._boards}
        self._spread(now_s)
        self._tasks: set[asyncio.Task[None]] = set()
        self._failed: list[asyncio.Task[None]] = []
        self._backlog = Backlog()
        self._whole = True
        self._declared: list[BoardDeclaration] = []
        self._closed_day = 0
        self._looked_back = 0
        self._newest_run: int | None = None
        self._take_s = max(_TICK_S, min((board.times.pull_s for board in self.farm.boards), default=_BEAT_S) / 4)
        self._bytes = 0
        self._ending = asyncio.Event()

    def _spread(self, now_s: float) -> None:
        """Pulls that would all be due at once, as after a start, over their period."""
        due = [name for name, state in self.states.items() if state.pull_s <= now_s and state.phase in UP]
        for place, name in enumerate(due):
            later_s = self._boards[name].times.pull_s * place / len(due)
            self.states[name] = replace(self.states[name], pull_s=now_s + later_s)

    def end(self) -> None:
        """Request the end of the farm: acts are stopped, then the places are released."""
        self._ending.set()

    async def run(self) -> None:
        """Run until `end` is called; then stop the acts and release the places."""
        loops = [
            asyncio.ensure_future(task)
            for task in (
                self._every(_TICK_S, self._tick),
                self._every(self.farm.reconcile_s, self._reconcile),
                self._every(self.beat_s, self._beat),
                self._update_loop(),
                self._every(self.farm.reconcile_s, self._look_back),
            )
        ]
        ending = asyncio.ensure_future(self._ending.wait())
        try:
            done, _ = await asyncio.wait([*loops, ending], return_when=asyncio.FIRST_COMPLETED)
            for task in (*done, *self._failed):
                task.result()
        finally:
            for task in (*loops, ending):
                task.cancel()
            await asyncio.gather(*loops, ending, return_exceptions=True)
            await self._finish()

    async def _every(self, period_s: float, act: Callable[[], Any]) -> None:
        while True:
            answer = act()
            if answer is not None:
                await answer
            await asyncio.sleep(period_s)

    def _tick(self) -> None:
        now_s = self._now_s()
        for name, board in self._boards.items():
            self._event(name, Tick(due(board.plans, now_s)))

    def _now_s(self) -> float:
        """By the wall clock; if it was set, the times in the states of the boards are shifted with it."""
        now_s, was_set_s = self.clock.read()
        if was_set_s:
            self.states = {name: shift_times(state, was_set_s) for name, state in self.states.items()}
            self._whole = True  # what lay ahead of the clock may not lie there any more
        return now_s

    async def _reconcile(self) -> None:
        """Compare the state of each place with the coordinator's: it may have been restarted, and people may have
        reserved places."""
        if not any(board.place for board in self.farm.boards):
            return
        answer = await self._acts.act("places", acts.places, self._farm_order(), _LABGRID_S)
        self.faults.coordinator = answer.fault
        if answer.fault:
            return
        place_states, me = answer.fields["places"], answer.fields["me"]
        forgot = any(
            place_states.get(board.place, {}).get("holder") == "" and self.states[name].phase in UP
            for name, board in self._boards.items()
            if board.place
        )
        for name, board in self._boards.items():
            if board.place:
                place = place_states.get(board.place, {"holder": None})
                self._event(name, PlaceStatus(**place, ours=place["holder"] == me, forgot=forgot))

    def _event(self, name: str, event: Event) -> None:
        now_s = self._now_s()
        before = self.states[name]
        self.states[name], commands = step(self._boards[name], before, event, now_s)
        if self.states[name] != before:
            self._state_file.put(name, self.states[name])
        for command in commands:
            self._obey(name, command)

    def _obey(self, name: str, command: Command) -> None:
        if isinstance(command, Start):
            task = asyncio.ensure_future(self._do(name, command))
            self._tasks.add(task)
            task.add_done_callback(self._act_done)
        else:
            for processes in (self._acts, self._pulling, self._pulling_again):
                processes.stop(f"{command.act} {name}")

    def _act_done(self, task: asyncio.Task[None]) -> None:
        """End the farm if the end of an act could not be stored: its board would stay busy for good."""
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._failed.append(task)
            self.end()

    async def _do(self, name: str, start: Start) -> None:
        """Run one act, and pass its end to the state machine."""
        board = self._boards[name]
        try:
            order = self._board_order(board, self.states[name], start)
            processes = self._processes(start.act, self.states[name])
            answer = await processes.act(f"{start.act} {name}", WORK[start.act], order, _limit_s(board, start))
        except BadInput as error:  # a plan that was changed meanwhile
            answer = ActResult({"fault": str(error)})
        fields = cast(ActAnswer, answer.fields)
        self._backlog.add(board, start.act, fields)
        self._bytes += fields.get("bytes", 0)
        self._event(name, _act_ended(start.act, answer))

    def _processes(self, act: BoardAct, state: BoardState) -> ActProcesses | WorkerPool:
        if act is not BoardAct.PULL:
            return self._acts
        return self._pulling_again if state.reason else self._pulling

    def _farm_order(self) -> FarmOrder:
        return FarmOrder(
            farm=f"fastenough-{self.farm.name}",
            coordinator=self.farm.coordinator,
            store=str(self.farm.store),
            state=str(self.farm.state),
            database=self.farm.database,
        )

    def _board_order(self, board: BoardEntry, state: BoardState, start: Start | None = None) -> BoardOrder:
        return BoardOrder(
            **self._farm_order(),
            board=board.name,
            former_names=board.former_names,
            place=board.place,
            ring=board.ring,
            simulated=board.simulated,
            load=None if board.load is None else asdict(board.load),
            link=board.link or state.link,
            stated_link=board.link,
            newest=state.newest,
            boot_s=board.times.boot_s,
            plan=str(start.plan or "") if start else "",
            resume=start is not None and start.resume,
        )

    async def _update_loop(self) -> None:
        """Update the history: the whole store at first, then new data.  A failed update is repeated later."""
        while True:
            begun_s = time.monotonic()
            whole, self._whole = self._whole, False
            answer = await self._update(whole)
            self._whole |= self.faults.history != ""
            pause_s = max(self._take_s, time.monotonic() - begun_s)
            await asyncio.sleep(self.farm.reconcile_s if answer.fault else pause_s)

    async def _update(self, whole: bool) -> ActResult:
        backlog, self._backlog = self._backlog, Backlog()
        backlog.judge |= dict.fromkeys(self._boards if whole else ())
        judged = [name for name in backlog.judge if self._is_judgeable(name)][:_JUDGED]
        declarations = [
            history_update.declaration_of(board, self.states.get(board.name, BoardState()), self.farm.id)
            for board in self.farm.boards
        ]
        changed = [declaration for declaration in declarations if declaration not in self._declared]
        today = int(self._now_s() // _DAY_S)
        order = HistoryOrder(
            **self._farm_order(),
            all=whole,
            boards=changed,
            id=self.farm.id,
            names=[board.name for board in self.farm.boards],
            close=list(self._boards) if today != self._closed_day else [],
            judge=self._required(judged),
            stored=sorted(backlog.stored),
            under_way=list(backlog.under_way.values()),
            refused=backlog.refused,
            interrupted=sorted(backlog.interrupted),
            newest_run=self._newest_run,
        )
        answer = await self._updating.act("take", history_update.update_history, order, _TAKE_S)
        self.faults.history = answer.fault
        if answer.fault:
            self._backlog = backlog.before(self._backlog)
        else:
            self._declared, self._closed_day = declarations, today
            waiting = [name for name in backlog.judge if name not in judged]
            entered = [name for name in answer.fields["entered"] if name in self._boards]
            self._backlog.judge = dict.fromkeys((*waiting, *self._backlog.judge, *entered))
            self._newest_run = answer.fields["newest_run"]
        return answer

    async def _look_back(self) -> None:
        """Once per cycle, an hour after its end when its boards have been pulled, look for changes of their tails."""
        cycle = int((self._now_s() - _PULLED_S) // CYCLE_S)
        if cycle != self._looked_back:
            order = history_update.TailOrder(
                **self._farm_order(),
                names=[board.name for board in self.farm.boards],
                false_changes=self.farm.false_changes,
            )
            answer = await self._updating.act("tails", history_update.find_tail_changes, order, _TAKE_S)
            self._looked_back = self._looked_back if answer.fault else cycle

    def _is_judgeable(self, name: str) -> bool:
        """Whether a board is judged now; one whose cycle is in progress is judged when that has ended."""
        return name in self._boards and BoardAct.MEASURE not in self.states[name].busy

    def _required(self, names: Collection[str]) -> dict[str, JudgedBoard]:
        """The requirements of these boards."""
        return {
            name: {
                "required": None if board.requirement is None else asdict(board.requirement),
                "former_names": board.former_names,
            }
            for name, board in self._boards.items()
            if name in names
        }

    def _beat(self) -> None:
        line = status_line(self.states, self.faults, self._bytes)
        self._bytes = 0
        self._state_file.beat(Beat(os.getpid(), self._now_s(), line))
        self.say(line)

    async def _finish(self) -> None:
        """End all acts and release the places; their boards continue to record."""
        await asyncio.gather(
            *(processes.end() for processes in (self._acts, self._pulling, self._pulling_again, self._updating))
        )
        await asyncio.gather(*self._tasks, return_exceptions=True)
        held = [
            name
            for name, board in self._boards.items()
            if board.place and self.states[name].phase not in (BoardPhase.RESERVED, BoardPhase.OFF, BoardPhase.DEAD)
        ]
        await asyncio.gather(
            *(
                self._acts.act(
                    f"release {name}",
                    acts.release,
                    self._board_order(self._boards[name], self.states[name]),
                    _LABGRID_S,
                )
                for name in held
            )
        )
        self._state_file.close()


def _act_ended(act: BoardAct, answer: ActResult) -> ActEnded:
    fields = cast(ActAnswer, answer.fields)
    return ActEnded(
        act,
        " ".join(words.output_lines(answer.fault.encode()))[:500],
        PlaceStatus(**fields["reservation"]) if "reservation" in fields else None,
        fields.get("grown", False),
        fields.get("link", ""),
        fields.get("newest", ""),
        _refused_text(fields.get("refused") or ()),
        " ".join(words.output_lines(fields.get("refusal", "").encode()))[:500],
    )


def _refused_text(refused: Sequence[Sequence[str]]) -> str:
    """Text: number of recordings that a pull refused, and the newest of them; empty for none."""
    if not refused:
        return ""
    name, reason = refused[-1]
    newest = reason if reason.startswith(name) else f"{name}: {reason}"
    return f"{words.counted(len(refused), 'recording')} refused; newest: {newest}"[:500]


def _limit_s(board: BoardEntry, start: Start) -> float:
    """Time limit of an act; raises BadInput if its plan can no longer be read."""
    if start.plan is not None:
        return _planned_s(start.plan) * 1.25 + _LATE_S
    return {BoardAct.BOOT: 2 * board.times.boot_s + _SWITCHED_S, BoardAct.PULL: max(_PULL_S, board.times.pull_s)}.get(
        start.act, _LABGRID_S
    )


def _planned_s(plan: Path) -> float:
    return sum(spec.whole_s for spec in expand(read_plan(plan)))


def status_line(states: Mapping[str, BoardState], faults: Faults, pulled_bytes: int) -> str:
    """Number of boards by state, the most urgent first, and current faults."""
    counts = Counter(state.activity for state in states.values())
    urgency = ("dead", "reserved", "off", "booting", "ready", "pulling", "measuring")
    summary = ", ".join(f"{counts[label]} {label}" for label in urgency if counts[label])
    parts = [f"{words.counted(len(states), 'board')}: {summary}", f"{pulled_bytes / 1e6:,.1f} MB pulled"]
    refusing = sum(bool(state.refused) for state in states.values())
    parts += [f"{words.counted(refusing, 'board')} with refused recordings"] if refusing else []
    parts += [
        f"{name}: {fault}"
        for name, fault in (("coordinator", faults.coordinator), ("history", faults.history))
        if fault
    ]
    return "; ".join(parts)
