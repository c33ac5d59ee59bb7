# SPDX-License-Identifier: GPL-2.0-or-later
"""A statement about a type of board: which boards are its data, and what one of them can do to it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastenough.jobs.fleet import FleetQuestion, FleetResult, judge_fleet
from fastenough.jobs.fleet_conditions import ASSUMED
from fastenough.model import BadInput, Requirement, Verdict
from fastenough.pack.assumptions import CONTRADICTED, HOLDS
from fastenough.store import Store
from tests.support.fleet_stores import LIMIT_NS, add_boards, add_run, machine
from tests.support.recordings import PROFILE

NEVER = Requirement(LIMIT_NS)
HALF = FleetQuestion(NEVER, 0.5)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def judged(store: Store, *examples: str, question: FleetQuestion = HALF) -> FleetResult:
    store = Store(store.path)
    runs = examples or (store.find("last"),)
    return judge_fleet(store, [store.load(run) for run in runs], question)


def result_of(found: FleetResult, condition: str) -> tuple[str, tuple[str, ...]]:
    [one] = [each for each in found.conditions if condition in each.assumption]
    return one.result, one.findings


def changed(fact: str, **parts: Any) -> dict[str, Any]:
    return {fact: {**PROFILE[fact], **parts}}


@pytest.mark.check
@pytest.mark.parametrize(("boards", "verdict"), [(5, Verdict.INCONCLUSIVE), (6, Verdict.PASS)])
def test_six_boards_are_the_fewest_for_a_verdict(store: Store, boards: int, verdict: Verdict) -> None:
    add_boards(store, boards)
    found = judged(store)
    assert (found.verdict, len(found.evidence.boards), found.evidence.within) == (verdict, boards, boards)
    assert found.evidence.boards_needed == 6
    assert {each.result for each in found.conditions} >= {HOLDS, ASSUMED}


@pytest.mark.check
@pytest.mark.parametrize(("boards", "unsteady", "drifting"), [(6, 0, False), (6, 1, False), (6, 2, True)])
def test_boards_that_fail_the_test_of_stationarity_by_chance_contradict_nothing(
    store: Store, boards: int, unsteady: int, drifting: bool
) -> None:
    """One CPU under one load is tested at 1 %: one of six boards fails in 6 % of fleets, two in 0.1 %."""
    add_boards(store, boards)
    evidence = judged(store).evidence
    changed_boards = tuple(replace(board, steady=number >= unsteady) for number, board in enumerate(evidence.boards))
    assert replace(evidence, boards=changed_boards).drifting == drifting


@pytest.mark.check
def test_a_greater_share_needs_more_boards_and_their_number_is_said(store: Store) -> None:
    add_boards(store, 7)
    found = judged(store, question=FleetQuestion(NEVER, 0.9))
    assert (found.verdict, found.evidence.boards_needed) == (Verdict.INCONCLUSIVE, 35)
    assert any("28 more boards" in step for step in found.next_steps)
    assert result_of(found, "number of activations")[0] == CONTRADICTED


@pytest.mark.check
def test_one_bad_board_fails_its_type_and_is_named(store: Store) -> None:
    add_boards(store, 7, {3: [5_000]})
    found = judged(store)
    assert found.verdict is Verdict.FAIL and "b3" in found.headline
    assert [board.board for board in found.evidence.exceeding] == ["b3"]
    allowed = Requirement(LIMIT_NS, 1e-2, longest_burst=1)
    rare = judged(store, question=FleetQuestion(allowed, 0.5))
    assert rare.verdict is Verdict.PASS and "longer than declared (1 activation)" in rare.headline


@pytest.mark.check
def test_a_bad_board_among_few_is_named_without_a_verdict_on_the_type(store: Store) -> None:
    add_boards(store, 3, {1: [5_000]})
    found = judged(store)
    assert found.verdict is Verdict.INCONCLUSIVE and found.reasons[0].startswith("board b1:")
    assert [step for step in found.next_steps if "b1" in step] == list(found.next_steps), "more boards lead to no PASS"


@pytest.mark.check
def test_two_boards_of_one_machine_count_once(store: Store) -> None:
    add_boards(store, 5)
    add_run(store, "again", machine(4), seed=99)
    found = judged(store)
    assert (found.verdict, len(found.evidence.boards)) == (Verdict.INCONCLUSIVE, 5)
    assert found.evidence.boards[4].names == ("b4", "again")
    assert any("again" in finding for finding in result_of(found, "another machine")[1])


@pytest.mark.check
def test_two_machines_of_one_name_are_two_boards(store: Store) -> None:
    add_boards(store, 2)
    add_run(store, "b1", machine(7), seed=99)
    assert [board.board for board in judged(store).evidence.boards] == ["b0", "b1", "b1 (machine 2)"]


@pytest.mark.check
def test_boards_without_identifiers_go_by_name_which_is_named_as_assumed(store: Store) -> None:
    add_boards(store, 2)
    for seed, name in enumerate(("b1", "c", "c"), start=50):
        add_run(store, name, None, seed=seed)
    found = judged(store, store.find("last"))
    assert [(board.board, len(board.runs)) for board in found.evidence.boards] == [("b0", 1), ("b1", 2), ("c", 2)]
    assert result_of(found, "another machine") == (ASSUMED, ("board c: no identifiers",))


@pytest.mark.check
def test_runs_that_may_be_of_one_of_several_machines_are_no_board_of_their_own(store: Store) -> None:
    """Five machines, two of them under one name, and a run under that name without identifiers."""
    add_boards(store, 5)
    add_run(store, "b0", machine(7), seed=20)
    assert judged(store).verdict is Verdict.PASS
    five = Store(store.path.parent / "five")
    add_boards(five, 4)
    add_run(five, "b0", machine(7), seed=20)
    add_run(five, "b0", None, seed=21)
    found = judged(five, five.find("last"))
    assert (found.verdict, len(found.evidence.boards), found.evidence.within) == (Verdict.INCONCLUSIVE, 6, 5)
    assert [board.board for board in found.evidence.boards if not board.within] == ["b0 (machine 3)"]
    assert any("several machines" in reason for reason in found.reasons)


@pytest.mark.check
@pytest.mark.parametrize(
    "different",
    [
        {"profile": changed("kernel", release="5.10.0")},
        {"profile": changed("cpu", microcode="0x30")},
        {"settings": ({"name": "policy", "requested": "rr", "in_effect": "rr"},)},
        {"head": {"tool": {"name": "test", "version": "1"}}},
        {"period_ns": 500_000},
    ],
    ids=["kernel", "microcode", "settings", "tool", "period"],
)
def test_a_board_that_differs_is_not_pooled_and_named(store: Store, different: dict[str, Any]) -> None:
    first, *_ = add_boards(store, 2)
    other = add_run(store, "other", machine(9), seed=9, late=[5_000], **different)
    found = judged(store, first)
    assert [board.board for board in found.evidence.boards] == ["b0", "b1"]
    assert [(one.board, one.runs) for one in found.unpooled] == [("other", (other,))]
    assert any("other" in text for text in found.cautions)
    with pytest.raises(BadInput, match="different"):
        judged(store, first, other)


@pytest.mark.check
def test_another_load_is_another_profile_of_use(store: Store) -> None:
    first, *_ = add_boards(store, 2)
    other = add_run(store, "b0", machine(0), seed=9, late=[5_000], load="io")
    alone = judged(store, first)
    assert (alone.loads, alone.evidence.within) == (("none",), 2) and any("io" in text for text in alone.cautions)
    both = judged(store, first, other)
    assert [board.missing_loads for board in both.evidence.boards] == [(), ("io",)]
    assert result_of(both, "same loads")[0] == CONTRADICTED and not both.evidence.within


@pytest.mark.check
def test_root_file_systems_and_addresses_of_a_command_line_belong_to_one_board(store: Store) -> None:
    for number, identity in enumerate(("0f2c9e4a-1111-2222-3333-000000000001", "0f2c9e4a-1111-2222-3333-000000000002")):
        facts = {"cmdline": f"root=UUID={identity} smsc95xx.macaddr=B8:27:EB:00:00:0{number} isolcpus=1"}
        add_run(store, f"b{number}", machine(number), seed=number, profile=facts)
    add_run(store, "b2", machine(2), seed=2, profile={"cmdline": "root=UUID= smsc95xx.macaddr= isolcpus=2"})
    assert len(judged(store, next(run.id for run in store.runs())).evidence.boards) == 2


def test_another_type_is_of_no_concern(store: Store) -> None:
    first, *_ = add_boards(store, 2)
    add_run(store, "other", machine(9), seed=9, late=[5_000], profile=changed("cpu", model="Other"))
    found = judged(store, first)
    assert (len(found.evidence.boards), found.unpooled) == (2, ())


@pytest.mark.check
def test_the_best_boards_pass_only_if_the_headline_names_the_others(store: Store) -> None:
    runs = add_boards(store, 7, {3: [5_000]})
    chosen = [run for number, run in enumerate(runs) if number != 3]
    assert judged(store, *chosen).verdict is Verdict.FAIL, "all boards are data, whatever runs are named"
    only = judged(store, *chosen, question=FleetQuestion(NEVER, 0.5, only_these=True))
    assert (only.verdict, only.excluded_boards) == (Verdict.PASS, ("b3",))
    assert "b3" in only.headline and "1 of these runs above" in only.headline
    assert [(one.run_id, one.exceeded, one.exceeds) for one in only.excluded] == [(runs[3], 1, True)]


@pytest.mark.check
@pytest.mark.parametrize("lost", ["deleted", "damaged"])
def test_a_bad_board_whose_run_is_lost_refuses_a_pass(store: Store, lost: str) -> None:
    *others, worst = add_boards(store, 7, {6: [5_000]})
    if lost == "deleted":
        shutil.rmtree(store.path / "runs" / worst)
    else:
        recording = store.path / "runs" / worst / "recording.jsonl.zst"
        recording.chmod(0o600)
        recording.write_bytes(recording.read_bytes()[:-7])
    found = judged(store, *others)
    assert (found.verdict, len(found.evidence.boards)) == (Verdict.INCONCLUSIVE, 6)
    assert [(one.run_id, one.is_lost) for one in found.excluded] == [(worst, True)]
    assert worst in found.reasons[0]


@pytest.mark.check
def test_a_run_that_cannot_be_trusted_is_not_judged_but_may_refuse(store: Store) -> None:
    add_boards(store, 6)
    add_run(store, "b0", machine(0), seed=20, outcome="failed", reasons=("the link was lost",))
    found = judged(store, next(run.id for run in store.runs()))
    assert found.verdict is Verdict.PASS
    assert result_of(found, "failure is detected")[0] == CONTRADICTED
    add_run(store, "b1", machine(1), seed=21, late=[5_000], outcome="failed", reasons=("the link was lost",))
    found = judged(store, next(run.id for run in store.runs()))
    assert found.verdict is Verdict.INCONCLUSIVE and found.reasons[0].startswith("board b1:")
    assert [step for step in found.next_steps if "b1" in step] == list(found.next_steps), "more boards lead to no PASS"


@pytest.mark.check
def test_a_copy_of_a_run_is_no_other_board(store: Store) -> None:
    add_boards(store, 5)
    add_run(store, "copy", machine(9), seed=0)
    found = judged(store)
    assert found.evidence.within == 5 and found.verdict is Verdict.INCONCLUSIVE
    assert result_of(found, "copy of another")[0] == CONTRADICTED


@pytest.mark.check
def test_boards_with_clustered_disturbances_are_not_different_for_that(store: Store) -> None:
    """One board has 40 late activations in one burst, and the others one each: one disturbance on each board."""
    late = {0: range(9_000, 9_040), **{number: [3_000 * number + 50] for number in range(1, 6)}}
    add_boards(store, 6, late)
    found = judged(store, question=FleetQuestion(Requirement(LIMIT_NS, 1e-2, longest_burst=50), 0.5))
    assert [board.disturbances for board in found.evidence.boards] == [1] * 6
    assert not any(rate.differ for rate in found.evidence.rates)


@pytest.mark.check
def test_boards_of_different_rates_have_no_common_one(store: Store) -> None:
    random = np.random.default_rng(5)
    late = {0: sorted(random.choice(np.arange(0, 20_000, 20), 60, replace=False).tolist())}
    add_boards(store, 6, late)
    found = judged(store, question=FleetQuestion(Requirement(LIMIT_NS, 1e-2), 0.5))
    [rate] = found.evidence.rates
    assert rate.differ and rate.homogeneity < 0.001
    assert rate.new_board_every_ns is not None and any("homogeneity" in text for text in found.cautions)


@pytest.mark.check
def test_a_quiet_board_measured_long_says_nothing_about_the_others(store: Store) -> None:
    """Zero disturbances in 20 times the time: the boards differ, and the others are not within."""
    add_run(store, "long", machine(9), seed=9, intervals=400)
    add_boards(store, 5, {number: [4_000 * place + 50 for place in range(5)] for number in range(5)})
    found = judged(store, question=FleetQuestion(Requirement(LIMIT_NS, 1e-4, longest_burst=1), 0.5))
    assert found.evidence.within <= 1 and found.verdict is not Verdict.PASS
    assert found.evidence.rates[0].differ


def test_runs_without_a_profile_are_refused(store: Store) -> None:
    run = add_run(store, "b0", machine(0), seed=1, head={"profile": None})
    with pytest.raises(BadInput, match="cannot be pooled"):
        judged(store, run)
