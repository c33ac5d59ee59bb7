# SPDX-License-Identifier: GPL-2.0-or-later
"""Changes on trial against a truth that was put in: the right ones, of the right size and order, no others."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from fastenough.analysis.change_effects import ChangeEffect, effect_of, helpful_changes, judge_effects
from fastenough.analysis.paired import Pair
from fastenough.campaign import Entry, Plan
from fastenough.campaign.runner import ChangedSystem
from fastenough.cli.ab import _print_result
from fastenough.cli.audit_measure import AuditMeasurement, conclusions, print_measured, remarks
from fastenough.jobs.ab import AbRuns, AbTest, RunFailed, require_measured
from fastenough.jobs.audit import AuditTrials, conclude_trials, measure
from fastenough.model import BadInput, FastenoughError, NotApplicable, Outcome
from fastenough.recording import Recording
from fastenough.report.document import Text
from fastenough.store import Store
from tests.support.audit_truth import count, tried_once
from tests.support.paired_truth import MACHINES
from tests.unit.analysis.test_ab_truth import ORDER, pairs_of

pytestmark = pytest.mark.check

TRIES = 30
MOST_WRONG = int(stats.binom.ppf(0.9999, TRIES, 0.05))
LEAST_COVERED = int(stats.binom.ppf(1e-4, TRIES, 0.95))
EFFECTS_US = {"great": -80.0, "nothing": 0.0, "some": -40.0, "nothing-too": 0.0, "nor-this": 0.0, "worse": 60.0}
ON = {"transparent-huge-pages": "never"}


@pytest.mark.parametrize("name", ["independent values", "runs differ by 2 µs", "stalls of 20, runs differ, drift"])
def test_injected_effects_are_found_and_no_others(name: str) -> None:
    counted = count(MACHINES[name], EFFECTS_US, TRIES, seed=7)
    assert counted.found["great"] == TRIES and counted.found["some"] >= 0.9 * TRIES
    assert counted.in_order >= 0.9 * TRIES
    assert counted.found["worse"] == 0
    assert counted.wrongly <= MOST_WRONG
    assert min(counted.covered.values()) >= LEAST_COVERED


def test_where_nothing_has_an_effect_none_is_shown() -> None:
    counted = count(MACHINES["independent values"], dict.fromkeys("abcdef", 0.0), TRIES, seed=8)
    assert counted.wrongly <= MOST_WRONG
    assert sum(counted.found.values()) <= MOST_WRONG


@pytest.mark.parametrize("shift_ns", [-3000, 0, 3000])
def test_recordings_say_what_was_put_into_them(tmp_path: Path, shift_ns: int) -> None:
    (tried,) = judge_effects([effect_of(pairs_of(tmp_path, 4, shift_ns), ON, "none")])
    assert tried.effect is not None and tried.tail is not None and tried.effect.quantile == 0.999
    assert tried.effect.lower_ns <= shift_ns <= tried.effect.upper_ns
    assert (tried.helps, tried.harms) == (shift_ns < 0, shift_ns > 0)
    assert (tried.tail.effect < 0, tried.tail.effect > 0) == (shift_ns < 0, shift_ns > 0) or shift_ns == 0
    assert helpful_changes([tried]) == (ON if shift_ns < 0 else {})


def test_too_few_sound_pairs_say_nothing(tmp_path: Path) -> None:
    (tried,) = judge_effects([effect_of(pairs_of(tmp_path, 3, -3000, lost=5), ON, "none")])
    assert tried.effect is None and not tried.helps and tried.reasons[0].startswith("pair 3: ")


def _tried(name: str, effect_us: float, load: str = "none") -> ChangeEffect:

    each = tried_once(MACHINES["independent values"], np.random.default_rng(1), name, effect_us)
    return judge_effects([ChangeEffect(each.change, load, each.pairs, each.effect, each.tail, ())])[0]


def test_what_harms_under_one_load_is_not_among_the_best() -> None:
    helps, harms, other = _tried("x", -80), _tried("x", 80, "full"), _tried("y", -50)
    assert (helps.helps, harms.harms) == (True, True)
    assert helpful_changes([helps, harms, other]) == {"y": "on"}
    assert list(helpful_changes([other, helps])) == ["x", "y"]


def _folder(folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    return folder / name


def _in_order(pairs: Sequence[Pair]) -> list[Recording]:
    """The runs as they were made."""
    return [
        run
        for pair in pairs
        for run in ((pair.with_change, pair.without) if pair.change_first else (pair.without, pair.with_change))
    ]


def test_each_is_tried_alone_and_then_the_best_at_once(tmp_path: Path) -> None:
    """By a maker of runs that has them ready: what is asked for, in which order, and what is refused."""
    shifts: Mapping[tuple[str, ...], int] = {("a",): -3000, ("b",): 0, ("c",): -6000, ("c", "a"): -9000}
    asked: list[tuple[tuple[str, ...], str]] = []
    ready = {
        names: _in_order(pairs_of(_folder(tmp_path, "-".join(names)), 3, shift)) for names, shift in shifts.items()
    }
    held = {f"{'-'.join(names)}/{place}": run for names, runs in ready.items() for place, run in enumerate(runs)}

    def make(trial: AbTest) -> AbRuns:
        names, load = tuple(trial.change), trial.plan.entries[0].loads[0]
        asked.append((names, load))
        if names == ("refused",):
            raise NotApplicable("this machine has none")
        return AbRuns(
            "campaign",
            tuple(f"{'-'.join(names)}/{place}" for place in range(len(ready[names]))),
            ORDER * 2,
            tuple(range(len(ready[names]))),
        )

    class Held(Store):
        def load(self, run_id: str) -> Recording:
            return held[run_id]

    plan = Plan("audit", (Entry("timer", ("none",), 1.0, {}),))
    found = measure(
        plan,
        dict.fromkeys(("a", "refused", "b", "c"), "on"),
        ["none", "full"],
        3,
        store=Held(tmp_path / "store"),
        make=make,
    )
    assert asked == [
        (("a",), "none"),
        (("a",), "full"),
        (("refused",), "none"),
        (("b",), "none"),
        (("b",), "full"),
        (("c",), "none"),
        (("c",), "full"),
        (("a",), "none"),
        (("a",), "full"),
        (("c",), "none"),
        (("c",), "full"),
        (("c", "a"), "none"),
        (("c", "a"), "full"),
    ]
    assert found.refused == (("refused=on", "this machine has none"),)
    assert found.best == {"c": "on", "a": "on"} and [each.helps for each in found.combined] == [True, True]
    assert [each.name for each in found.single if each.helps] == ["a=on", "a=on", "c=on", "c=on"]
    assert [each.name for each in found.repeated if each.helps] == ["a=on", "a=on", "c=on", "c=on"]


def test_what_is_not_shown_again_is_not_recommended(tmp_path: Path) -> None:
    """A change that helped by chance: its second trial shows nothing."""
    made = {False: pairs_of(_folder(tmp_path, "first"), 3, -3000), True: pairs_of(_folder(tmp_path, "again"), 3, 0)}
    held = {f"{again}/{place}": run for again, pairs in made.items() for place, run in enumerate(_in_order(pairs))}

    class Held(Store):
        def load(self, run_id: str) -> Recording:
            return held[run_id]

    def make(trial: AbTest) -> AbRuns:
        return AbRuns("campaign", tuple(f"{trial.again}/{place}" for place in range(12)), ORDER * 2, tuple(range(12)))

    found = measure(
        Plan("audit", (Entry("timer", ("none",), 1.0, {}),)),
        {"a": "on"},
        ["none"],
        3,
        store=Held(tmp_path / "store"),
        make=make,
    )
    assert found.single[0].helps and not found.repeated[0].helps and found.best == {}
    for trials in (found, AuditTrials(found.single, signal=2)):
        assert [text.startswith("no change is recommended") for text in conclusions(trials)] == [True]


def _measured_with(folder: Path, loads: list[str], fault: FastenoughError, *, again: bool) -> AuditTrials:
    """Trials of two changes that help; one under the load "full" of the change "a" meets the fault."""
    runs = {str(place): run for place, run in enumerate(_in_order(pairs_of(_folder(folder, "runs"), 3, -3000)))}

    class Held(Store):
        def load(self, run_id: str) -> Recording:
            return runs[run_id]

    def make(trial: AbTest) -> AbRuns:
        if (*trial.change, trial.plan.entries[0].loads[0], trial.again) == ("a", "full", again):
            raise fault
        return AbRuns("campaign", tuple(runs), ORDER * 2, tuple(range(12)))

    return measure(
        Plan("audit", (Entry("timer", ("none",), 1.0, {}),)),
        {"a": "on", "b": "on"},
        loads,
        3,
        store=Held(folder / "store"),
        make=make,
    )


@pytest.mark.parametrize("again", [False, True])
def test_a_failed_run_ends_its_own_test_only(tmp_path: Path, again: bool) -> None:
    """Of two changes that help, one has a failed run under one load, so that a harm under that load is unknown."""
    fault = RunFailed("run 7 failed: load full was starved")
    measured = _measured_with(tmp_path, ["full", "none"], fault, again=again)
    complete = [("a=on", "none"), ("b=on", "full"), ("b=on", "none")]
    assert [(effect.name, effect.load) for effect in measured.repeated] == (complete if again else complete[1:])
    assert [(effect.name, effect.load) for effect in measured.single][-3:] == complete
    assert measured.incomplete == {"a=on"}
    assert measured.refused == (("a=on under load full", "run 7 failed: load full was starved"),)
    assert measured.best == {"b": "on"}
    assert [text for text in conclusions(measured) if "a=on" in text] == []
    noted = remarks(measured)
    assert [(name, noted[name].helps, "no result" in noted[name].text) for name in noted] == [
        ("a", False, True),
        ("b", True, False),
    ]


@pytest.mark.parametrize(("kind", "again"), [(NotApplicable, False), (BadInput, True)])
def test_a_change_that_is_refused_under_one_load_is_not_recommended(
    tmp_path: Path, kind: type[NotApplicable | BadInput], again: bool
) -> None:
    """It helps under the load before, but a harm under the load that cannot be made is unknown."""
    measured = _measured_with(tmp_path, ["none", "full"], kind("load full is not installed"), again=again)
    assert ("a=on", "none") in [(effect.name, effect.load) for effect in measured.single if effect.helps]
    assert measured.refused == (("a=on", "load full is not installed"),)
    assert measured.best == {"b": "on"} and not measured.combined
    assert not remarks(measured)["a"].helps


def test_a_changed_system_ends_the_audit(tmp_path: Path) -> None:
    """Complete trials are of the former system, so that no other trial can be judged together with them."""
    with pytest.raises(ChangedSystem, match="another kernel"):
        _measured_with(tmp_path, ["none", "full"], ChangedSystem("another kernel"), again=False)


@pytest.mark.parametrize("failing", ["a", "b", "refused"])
def test_the_conclusion_names_a_failed_trial_of_a_change_with_an_effect_only(tmp_path: Path, failing: str) -> None:
    """Only ``a`` has an effect, which its second trial, if it is made, does not confirm."""
    pairs = {shift: _in_order(pairs_of(_folder(tmp_path, str(shift)), 3, shift)) for shift in (0, -3000)}

    class Held(Store):
        def load(self, run_id: str) -> Recording:
            shift, place = run_id.split("/")
            return pairs[int(shift)][int(place)]

    def make(trial: AbTest) -> AbRuns:
        (name,), load = trial.change, trial.plan.entries[0].loads[0]
        if name == "refused":
            raise NotApplicable("this machine has none")
        if (name, load) == (failing, "full"):
            raise RunFailed("run 7 failed: load full was starved")
        shift = -3000 if name == "a" and not trial.again else 0
        return AbRuns("campaign", tuple(f"{shift}/{place}" for place in range(12)), ORDER * 2, tuple(range(12)))

    measured = measure(
        Plan("audit", (Entry("timer", ("none",), 1.0, {}),)),
        dict.fromkeys(("a", "b", "refused"), "on"),
        ["full", "none"],
        3,
        store=Held(tmp_path / "store"),
        make=make,
    )
    assert bool(measured.repeated) == (failing != "a") and measured.best == {}
    (text,) = conclusions(measured)
    assert text.startswith("no change is recommended")
    assert ("without result" in text) == (failing == "a")


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.ABORTED])
def test_a_run_that_did_not_complete_is_a_failed_one(outcome: Outcome) -> None:
    recording: Any = SimpleNamespace(
        run_id="7", outcome=outcome, reasons=["starved"], cut_off=None, head=SimpleNamespace(settings=())
    )
    with pytest.raises(RunFailed, match="run 7 failed: starved"):
        require_measured(recording, {})


@pytest.mark.parametrize("marks", [(), ("emulated",)])
def test_effects_on_an_emulated_board_have_its_caveat(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], marks: tuple[str, ...]
) -> None:
    runs = {
        str(place): replace(run, head=replace(run.head, marks=run.head.marks | set(marks)))
        for place, run in enumerate(_in_order(pairs_of(tmp_path, 3, -3000)))
    }

    class Held(Store):
        def load(self, run_id: str) -> Recording:
            return runs[run_id]

    store = Held(tmp_path / "store")
    measured = measure(
        Plan("audit", (Entry("timer", ("none",), 1.0, {}),)),
        {"a": "on"},
        ["none"],
        3,
        store=store,
        make=lambda trial: AbRuns("campaign", tuple(runs), ORDER * 2, tuple(range(12))),
    )
    caveats = ["emulated: timing is not meaningful"] if marks else []
    assert list(AuditMeasurement.of(measured).cautions) == caveats
    print_measured(measured)
    assert [line for line in capsys.readouterr().out.splitlines() if "emulated" in line] == [
        f"caveat: {text}" for text in caveats
    ]
    section = conclude_trials(measured, ["it helps"], store)
    assert [list(part.lines) for part in section.parts if isinstance(part, Text)] == ([caveats] if caveats else [])
    plan = Plan("ab", (Entry("timer", ("none",), 1.0, {}),))
    _print_result(AbTest(plan, ON, 3), AbRuns("campaign", tuple(runs), ORDER * 2, tuple(range(12))), store, True)
    assert json.loads(capsys.readouterr().out)["cautions"] == caveats
