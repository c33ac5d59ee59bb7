# SPDX-License-Identifier: GPL-2.0-or-later
"""What a board of the farm is in, and what follows from what happens to it: a pure function, without any clock.

off -> booting -> ready <-> measuring          a pull goes on beside either
         |            \\-> dead (nothing new came of it for too long)
         \\-> dead -> booting (after a back-off)
any -> lent (a person has the place: nothing of ours goes on there) -> off
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from fastenough import words
from fastenough.farm.calendar import Due
from fastenough.farm.config import BoardEntry

_MOST_DOUBLINGS = 6
"""A dead board is tried again after at most 2^6 times what it is left alone at first."""


class Phase(StrEnum):
    """Where a board stands."""

    OFF = "off"
    BOOTING = "booting"
    READY = "ready"
    MEASURING = "measuring"
    RESERVED = "lent"
    DEAD = "dead"


class Act(StrEnum):
    """What is done to a board, each by a process of its own."""

    BOOT = "boot"
    ACQUIRE = "acquire"
    PULL = "pull"
    MEASURE = "measure"
    RELEASE = "release"


UP = (Phase.READY, Phase.MEASURING)
"""In which a board of a place is held."""
_FORGOTTEN = "reserved by a person when the coordinator restarted; to return the place, acquire it and release it"
_MATTERS = {Act.BOOT: (Phase.BOOTING,), Act.PULL: UP, Act.MEASURE: UP, Act.ACQUIRE: UP}
"""In which phases it matters how an act has ended."""


@dataclass(frozen=True)
class BoardState:
    """All that is known of a board.

    Times are seconds since 1970: ``retry_s``: when a dead board is tried again; ``pull_s``: when the next pull is due;
    ``fresh_s``: when something new came of it, or it came up; ``begun_s`` and ``made_s``: since when the plan's cycle
    was due that was begun and ended last.  ``busy``: acts under way.  ``link``: how the board is touched, as its place
    said; ``newest``: the newest recording seen in its ring.  ``unsure``: a person had the place, and the coordinator
    has forgotten whether they still do.  ``refused``: which recordings its last pull refused, and why.
    ``lent_created_s`` and ``lent_changed_s``: when the coordinator said that the place was made and changed last, while
    a person had it; 0 where that is not known.
    """

    phase: Phase = Phase.OFF
    since_s: float = 0.0
    reason: str = ""
    failures: int = 0
    retry_s: float = 0.0
    pull_s: float = 0.0
    fresh_s: float = 0.0
    begun_s: float = 0.0
    made_s: float = 0.0
    busy: frozenset[Act] = frozenset()
    link: str = ""
    newest: str = ""
    unsure: bool = False
    refused: str = ""
    lent_created_s: float = 0.0
    lent_changed_s: float = 0.0

    @property
    def activity(self) -> str:
        """The phase, or ``pulling``: the word that ``farm status --json`` prints."""
        return "pulling" if Act.PULL in self.busy and self.phase in UP else str(self.phase)

    @property
    def label(self) -> str:
        """The activity as tables and the status line show it."""
        return "reserved" if self.phase is Phase.RESERVED else self.activity


@dataclass(frozen=True)
class Tick:
    """Time goes on; ``due``: what its calendar asks for now."""

    due: Due | None = None


@dataclass(frozen=True)
class Seen:
    """What the coordinator says of its place: who holds it, empty for nobody; None: it knows no such place.

    ``forgot``: it was started again, and knows of nobody what they had.  ``created_s``, ``changed_s``: when it says
    that the place was made and changed last; 0 where it does not.
    """

    holder: str | None
    ours: bool = False
    forgot: bool = False
    created_s: float = 0.0
    changed_s: float = 0.0


@dataclass(frozen=True)
class Ended:
    """An act has ended.

    ``fault``: why it failed, empty where it did not.  ``lent``: the person who has the place.  ``grown``: something
    new came of the board.  ``refused``: what a pull refused, in words.
    """

    act: Act
    fault: str = ""
    lent: str = ""
    grown: bool = False
    link: str = ""
    newest: str = ""
    refused: str = ""


Event = Tick | Seen | Ended


@dataclass(frozen=True)
class Start:
    """An act to begin; of a plan its file, and whether an earlier part of this cycle goes on."""

    act: Act
    plan: Path | None = None
    resume: bool = False


@dataclass(frozen=True)
class Stop:
    """An act to end at once."""

    act: Act


Command = Start | Stop
Step = tuple[BoardState, list[Command]]


def step(board: BoardEntry, state: BoardState, event: Event, now_s: float) -> Step:
    """The state after an event, and what is to be done now."""
    match event:
        case Tick():
            return _tick(board, state, event.due, now_s)
        case Seen():
            return _seen(board, state, event, now_s)
        case Ended():
            return _ended(board, replace(state, busy=state.busy - {event.act}), event, now_s)


def restored(state: BoardState, now_s: float) -> BoardState:
    """What is left of a state after the farm was ended: no act of it goes on.

    A board that was up is not booted again: it is pulled, which shows whether it still records.
    """
    if state.phase in UP:
        return replace(state, phase=Phase.READY, busy=frozenset(), pull_s=now_s, fresh_s=now_s)
    phase = Phase.OFF if state.phase is Phase.BOOTING else state.phase
    return replace(state, phase=phase, busy=frozenset())


def shifted(state: BoardState, by_s: float) -> BoardState:
    """The state once the clock was set by so much: what was ten minutes ago still is, what is due in a minute too.
    Since when a plan was due stays, as the calendar has it."""
    return replace(
        state,
        since_s=state.since_s + by_s,
        retry_s=state.retry_s + by_s,
        pull_s=state.pull_s + by_s,
        fresh_s=state.fresh_s and state.fresh_s + by_s,
    )


def _become(state: BoardState, phase: Phase, now_s: float, reason: str = "") -> BoardState:
    since_s = state.since_s if phase is state.phase else now_s
    return replace(state, phase=phase, since_s=since_s, reason=reason)


def _begin(state: BoardState, *starts: Start) -> Step:
    return replace(state, busy=state.busy | {start.act for start in starts}), list(starts)


def _backed_off_s(board: BoardEntry, failures: int) -> float:
    return float(board.times.retry_s * 2 ** min(failures - 1, _MOST_DOUBLINGS))


def _die(board: BoardEntry, state: BoardState, reason: str, now_s: float) -> Step:
    """It is let go, so that a person may look at it, and tried again later."""
    failures = state.failures + 1
    dead = replace(
        _become(state, Phase.DEAD, now_s, reason), failures=failures, retry_s=now_s + _backed_off_s(board, failures)
    )
    return _begin(dead, Start(Act.RELEASE)) if board.place else (dead, [])


def _lend(state: BoardState, holder: str, now_s: float) -> Step:
    lent = _become(state, Phase.RESERVED, now_s, f"reserved by {holder}")
    return lent, [Stop(act) for act in sorted(state.busy)]


def _tick(board: BoardEntry, state: BoardState, due: Due | None, now_s: float) -> Step:
    if state.phase in UP:
        return _tick_up(board, state, due, now_s)
    waits = state.phase is Phase.OFF or (state.phase is Phase.DEAD and now_s >= state.retry_s)
    if waits and not state.busy:
        return _begin(_become(state, Phase.BOOTING, now_s, state.reason), Start(Act.BOOT))
    return state, []


def _tick_up(board: BoardEntry, state: BoardState, due: Due | None, now_s: float) -> Step:
    if board.ring and now_s - state.fresh_s > board.times.patience_s and Act.PULL not in state.busy:
        return _quiet(board, state, now_s)
    starts = []
    if board.ring and now_s >= state.pull_s and Act.PULL not in state.busy:
        starts.append(Start(Act.PULL))
    if due is not None and due.since_s > state.made_s and Act.MEASURE not in state.busy:
        starts.append(Start(Act.MEASURE, due.file, due.since_s == state.begun_s))
        state = replace(_become(state, Phase.MEASURING, now_s), begun_s=due.since_s)
    return _begin(state, *starts)


def _quiet(board: BoardEntry, state: BoardState, now_s: float) -> Step:
    """Nothing new came of it for too long: it is switched off and on, at once the first time."""
    why = f"; {state.reason}" if state.reason else ""
    reason = f"no new data for {words.duration((now_s - state.fresh_s) * 1e9)}{why}"
    retry_s = now_s if not state.failures else now_s + _backed_off_s(board, state.failures)
    dead = replace(_become(state, Phase.DEAD, now_s, reason), failures=state.failures + 1, retry_s=retry_s)
    return dead, [Stop(act) for act in sorted(state.busy)]


def _seen(board: BoardEntry, state: BoardState, seen: Seen, now_s: float) -> Step:
    if state.phase is Phase.RESERVED:
        return _seen_lent(state, seen, now_s), []
    if seen.holder and not seen.ours:
        return _lend(_noted(state, seen), seen.holder, now_s)
    if seen.holder is None and state.phase in (Phase.OFF, Phase.DEAD) and not state.busy:
        reason = f"the coordinator has no place {board.place}; create it with: labgrid-client -p {board.place} create"
        return replace(_become(state, Phase.DEAD, now_s, reason), retry_s=now_s + board.times.retry_s), []
    if seen.holder == "" and state.phase in UP and Act.ACQUIRE not in state.busy:
        return _begin(state, Start(Act.ACQUIRE))
    if seen.ours and state.phase is Phase.DEAD and not state.busy:
        return _begin(state, Start(Act.RELEASE))
    return state, []


def _seen_lent(state: BoardState, seen: Seen, now_s: float) -> BoardState:
    if seen.holder and not seen.ours:
        return replace(_noted(state, seen), unsure=False, reason=f"reserved by {seen.holder}")
    if not seen.ours and (state.unsure or seen.forgot or _forgotten(state, seen)):
        return replace(state, unsure=True, reason=_FORGOTTEN)
    return replace(_become(state, Phase.OFF, now_s, "the place was released"), unsure=False)


def _noted(state: BoardState, seen: Seen) -> BoardState:
    """With what the coordinator says of a place that a person has."""
    return replace(state, lent_created_s=seen.created_s, lent_changed_s=seen.changed_s)


def _forgotten(state: BoardState, seen: Seen) -> bool:
    """Whether nobody gave the place back, and yet nobody has it: giving back changes a place, and what a coordinator
    reads of its places when it is started has not changed since, or was made anew."""
    given_back = seen.created_s == state.lent_created_s and seen.changed_s > state.lent_changed_s
    return state.lent_changed_s > 0 and not given_back


def _ended(board: BoardEntry, state: BoardState, ended: Ended, now_s: float) -> Step:
    if ended.lent:
        return _lend(state, ended.lent, now_s)
    then = {Act.BOOT: _booted, Act.PULL: _pulled, Act.MEASURE: _measured, Act.ACQUIRE: _acquired}.get(ended.act)
    return then(board, state, ended, now_s) if then and state.phase in _MATTERS[ended.act] else (state, [])


def _booted(board: BoardEntry, state: BoardState, ended: Ended, now_s: float) -> Step:
    if ended.fault:
        return _die(board, state, ended.fault, now_s)
    return replace(
        _become(state, Phase.READY, now_s),
        fresh_s=now_s,
        pull_s=now_s,
        link=ended.link or state.link,
        newest=ended.newest or state.newest,
    ), []


def _pulled(board: BoardEntry, state: BoardState, ended: Ended, now_s: float) -> Step:
    state = replace(state, pull_s=now_s + board.times.pull_s, newest=ended.newest or state.newest)
    if ended.fault:
        return replace(state, reason=ended.fault), []
    state = replace(state, refused=ended.refused)
    if not ended.grown:
        return replace(state, reason="" if Act.MEASURE in state.busy else state.reason), []
    return replace(_become(state, Phase.MEASURING, now_s), fresh_s=now_s, failures=0), []


def _acquired(board: BoardEntry, state: BoardState, ended: Ended, now_s: float) -> Step:
    return replace(state, reason=ended.fault, link=ended.link or state.link), []


def _measured(board: BoardEntry, state: BoardState, ended: Ended, now_s: float) -> Step:
    """A plan that failed is not made again before it is due again; where nothing else shows that the board is well, it
    is booted meanwhile."""
    state = replace(state, made_s=state.begun_s)
    if ended.fault and not board.ring:
        return _die(board, state, ended.fault, now_s)
    failures = state.failures if ended.fault else 0
    return replace(_become(state, Phase.READY, now_s, ended.fault), failures=failures, fresh_s=now_s), []
