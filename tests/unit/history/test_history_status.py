# SPDX-License-Identifier: GPL-2.0-or-later
"""The status of a board follows the series that it measures now, and no PASS hides a value above the limit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from sqlalchemy import select, update

from fastenough.farm.alerts import new_observations
from fastenough.history import (
    OWNER,
    BoardColumns,
    BoardCondition,
    BoardFilter,
    BoardOrder,
    BoardStatus,
    History,
    board_page,
    board_status,
    board_statuses,
    close_months,
    declare,
    ingest_stream,
    latest,
    newest_events,
    refresh_summaries,
    requirement_text,
    worst,
)
from fastenough.history.board_status import main_series
from fastenough.history.queries import MOST_EVENTS
from fastenough.history.schema import BOARD as BOARD_TABLE
from fastenough.history.schema import CYCLE_S, HOUR, INTERVAL, RUN, STEP_S
from fastenough.history.tail import TailWatch, last_good
from fastenough.model import LEAST_CONFIDENCE, LEAST_MISS_RATE, Requirement
from fastenough.web.pages.badge import junit, summary_of
from fastenough.web.pages.board import view
from fastenough.web.site import Site
from tests.support.recordings import WALL_NS, Plan, instant, write
from tests.unit.history.test_history_tail import cycles, tail_changes

pytestmark = pytest.mark.check

BOARD = "b"
FORMER, PRESENT, MONITORED = "timer/wakeup_corrected", "timer/wakeup", "monitor/expiry-to-return"
DAY_S, HOUR_S = 86400, 3600
NOW_S = WALL_NS // 10**9 // DAY_S * DAY_S + DAY_S // 2
LIMIT_NS = 100_000
JUDGED_BY = requirement_text(Requirement(LIMIT_NS))


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    opened = History.at(f"sqlite:///{tmp_path}/history.sqlite")
    declare(opened, BOARD, limit_ns=LIMIT_NS, due_s=HOUR_S, farm="f")
    declare(opened, BOARD, verdict="PASS", verdict_reason="judged", judged_by=JUDGED_BY)
    yield opened
    opened.close()


def measure(  # noqa: PLR0917 - when, how long and what a run measured
    history: History, folder: Path, series: str, begin_s: int, values: Sequence[int], step_s: int, events: bool = False
) -> str:
    """Store a run with one value in each interval of ``step_s``; the run begins ``begin_s`` after `NOW_S`."""
    probe, _, name = series.partition("/")
    begin_ns = (NOW_S + begin_s) * 10**9 - WALL_NS
    plan = Plan(
        [[np.array([value], dtype=np.int64) for value in values]],
        run_id=f"{name}{begin_s}",
        views=("wakeup", name) if name == "wakeup_corrected" else (name,),
        series={"role": "diagnostic"} if probe == "monitor" else {},
        head={"board": BOARD, "probe": probe},
        interval_ns=step_s * 10**9,
        begin_ns=begin_ns,
        events=[
            {"kind": "max", "series": 0, "cpu": 0, "value": value}
            | {"at": instant(begin_ns + (number * step_s + step_s // 2) * 10**9)}
            for number, value in enumerate(values)
            if events
        ],
    )
    with write(folder / f"{plan.run_id}.jsonl", plan).open("rb") as stream:
        assert ingest_stream(history, plan.run_id, stream) == len(values)
    return plan.run_id


def status(history: History) -> BoardStatus:
    return board_status(history, OWNER, BOARD, NOW_S)


def badge_of(history: History, now_s: int) -> tuple[str, int | None, int]:
    """Verdict, maximum and number of values."""
    summary = summary_of(Site(history, OWNER, now=lambda: now_s), BOARD)
    return summary.label, summary.maximum_ns, summary.n


def within_limit(history: History) -> list[str]:
    refresh_summaries(history, NOW_S)
    chosen = BoardFilter(within_ns=LIMIT_NS)
    return [one.board.name for one in board_page(history, OWNER, chosen, BoardOrder(), (0, 9), NOW_S)]


def test_a_board_that_measures_another_series_is_shown_by_it(history: History, tmp_path: Path) -> None:
    measure(history, tmp_path, FORMER, -5 * DAY_S, [9_000] * 48, HOUR_S)
    measure(history, tmp_path, PRESENT, -3 * DAY_S, [250_000] * 72, HOUR_S)
    now = status(history)
    assert (now.board.main, [each.name for each in now.board.series]) == (PRESENT, [PRESENT, FORMER])
    assert (now.state, now.verdict, now.above_ns) == (BoardCondition.ABOVE, "INCONCLUSIVE", 250_000)
    assert (now.silence, now.seen_s) == ("", NOW_S)
    assert {now.max_5min_ns, now.max_24h_ns, now.max_30d_ns, now.max_ever_ns} == {250_000}
    assert within_limit(history) == []
    assert worst(history, OWNER, NOW_S - DAY_S, NOW_S).values_ns[BOARD].tolist() == [250_000] * 24
    assert latest(history, OWNER, NOW_S, 36)[BOARD].count(250_000) == 2


@pytest.mark.parametrize(("former_ns", "present_ns"), [(9_000, 250_000), (250_000, 9_000)])
@pytest.mark.parametrize("present_h", [2, 72])
def test_no_pass_with_a_value_of_any_judged_series_above_the_limit(
    history: History, tmp_path: Path, former_ns: int, present_ns: int, present_h: int
) -> None:
    """Also in the first hours, when the former series is still the main one."""
    measure(history, tmp_path, FORMER, -(present_h + 24) * HOUR_S, [former_ns] * 24, HOUR_S)
    measure(history, tmp_path, PRESENT, -present_h * HOUR_S, [present_ns] * present_h, HOUR_S)
    now = status(history)
    assert now.board.main == (FORMER if present_h < 24 else PRESENT)
    assert (now.state, now.verdict, now.above_ns) == (BoardCondition.ABOVE, "INCONCLUSIVE", 250_000)
    declare(history, BOARD, judged_from_s=NOW_S - HOUR_S)
    above_ns, verdict = (250_000, "INCONCLUSIVE") if present_ns > LIMIT_NS else (None, "PASS")
    assert (status(history).above_ns, status(history).verdict) == (above_ns, verdict)


@pytest.mark.parametrize(
    ("pause_s", "due_s", "main"),
    [
        (DAY_S, 0, FORMER),
        (DAY_S + 1, 0, PRESENT),
        (3 * DAY_S, int(1.5 * DAY_S), FORMER),
        (3 * DAY_S + 2, int(1.5 * DAY_S), PRESENT),
    ],
)
def test_a_series_that_a_plan_measures_again_soon_stays_the_main_one(
    history: History, tmp_path: Path, pause_s: int, due_s: int, main: str
) -> None:
    declare(history, BOARD, due_s=due_s)
    measure(history, tmp_path, FORMER, -pause_s - HOUR_S, [9_000], HOUR_S)
    measure(history, tmp_path, PRESENT, -HOUR_S, [9_000], HOUR_S)
    assert status(history).board.main == main
    assert (status(history).seen_s, status(history).silence) == (NOW_S, "")
    with history.reading() as connection:
        assert main_series(connection) == main_series(connection, [1])
        assert len(main_series(connection)) == 1


@pytest.mark.parametrize(
    ("days", "silent"),
    [
        ((20, 13, 6), False),
        ((22, 15, 8), False),
        ((23, 16, 9), True),
        ((13, 6), False),
        ((6,), True),
        ((30, 29, 28, 7, 6, 5), True),
    ],
)
def test_a_verdict_is_recent_for_the_usual_distance_of_judged_cycles(
    history: History, tmp_path: Path, days: Sequence[int], silent: bool
) -> None:
    """The ring is pulled each hour, and plans run each week; a single pause within daily cycles was an outage."""
    for day in days:
        measure(history, tmp_path, PRESENT, -day * DAY_S - HOUR_S, [9_000], HOUR_S)
    measure(history, tmp_path, MONITORED, -2 * DAY_S, [9_000] * 48, HOUR_S)
    assert (status(history).state is BoardCondition.SILENT) is silent


@pytest.mark.parametrize(
    ("stored", "read"),
    [
        ({"miss_rate": 1e-20}, Requirement(LIMIT_NS, LEAST_MISS_RATE)),
        ({"confidence": 1e-9}, Requirement(LIMIT_NS, confidence=LEAST_CONFIDENCE)),
        ({"miss_rate": 0.0}, Requirement(LIMIT_NS)),
    ],
)
def test_a_requirement_stored_by_an_older_version_is_read(
    history: History, stored: dict[str, float], read: Requirement
) -> None:
    declare(history, BOARD, requirement=json.dumps({"limit_ns": LIMIT_NS} | stored))
    assert status(history).board.requirement == read


@pytest.mark.parametrize(
    ("declared", "verdict", "limit_ns"),
    [
        ({}, "PASS", LIMIT_NS),
        ({"limit_ns": 20_000}, "", 20_000),
        ({"requirement": requirement_text(Requirement(20_000, 1e-6)), "limit_ns": 20_000}, "", 20_000),
        ({"requirement": requirement_text(Requirement(LIMIT_NS, 1e-6))}, "", LIMIT_NS),
        ({"judged_by": ""}, "", LIMIT_NS),
        ({"judged_by": requirement_text(Requirement(200_000)), "plan_limit_ns": 200_000}, "PASS", 200_000),
    ],
)
def test_a_verdict_is_shown_for_the_requirement_that_was_judged_only(
    history: History, tmp_path: Path, declared: BoardColumns, verdict: str, limit_ns: int
) -> None:
    measure(history, tmp_path, PRESENT, -HOUR_S, [9_000] * 12, STEP_S)
    declare(history, BOARD, cycle_verdict="PASS")
    declare(history, BOARD, **declared)
    now = status(history)
    assert (now.verdict, now.cycle_verdict, now.board.limit_ns) == (verdict, verdict, limit_ns)
    assert (now.state is BoardCondition.NOT_JUDGED) is (not verdict)
    site = Site(history, OWNER, now=lambda: NOW_S)
    assert summary_of(site, BOARD).label == (verdict or "no verdict")
    suite = ElementTree.fromstring(junit(site, BOARD))
    assert bool([*suite.iter("failure"), *suite.iter("error")]) is (verdict != "PASS")


def test_a_limit_that_only_a_plan_states_forbids_a_pass_above_it(history: History, tmp_path: Path) -> None:
    measure(history, tmp_path, PRESENT, -HOUR_S, [9_000, 250_000], STEP_S)
    plan = Requirement(200_000)
    declare(history, BOARD, limit_ns=None, judged_by=requirement_text(plan), plan_limit_ns=plan.limit_ns)
    now = status(history)
    assert (now.verdict, now.state, now.above_ns) == ("INCONCLUSIVE", BoardCondition.ABOVE, 250_000)


def test_a_maximum_before_the_newest_values_of_a_board_is_not_that_of_the_newest_five_minutes(
    history: History, tmp_path: Path
) -> None:
    """As that of a plan beside a ring of the monitor."""
    measure(history, tmp_path, PRESENT, -12 * HOUR_S, [9_000] * 12, STEP_S)
    begin_s = NOW_S - 11 * HOUR_S - STEP_S
    assert (status(history).max_5min_ns, status(history).max_5min_s) == (9_000, begin_s)
    assert status(history).main_seen_s == begin_s + STEP_S
    measure(history, tmp_path, MONITORED, -11 * HOUR_S, [8_000], STEP_S)
    assert (status(history).max_5min_ns, status(history).seen_s) == (9_000, begin_s + 2 * STEP_S)
    measure(history, tmp_path, MONITORED, -HOUR_S, [8_000] * 12, STEP_S)
    now = status(history)
    assert (now.board.main, now.max_5min_ns, now.max_5min_s, now.max_24h_ns) == (PRESENT, None, None, 9_000)


def test_no_rate_is_bounded_where_values_are_missing(history: History, tmp_path: Path) -> None:
    measure(history, tmp_path, PRESENT, -HOUR_S, [9_000] * 12, STEP_S)

    def is_bounded(cpus: int, lost: int) -> bool:
        with history.writing() as connection:
            connection.execute(update(BOARD_TABLE).values(display_facts=json.dumps({"cpus": cpus})))
            connection.execute(update(HOUR).where(HOUR.c.begin_s == NOW_S - HOUR_S).values(lost=lost))
        return view(Site(history, OWNER, now=lambda: NOW_S), BOARD).rate_bound is not None

    assert [is_bounded(1, 0), is_bounded(1, 1), is_bounded(2, 0)] == [True, False, False]


def test_a_badge_has_no_verdict_beside_values_that_are_not_judged(history: History, tmp_path: Path) -> None:
    """The page of a board that has only its monitor left shows the maxima of that."""
    measure(history, tmp_path, FORMER, -DAY_S, [9_000] * 12, HOUR_S)
    measure(history, tmp_path, MONITORED, -DAY_S, [250_000] * 24, HOUR_S)
    assert badge_of(history, NOW_S) == ("PASS", 9_000, 12)
    assert badge_of(history, NOW_S + 12 * HOUR_S + 1) == ("STALE", 9_000, 12)
    measure(history, tmp_path, MONITORED, 0, [250_000] * 24, HOUR_S)
    assert badge_of(history, NOW_S + DAY_S) == ("STALE", 250_000, 12)
    later = board_status(history, OWNER, BOARD, NOW_S + DAY_S)
    assert later.board.main == MONITORED
    assert (later.state, later.verdict) == (BoardCondition.SILENT, "PASS"), "the page must not show it as fine"


def test_new_maxima_of_the_present_series_cause_alerts(history: History, tmp_path: Path) -> None:
    measure(history, tmp_path, FORMER, -9 * DAY_S, [9_000] * 24, HOUR_S)
    run = measure(history, tmp_path, PRESENT, -8 * DAY_S, [9_000] * (8 * 24 - 1) + [90_000], HOUR_S, events=True)
    alerts = list(new_observations(history, [status(history)], NOW_S, set(), 1.0))
    assert [(each.kind, each.more["value_ns"], each.more["run"]) for each in alerts] == [("maximum", "90000", run)]


@pytest.mark.parametrize(("earlier_s", "is_new"), [(45 * 60, False), (30 * DAY_S, False), (30 * DAY_S + 300, True)])
def test_a_new_maximum_exceeds_all_values_of_the_30_days_before(
    history: History, tmp_path: Path, earlier_s: int, is_new: bool
) -> None:
    """A greater one in the same hour, or 30 days before to five minutes."""
    at_s = -2 * HOUR_S + 50 * 60
    measure(history, tmp_path, PRESENT, -40 * DAY_S, [9_000] * (40 * 24), HOUR_S)
    for value, begin_s in ((90_000, at_s), (95_000, at_s - earlier_s)):
        measure(history, tmp_path, PRESENT, begin_s, [value], 300, events=True)
    found = {event.value_ns: event.new_maximum for event in newest_events(history, OWNER, BOARD, 0, NOW_S)}
    assert found == {90_000: is_new, 95_000: True}
    alerts = list(new_observations(history, [status(history)], NOW_S, set(), 1.0))
    recent = {95_000: True, 90_000: is_new} if earlier_s < DAY_S else {90_000: is_new}
    assert {int(each.more["value_ns"]) for each in alerts} == {value for value, alerted in recent.items() if alerted}


@pytest.mark.parametrize(
    ("earlier_s", "earlier_ns", "more_ns"),
    [
        (31 * DAY_S + 300, 300_000, 191_000),
        (31 * DAY_S + 11 * HOUR_S, 300_000, 191_000),
        (31 * DAY_S + 300, 150_000, 191_000),
        (31 * DAY_S, 300_000, None),
        (31 * DAY_S, 150_000, 50_000),
        (31 * DAY_S - HOUR_S, 300_000, None),
        (30 * DAY_S, 300_000, None),
    ],
)
def test_the_30_days_before_a_new_maximum_begin_at_their_five_minutes(
    history: History, tmp_path: Path, earlier_s: int, earlier_ns: int, more_ns: int | None
) -> None:
    """Not with the calendar day, of which `NOW_S` is the middle."""
    for begin_s, value in ((-earlier_s, earlier_ns), (-10 * DAY_S, 9_000), (-HOUR_S, 200_000)):
        measure(history, tmp_path, PRESENT, begin_s, [value], 300)
    now = status(history)
    assert now.more_ns == more_ns
    assert now.state is (BoardCondition.ABOVE if more_ns is None else BoardCondition.NEW_MAXIMUM)
    assert board_statuses(history, OWNER, NOW_S) == [now]


def test_without_data_in_the_30_days_before_there_is_no_new_maximum(history: History, tmp_path: Path) -> None:
    for begin_s, value in ((-31 * DAY_S - 300, 9_000), (-HOUR_S, 200_000)):
        measure(history, tmp_path, PRESENT, begin_s, [value], 300)
    assert (status(history).more_ns, status(history).state) == (None, BoardCondition.ABOVE)


def test_a_new_maximum_is_not_compared_with_itself(history: History, tmp_path: Path) -> None:
    """Its interval began in the five minutes before those of its event."""
    measure(history, tmp_path, PRESENT, -2 * DAY_S, [9_000] * 24, HOUR_S)
    measure(history, tmp_path, PRESENT, -HOUR_S, [90_000, 80_000], 15 * 60, events=True)
    found = {event.value_ns: event.new_maximum for event in newest_events(history, OWNER, BOARD, 0, NOW_S)}
    assert found == {90_000: True, 80_000: False}


@pytest.mark.parametrize(("end_s", "step_s"), [(-HOUR_S, 300), (-HOUR_S, 2 * HOUR_S), (0, 300), (0, CYCLE_S)])
def test_a_new_maximum_whose_interval_began_in_an_earlier_hour_is_new_and_graded(
    history: History, tmp_path: Path, end_s: int, step_s: int
) -> None:
    """Its value is stored in that hour, and at `NOW_S` also in an earlier cycle."""
    values = [9_000 + 97 * number for number in range(40)]
    measure(history, tmp_path, PRESENT, -21 * DAY_S, values, CYCLE_S)
    begin_s = end_s + 30 - step_s // 2
    measure(history, tmp_path, PRESENT, begin_s, [90_000, 80_000], step_s, events=True)
    found = {event.value_ns: event.new_maximum for event in newest_events(history, OWNER, BOARD, 0, NOW_S + DAY_S)}
    assert found == {90_000: True, 80_000: False}
    (alert,) = new_observations(history, [status(history)], NOW_S + DAY_S, set(), 1.0)
    assert (alert.more["value_ns"], alert.more["evidence"]) == ("90000", "strong evidence")


def test_an_equal_value_in_an_earlier_interval_is_no_new_maximum(history: History, tmp_path: Path) -> None:
    measure(history, tmp_path, PRESENT, -2 * DAY_S, [9_000] * 24, HOUR_S)
    measure(history, tmp_path, PRESENT, -HOUR_S - 15 * 60, [90_000, 20_000, 20_000, 90_000], 300, events=True)
    found = [event.new_maximum for event in newest_events(history, OWNER, BOARD, 0, NOW_S) if event.value_ns == 90_000]
    assert found == [False, True]


def test_events_of_other_series_hide_no_new_maximum(history: History, tmp_path: Path) -> None:
    measure(history, tmp_path, PRESENT, -2 * DAY_S, [9_000] * 46 + [90_000], HOUR_S, events=True)
    measure(history, tmp_path, MONITORED, -DAY_S, [1_000_000] * (MOST_EVENTS + 1), 300, events=True)
    alerts = list(new_observations(history, [status(history)], NOW_S, set(), 1.0))
    assert [each.more["value_ns"] for each in alerts] == ["90000"]


def test_the_first_hour_of_a_board_has_no_new_maximum(history: History, tmp_path: Path) -> None:
    measure(history, tmp_path, PRESENT, -2 * HOUR_S, [9_000, 90_000], 300, events=True)
    assert [event.new_maximum for event in newest_events(history, OWNER, BOARD, 0, NOW_S)] == [False, False]


def test_a_run_whose_beginning_is_not_looked_at_is_not_the_last_good_one(history: History, tmp_path: Path) -> None:
    measure(history, tmp_path, PRESENT, -70 * DAY_S, [300_000, *[9_000] * (2 * 69)], DAY_S // 2)
    assert last_good(history, OWNER, BOARD, NOW_S) is None
    good = measure(history, tmp_path, PRESENT, -59 * DAY_S, [9_000], HOUR_S)
    assert last_good(history, OWNER, BOARD, NOW_S) == good
    measure(history, tmp_path, PRESENT, -3 * HOUR_S, [9_000, 300_000], HOUR_S)
    assert last_good(history, OWNER, BOARD, NOW_S) == good


def test_a_run_above_the_limit_in_another_judged_series_is_no_good_one(history: History, tmp_path: Path) -> None:
    run = measure(history, tmp_path, FORMER, -HOUR_S, [9_000], HOUR_S)
    assert last_good(history, OWNER, BOARD, NOW_S) == run
    above = measure(history, tmp_path, PRESENT, -30 * 60, [300_000], 30 * 60)
    assert above != run and status(history).board.main == FORMER
    with history.writing() as connection:
        number = {name: connection.scalar(select(RUN.c.id).where(RUN.c.name == name)) for name in (run, above)}
        connection.execute(update(INTERVAL).where(INTERVAL.c.run == number[above]).values(run=number[run]))
    assert last_good(history, OWNER, BOARD, NOW_S) is None


def test_a_run_with_a_closed_month_is_not_the_last_good_one(tmp_path: Path) -> None:
    """The rows of its great values are gone."""
    history = History.at(f"sqlite:///{tmp_path}/closed.sqlite", tmp_path / "archive")
    declare(history, BOARD, limit_ns=LIMIT_NS)
    measure(history, tmp_path, PRESENT, -45 * DAY_S, [400_000], HOUR_S)
    measure(history, tmp_path, PRESENT, -40 * DAY_S, [9_000, 300_000, *[9_000] * (29 * 24)], HOUR_S)
    assert last_good(history, OWNER, BOARD, NOW_S) is None
    assert len(close_months(history, NOW_S + 50 * DAY_S)) == 1
    assert last_good(history, OWNER, BOARD, NOW_S) is None
    good = measure(history, tmp_path, PRESENT, -2 * DAY_S, [9_000], HOUR_S)
    assert last_good(history, OWNER, BOARD, NOW_S) == good
    history.close()


def test_changes_of_the_tail_of_the_present_series_are_noted(history: History, tmp_path: Path) -> None:
    values = cycles(np.random.default_rng(1), 40)
    end_s = (NOW_S - DAY_S) // CYCLE_S * CYCLE_S - NOW_S
    begin_s = end_s - len(values) * CYCLE_S
    measure(history, tmp_path, FORMER, begin_s - 50 * CYCLE_S, [9_000] * 50, CYCLE_S)
    measure(history, tmp_path, PRESENT, begin_s, [*values, values[-1]], CYCLE_S)
    changes = TailWatch([BOARD], 1.0).look(history)
    assert list(changes) == [BOARD] and len(changes[BOARD]) == 1
    assert abs(changes[BOARD][0].at_s - (NOW_S + begin_s + 40 * CYCLE_S)) <= CYCLE_S


def test_a_tail_is_looked_at_again_when_the_main_series_is_another(history: History, tmp_path: Path) -> None:
    """The last cycles of both are the same one."""
    values = cycles(np.random.default_rng(1), 40)
    begin_s = NOW_S // CYCLE_S * CYCLE_S - len(values) * CYCLE_S - NOW_S
    measure(history, tmp_path, PRESENT, begin_s, [*values, values[-1]], CYCLE_S)
    watch = TailWatch([BOARD], 1.0)
    assert list(watch.look(history)) == [BOARD]
    measure(history, tmp_path, FORMER, begin_s, [9_000] * (len(values) + 1), CYCLE_S)
    assert watch.look(history) == {}
    assert tail_changes(history, BOARD) == []
