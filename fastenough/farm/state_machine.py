# SPDX-License-Identifier: GPL-2.0-or-later
"""The state machine of a board: a pure function of state, event and time.

off -> booting -> ready <-> measuring          a pull may run beside either |            \\-> dead (nothing new came of
it for too long) \\-> dead -> booting (after a back-off) any -> reserved (a person has reserved the place: all acts
stop) -> off
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from fastenough import words
from fastenough.farm.calendar import DueCycle
from fastenough.farm.config import BoardEntry

_MOST_DOUBLINGS = 6
"""A dead board is booted again after at most 2^6 times the first pause."""


class BoardPhase(StrEnum):
    """The phase of a board; values are stored in the state file."""

    OFF = "off"
    BOOTING = "booting"
    READY = "ready"
    MEASURING = "measuring"
    RESERVED = "reserved"
    DEAD = "dead"

    @classmethod
    def _missing_(cls, value: object) -> BoardPhase | None:
        """The phase of this former value, which state files of older versions contain."""
        return cls.RESERVED if value == "lent" else None


class BoardAct(StrEnum):
    """An act on a board, run by a process of its own."""

    BOOT = "boot"
    ACQUIRE = "acquire"
    PULL = "pull"
    MEASURE = "measure"
    RELEASE = "release"


UP = (BoardPhase.READY, BoardPhase.MEASURING)
"""Phases in which the farm holds the place of a board."""
_RESERVATION_LOST = (
    "reserved by a person when the coordinator restarted; to return the place, acquire it and release it"
)
_MATTERS = {BoardAct.BOOT: (BoardPhase.BOOTING,), BoardAct.PULL: UP, BoardAct.MEASURE: UP, BoardAct.ACQUIRE: UP}
"""Phases in which the end of an act has an effect."""


@dataclass(frozen=True)
class BoardState:
    """The state of a board.

    Times are seconds since 1970.  ``retry_s``: next attempt to boot a dead board.  ``pull_s``: next pull.
    ``fresh_s``: last new data or last boot.  ``begun_s`` and ``made_s``: due times of the cycles of the plan that began
    and ended last.  ``busy``: acts in progress.  ``link``: address of the board, from its place.  ``newest``: newest
    recording seen in its ring.  ``unsure``: a person had reserved the place before the coordinator restarted.
    ``refused``: recordings that the last pull refused, with reasons.  ``place_created_s`` and ``place_changed_s``:
    creation and last change of the reserved place, as the coordinator reported them; 0 if unknown.
    """

    phase: BoardPhase = BoardPhase.OFF
    since_s: float = 0.0
    reason: str = ""
    failures: int = 0
    retry_s: float = 0.0
    pull_s: float = 0.0
    fresh_s: float = 0.0
    begun_s: float = 0.0
    made_s: float = 0.0
    busy: frozenset[BoardAct] = frozenset()
    link: str = ""
    newest: str = ""
    unsure: bool = False
    refused: str = ""
    place_created_s: float = 0.0
    place_changed_s: float = 0.0

    @property
    def activity(self) -> str:
        """The phase, or ``pulling``."""
        return "pulling" if BoardAct.PULL in self.busy and self.phase in UP else str(self.phase)


@dataclass(frozen=True)
class Tick:
    """Time has passed; ``due``: the cycle that the calendar requires now."""

    due: DueCycle | None = None


@dataclass(frozen=True)
class PlaceStatus:
    """The place as the coordinator reports it.  ``holder``: its user, empty if it is free, None if there is no such
    place.

    ``forgot``: the coordinator was restarted and has lost its list of acquired places.  ``created_s``, ``changed_s``:
    creation and last change of the place; 0: not reported.
    """

    holder: str | None
    ours: bool = False
    forgot: bool = False
    created_s: float = 0.0
    changed_s: float = 0.0


@dataclass(frozen=True)
class ActEnded:
    """An act has ended.

    ``fault``: why it failed, empty if it did not.  ``reservation``: the place, if a person has it.  ``grown``: new data
    of the board arrived.  ``refused``: recordings that a pull refused, as text.  ``refusal``: why runs of a plan were
    refused, which booting the board does not mend.
    """

    act: BoardAct
    fault: str = ""
    reservation: PlaceStatus | None = None
    grown: bool = False
    link: str = ""
    newest: str = ""
    refused: str = ""
    refusal: str = ""


Event = Tick | PlaceStatus | ActEnded


@dataclass(frozen=True)
class Start:
    """An act to begin; for a plan with its file, and whether it resumes an earlier part of this cycle."""

    act: BoardAct
    plan: Path | None = None
    resume: bool = False


@dataclass(frozen=True)
class Stop:
    """An act to end at once."""

    act: BoardAct


Command = Start | Stop
Transition = tuple[BoardState, list[Command]]


def step(board: BoardEntry, state: BoardState, event: Event, now_s: float) -> Transition:
    """Return the state after an event, and the commands to run."""
    match event:
        case Tick():
            return _tick(board, state, event.due, now_s)
        case PlaceStatus():
            return _place_reported(board, state, event, now_s)
        case ActEnded():
            return _act_ended(board, replace(state, busy=state.busy - {event.act}), event, now_s)


def restore(state: BoardState, now_s: float) -> BoardState:
    """The state of a board when the farm starts again: its acts have ended with the farm.

    A board that was up is not booted again: it is pulled, which shows whether it still records.
    """
    if state.phase in UP:
        return replace(state, phase=BoardPhase.READY, busy=frozenset(), pull_s=now_s, fresh_s=now_s)
    phase = BoardPhase.OFF if state.phase is BoardPhase.BOOTING else state.phase
    return replace(state, phase=phase, busy=frozenset())


def shift_times(state: BoardState, by_s: float) -> BoardState:
    """The state after the clock was set by this many seconds: past and due times keep their distance from now.

    The due times of plans do not move, because they follow the calendar.
    """
    return replace(
        state,
        since_s=state.since_s + by_s,
        retry_s=state.retry_s + by_s,
        pull_s=state.pull_s + by_s,
        fresh_s=state.fresh_s and state.fresh_s + by_s,
    )


def _become(state: BoardState, phase: BoardPhase, now_s: float, reason: str = "") -> BoardState:
    since_s = state.since_s if phase is state.phase else now_s
    return replace(state, phase=phase, since_s=since_s, reason=reason)


def _begin(state: BoardState, *starts: Start) -> Transition:
    return replace(state, busy=state.busy | {start.act for start in starts}), list(starts)


def _backed_off_s(board: BoardEntry, failures: int) -> float:
    return float(board.times.retry_s * 2 ** min(failures - 1, _MOST_DOUBLINGS))


def _die(board: BoardEntry, state: BoardState, reason: str, now_s: float) -> Transition:
    """Release the place, so that a person may inspect the board, and boot it again later."""
    failures = state.failures + 1
    dead = replace(
        _become(state, BoardPhase.DEAD, now_s, reason),
        failures=failures,
        retry_s=now_s + _backed_off_s(board, failures),
    )
    return _begin(dead, Start(BoardAct.RELEASE)) if board.place else (dead, [])


def _reserve(state: BoardState, place: PlaceStatus, now_s: float) -> Transition:
    reserved = _become(_with_place_times(state, place), BoardPhase.RESERVED, now_s, f"reserved by {place.holder}")
    return reserved, [Stop(act) for act in sorted(state.busy)]


def _tick(board: BoardEntry, state: BoardState, due: DueCycle | None, now_s: float) -> Transition:
    if state.phase in UP:
        return _tick_up(board, state, due, now_s)
    waits = state.phase is BoardPhase.OFF or (state.phase is BoardPhase.DEAD and now_s >= state.retry_s)
    if waits and not state.busy:
        return _begin(_become(state, BoardPhase.BOOTING, now_s, state.reason), Start(BoardAct.BOOT))
    return state, []


def _tick_up(board: BoardEntry, state: BoardState, due: DueCycle | None, now_s: float) -> Transition:
    if board.ring and now_s - state.fresh_s > board.times.patience_s and BoardAct.PULL not in state.busy:
        return _stalled(board, state, now_s)
    starts = []
    if board.ring and now_s >= state.pull_s and BoardAct.PULL not in state.busy:
        starts.append(Start(BoardAct.PULL))
    if due is not None and due.since_s > state.made_s and BoardAct.MEASURE not in state.busy:
        starts.append(Start(BoardAct.MEASURE, due.file, due.since_s == state.begun_s))
        state = replace(_become(state, BoardPhase.MEASURING, now_s), begun_s=due.since_s)
    return _begin(state, *starts)


def _stalled(board: BoardEntry, state: BoardState, now_s: float) -> Transition:
    """No new data for too long: power-cycle the board, the first time without a pause."""
    why = f"; {state.reason}" if state.reason else ""
    reason = f"no new data for {words.duration((now_s - state.fresh_s) * 1e9)}{why}"
    retry_s = now_s if not state.failures else now_s + _backed_off_s(board, state.failures)
    dead = replace(_become(state, BoardPhase.DEAD, now_s, reason), failures=state.failures + 1, retry_s=retry_s)
    return dead, [Stop(act) for act in sorted(state.busy)]


def _place_reported(board: BoardEntry, state: BoardState, place: PlaceStatus, now_s: float) -> Transition:
    if state.phase is BoardPhase.RESERVED:
        return _reserved_place_reported(state, place, now_s), []
    if place.holder and not place.ours:
        return _reserve(state, place, now_s)
    if place.holder is None and state.phase in (BoardPhase.OFF, BoardPhase.DEAD) and not state.busy:
        reason = f"the coordinator has no place {board.place}; create it with: labgrid-client -p {board.place} create"
        return replace(_become(state, BoardPhase.DEAD, now_s, reason), retry_s=now_s + board.times.retry_s), []
    if place.holder == "" and state.phase in UP and BoardAct.ACQUIRE not in state.busy:
        return _begin(state, Start(BoardAct.ACQUIRE))
    if place.ours and state.phase is BoardPhase.DEAD and not state.busy:
        return _begin(state, Start(BoardAct.RELEASE))
    return state, []


def _reserved_place_reported(state: BoardState, place: PlaceStatus, now_s: float) -> BoardState:
    if place.holder and not place.ours:
        return replace(_with_place_times(state, place), unsure=False, reason=f"reserved by {place.holder}")
    if not place.ours and (state.unsure or place.forgot or _reservation_lost(state, place)):
        return replace(state, unsure=True, reason=_RESERVATION_LOST)
    return replace(_become(state, BoardPhase.OFF, now_s, "the place was released"), unsure=False)


def _with_place_times(state: BoardState, place: PlaceStatus) -> BoardState:
    """The state with the times of a place that a person has reserved."""
    return replace(state, place_created_s=place.created_s, place_changed_s=place.changed_s)


def _reservation_lost(state: BoardState, place: PlaceStatus) -> bool:
    """Whether the place is free although it was not released.  A release changes the place.  After a restart of the
    coordinator the place has no later change, or was created again."""
    given_back = place.created_s == state.place_created_s and place.changed_s > state.place_changed_s
    return state.place_changed_s > 0 and not given_back


def _act_ended(board: BoardEntry, state: BoardState, ended: ActEnded, now_s: float) -> Transition:
    if ended.reservation:
        return _reserve(state, ended.reservation, now_s)
    then = {
        BoardAct.BOOT: _booted,
        BoardAct.PULL: _pulled,
        BoardAct.MEASURE: _measured,
        BoardAct.ACQUIRE: _acquired,
    }.get(ended.act)
    return then(board, state, ended, now_s) if then and state.phase in _MATTERS[ended.act] else (state, [])


def _booted(board: BoardEntry, state: BoardState, ended: ActEnded, now_s: float) -> Transition:
    if ended.fault:
        return _die(board, state, ended.fault, now_s)
    return replace(
        _become(state, BoardPhase.READY, now_s),
        fresh_s=now_s,
        pull_s=now_s,
        link=ended.link or state.link,
        newest=ended.newest or state.newest,
    ), []


def _pulled(board: BoardEntry, state: BoardState, ended: ActEnded, now_s: float) -> Transition:
    state = replace(state, pull_s=now_s + board.times.pull_s, newest=ended.newest or state.newest)
    if ended.fault:
        return replace(state, reason=ended.fault), []
    state = replace(state, refused=ended.refused)
    if not ended.grown:
        return replace(state, reason="" if BoardAct.MEASURE in state.busy else state.reason), []
    return replace(_become(state, BoardPhase.MEASURING, now_s), fresh_s=now_s, failures=0), []


def _acquired(board: BoardEntry, state: BoardState, ended: ActEnded, now_s: float) -> Transition:
    return replace(state, reason=ended.fault, link=ended.link or state.link), []


def _measured(board: BoardEntry, state: BoardState, ended: ActEnded, now_s: float) -> Transition:
    """A failed or refused plan is not repeated before it is due again.  After a failure, a board without a ring, which
    gives no other evidence that it works, is booted.  A refusal is no evidence that the board works."""
    state = replace(state, made_s=state.begun_s)
    if ended.fault and not board.ring:
        return _die(board, state, ended.fault, now_s)
    reason = "; ".join(filter(None, (ended.fault, ended.refusal)))
    failures = state.failures if reason else 0
    fresh_s = state.fresh_s if ended.refusal else now_s
    return replace(_become(state, BoardPhase.READY, now_s, reason), failures=failures, fresh_s=fresh_s), []
