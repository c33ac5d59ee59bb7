# SPDX-License-Identifier: GPL-2.0-or-later
"""The uncertainty budget of the unmodified firmware, behind a chip's capture delay, holds the board's true delays."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from fastenough.analysis import merge_samples
from fastenough.analysis.uncertainty import budget_of
from fastenough.gauge.calibration import parse_self_test
from fastenough.gauge.protocol import Identity, RunningCounts, parse_take
from tests.support.gauge_simulation import Build
from tests.support.recordings import Plan, recording

TICK_PS, TICK_NS = 62_500, 62.5
CAPTURE = 3
"""Cycles that a chip takes to capture an edge; the simulation takes none, so its board is so much slower."""
SHORTEST, LONGEST = 1_000, 4_000
K, TRUTH_K = 4, 12
UNO = Identity("1", "atmega328p", 1, TICK_PS, K, 24, True)


def reply_of(lines: list[str]) -> list[str]:
    return [line for line in lines if not line.startswith("ok")]


def test_the_true_delays_lie_in_the_intervals(gauge_build: Build, tmp_path: Path) -> None:
    wired = gauge_build.play([f"follow {CAPTURE} {CAPTURE}", "say selftest"])[0]
    _, taken, truth = gauge_build.play(
        [
            f"follow {SHORTEST + CAPTURE} {LONGEST + CAPTURE}",
            "say response min=1000 max=3000 timeout=16000000 count=2000 seed=7",
            "run 40000000",
            "say take",
            f"truth {TRUTH_K}",
        ]
    ).blocks[:3]
    known = asdict(UNO) | {"self_test": asdict(parse_self_test(reply_of(wired))), "calibration": None}
    series = {"unit": "ticks", "tick_ps": TICK_PS, "period_ns": None, "role": "verdict"}
    head = {"probe": "response", "cost": {}, "marks": ["emulated"], "instrument": known}
    run = recording(tmp_path, Plan([[np.array([1])]], views=("latency-falling",), series=series, head=head))
    measured = RunningCounts(K).new_samples(parse_take(reply_of(taken), UNO))[0]
    true = RunningCounts(TRUTH_K).new_samples(parse_take(["take=0", *reply_of(truth)], replace(UNO, k=TRUTH_K)))[0]
    assert measured.total == true.total == 2000
    budget = budget_of(replace(merge_samples([(run, run.series[0])]), histogram=measured))
    assert [one.latency for one in budget.latencies] == ["minimum", "median", "95 %", "99 %", "99.9 %", "maximum"]
    shares = {"minimum": 0.0, "median": 0.5, "maximum": 1.0}
    for one in budget.latencies:
        share = shares.get(one.latency, float(one.latency.removesuffix(" %")) / 100 if "%" in one.latency else 0.0)
        true_ns = (true.value_at_rank(max(1, round(share * true.total))) - CAPTURE) * TICK_NS
        assert one.lower_ns <= true_ns <= one.upper_ns
        bucket_ns = one.printed_ns / 2**K if one.latency not in ("minimum", "maximum") else 0.0
        assert one.expanded_ns <= 2 * TICK_NS + bucket_ns
        if not bucket_ns:
            assert one.printed_ns == true_ns + CAPTURE * TICK_NS
            assert one.bias_ns == pytest.approx(CAPTURE * TICK_NS)
