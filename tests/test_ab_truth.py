# SPDX-License-Identifier: GPL-2.0-or-later
"""The effect of a change, against a truth that was put in; ``make bench`` does it at length (bench_ab)."""

from __future__ import annotations

from pathlib import Path

import bench_ab as bench
import numpy as np
import pytest
from paired_truth import MACHINES, quantiles_of, trials
from recordings import PROFILE, Plan, latencies, recording
from scipy import stats
from simulated import SEED, block_of, with_block

from fastenough.analysis.paired import LEAST_ROUNDS, ORDER, Effects, judged_name, paired, student
from fastenough.model import BadInput
from fastenough.recording import Recording

REPETITIONS = 100
LEAST = float(stats.binom.ppf(1e-4, REPETITIONS, 0.95)) / REPETITIONS
SET = {"name": "transparent-huge-pages", "requested": "never", "in_effect": "never"}
NEVER = {"profile": PROFILE | {"memory": PROFILE["memory"] | {"transparent_huge_pages": "never"}}}


def rounds_of(folder: Path, count: int, shift_ns: int, drift_ns: int = 0, **broken: object) -> list[list[Recording]]:
    """Runs of 20 s whose latencies are slower by the shift with the change, and get slower by the drift from run to
    run; the first run of the second round is as ``broken`` says."""
    found = []
    for number in range(count):
        runs = []
        for place, arm in enumerate(ORDER):
            position = number * len(ORDER) + place
            more = (shift_ns if arm == "B" else 0) + drift_ns * position
            values = [[row + more for row in rows] for rows in latencies(position, intervals=10)]
            change: dict[str, object] = {"head": NEVER} if arm == "B" else {}
            change |= broken if position == len(ORDER) else {}
            runs.append(recording(folder, Plan(values, run_id=f"run-{position}", **change)))  # type: ignore[arg-type]
        found.append(runs)
    return found


def effects_of(rounds: list[list[Recording]]) -> Effects:
    found = paired(rounds, ("transparent-huge-pages",))
    assert found is not None
    return found


def test_a_shift_that_was_put_in_is_found_in_microseconds(tmp_path: Path) -> None:
    found = effects_of(rounds_of(tmp_path, 4, 3000))
    assert (found.series, found.rounds, found.left_out) == ("wakeup_corrected", 4, ())
    assert [effect.quantile for effect in found.effects] == [0.5, 0.95, 0.99, 0.999]
    for effect in found.effects:
        assert effect.lower_ns <= 3000 <= effect.upper_ns
    assert all(effect.shown and effect.lower_ns > 0 for effect in found.effects[:3])
    assert found.effects[0].effect_ns == pytest.approx(3000, abs=100)
    assert found.differs == ("different huge pages and swap: transparent_huge_pages: 'madvise' against 'never'",)
    assert [len(maxima) for maxima in found.maxima_ns] == [8, 8]


def test_a_drift_is_no_effect(tmp_path: Path) -> None:
    """Each run is slower than the one before by more than the runs of one machine differ."""
    found = effects_of(rounds_of(tmp_path, 4, 0, drift_ns=500))
    assert not any(effect.shown for effect in found.effects)
    assert all(effect.lower_ns <= 0 <= effect.upper_ns for effect in found.effects)
    random = np.random.default_rng(3)
    machine = MACHINES["drift of 10 µs from first to last run"]
    by_turns = quantiles_of(machine, random, rounds=4, intervals=3, order=("A", "B", "A", "B"))[..., 0]
    naive = by_turns[:, [1, 3]].mean(axis=1) - by_turns[:, [0, 2]].mean(axis=1)
    assert student(naive, naive, 0.95)[0] > 0.2, "A B A B would take it for one"


def test_a_round_with_a_run_that_is_broken_says_nothing(tmp_path: Path) -> None:
    found = effects_of(rounds_of(tmp_path, 4, 3000, lost=5))
    assert found.rounds == 3 and len(found.left_out) == 1
    assert found.left_out[0].startswith("round 2: run run-4: ") and "lost" in found.left_out[0]
    assert paired(rounds_of(tmp_path, LEAST_ROUNDS, 0, lost=5)) is None, "too few are left"


def test_a_place_that_the_change_cannot_reach_breaks_nothing(tmp_path: Path) -> None:
    """As an interrupt that cannot be moved; what is not on trial must be in effect."""
    refused = ({"name": "irq-affinity 9", "requested": "0", "in_effect": "0-1", "reason": "refused"},)
    rounds = rounds_of(tmp_path, 3, 0, settings=refused)
    assert paired(rounds, ("irq-affinity",)) is not None
    assert paired(rounds) is None


def test_the_buckets_of_a_value_leave_room(tmp_path: Path) -> None:
    """All rounds alike: the spread is none, and the interval is as wide as the buckets."""
    values = [[np.linspace(1_000_000, 1_010_000, 1000).astype(np.int64)] * 3]
    rounds = [[recording(tmp_path, Plan(values, run_id=f"r-{number}-{place}")) for place in range(4)]
              for number in range(3)]
    median = effects_of(rounds).effects[0]
    assert median.lower_ns < 0 < median.upper_ns and not median.shown


def test_no_latency_or_several_are_not_one_effect(tmp_path: Path) -> None:
    none = recording(tmp_path, Plan(latencies(1, intervals=1), views=("wakeup",), series={"role": "diagnostic"}))
    two = recording(tmp_path, Plan(latencies(1, intervals=1), views=("wakeup", "jitter")))
    for one, many in ((none, "no"), (two, "2")):
        with pytest.raises(BadInput, match=f"holds {many} latencies to compare"):
            judged_name(one)
    assert judged_name(recording(tmp_path, Plan(latencies(1, intervals=1)))) == "wakeup_corrected"


@pytest.mark.parametrize("name", ["independent values", "stalls of 20 values, 1 % of all",
                                  "stalls of 20, runs differ, drift"])
def test_the_interval_of_an_effect_holds_the_truth(name: str) -> None:
    found = trials(MACHINES[name], np.random.default_rng(11), REPETITIONS, rounds=4, intervals=3, shift_us=1.0)
    assert min(found.covered) >= LEAST
    assert found.false_effect <= 1 - LEAST
    assert min(found.width_us) < 5.0, "and it says something"


def test_the_table_of_the_page_is_that_of_the_program() -> None:
    document = bench.PAGE.read_text()
    block = block_of(document)
    assert with_block(document, block) == document
    assert f"seed {SEED}" in block and all(f"| {name} | " in block for name in MACHINES)
