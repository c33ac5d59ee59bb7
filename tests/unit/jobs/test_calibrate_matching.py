# SPDX-License-Identifier: GPL-2.0-or-later
"""Each injection is matched with the act that it delayed, and what is not found has a reason."""

from __future__ import annotations

from dataclasses import replace

from fastenough.analysis.injections import (
    Injection,
    InjectionResult,
    match_by_due_time,
    match_by_edges,
    match_by_interval,
)
from fastenough.gauge.stream import Frame
from fastenough.jobs.calibrate import WitnessResult, falling_edges
from fastenough.model import Outcome, Role, Series
from fastenough.recording import Event, Histogram, Instant, Interval, Recording
from fastenough.recording.building import HeadAdditions, unmeasured_end, unmeasured_head

MS = 1_000_000
BEGIN_NS = 5_000 * MS
PERIOD_NS = 10 * MS
SERIES_K = 10


def recording(events: tuple[Event, ...] = (), intervals: tuple[Interval, ...] = (), dropped: int = 0) -> Recording:
    series = Series(0, "wakeup", "ns", "mono", "due time", "act began", SERIES_K, Role.VERDICT)
    head = replace(
        unmeasured_head("timer", "linux-user", {}, HeadAdditions()), series=(series,), begin=Instant(BEGIN_NS, 0)
    )
    end = replace(unmeasured_end(Outcome.COMPLETED), events_dropped=dropped)
    return Recording(head, intervals, events, end)


def act(due_period: int, late_ns: int) -> Event:
    """The event of an act that was due then and came so late."""
    return Event("threshold", Instant(BEGIN_NS + due_period * PERIOD_NS + late_ns, 0), 0, value=late_ns)


def injection(asked_ms: int, due_period: int, over_ns: int = 500) -> Injection:
    return Injection(asked_ms * MS, asked_ms * MS + over_ns, BEGIN_NS + due_period * PERIOD_NS)


def test_an_act_that_was_late_before_the_injection_serves_the_delayed_due_time_too() -> None:
    """The board was late by itself when the injector came: one act, due a period earlier, bears both delays."""
    (row,) = match_by_due_time([injection(40, 408)], {}, recording((act(407, 50_813_120),)), "wakeup", PERIOD_NS)
    assert (row.detected, row.measured_median_ns, row.reasons) == (1, 40_813_120, ())


def test_an_act_that_ended_before_the_due_time_serves_nothing_of_it() -> None:
    (row,) = match_by_due_time([injection(40, 408)], {}, recording((act(403, 45 * MS),)), "wakeup", PERIOD_NS)
    assert row.detected == 0
    assert "no late activation at its due time" in row.reasons[0]


def test_an_act_shorter_than_the_injection_is_not_it() -> None:
    (row,) = match_by_due_time([injection(40, 408)], {}, recording((act(408, 39 * MS),)), "wakeup", PERIOD_NS)
    assert row.detected == 0
    assert "39000000 ns, which is shorter" in row.reasons[0]


def test_what_the_witness_dropped_is_named_as_the_reason() -> None:
    (row,) = match_by_due_time([injection(40, 408)], {}, recording(dropped=7), "wakeup", PERIOD_NS)
    assert "7 events of the witness were dropped" in row.reasons[0]


def interval(number: int, *values_ms: float) -> Interval:
    begin_ns = BEGIN_NS + number * 100 * MS
    histogram = Histogram.from_values([round(value * MS) for value in values_ms], SERIES_K)
    return Interval(number, begin_ns, begin_ns + 100 * MS, begin_ns, begin_ns + 100 * MS, {0: histogram}, {}, {}, {})


def test_a_value_counts_only_in_the_interval_in_which_the_injection_ended() -> None:
    injected = [injection(20, 1), injection(20, 41), injection(20, 81)]
    witness = recording(
        intervals=(
            interval(0, 0.1, 20.6),
            *(interval(n, 0.1) for n in range(1, 6)),
            interval(6, 25.0),
            interval(7, 0.2),
            interval(8, 0.2, 30.4),
        )
    )
    (row,) = match_by_interval(injected, {}, witness, 0)
    assert (row.injected, row.detected, len(row.reasons)) == (3, 2, 1)
    assert f"injected at {injected[1].due_mono_ns} ns" in row.reasons[0]
    assert "100000 ns, which is shorter" in row.reasons[0]


def test_an_act_recorded_just_after_the_interval_s_end_counts() -> None:
    (row,) = match_by_interval([injection(20, 7)], {}, recording(intervals=(interval(0, 0.1), interval(1, 22.9))), 0)
    assert row.detected == 1


GAUGE_OFFSET_NS = -123_456_789
LEAD_NS = 5 * MS


def toggles(injected: list[Injection], own_delay_ns: dict[int, int], periods: int = 200) -> list[int]:
    """When the falling edges of a pin toggled each period come, on the gauge's clock; interrupts are off in injections.

    ``own_delay_ns``: how late the board is by itself, by due period.
    """
    edges, period = [], 1
    falling = True
    while period < periods:
        due_ns = BEGIN_NS + period * PERIOD_NS
        at_ns = due_ns + 100_000 + own_delay_ns.get(period, 0)
        for each in injected:
            if each.due_mono_ns - LEAD_NS <= at_ns < each.due_mono_ns + each.injected_ns:
                at_ns = each.due_mono_ns + each.injected_ns + 100_000
        if falling:
            edges.append(at_ns + GAUGE_OFFSET_NS)
        falling = not falling
        period += (at_ns - due_ns) // PERIOD_NS + 1
    return edges


INJECTED = [injection(20, 20), injection(40, 54), injection(80, 88), injection(20, 123), injection(80, 155)]


def test_the_gauge_finds_injections_whatever_the_offset_of_its_clock() -> None:
    rows = match_by_edges(INJECTED, {}, toggles(INJECTED, {}), LEAD_NS, 2 * PERIOD_NS)
    assert [(row.injected, row.detected) for row in rows] == [(2, 2), (1, 1), (2, 2)]
    assert all(0 <= row.excess_median_ns <= PERIOD_NS + MS for row in rows if row.excess_median_ns is not None)


def test_a_late_edge_before_the_injection_does_not_hide_it() -> None:
    """The period that holds the injection is shorter than it then: the edge that begins it was late itself."""
    delays = dict.fromkeys(range(86, 88), 4 * MS) | {53: 12 * MS, 122: 7 * MS}
    rows = match_by_edges(INJECTED, {}, toggles(INJECTED, delays), LEAD_NS, 2 * PERIOD_NS)
    assert [row.reasons for row in rows] == [(), (), ()]


def test_an_injection_that_did_not_delay_the_pin_is_not_found() -> None:
    for missing in INJECTED:
        rows = match_by_edges(
            INJECTED, {}, toggles([each for each in INJECTED if each != missing], {}), LEAD_NS, 2 * PERIOD_NS
        )
        (reason,) = [reason for row in rows for reason in row.reasons]
        assert f"injected at {missing.due_mono_ns} ns" in reason


def test_edges_of_another_pin_are_no_witness() -> None:
    """A pin that blinks rarely has no edge within any injection."""
    blinking = [second * 333 * MS + second % 7 for second in range(40)]
    rows = match_by_edges(INJECTED, {}, blinking, LEAD_NS, 2 * PERIOD_NS)
    assert [row.detected for row in rows] == [0, 0, 0]
    assert "another pin" in rows[0].reasons[0]


def test_edges_end_where_a_sample_of_the_stream_is_missing() -> None:
    frames = [Frame(65534, (0, 16)), Frame(0, (0,)), Frame(2, (0,))]
    assert falling_edges(frames, 16_000, 62_500.0) == [0, 1_000_000, 2_001_000, 3_001_000]
    (row,) = match_by_edges([injection(20, 500)], {}, [0, 20 * MS], LEAD_NS, 2 * PERIOD_NS)
    assert row.detected == 0
    assert row.reasons


def row(requested_ms: int, injected: int, detected: int, measured_ms: int | None) -> InjectionResult:
    return InjectionResult(
        requested_ms * MS,
        injected,
        3 - injected,
        detected,
        requested_ms * MS,
        measured_ms and measured_ms * MS,
        0,
    )


def test_what_is_missed_is_told_from_what_is_not_shown() -> None:
    """A busy host makes injectors late and acts later; that is no fault of the witness, and no proof of it either."""
    whole = WitnessResult("i", "w", (row(20, 3, 3, 21), row(40, 3, 3, 41)))
    assert (whole.passed, whole.missed, whole.shortfall) == (True, False, None)
    missed = WitnessResult("i", "w", (row(20, 3, 2, 21), row(40, 0, 0, None)))
    assert (missed.passed, missed.missed, missed.shortfall) == (False, True, None)
    late = WitnessResult("i", "w", (row(20, 3, 3, 21), row(40, 0, 0, None)))
    assert (late.passed, late.missed) == (False, False)
    assert "no delay of 40 ms was injected" in str(late.shortfall)
    disturbed = WitnessResult("i", "w", (row(20, 3, 3, 99), row(40, 3, 3, 41)))
    assert (disturbed.passed, disturbed.missed) == (False, False)
    assert "do not increase with the injected ones" in str(disturbed.shortfall)
    impossible = WitnessResult("i", "w", reason="no module here")
    assert (impossible.passed, impossible.missed, impossible.shortfall) == (False, False, None)
