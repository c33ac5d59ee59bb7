# SPDX-License-Identifier: GPL-2.0-or-later
"""What is printed errs to the safe side: latencies are not rounded down, frequencies and speeds not up."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fastenough import words

NS = st.one_of(st.integers(-(10**13), 10**13).map(float), st.floats(-1e13, 1e13))


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def _slack_ns(ns: float) -> float:
    """What floating point may add or take, and the printed number cannot hold."""
    return 0.01 + 1e-9 * abs(ns)


@given(NS)
def test_no_latency_is_understated_and_no_minimum_overstated(ns: float) -> None:
    digit_ns = 10 if abs(ns) < 10_000 else 100 if abs(ns) < 1_000_000 else 1000
    up_ns, down_ns = (_number(show(ns)) * 1000 for show in (words.microseconds, words.microseconds_down))
    assert ns - _slack_ns(ns) <= up_ns <= ns + digit_ns + _slack_ns(ns)
    assert ns - digit_ns - _slack_ns(ns) <= down_ns <= ns + _slack_ns(ns)


@given(NS, st.floats(0, 1e9))
def test_an_interval_holds_all_that_was_computed(lower_ns: float, length_ns: float) -> None:
    upper_ns = lower_ns + length_ns
    low, high = (_number(end) * 1000 for end in words.microseconds_interval(lower_ns, upper_ns).split(" to "))
    assert low <= lower_ns + _slack_ns(lower_ns) and high >= upper_ns - _slack_ns(upper_ns)


def test_a_narrow_interval_keeps_its_place() -> None:
    assert words.microseconds_interval(10_005, 10_015) == "10.0 to 10.1"
    assert words.microseconds_interval(-10_015, -10_005, " … ") == "-10.1 … -10.0"
    assert words.microseconds_interval(None, 1.0) == "–"


@example(0.0, 5e-324)
@example(-1.2345678e-310, 0.0)
@given(st.floats(-1e6, 1e6), st.floats(0, 1e3))
def test_an_interval_of_rates_holds_all_that_was_computed(lower: float, length: float) -> None:
    low, high = map(float, words.interval(lower, lower + length).split(" to "))
    assert low <= lower + 1e-8 * abs(lower) and high >= (lower + length) * (1 - 1e-8 * math.copysign(1, lower + length))


@given(st.floats(1e-9, 1e12))
def test_no_frequency_and_no_speed_is_overstated(value: float) -> None:
    shown = _number(words.digits_down(value))
    assert value * (1 - 1e-2) <= shown <= value * (1 + 1e-8)


@pytest.mark.parametrize(
    ("ns", "shown"),
    [
        (0, "0.00"),
        (10, "0.01"),
        (1, "0.01"),
        (-1, "0.00"),
        (-15, "-0.01"),
        (5123, "5.13"),
        (9999, "10.00"),
        (99_950, "100.0"),
        (100_001, "100.1"),
        (123_400, "123.4"),
        (999_999, "1,000.0"),
        (1_000_001, "1,001"),
        (20_000_000, "20,000"),
    ],
)
def test_latencies_as_printed(ns: float, shown: str) -> None:
    assert words.microseconds(ns) == shown


@pytest.mark.parametrize(
    ("hz", "shown"),
    [
        (35.4, "0.0354"),
        (35.49, "0.0354"),
        (16_666.7, "16.6"),
        (999.99, "0.999"),
        (1_000_000, "1,000"),
        (123_456_789, "123,456"),
        (None, "–"),
    ],
)
def test_frequencies_as_printed(hz: float | None, shown: str) -> None:
    assert words.kilohertz(hz) == shown


@pytest.mark.parametrize(
    ("ns", "shown"),
    [
        (0, "0 ns"),
        (999.4, "999 ns"),
        (999.9, "1 µs"),
        (999_900, "1 ms"),
        (999_400_000, "999 ms"),
        (999_900_000, "1 s"),
        (-999_900_000, "-1 s"),
        (119.4e9, "119 s"),
        (119.96e9, "2 min"),
        (47.99 * 3600e9, "2 days"),
        (999.9 * 86400e9, "1,000 days"),
        (12_345 * 86400e9, "12,345 days"),
    ],
)
def test_durations_as_printed(ns: float, shown: str) -> None:
    assert words.duration(ns) == shown


@pytest.mark.parametrize(
    ("ns", "shown"),
    [
        (0, "0.00 s"),
        (3_599_990_000_000, "3,599.99 s"),
        (3_600_000_000_000, "1 h 0 min"),
        (96_300_000_000_000, "1 d 2 h 45 min"),
        (86_399_999_999_999, "23 h 59 min"),
        (86_400_000_000_000 * 400, "400 d 0 h 0 min"),
    ],
)
def test_instants_of_a_run_can_be_found(ns: float, shown: str) -> None:
    assert words.since_begin(ns) == shown


@given(st.floats(-1e20, 1e20))
def test_no_duration_is_printed_with_a_power_of_ten(ns: float) -> None:
    number, unit = words.duration(ns).split(" ")
    assert "e" not in number or abs(ns) < 1e-4, "nobody measures so little"
    assert unit == "days" or abs(_number(number)) < 1000


@pytest.mark.parametrize(
    ("ns", "said"),
    [
        (100_000_000, "100 ms"),
        (200_000, "200 µs"),
        (7_071_000, "7.071 ms"),
        (1_500_000, "1.5 ms"),
        (1_000_001, "1,000.001 µs"),
        (1_000_000_001, "1,000,000.001 µs"),
        (0, "0 ns"),
        (1, "1 ns"),
        (10**9, "1 s"),
        (300 * 10**9, "300 s"),
    ],
)
def test_a_time_that_was_asked_for_is_told_exactly(ns: int, said: str) -> None:
    assert words.exact_time(ns) == said
