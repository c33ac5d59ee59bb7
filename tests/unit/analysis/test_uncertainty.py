# SPDX-License-Identifier: GPL-2.0-or-later
"""Uncertainty budgets hold the injected truth, and are not much wider than the errors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastenough.analysis import judge, merge_samples
from fastenough.analysis.error_sources import Basis, Direction
from fastenough.analysis.uncertainty import LatencyUncertainty, budget_of, budgets_of, near_limit
from fastenough.gauge.calibration import Reading, fit, usable_tick_ps
from fastenough.gauge.protocol import Identity
from fastenough.model import Requirement, Verdict
from fastenough.recording import Recording
from tests.support.recordings import PROFILE, Plan, recording

COST = {"clock_read_ns": 40, "clock_step_ns": 10}
TICK_PS = 62_500
LATENCIES_NS = 200_000.0
"""Where the simulated latencies lie, in ns."""


def of_board(folder: Path, values: Any, **more: Any) -> Recording:
    head = {"cost": COST, "profile": PROFILE, **more.pop("head", {})}
    return recording(folder, Plan([[np.asarray(values)]], views=("wakeup_corrected",), head=head, **more))


def latencies(run: Recording) -> dict[str, LatencyUncertainty]:
    (budget,) = budgets_of([run])
    return {one.latency: one for one in budget.latencies}


def by_source(one: LatencyUncertainty) -> dict[str, Any]:
    return {line.source: line for line in one.contributions}


def test_a_budget_adds_what_varies_linearly_and_the_rest_in_squares(tmp_path: Path) -> None:
    maximum = latencies(of_board(tmp_path, [50_000] * 100 + [100_000]))["maximum"]
    varying = (11 / 2 + 40 / 2) / math.sqrt(3)  # a step, and up to 1 ns of truncation; one reading
    rate = 100_000 * 500e-6 / math.sqrt(3)
    assert maximum.combined_ns == pytest.approx(math.hypot(varying, rate))
    assert maximum.expanded_ns == pytest.approx(2 * maximum.combined_ns)
    assert maximum.bias_ns == pytest.approx(40 / 2 - 11 / 2)
    assert maximum.lower_ns == pytest.approx(100_000 - maximum.bias_ns - maximum.expanded_ns)
    assert maximum.upper_ns == pytest.approx(100_000 - maximum.bias_ns + maximum.expanded_ns)
    lines = by_source(maximum)
    assert lines["resolution of the clock"].direction is Direction.SMALLER
    assert lines["reading of the clock"].direction is Direction.GREATER
    assert (maximum.unknown_lower, maximum.unknown_higher) == (True, False)


def test_only_quantiles_have_the_width_of_a_bucket(tmp_path: Path) -> None:
    found = latencies(of_board(tmp_path, np.linspace(90_000, 110_000, 3001).astype(np.int64)))
    assert [name for name in found] == ["minimum", "median", "95 %", "99 %", "99.9 %", "maximum"]
    bucket = {name: by_source(one)["width of the bucket"] for name, one in found.items()}
    assert bucket["minimum"].standard_ns == bucket["maximum"].standard_ns == 0
    assert bucket["median"].standard_ns == pytest.approx(63 / 2 / math.sqrt(3))
    assert bucket["median"].direction is Direction.GREATER
    assert found["median"].bias_ns == pytest.approx(bucket["median"].bias_ns + found["maximum"].bias_ns)


@pytest.mark.parametrize(
    ("head", "source", "direction", "beyond"),
    [
        ({"cost": {"clock_read_ns": 40}}, "resolution of the clock", Direction.SMALLER, (True, True)),
        ({"cost": {"clock_step_ns": 10}}, "reading of the clock", Direction.GREATER, (True, False)),
        ({"implementation": "linux-kernel"}, "reading of the clock", Direction.GREATER, (True, False)),
        ({"cost": {"clock_read_ns": None, "clock_step_ns": 1e300}}, "resolution of the clock", None, (True, True)),
        ({"marks": ["emulated"]}, "rate of the board's clock", Direction.EITHER, (True, True)),
    ],
)
def test_what_a_recording_does_not_say_is_unknown_and_never_zero(
    tmp_path: Path, head: Mapping[str, Any], source: str, direction: Direction | None, beyond: tuple[bool, bool]
) -> None:
    one = latencies(of_board(tmp_path, [50_000] * 100, head=head))["maximum"]
    line = by_source(one)[source]
    assert line.standard_ns is line.bias_ns is line.half_width is None and line.basis is Basis.UNKNOWN
    assert direction is None or line.direction is direction
    assert (one.unknown_lower, one.unknown_higher) == beyond


def test_the_specification_of_a_clock_source_stands_for_a_step_that_was_not_measured(tmp_path: Path) -> None:
    slow = of_board(tmp_path, [50_000] * 100, head={"cost": {}, "profile": PROFILE | {"clocksource": "acpi_pm"}})
    line = by_source(latencies(slow)["maximum"])["resolution of the clock"]
    assert line.half_width == pytest.approx(1e9 / 3_579_545 / 2)


def test_missed_periods_and_lost_values_are_unknown(tmp_path: Path) -> None:
    run = recording(
        tmp_path,
        Plan([[np.full(100, 5_000)]], views=("wakeup",), missed=3, lost=2, first_series={"role": "verdict"}),
    )
    one = latencies(run)["maximum"]
    assert by_source(one)["missed periods that no value stands for"].direction is Direction.SMALLER
    assert by_source(one)["values that were not stored"].standard_ns is None
    assert one.unknown_higher


def test_merged_runs_have_the_bounds_that_hold_for_each(tmp_path: Path) -> None:
    runs = [
        of_board(tmp_path, [50_000] * 100, run_id=f"run-{number}", head={"cost": cost})
        for number, cost in enumerate((COST, COST | {"clock_read_ns": 90}))
    ]
    (budget,) = budgets_of(runs)
    assert by_source(budget.latencies[-1])["reading of the clock"].half_width == 45
    (partly,) = budgets_of([runs[0], of_board(tmp_path, [50_000] * 100, run_id="run-9", head={"cost": {}})])
    assert by_source(partly.latencies[-1])["reading of the clock"].half_width is None


@pytest.mark.parametrize(("values", "counted"), [([99_990], True), ([100_020], True), ([90_000], False)])
def test_values_within_the_uncertainty_of_the_limit_are_a_caveat(
    tmp_path: Path, values: list[int], counted: bool
) -> None:
    run = of_board(tmp_path, [50_000] * 40_000 + values)
    cautions = judge([run], Requirement(100_000)).cautions
    assert any("1 value within the measurement uncertainty of the limit 100 µs" in text for text in cautions) is counted


@pytest.mark.parametrize(
    ("head", "value", "said"),
    [
        ({}, 99_990, "lower by an unknown amount or up to 51 ns higher"),
        ({"cost": {"clock_read_ns": 40}}, 99_990, "lower or higher by an unknown amount"),
        ({"cost": {"clock_read_ns": 40}}, 90_000, "values up to the limit 100 µs may exceed it"),
        ({}, 90_000, None),
    ],
)
def test_an_unknown_end_is_not_stated(tmp_path: Path, head: Mapping[str, Any], value: int, said: str | None) -> None:
    """How long the first reading after a sleep takes is never known, and the step of the clock is not always."""
    run = of_board(tmp_path, [50_000] * 40_000 + [value], head=head)
    values = merge_samples([(run, run.series[0])])
    *_, unknown_higher, unknown_lower = near_limit([values], Requirement(100_000))
    assert (unknown_higher, unknown_lower) == (bool(head), True)
    assessment = judge([run], Requirement(100_000))
    cautions = [text for text in assessment.cautions if "measurement uncertainty" in text]
    assert assessment.verdict is Verdict.PASS and len(cautions) == (said is not None)
    assert said is None or said in cautions[0]


def test_a_missed_period_without_a_value_counts_as_late_whatever_the_uncertainty(tmp_path: Path) -> None:
    plan = Plan([[np.full(100, 5_000)]], views=("wakeup",), missed=3, head={"cost": COST})
    run = recording(tmp_path, replace(plan, first_series={"role": "verdict"}))
    assert latencies(run)["maximum"].unknown_higher
    values = merge_samples([(run, run.series[0])])
    assert not near_limit([values], Requirement(100_000))[3]


# The gauge, simulated with its errors -------------------------------------------------------------


@dataclass(frozen=True)
class SimulatedGauge:
    """A gauge whose errors are drawn: its true tick, the delay of its capture, and its calibration."""

    tick_ps: float
    offset: float
    head: Mapping[str, Any]

    @classmethod
    def drawn(cls, random: np.random.Generator) -> SimulatedGauge:
        """Its crystal is off by up to 0.5 %; the host's clock by up to 5 ppm, as stated; it drifts by up to 0.3 %."""
        at_calibration_ps = TICK_PS * (1 + random.uniform(-5e-3, 5e-3))
        host = 1 + random.uniform(-5e-6, 5e-6)
        readings = []
        for at_ns in np.linspace(0, 2e9, 400):
            before, after = random.exponential(20_000, 2) + 60_000
            seen_ns = at_ns * host
            readings.append(Reading(int(at_ns * 1000 / at_calibration_ps), int(seen_ns - before), int(seen_ns + after)))
        calibration = fit(readings, 5.0)
        offset = random.uniform(0, 4)
        tick_ps = round(usable_tick_ps(calibration, Identity("1", "atmega328p", 1, TICK_PS, 4, 24, False)))
        known = {"tick_ps": calibration.tick_ps, "uncertainty_ppm": calibration.uncertainty_ppm, "reference_ppm": 5.0}
        self_test = {edge: {"0": math.floor(offset)} for edge in ("minimum", "maximum")}
        head = {
            "probe": "response",
            "cost": {},
            "instrument": {"mcu": "atmega328p", "k": 4, "calibration": known, "self_test": self_test},
        }
        drifted_ps = at_calibration_ps * (1 + random.uniform(-3e-3, 3e-3))
        return cls(drifted_ps, offset, head | {"tick_ps": tick_ps})

    def measured(self, folder: Path, true_ns: np.ndarray) -> Recording:
        """What it records of responses after these times; the board's edge is 0 to 20 ns late on the wires."""
        ticks = np.floor((true_ns + 10.0) * 1000 / self.tick_ps + self.offset).astype(np.int64)
        head = {name: value for name, value in self.head.items() if name != "tick_ps"}
        series = {"unit": "ticks", "tick_ps": self.head["tick_ps"], "period_ns": None, "role": "verdict"}
        return recording(folder, Plan([[ticks]], views=("latency-falling",), series=series, head=head))


def true_quantile(true_ns: np.ndarray, name: str) -> float:
    shares = {"minimum": 0.0, "median": 0.5, "maximum": 1.0}
    share = shares[name] if name in shares else float(name.removesuffix(" %")) / 100
    return float(np.sort(true_ns)[max(1, math.ceil(share * true_ns.size - 1e-9)) - 1])


@pytest.mark.check
def test_of_gauges_with_drawn_errors_the_true_latency_is_in_the_stated_share_of_intervals(tmp_path: Path) -> None:
    random = np.random.default_rng(27)
    inside, errors, widths = [], [], []
    for _ in range(60):
        true_ns = LATENCIES_NS + random.exponential(20_000, 400)
        for name, one in latencies(SimulatedGauge.drawn(random).measured(tmp_path, true_ns)).items():
            truth = true_quantile(true_ns, name)
            inside.append(one.lower_ns <= truth <= one.upper_ns)
            errors.append(one.printed_ns - one.bias_ns - truth)
            widths.append(one.expanded_ns)
    assert np.mean(inside) >= 0.95
    assert np.mean(widths) / np.std(errors) < 4


def test_of_simulated_boards_the_true_latency_is_in_the_stated_share_of_intervals(tmp_path: Path) -> None:
    """Its clock steps by 10 ns, a reading takes 40, and its rate is off by up to 500 ppm."""
    random = np.random.default_rng(27)
    inside, errors, widths = [], [], []
    for _ in range(60):
        true_ns = 20_000 + random.exponential(20_000, 400)
        rate = 1 + random.uniform(-500e-6, 500e-6)
        due_ns = random.integers(0, 10**9, 400)
        shown_ns = due_ns + true_ns * rate + random.uniform(0, 40, 400)
        run = of_board(tmp_path, (shown_ns // 10 * 10).astype(np.int64) - due_ns)
        for name, one in latencies(run).items():
            truth = true_quantile(true_ns, name)
            inside.append(one.lower_ns <= truth <= one.upper_ns)
            errors.append(one.printed_ns - one.bias_ns - truth)
            widths.append(one.expanded_ns)
    assert np.mean(inside) >= 0.95
    assert np.mean(widths) / np.std(errors) < 4


def test_a_nominal_tick_is_biased_by_what_the_calibration_found(tmp_path: Path) -> None:
    """Within its uncertainty the nominal tick stays in use: the difference is known and stated."""
    head = {
        "probe": "response",
        "instrument": {
            "mcu": "rp2040",
            "calibration": {"tick_ps": TICK_PS * (1 - 90e-6), "uncertainty_ppm": 95, "reference_ppm": None},
            "self_test": None,
        },
    }
    series = {"unit": "ticks", "tick_ps": TICK_PS, "period_ns": None, "role": "verdict"}
    run = recording(tmp_path, Plan([[np.full(100, 1600)]], views=("latency-falling",), series=series, head=head))
    one = latencies(run)["maximum"]
    lines = by_source(one)
    assert lines["calibration of the instrument's clock"].bias_ns == pytest.approx(9.0, rel=1e-3)
    assert lines["calibration of the instrument's clock"].evaluation == "A"
    assert lines["reference of the calibration"].standard_ns is None
    assert lines["offset of the instrument: capture and synchroniser"].direction is Direction.GREATER
    assert lines["quantisation of the instrument"].half_width * lines[
        "quantisation of the instrument"
    ].sensitivity_ns == (pytest.approx(TICK_PS / 2000))


@pytest.mark.parametrize(
    "instrument",
    [
        {},
        {"calibration": "x", "self_test": [1], "k": "4", "mcu": 7},
        {"k": -1, "calibration": {"tick_ps": 1e-300, "uncertainty_ppm": 1}},
    ],
)
def test_a_hostile_instrument_is_an_unknown_one(tmp_path: Path, instrument: Mapping[str, Any]) -> None:
    series = {"unit": "ticks", "tick_ps": TICK_PS, "period_ns": None, "role": "verdict"}
    head = {"probe": "response", "instrument": instrument}
    run = recording(tmp_path, Plan([[np.full(100, 1600)]], views=("latency-falling",), series=series, head=head))
    one = latencies(run)["maximum"]
    assert by_source(one)["offset of the instrument: capture and synchroniser"].standard_ns is None
    assert by_source(one)["rate of the instrument's clock, not calibrated"].half_width == 11_000


def test_the_sign_of_a_deviation_is_not_that_of_its_error(tmp_path: Path) -> None:
    run = recording(
        tmp_path,
        Plan(
            [[np.array([-900, 5, 7] * 50)]],
            views=("period-jitter",),
            head={"probe": "periodic", "instrument": {"mcu": "atmega328p", "self_test": None}},
            series={"unit": "ticks", "tick_ps": TICK_PS, "period_ns": 10_000_000, "role": "verdict", "two_sided": True},
        ),
    )
    values = merge_samples([(run, run.series[0])])
    one = budget_of(values).latencies[-1]
    assert one.bias_ns == 0 and one.printed_ns == 900 * TICK_PS / 1000
    lines = by_source(one)
    assert lines["rate of the instrument's clock, not calibrated"].sensitivity_ns == pytest.approx(
        (10_000_000 + one.printed_ns) / 1e6
    )
    assert lines["expected period in whole ticks"].half_width == 0.5
    assert all(second.direction is not Direction.SMALLER for _, second in pairwise(one.contributions))
