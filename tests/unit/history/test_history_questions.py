# SPDX-License-Identifier: GPL-2.0-or-later
"""What the history answers: exact numbers, to those who may see them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from fastenough.history import (
    NOTHING,
    OWNER,
    PUBLIC,
    BoardCondition,
    BoardStatus,
    History,
    UnknownBoard,
    Viewer,
    bands,
    board_of,
    board_status,
    board_statuses,
    catch_up,
    changes,
    declare,
    distribution,
    events,
    heat,
    last_changes,
    maxima,
    newest_events,
    requirement_text,
    ridge,
    runs,
    worst,
)
from fastenough.history.boards import CONFIGURATION, BoardColumns
from fastenough.history.queries import _tables_of
from fastenough.history.rollups import month_begin_s
from fastenough.history.schema import CYCLE_S, INTERVAL, MONTH, STEP_S
from fastenough.model import Requirement
from fastenough.recording.histogram import Histogram, bucket_lowest
from tests.bench.history import boards_rows
from tests.support.farm_data import INJECTED_NS, LIMIT_NS, FarmData

pytestmark = pytest.mark.check

SERIES = "timer/wakeup_corrected"
JUDGED_BY = requirement_text(Requirement(LIMIT_NS))
Question = Callable[[History, Viewer, str], Any]


@pytest.fixture(scope="module")
def history(farm: FarmData, tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
    opened = History.at(f"sqlite:///{tmp_path_factory.mktemp('history')}/history.sqlite")
    farm.declare(opened)
    assert catch_up(opened, farm.store).faults == {}
    yield opened
    opened.close()


QUESTIONS: dict[str, Question] = {
    "board_of": board_of,
    "maxima": lambda history, viewer, name: maxima(history, viewer, name, SERIES, 0, 10**6),
    "distribution": lambda history, viewer, name: distribution(history, viewer, name, SERIES, 0, 10**6),
    "ridge": lambda history, viewer, name: ridge(history, viewer, name, SERIES, 18),
    "heat": lambda history, viewer, name: heat(history, viewer, name, SERIES, 0, 10**6),
    "bands": lambda history, viewer, name: bands(history, viewer, name, 0, 10**6),
    "events": lambda history, viewer, name: events(history, viewer, name, 0, 10**6),
    "changes": lambda history, viewer, name: changes(history, viewer, name, 0, 10**6),
    "runs": lambda history, viewer, name: runs(history, viewer, name, 0, 10**6),
}


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_a_board_that_is_not_public_is_as_unknown_as_one_that_is_not(
    farm: FarmData, history: History, question: Question
) -> None:
    question(history, OWNER, farm.private)
    question(history, PUBLIC, farm.boards[0])
    for viewer, name in ((PUBLIC, farm.private), (PUBLIC, "no such board"), (OWNER, "no such board")):
        with pytest.raises(UnknownBoard) as caught:
            question(history, viewer, name)
        assert caught.value.args == (name,)


def test_lists_of_boards_do_not_have_one_that_is_not_public(farm: FarmData, history: History) -> None:
    everything, public = set(farm.boards), set(farm.boards) - {farm.private}
    for viewer, names in ((OWNER, everything), (PUBLIC, public)):
        assert {one.board.name for one in board_statuses(history, viewer, farm.end_s)} == names
        assert set(worst(history, viewer, farm.begin_s, farm.end_s).values_ns) == names
        changed = last_changes(history, viewer, (CONFIGURATION,), 0, farm.end_s)
        assert changed == {
            name: found[0].at_s for name in names if (found := changes(history, viewer, name, 0, farm.end_s))
        }
        assert changed


def test_one_injected_latency_is_the_same_number_everywhere(farm: FarmData, history: History) -> None:
    where = farm.injected
    span = farm.begin_s, farm.end_s
    name = where.board
    shown = maxima(history, OWNER, name, SERIES, *span)
    place = (where.begin_s - int(shown.times_s[0])) // STEP_S
    assert int(shown.values_ns[where.cpu][place]) == int(shown.worst_ns.max()) == INJECTED_NS
    assert distribution(history, OWNER, name, SERIES, *span).cpus[where.cpu].max_ns == INJECTED_NS
    assert max(row.buckets.max_ns or 0 for row in ridge(history, OWNER, name, SERIES, 18).rows) == INJECTED_NS
    hourly, longer = (worst(history, OWNER, *span, hours * 3600).values_ns[name] for hours in (1, 7))
    assert longer.tolist() == [hourly[at : at + 7].max() for at in range(0, hourly.size, 7)]
    assert int(hourly.max()) == INJECTED_NS
    stands = next(one for one in board_statuses(history, OWNER, farm.end_s) if one.board.name == name)
    assert {stands.max_24h_ns, stands.max_30d_ns, stands.max_ever_ns, stands.daily_ns[-1]} == {INJECTED_NS}
    assert stands.max_ever_at_s == where.begin_s
    event = max(events(history, OWNER, name, *span), key=lambda one: one.value_ns)
    assert (event.value_ns, event.at_s, event.cpu, event.run) == (INJECTED_NS, where.at_s, where.cpu, where.run)
    assert event.new_maximum
    assert "irq/27-i915" in event.culprit
    seen = heat(history, OWNER, name, SERIES, *span)
    row, bucket = int((where.begin_s - seen.times_s[0]) // seen.step_s), -1
    assert seen.count[row, bucket] == 1
    assert seen.lower_ns[bucket] <= INJECTED_NS <= seen.upper_ns[bucket]


def test_the_newest_events_are_the_newest_and_the_greatest_are_the_greatest(farm: FarmData, history: History) -> None:
    asked = history, OWNER, farm.injected.board, farm.begin_s, farm.end_s
    every = events(*asked, most=10**6)
    assert len(every) > 3 and [one.at_s for one in every] != sorted((one.at_s for one in every), reverse=True)
    for most in (1, 3, 10**6):
        newest = newest_events(*asked, most=most)
        assert [one.at_s for one in newest] == sorted((one.at_s for one in every), reverse=True)[:most]
        greatest = events(*asked, most=most)
        assert [one.value_ns for one in greatest] == sorted((one.value_ns for one in every), reverse=True)[:most]
    assert events(*asked, most=1)[0].value_ns == INJECTED_NS


def test_what_needs_attention_comes_first(farm: FarmData, history: History) -> None:
    found = {one.board.name: one for one in board_statuses(history, OWNER, farm.end_s + 2 * STEP_S)}
    ranks = [one.state.rank for one in board_statuses(history, OWNER, farm.end_s)]
    assert ranks == sorted(ranks)
    assert found[farm.injected.board].state is BoardCondition.NEW_MAXIMUM
    assert found[farm.silent].state is BoardCondition.SILENT
    assert found[farm.changed].state is BoardCondition.CHANGED
    assert found[farm.boards[0]].state is BoardCondition.OK
    assert found[farm.boards[0]].board.limit_ns == LIMIT_NS


def test_a_board_is_silent_after_three_steps_and_not_before(farm: FarmData, history: History) -> None:
    def state(now_s: int) -> BoardCondition:
        return next(one.state for one in board_statuses(history, OWNER, now_s) if one.board.name == farm.boards[0])

    assert state(farm.end_s + 3 * STEP_S) is BoardCondition.OK
    assert state(farm.end_s + 3 * STEP_S + 1) is BoardCondition.SILENT


def test_a_board_whose_clock_is_ahead_is_stale_and_says_so(farm: FarmData, history: History) -> None:
    """It would else not be missed for as long as its clock is wrong."""
    late = {one.board.name: one for one in board_statuses(history, OWNER, farm.end_s - 3600)}[farm.boards[0]]
    assert late.state is BoardCondition.SILENT
    assert "60 min ahead" in late.reason


def test_what_the_farm_says_of_a_board(farm: FarmData, history: History) -> None:
    name = farm.silent
    declarations: list[tuple[BoardColumns, BoardCondition]] = [
        ({"state": "reserved", "reason": "a person has it"}, BoardCondition.RESERVED),
        ({"verdict": "FAIL", "verdict_reason": "above 100 µs", "judged_by": JUDGED_BY}, BoardCondition.FAIL),
        ({"state": "ok", "verdict": "PASS", "reason": ""}, BoardCondition.SILENT),
    ]
    for said, state in declarations:
        declare(history, name, **said)
        found = next(one for one in board_statuses(history, OWNER, farm.end_s) if one.board.name == name)
        assert found.state is state


def test_a_new_maximum_is_one_for_24_hours(farm: FarmData, history: History) -> None:
    def stands(now_s: int) -> BoardCondition:
        return next(one.state for one in board_statuses(history, OWNER, now_s) if one.board.name == farm.injected.board)

    hour_s = farm.injected.begin_s // 3600 * 3600
    assert stands(hour_s + 24 * 3600 + STEP_S - 1) is BoardCondition.NEW_MAXIMUM
    assert stands(hour_s + 24 * 3600 + STEP_S) is BoardCondition.ABOVE


@pytest.mark.parametrize("span_s, value", [(24 * 3600, "max_24h_ns"), (30 * 86400, "max_30d_ns")])
def test_maxima_of_24_hours_and_30_days_are_exact_to_five_minutes(
    farm: FarmData, history: History, span_s: int, value: str
) -> None:
    def of(now_s: int) -> int | None:
        found = next(one for one in board_statuses(history, OWNER, now_s) if one.board.name == farm.injected.board)
        number: int | None = getattr(found, value)
        return number

    last_s = farm.injected.begin_s + STEP_S - 1 + span_s
    assert of(last_s) == INJECTED_NS
    assert (of(last_s + 1) or 0) < INJECTED_NS


def test_never_pass_above_the_limit_whatever_was_judged(farm: FarmData, history: History) -> None:
    """What came since the newest cycle was judged is not judged yet."""
    name = farm.injected.board

    def found(judged_from_s: int | None) -> BoardStatus:
        judged = board_of(history, OWNER, name).requirement
        declare(
            history,
            name,
            verdict="PASS",
            verdict_reason="judged",
            judged_from_s=judged_from_s,
            judged_by=requirement_text(judged),
        )
        return board_status(history, OWNER, name, farm.end_s + 2 * 86400)

    for since_s in (None, farm.begin_s, farm.injected.begin_s):
        one = found(since_s)
        assert (one.verdict, one.state, one.above_ns) == ("INCONCLUSIVE", BoardCondition.ABOVE, INJECTED_NS)
    after = found(farm.injected.begin_s + STEP_S)
    assert (after.verdict, after.above_ns) == ("PASS", None), "it was of another configuration"
    declare(history, name, requirement=json.dumps(asdict(Requirement(LIMIT_NS, 1e-3, longest_burst=5))))
    assert found(None).verdict == "PASS", "a limit that may be exceeded is judged by its rate alone"
    declare(history, name, requirement="", verdict="", verdict_reason="", judged_from_s=None, judged_by="")


def test_silence_follows_from_pulls_and_intervals_and_dead_boards_come_first(farm: FarmData, history: History) -> None:
    name = farm.boards[0]
    declare(history, name, due_s=3600)
    for late_s, state in ((2 * 3600 + STEP_S, BoardCondition.OK), (2 * 3600 + STEP_S + 1, BoardCondition.SILENT)):
        assert board_status(history, OWNER, name, farm.end_s + late_s).state is state
    declare(history, farm.changed, state="dead", reason="it has not come up")
    declare(history, farm.changed, verdict="FAIL", verdict_reason="late", judged_by=JUDGED_BY)
    first = board_statuses(history, OWNER, farm.end_s)[0]
    assert (first.board.name, first.state, first.verdict) == (farm.changed, BoardCondition.DEAD, "FAIL")
    declare(history, farm.changed, state="ok", reason="", verdict="", verdict_reason="", judged_by="")
    declare(history, name, due_s=0)


def test_what_changed_stands_beside_the_last_run_before_it(farm: FarmData, history: History) -> None:
    found = changes(history, OWNER, farm.changed, farm.begin_s, farm.end_s)
    assert [(one.key, one.was, one.now) for one in found] == [
        ("cmdline", "root=/dev/sda1 isolcpus=1", "root=/dev/sda1"),
        ("kernel.release", "6.12.0-rt2", "6.12.0-rt3"),
    ]
    mine = bands(history, OWNER, farm.changed, farm.begin_s, farm.end_s)
    place = next(number for number, band in enumerate(mine) if band.begin_s == farm.changed_s)
    assert {(one.at_s, one.last_run, one.run, one.latency) for one in found} == {
        (farm.changed_s, mine[place - 1].run, mine[place].run, True)
    }
    assert [band.load for band in mine] == ["none", "osadl"] * (len(mine) // 2)
    assert changes(history, OWNER, farm.boards[0], farm.begin_s, farm.end_s) == []


@pytest.mark.parametrize(
    "begin, end", [(0, 0), (STEP_S, 0), (STEP_S, 7 * STEP_S), (CYCLE_S - STEP_S, -STEP_S), (-40 * 86400, 40 * 86400)]
)
def test_what_is_added_up_beforehand_is_what_the_rows_say(
    farm: FarmData, history: History, begin: int, end: int
) -> None:
    """Of any range, in whole cycles or not."""
    span = farm.begin_s + begin, (farm.end_s if end <= 0 else farm.begin_s + begin) + end
    held = distribution(history, OWNER, farm.boards[0], SERIES, *span)
    shown = maxima(history, OWNER, farm.boards[0], SERIES, *span)
    steps = sum(span[0] <= at_s < span[1] for at_s in range(farm.begin_s, farm.end_s, STEP_S))
    for cpu, buckets in held.cpus.items():
        recorded = [
            interval.histograms[cpu]
            for run in farm.store.runs(board=farm.boards[0])
            for interval in farm.store.load(run.id).intervals
            if span[0] <= interval.begin_wall_ns // 10**9 < span[1]
        ]
        assert len(recorded) == steps
        whole = Histogram.merged(recorded, 4)
        assert buckets.count.tolist() == whole.count.tolist()
        assert buckets.lower_ns.tolist() == bucket_lowest(whole.index, 4).tolist()
        assert buckets.max_ns == max(one.maximum or 0 for one in recorded)
        assert buckets.max_ns == shown.values_ns[cpu].max()


def test_a_range_is_made_of_each_of_its_parts_once() -> None:
    """Months, cycles and five minutes, without a gap and without an overlap."""
    begin_s = month_begin_s(1_790_000_000) - 13 * CYCLE_S - 7 * STEP_S
    end_s = begin_s + 100 * 86400
    spans = sorted((span, table.name) for table, parts in _tables_of(begin_s, end_s) for span in parts)
    assert [span[0] for span, _ in spans] == [begin_s, *(span[1] for span, _ in spans[:-1])]
    assert spans[-1][0][1] == end_s
    assert {name for _, name in spans} == {"month", "cycle", "interval"}
    assert {table.name for table, parts in _tables_of(begin_s, begin_s + STEP_S) if parts} == {INTERVAL.name}
    month_s = month_begin_s(1_790_000_000)
    assert {table.name for table, parts in _tables_of(month_s, month_begin_s(month_s + 40 * 86400)) if parts} == {
        MONTH.name
    }


def test_a_year_is_answered_in_hours(farm: FarmData, history: History) -> None:
    shown = maxima(history, OWNER, farm.injected.board, SERIES, farm.end_s - 365 * 86400, farm.end_s)
    assert shown.step_s == 3600
    assert shown.times_s.size == 365 * 24
    assert int(shown.worst_ns.max()) == INJECTED_NS
    assert np.count_nonzero(shown.worst_ns != NOTHING) == (farm.end_s - farm.begin_s) // 3600


def test_nothing_was_measured_where_nothing_was(farm: FarmData, history: History) -> None:
    name = farm.boards[0]
    assert maxima(history, OWNER, name, "no such series", farm.begin_s, farm.end_s).values_ns == {}
    assert distribution(history, OWNER, name, SERIES, 0, 86400).cpus == {}
    assert ridge(history, OWNER, name, "no such series", 18).rows == ()
    assert heat(history, OWNER, name, SERIES, 0, 3600).count.sum() == 0
    assert set(worst(history, OWNER, 0, 7200).values_ns[name].tolist()) == {NOTHING}


def test_boards_of_the_bench_have_every_column() -> None:
    """It fills tables by place, and nothing else here runs it."""
    for table, rows in boards_rows(2):
        assert {len(row) for row in rows} == {len(table.columns)}
