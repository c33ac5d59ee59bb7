# SPDX-License-Identifier: GPL-2.0-or-later
"""Deterministic boards: paths are compared exactly, maxima under load over phases only."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from fastenough.analysis import MixedRuns
from fastenough.analysis.instructions import (
    LEAST_PHASES,
    TOO_FEW_PHASES,
    MaximaComparison,
    PathComparison,
    compare_instructions,
    difference_of_means,
    instructions_conclusion,
)
from fastenough.model import BadInput
from fastenough.recording import Recording
from tests.support.deterministic_runs import COUNTED, EMULATOR, PATH, one_interval
from tests.support.recordings import PROFILE, Plan, recording

_NUMBERS = count(1)


def _run(folder: Path, values: Sequence[int], load: str = "none", phase_ns: int | None = None) -> Recording:
    head = {"profile": COUNTED} | ({} if phase_ns is None else {"phase_ns": phase_ns})
    plan = Plan(one_interval(values), f"run-{next(_NUMBERS)}", load=load, marks=("emulated",), head=head)
    return recording(folder, plan)


def _phases(folder: Path, maxima: Sequence[int]) -> list[Recording]:
    return [_run(folder, [5_000, maximum], "cpu", phase) for phase, maximum in enumerate(maxima, 1)]


def _path(base: Recording, other: Recording) -> PathComparison:
    (compared,) = compare_instructions([base], [other])
    assert isinstance(compared, PathComparison) and compared.series == "wakeup_corrected"
    return compared


def _maxima(base: Sequence[Recording], other: Sequence[Recording]) -> MaximaComparison:
    (compared,) = compare_instructions(base, other)
    assert isinstance(compared, MaximaComparison)
    return compared


def test_a_longer_path_is_told_to_the_instruction(tmp_path: Path) -> None:
    path = _path(_run(tmp_path, PATH), _run(tmp_path, [value + 320 for value in PATH]))
    assert {figure.name: figure.difference for figure in path.figures} == dict.fromkeys(
        ("minimum", "median", "mean", "maximum"), 320
    )
    assert path.figure("minimum").share == pytest.approx(320 / 4_544)
    assert (path.buckets, path.moved) == (8, 5)
    assert "minimum +320 instructions (+7.0 %)" in instructions_conclusion([path])


def test_of_equal_paths_the_histograms_are_equal(tmp_path: Path) -> None:
    path = _path(_run(tmp_path, PATH), _run(tmp_path, PATH))
    assert not any(figure.difference for figure in path.figures)
    assert (path.buckets, path.moved) == (0, 0)


def test_values_in_another_bucket_are_counted_beside_equal_figures(tmp_path: Path) -> None:
    path = _path(_run(tmp_path, PATH), _run(tmp_path, (*PATH[:3], PATH[3] + 64, PATH[4])))
    assert [figure.name for figure in path.figures if figure.difference] == ["mean"]
    assert (path.buckets, path.moved) == (2, 1)


def test_histograms_of_different_length_are_not_compared(tmp_path: Path) -> None:
    path = _path(_run(tmp_path, PATH), _run(tmp_path, PATH * 2))
    assert path.buckets is None and path.moved is None and not path.figure("mean").difference


def test_maxima_of_few_phases_have_no_interval(tmp_path: Path) -> None:
    enough, few = (_phases(tmp_path, [20_000 + 10 * each for each in range(LEAST_PHASES - less)]) for less in (0, 1))
    for base, other in ((enough, few), (few, enough), (few[:1], few[:1])):
        compared = _maxima(base, other)
        assert compared.ends is None and compared.p_value is None and not compared.significant
        assert TOO_FEW_PHASES in instructions_conclusion([compared])


def test_repetitions_of_one_phase_are_one_run(tmp_path: Path) -> None:
    runs = [_run(tmp_path, [5_000, 20_000], "cpu", 7) for _ in range(LEAST_PHASES)]
    assert _maxima(runs, runs).maxima == ((20_000,), (20_000,))


@pytest.mark.parametrize(("more", "shown"), [(0, False), (3_000, True)])
def test_mean_maxima_over_phases(tmp_path: Path, more: int, shown: bool) -> None:
    maxima = [40_000 + 200 * (each % 10) for each in range(LEAST_PHASES)]
    compared = _maxima(_phases(tmp_path, maxima), _phases(tmp_path, [maximum + more for maximum in maxima]))
    assert compared.difference == more and compared.significant is shown
    assert compared.ends is not None and compared.ends[0] <= more <= compared.ends[1]
    assert compared.maxima[0] == tuple(sorted(maxima))


def test_what_is_not_one_question_is_refused(tmp_path: Path) -> None:
    idle, loaded = _run(tmp_path, PATH), _run(tmp_path, PATH, "cpu")
    with pytest.raises(BadInput, match="different loads"):
        compare_instructions([idle], [loaded])
    with pytest.raises(BadInput, match="phases"):
        compare_instructions([idle], [_run(tmp_path, PATH, phase_ns=5)])
    other = PROFILE | {"emulator": EMULATOR | {"version": "10.0"}}
    plan = Plan(one_interval(PATH), "run-0", marks=("emulated",), head={"profile": other})
    with pytest.raises(MixedRuns, match="emulator"):
        compare_instructions([idle], [recording(tmp_path, plan)])


def test_the_interval_of_means_contains_the_difference_as_often_as_stated() -> None:
    """Of maxima with a heavy tail, unequal in number and variance."""
    random = np.random.default_rng(5)
    trials, held = 2_000, 0
    for _ in range(trials):
        first = 40_000 + random.gumbel(0, 2_000, 30)
        second = 40_000 + random.gumbel(0, 4_000, 40)
        _, lower, upper, chance = difference_of_means(first.tolist(), second.tolist(), 0.95)
        contains = lower <= 2_000 * np.euler_gamma <= upper
        held += contains
        assert (chance < 0.05) == (not lower <= 0 <= upper)
    assert held >= 0.93 * trials


def test_means_without_variance() -> None:
    assert difference_of_means([5, 5], [5, 5], 0.95) == (0, 0, 0, 1)
    assert difference_of_means([5, 5], [7, 7], 0.95) == (2, 2, 2, 0)
