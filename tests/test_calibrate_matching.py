# SPDX-License-Identifier: GPL-2.0-or-later
"""Each injection is matched with the act that it delayed, and what is not found has a reason."""

from __future__ import annotations

from typing import Any

from fastenough.analysis.injections import Injection, found_by_count, found_by_due, found_by_interval
from fastenough.model import Series
from fastenough.recording import Histogram, Recording
from fastenough.recording.reader import Interval

MS = 1_000_000
BEGIN_NS = 5_000 * MS
PERIOD_NS = 10 * MS
HEAD = {"begin": {"mono_ns": BEGIN_NS}, "series": []}
SERIES_K = 10


def recording(events: tuple[dict[str, Any], ...] = (), intervals: tuple[Interval, ...] = (),
              dropped: int = 0) -> Recording:
    series = Series(0, "wakeup", "ns", "mono", "due time", "act began", SERIES_K)
    return Recording(HEAD, (series,), intervals, events, {"events_dropped": dropped})


def act(due_period: int, late_ns: int) -> dict[str, Any]:
    """The event of an act that was due then and came so late."""
    return {"kind": "threshold", "series": 0, "value": late_ns,
            "at": {"mono_ns": BEGIN_NS + due_period * PERIOD_NS + late_ns}}


def injection(asked_ms: int, due_period: int, over_ns: int = 500) -> Injection:
    return Injection(asked_ms * MS, asked_ms * MS + over_ns, BEGIN_NS + due_period * PERIOD_NS)


def test_an_act_that_was_late_before_the_injection_serves_the_delayed_due_time_too() -> None:
    """The board was late by itself when the injector came: one act, due a period earlier, bears both delays."""
    (row,) = found_by_due([injection(40, 408)], {}, recording((act(407, 50_813_120),)), "wakeup", PERIOD_NS)
    assert (row.found, row.found_median_ns, row.reasons) == (1, 40_813_120, ())


def test_an_act_that_ended_before_the_due_time_serves_nothing_of_it() -> None:
    (row,) = found_by_due([injection(40, 408)], {}, recording((act(403, 45 * MS),)), "wakeup", PERIOD_NS)
    assert row.found == 0
    assert "no late act for its due time" in row.reasons[0]


def test_an_act_shorter_than_the_injection_is_not_it() -> None:
    (row,) = found_by_due([injection(40, 408)], {}, recording((act(408, 39 * MS),)), "wakeup", PERIOD_NS)
    assert row.found == 0
    assert "39000000 ns, which is shorter" in row.reasons[0]


def test_what_the_witness_dropped_is_named_as_the_reason() -> None:
    (row,) = found_by_due([injection(40, 408)], {}, recording(dropped=7), "wakeup", PERIOD_NS)
    assert "7 events of the witness were dropped" in row.reasons[0]


def interval(number: int, *values_ms: float) -> Interval:
    begin_ns = BEGIN_NS + number * 100 * MS
    histogram = Histogram.from_values([round(value * MS) for value in values_ms], SERIES_K)
    return Interval(number, begin_ns, begin_ns + 100 * MS, begin_ns, begin_ns + 100 * MS, {0: histogram}, {}, {}, {})


def test_a_value_counts_only_in_the_interval_in_which_the_injection_ended() -> None:
    injected = [injection(20, 1), injection(20, 41), injection(20, 81)]
    witness = recording(intervals=(interval(0, 0.1, 20.6), *(interval(n, 0.1) for n in range(1, 6)),
                                   interval(6, 25.0), interval(7, 0.2), interval(8, 0.2, 30.4)))
    (row,) = found_by_interval(injected, {}, witness, 0)
    assert (row.injected, row.found, len(row.reasons)) == (3, 2, 1)
    assert f"injected at {injected[1].due_mono_ns} ns" in row.reasons[0]
    assert "100000 ns, which is shorter" in row.reasons[0]


def test_an_act_recorded_just_after_the_interval_s_end_counts() -> None:
    (row,) = found_by_interval([injection(20, 7)], {}, recording(intervals=(interval(0, 0.1), interval(1, 22.9))), 0)
    assert row.found == 1


def test_counting_takes_a_delay_of_the_board_s_own_on_top() -> None:
    """31 ms is nearer to 40 than to 20; it can be the injection of 20 and cannot be one of 40."""
    rows = found_by_count([injection(20, 1), injection(40, 2)], {}, [(31 * MS, 1), (51 * MS, 1)])
    assert [row.found for row in rows] == [1, 1]


def test_counting_goes_by_the_true_length_of_an_injection() -> None:
    rows = found_by_count([injection(20, 1, over_ns=21 * MS), injection(40, 2)], {}, [(41 * MS, 2)])
    assert [row.found for row in rows] == [1, 1]


def test_counting_takes_nothing_shorter_than_what_was_injected() -> None:
    (row,) = found_by_count([injection(20, 1)], {}, [(19 * MS, 5)])
    assert (row.found, len(row.reasons)) == (0, 1)


def test_counting_says_where_a_value_may_hide() -> None:
    rows = found_by_count([injection(20, 1), injection(40, 2)], {}, [(41 * MS, 2)])
    assert [row.found for row in rows] == [0, 1]
    assert "longer ones that nothing injected explains" in rows[0].reasons[0]
