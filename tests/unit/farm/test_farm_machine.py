# SPDX-License-Identifier: GPL-2.0-or-later
"""What a board of the farm is in, event by event: no process, no clock, no labgrid."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

from fastenough.board.labgrid_act import why_no_resources
from fastenough.farm.calendar import BenchClock, Dates, DueCycle, ScheduledPlan, due, parse_dates
from fastenough.farm.config import BoardEntry, Times, due_s
from fastenough.farm.state_machine import (
    ActEnded,
    BoardAct,
    BoardPhase,
    BoardState,
    Command,
    Event,
    PlaceStatus,
    Start,
    Stop,
    Tick,
    restore,
    shift_times,
    step,
)

TIMES = Times(pull_s=300, boot_s=180, patience_s=7200, retry_s=60)
RING = BoardEntry("one", "place-1", ring="/ring", times=TIMES)
PLAN = BoardEntry("two", "place-2", link="ssh://root@two", times=TIMES)
DUE = DueCycle(Path("cycle.toml"), 1000.0)


class Play:
    """A board, and what was ordered of it."""

    def __init__(self, board: BoardEntry, state: BoardState | None = None) -> None:
        self.board, self.state, self.now_s = board, state or BoardState(), 1000.0
        self.ordered: list[Command] = []

    def tell(self, event: Event, later_s: float = 0.0) -> list[Command]:
        self.now_s += later_s
        self.state, commands = step(self.board, self.state, event, self.now_s)
        self.ordered += commands
        return commands

    def up(self) -> Play:
        assert self.tell(Tick()) == [Start(BoardAct.BOOT)]
        phases = [self.state.phase]
        assert self.tell(ActEnded(BoardAct.BOOT, link="ssh://root@one", newest="1"), 20) == []
        phases.append(self.state.phase)
        assert phases == [BoardPhase.BOOTING, BoardPhase.READY]
        return self


def test_a_board_is_booted_pulled_and_measures() -> None:
    play = Play(RING).up()
    assert play.tell(Tick()) == [Start(BoardAct.PULL)]
    assert play.state.activity == "pulling"
    play.tell(ActEnded(BoardAct.PULL, grown=True, newest="2"))
    assert (play.state.activity, play.state.newest, play.state.link) == ("measuring", "2", "ssh://root@one")
    assert play.tell(Tick(), 299) == []
    assert play.tell(Tick(), 1) == [Start(BoardAct.PULL)]
    assert play.tell(Tick(), 1000) == [], "one pull at a time"


def test_a_board_that_does_not_come_up_is_let_go_and_tried_again_ever_later() -> None:
    play, waits = Play(RING), []
    for _ in range(9):
        while Start(BoardAct.BOOT) not in play.tell(Tick(), 1):
            pass
        waits.append(play.now_s)
        assert play.tell(ActEnded(BoardAct.BOOT, "no console"), 1) == [Start(BoardAct.RELEASE)]
        assert (play.state.phase, play.state.reason) == (BoardPhase.DEAD, "no console")
        play.tell(ActEnded(BoardAct.RELEASE))
    pauses = [round(later - before - 1) for before, later in pairwise(waits)]
    assert pauses == [60, 120, 240, 480, 960, 1920, 3840, 3840]


def test_a_board_that_records_again_is_tried_at_once_the_next_time() -> None:
    play = Play(RING)
    play.tell(Tick())
    play.tell(ActEnded(BoardAct.BOOT, "dark"))
    play.tell(ActEnded(BoardAct.RELEASE))
    assert play.tell(Tick(), 61) == [Start(BoardAct.BOOT)]
    play.tell(ActEnded(BoardAct.BOOT), 10)
    assert play.state.failures == 1, "to be up is not yet to record"
    play.tell(Tick())
    play.tell(ActEnded(BoardAct.PULL, grown=True))
    assert play.state.failures == 0


def test_an_hour_without_network_boots_nothing_and_the_failures_are_told() -> None:
    play = Play(RING).up()
    for _ in range(12):
        assert play.tell(Tick(), 300) == [Start(BoardAct.PULL)]
        play.tell(ActEnded(BoardAct.PULL, "cannot be reached"))
        assert play.state.reason == "cannot be reached"
    play.tell(Tick(), 300)
    play.tell(ActEnded(BoardAct.PULL, grown=True))
    assert (play.state.phase, play.state.reason, play.state.failures) == (BoardPhase.MEASURING, "", 0)


def test_a_board_of_which_nothing_new_comes_is_booted_again_and_ever_more_rarely() -> None:
    play = Play(RING).up()
    boots = []
    for _ in range(4):
        while Start(BoardAct.BOOT) not in play.tell(Tick(), 60):
            if BoardAct.PULL in play.state.busy:
                play.tell(ActEnded(BoardAct.PULL, grown=False))
        boots.append(play.now_s)
        play.tell(ActEnded(BoardAct.BOOT), 10)
    gaps = [later - before for before, later in pairwise(boots)]
    assert gaps[0] > 7200 and gaps == sorted(gaps) and gaps[-1] >= gaps[0] + 60


def test_a_place_that_a_person_has_is_never_touched_and_comes_back_by_a_boot() -> None:
    play = Play(RING).up()
    play.tell(Tick())
    assert play.tell(PlaceStatus("desk/somebody")) == [Stop(BoardAct.PULL)]
    assert (play.state.phase, play.state.reason) == (BoardPhase.RESERVED, "reserved by desk/somebody")
    for event in (Tick(DUE), ActEnded(BoardAct.PULL, "killed"), PlaceStatus("desk/somebody"), Tick(DUE)):
        assert play.tell(event, 100_000) == []
    assert play.tell(PlaceStatus("")) == []
    assert play.tell(Tick()) == [Start(BoardAct.BOOT)]


def test_a_place_of_which_the_coordinator_forgot_whose_it_was_is_not_touched_until_it_is_given_back() -> None:
    play = Play(RING)
    play.tell(PlaceStatus("desk/somebody"))
    for event in (PlaceStatus("", forgot=True), Tick(), PlaceStatus(""), Tick(DUE)):
        assert play.tell(event, 600) == [] and play.state.phase is BoardPhase.RESERVED
    assert "acquire it and release it" in play.state.reason
    play.tell(PlaceStatus("desk/somebody"))
    play.tell(PlaceStatus(""))
    assert play.tell(Tick()) == [Start(BoardAct.BOOT)]


@pytest.mark.parametrize(
    ("created_s", "changed_s", "then"),
    [
        (5.0, 90.0, BoardPhase.OFF),
        (5.0, 70.0, BoardPhase.RESERVED),
        (5.0, 40.0, BoardPhase.RESERVED),
        (99.0, 99.0, BoardPhase.RESERVED),
    ],
)
def test_a_free_place_that_was_not_released_stays_reserved(
    created_s: float, changed_s: float, then: BoardPhase
) -> None:
    """Giving back changes it; a coordinator started again reads what it had kept, or makes it anew.  No other board has
    to be up for that to be seen, and the farm may have been started again as well."""
    play = Play(RING)
    play.tell(PlaceStatus("desk/somebody", created_s=5.0, changed_s=70.0))
    play = Play(RING, restore(play.state, play.now_s))
    assert play.tell(PlaceStatus("", created_s=created_s, changed_s=changed_s)) == []
    assert play.state.phase is then
    assert play.tell(Tick()) == ([Start(BoardAct.BOOT)] if then is BoardPhase.OFF else [])


def test_a_place_that_labgrid_refuses_as_reserved_is_reserved() -> None:
    play = Play(RING)
    play.tell(Tick())
    reservation = PlaceStatus("desk/somebody", created_s=5.0, changed_s=70.0)
    assert play.tell(ActEnded(BoardAct.BOOT, "in use by desk/somebody", reservation=reservation)) == []
    assert play.state.phase is BoardPhase.RESERVED
    play.tell(PlaceStatus("", created_s=5.0, changed_s=70.0))
    assert play.state.phase is BoardPhase.RESERVED, "a restarted coordinator has forgotten the person"


def test_a_coordinator_that_forgot_is_told_again_and_nothing_is_switched() -> None:
    play = Play(RING).up()
    play.tell(Tick())
    play.tell(ActEnded(BoardAct.PULL, grown=True))
    assert play.tell(PlaceStatus("")) == [Start(BoardAct.ACQUIRE)]
    assert play.tell(PlaceStatus("")) == [], "it is being acquired"
    play.tell(ActEnded(BoardAct.ACQUIRE))
    assert play.tell(PlaceStatus("host/farm", ours=True)) == []
    assert play.state.phase is BoardPhase.MEASURING
    assert BoardAct.BOOT not in {one.act for one in play.ordered[1:]}


def test_a_dead_board_that_is_still_held_is_let_go() -> None:
    play = Play(RING)
    play.tell(Tick())
    play.tell(ActEnded(BoardAct.BOOT, "dark"))
    play.tell(ActEnded(BoardAct.RELEASE, "the coordinator is away"))
    assert play.tell(PlaceStatus("host/farm", ours=True)) == [Start(BoardAct.RELEASE)]


def test_a_place_that_nobody_knows_is_dead_with_what_to_do() -> None:
    play = Play(RING)
    assert play.tell(PlaceStatus(None)) == []
    assert play.state.phase is BoardPhase.DEAD and "labgrid-client" in play.state.reason
    assert play.tell(Tick(), 59) == [] and play.tell(Tick(), 2) == [Start(BoardAct.BOOT)]


def test_a_plan_is_made_once_each_time_it_is_due_and_goes_on_after_a_restart() -> None:
    play = Play(PLAN).up()
    assert play.tell(Tick(DUE)) == [Start(BoardAct.MEASURE, DUE.file, resume=False)]
    assert play.tell(Tick(DUE), 10) == []
    play = Play(PLAN, restore(play.state, play.now_s))
    assert play.tell(Tick(DUE)) == [Start(BoardAct.MEASURE, DUE.file, resume=True)]
    play.tell(ActEnded(BoardAct.MEASURE), 43_000)
    assert play.state.phase is BoardPhase.READY and play.tell(Tick(DUE)) == []
    assert play.tell(Tick(replace(DUE, since_s=44_200.0))) == [Start(BoardAct.MEASURE, DUE.file, resume=False)]


def test_a_plan_that_fails_boots_a_board_that_says_nothing_else_of_itself() -> None:
    play = Play(PLAN).up()
    play.tell(Tick(DUE))
    assert play.tell(ActEnded(BoardAct.MEASURE, "the board is gone")) == [Start(BoardAct.RELEASE)]
    assert play.state.phase is BoardPhase.DEAD
    recording = Play(RING).up()
    recording.tell(Tick(DUE))
    assert recording.tell(ActEnded(BoardAct.MEASURE, "a load is missing")) == []
    assert (recording.state.phase, recording.state.reason) == (BoardPhase.READY, "a load is missing")


def test_a_plan_that_is_refused_boots_no_board() -> None:
    """Its other runs may fail, which boots a board without a ring."""
    play = Play(PLAN).up()
    play.tell(Tick(DUE))
    assert play.tell(ActEnded(BoardAct.MEASURE, refusal="there is no CPU 9")) == []
    assert (play.state.phase, play.state.reason) == (BoardPhase.READY, "there is no CPU 9")
    assert play.tell(Tick(DUE)) == []
    play.tell(Tick(replace(DUE, since_s=DUE.since_s + 1)))
    assert play.tell(ActEnded(BoardAct.MEASURE, "gone", refusal="no CPU 9")) == [Start(BoardAct.RELEASE)]


def test_a_plan_that_is_refused_does_not_show_that_the_board_works() -> None:
    """The bench may refuse it without having asked the board."""
    play = Play(RING).up()
    fresh_s = play.state.fresh_s
    play.tell(Tick(DUE), 10)
    play.tell(ActEnded(BoardAct.MEASURE, refusal="there is no such file"), 10)
    assert play.state.fresh_s == fresh_s


@pytest.mark.parametrize("by_s", [-3600.0, 3600.0, 100_000.0])
def test_a_clock_that_is_set_neither_boots_a_board_nor_keeps_it_from_being_pulled(by_s: float) -> None:
    """Hours ahead: as if nothing new had come of it for hours; hours behind: as if no pull were due for hours."""
    steady_s, ahead_s = 0.0, 1000.0
    clock = BenchClock(lambda: steady_s + ahead_s, lambda: steady_s)
    play = Play(RING).up()
    play.tell(Tick())
    play.tell(ActEnded(BoardAct.PULL, grown=True))
    ahead_s += by_s
    now_s, was_set_s = clock.read()
    assert (now_s, was_set_s) == (1000.0 + by_s, by_s)
    play.state, play.now_s = shift_times(play.state, was_set_s), play.now_s + was_set_s
    assert play.tell(Tick(), 299) == [] and play.tell(Tick(), 1) == [Start(BoardAct.PULL)]
    steady_s += 300.0
    assert clock.read() == (1300.0 + by_s, 0.0), "it was set once"


@pytest.mark.parametrize(
    ("phase", "then"),
    [
        (BoardPhase.BOOTING, BoardPhase.OFF),
        (BoardPhase.MEASURING, BoardPhase.READY),
        (BoardPhase.RESERVED, BoardPhase.RESERVED),
        (BoardPhase.DEAD, BoardPhase.DEAD),
    ],
)
def test_a_farm_that_was_killed_knows_what_it_had(phase: BoardPhase, then: BoardPhase) -> None:
    state = BoardState(
        phase=phase, busy=frozenset({BoardAct.BOOT, BoardAct.PULL}), failures=3, link="ssh://x", newest="7"
    )
    after = restore(state, 5000.0)
    assert (after.phase, after.busy, after.failures, after.link, after.newest) == (then, frozenset(), 3, "ssh://x", "7")


@pytest.mark.check
def test_nothing_sticks_whatever_happens() -> None:
    """10,000 events at random: never two of an act, nothing begun on a reserved place; and left alone, it measures."""
    for seed in range(20):
        chance, play = random.Random(seed), Play(RING)
        for _ in range(500):
            event = _event_at(chance, play.state)
            before = play.state
            commands = play.tell(event, chance.choice((0, 1, 60, 4000)))
            begun = [one.act for one in commands if isinstance(one, Start)]
            assert len(begun) == len(set(begun)) and not before.busy & (set(begun) - _ended(event))
            assert play.state.phase is not BoardPhase.RESERVED or not begun
        assert _settled(play)


def _ended(event: Event) -> set[BoardAct]:
    return {event.act} if isinstance(event, ActEnded) else set()


def _event_at(chance: random.Random, state: BoardState) -> Event:
    ended = [ActEnded(act, chance.choice(("", "it broke")), grown=chance.random() < 0.5) for act in sorted(state.busy)]
    seen = (PlaceStatus(""), PlaceStatus("me/farm", ours=True), PlaceStatus("desk/her"), PlaceStatus(None))
    events: list[Event] = [Tick(), Tick(DUE), *seen, *ended]
    return chance.choice(events)


def _settled(play: Play) -> bool:
    """Whether it measures in the end, where all goes well from now on."""
    play.tell(PlaceStatus("desk/her"))
    for _ in range(200):
        play.tell(PlaceStatus("me/farm", ours=True), 60)
        for act in sorted(play.state.busy):
            play.tell(ActEnded(act, grown=True))
        play.tell(Tick())
    return play.state.activity in ("measuring", "pulling")


NOON_S, HOUR_S = 1_800_014_400.0, 3600.0  # 2027-01-15 12:00, a Friday


def test_the_calendar_says_which_cycle_has_begun() -> None:
    half = ScheduledPlan(Path("half.toml"), parse_dates(12 * HOUR_S, (), "06:00"))
    assert due([half], NOON_S) == DueCycle(half.file, NOON_S - 6 * HOUR_S)
    assert due([half], NOON_S - 6 * HOUR_S - 1) == DueCycle(half.file, NOON_S - 18 * HOUR_S)
    weekend = ScheduledPlan(Path("weekend.toml"), parse_dates(24 * HOUR_S, ("sat",), "00:00"))
    assert due([weekend], NOON_S) is None
    assert due([half, weekend], NOON_S + 13 * HOUR_S) == DueCycle(weekend.file, NOON_S + 12 * HOUR_S)


@pytest.mark.parametrize(
    ("every_h", "days", "at", "pause_h"),
    [
        (12, (), "06:00", 12),
        (12, ("sat",), "00:00", 6.5 * 24),
        (8, ("sat", "sun"), "07:00", 5 * 24 + 8),
        (24, ("mon", "wed", "fri"), "06:00", 3 * 24),
        (36, (), "00:00", 36),
        (48, ("sat",), "00:00", 14 * 24),
    ],
)
def test_new_data_are_due_after_the_longest_pause_of_a_plan(
    every_h: float, days: tuple[str, ...], at: str, pause_h: float
) -> None:
    dates = parse_dates(every_h * HOUR_S, days, at)
    times = sorted({at_s for hour in range(8 * 7 * 24) if (at_s := dates.latest(NOON_S + hour * HOUR_S)) is not None})
    assert max(later - earlier for earlier, later in pairwise(times)) == pause_h * HOUR_S
    often = ScheduledPlan(Path("often.toml"), parse_dates(HOUR_S, (), "00:00"))
    assert due_s(BoardEntry("b", plans=(often, ScheduledPlan(Path("plan.toml"), dates)))) == pause_h * HOUR_S


def test_the_longest_pause_of_equal_dates_is_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each update asks for that of each board."""
    asked_s: list[float] = []
    latest = Dates.latest

    def latest_noted(dates: Dates, now_s: float) -> float | None:
        asked_s.append(now_s)
        return latest(dates, now_s)

    monkeypatch.setattr(Dates, "latest", latest_noted)
    pauses = {parse_dates(37 * HOUR_S, ("sun",), "05:00").longest_pause_s for _ in range(5)}
    assert len(pauses) == 1 and len(asked_s) == len(set(asked_s)) > 0


@pytest.mark.parametrize(
    ("every_s", "days", "at", "said"),
    [
        (7 * HOUR_S, (), "00:00", "divide a day"),
        (HOUR_S, ("monday",), "00:00", "unknown day 'monday'"),
        (HOUR_S, (), "24:00", "not a time of day"),
        (0.5, (), "00:00", "divide a day"),
    ],
)
def test_dates_that_cannot_be_are_refused(every_s: float, days: tuple[str, ...], at: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_dates(every_s, days, at)


def test_a_place_without_resources_says_what_is_missing() -> None:
    """The exporter's name is that of its host where -n is left out; then no match of a rack's name finds it."""
    place = SimpleNamespace(name="r1s1", matches=[])
    match = SimpleNamespace(exporter="rack1", group="r1s1")
    assert "has no matches" in why_no_resources(place, {})
    place.matches = [match]
    assert "connected: buildhost)" in why_no_resources(place, {"buildhost": {"r1s1": {}}})
    assert "connected: none)" in why_no_resources(place, {})
    assert "it exports r1s2" in why_no_resources(place, {"rack1": {"r1s2": {}}})
    assert "not available now" in why_no_resources(place, {"rack1": {"r1s1": {}}})
