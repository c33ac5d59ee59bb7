# SPDX-License-Identifier: GPL-2.0-or-later
"""Who looks again until it passes is judged more strictly each time."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fastenough.analysis import judge
from fastenough.analysis.excluded_runs import Selection
from fastenough.analysis.gate import Limit, LimitResult
from fastenough.jobs.assess import Question, judge_asked, topic_of
from fastenough.jobs.check import check
from fastenough.jobs.limits import Limits
from fastenough.model import Configuration, Requirement, Verdict
from fastenough.recording import Recording
from fastenough.recording.building import HeadAdditions, completed_head
from fastenough.store import Store
from fastenough.store.looks import LOOKS_FILE, Look, Topic, looks_sharing_runs
from tests.support.recordings import Plan, recording, write

LIMIT = Requirement(200_000)
TOPIC, OTHER = Topic("question"), Topic("another")


def test_looks_are_counted_until_one_passes(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    for number, verdict in enumerate((Verdict.INCONCLUSIVE, Verdict.BROKEN, Verdict.FAIL, Verdict.PASS)):
        assert len(store.looks_before(TOPIC, [f"run-{number}"])) == (0, 1, 1, 2)[number]
        store.note_look(TOPIC, [f"run-{number}"], verdict)
    assert not store.looks_before(TOPIC, ["later"]), "a pass ends the question"
    assert len(store.looks_before(TOPIC, ["run-3"])) == 2, "the same runs judged again are the same look"
    assert not store.looks_before(OTHER, ["run-9"])
    assert len(Store(store.path).looks_before(TOPIC, ["run-2"])) == 1, "it is on disk"


def test_looks_at_some_of_the_runs_are_found_through_what_was_judged_with_them() -> None:
    looks = [Look(TOPIC, runs, "FAIL") for runs in (("a",), ("x",), ("a", "b"), ("b", "c"))]
    assert looks_sharing_runs(looks, ["c", "d"]) == [looks[3], looks[2], looks[0]]
    assert looks_sharing_runs(looks, ["d"]) == []


def test_what_is_no_look_is_passed_over(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.note_look(TOPIC, ["a"], Verdict.FAIL)
    with (store.path / LOOKS_FILE).open("ab") as stream:
        stream.write(b'rubbish\n[1]\n{"question": 5}\n')
    assert len(store.looks_before(TOPIC, ["b"])) == 1
    (store.path / LOOKS_FILE).unlink()
    (store.path / LOOKS_FILE).symlink_to("/etc/passwd")
    assert not store.looks_before(TOPIC, ["b"])
    store.note_look(TOPIC, ["b"], Verdict.FAIL)


def _run(folder: Path, run_id: str, seconds: int, **more: object) -> Recording:
    values = [[np.full(1000, 5000)] * seconds]
    return recording(folder, Plan(values, run_id=run_id, views=("wakeup_corrected",), **more))


def test_a_further_look_needs_more_and_says_so(tmp_path: Path) -> None:
    store, question = Store(tmp_path / "store"), Question(LIMIT, 0.95)
    short, long = _run(tmp_path, "short", 12), _run(tmp_path, "long", 17)
    first = judge_asked([short], question, store)
    second = judge_asked([long], question, store)
    assert judge([long], LIMIT).verdict is Verdict.PASS, "17 s would have been enough at the first look"
    assert (first.verdict, second.verdict) == (Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE)
    assert "97.5 %" in " ".join(second.cautions) and "97.5 %" in " ".join(second.reasons)
    other = Question(replace(LIMIT, limit_ns=300_000), 0.95)
    assert judge_asked([long], other, store).verdict is Verdict.INCONCLUSIVE, "another limit is a further look"


REWORDED = (
    lambda number: replace(LIMIT, limit_ns=LIMIT.limit_ns + number),
    lambda number: replace(LIMIT, return_time_ns=LIMIT.return_time_ns - number),
    lambda number: replace(LIMIT, confidence=LIMIT.confidence + number * 1e-6),
    lambda number: replace(LIMIT, longest_burst=1 + number),
)
"""Ways to ask nearly the same, by number."""


@pytest.mark.parametrize("reworded", REWORDED)
def test_a_question_in_other_words_is_a_further_look(tmp_path: Path, reworded: Callable[[int], Requirement]) -> None:
    """20 rewordings, of new runs or of the same ones, are 20 looks."""
    new, same = Store(tmp_path / "new"), Store(tmp_path / "same")
    runs = [_run(tmp_path, f"run-{number}", 3) for number in range(2)]
    for number in range(20):
        for store, run in ((new, runs[0] if number == 0 else _named(runs[0], f"other-{number}")), (same, runs[0])):
            topic = topic_of([run], Question(reworded(number), 0.95))
            assert topic and len(store.looks_before(topic, [run.run_id])) == number
            store.note_look(topic, [run.run_id], Verdict.INCONCLUSIVE)
    said = judge_asked([runs[1]], Question(LIMIT, 0.95), new)
    assert "judged here 20 times before" in " ".join(said.cautions)


def _named(run: Recording, run_id: str) -> Recording:
    return replace(run, head=replace(run.head, run_id=run_id))


def test_a_pass_by_an_easier_requirement_ends_no_other_question(tmp_path: Path) -> None:
    store, [run] = Store(tmp_path / "store"), [_run(tmp_path, "run", 3)]
    hard, easy = (topic_of([run], Question(replace(LIMIT, limit_ns=limit_ns), 0.95)) for limit_ns in (10_000, 10**9))
    assert hard and easy
    for number, (topic, verdict) in enumerate(((hard, Verdict.FAIL), (easy, Verdict.PASS), (hard, Verdict.FAIL))):
        store.note_look(topic, [f"run-{number}"], verdict)
    assert len(store.looks_before(hard, ["new"])) == 2
    store.note_look(hard, ["run-3"], Verdict.PASS)
    assert not store.looks_before(hard, ["new"])


def test_requirements_judged_at_once_are_no_looks_at_each_other(tmp_path: Path) -> None:
    store, [run] = Store(tmp_path / "store"), [_run(tmp_path, "run", 3)]
    both = [replace(LIMIT, limit_ns=limit_ns) for limit_ns in (10_000, 20_000)]
    at_once = [topic_of([run], Question(each, 0.95), "gate", both) for each in both]
    for _ in range(2):
        for topic in at_once:
            assert topic and not store.looks_before(topic, ["run"])
            store.note_look(topic, ["run"], Verdict.INCONCLUSIVE)
    later = topic_of([run], Question(LIMIT, 0.95), "gate")
    assert later and len(store.looks_before(later, ["run"])) == 2


def test_looks_of_earlier_versions_are_read_and_count_for_their_question(tmp_path: Path) -> None:
    store, [run] = Store(tmp_path / "store"), [_run(tmp_path, "run", 3)]
    topic = topic_of([run], Question(LIMIT, 0.95))
    other = topic_of([run], Question(replace(LIMIT, limit_ns=1), 0.95))
    assert topic and other
    store.note_look(other, ["a"], Verdict.FAIL)
    with (store.path / LOOKS_FILE).open("ab") as stream:
        stream.write(json.dumps({"question": topic.question, "runs": ["old"], "verdict": "FAIL"}).encode() + b"\n")
    assert (len(store.looks_before(topic, ["new"])), len(store.looks_before(other, ["new"]))) == (2, 1)
    store.note_look(topic, ["new"], Verdict.FAIL)
    assert len(store.looks_before(topic, ["newer"])) == 3


def test_what_is_advised_is_enough_for_the_look_that_follows(tmp_path: Path) -> None:
    store, question = Store(tmp_path / "store"), Question(LIMIT, 0.95)
    for look, seconds in enumerate((12, 18, 23)):
        said = judge_asked([_run(tmp_path, f"run-{look}", seconds)], question, store)
        [finding] = said.judgments[0].findings
        assert said.verdict is Verdict.INCONCLUSIVE and finding.more_ns
        enough = math.ceil(seconds + finding.more_ns / 1e9)
        following = [_run(tmp_path, f"after-{look}", more) for more in (enough, enough - 2)]
        assert [judge([run], LIMIT, look=look + 1).verdict for run in following] == [Verdict.PASS, Verdict.INCONCLUSIVE]


def test_a_store_of_months_may_still_pass(tmp_path: Path) -> None:
    """What a further look needs grows with the logarithm of how many there were, and the report says how much it is."""
    store, question = Store(tmp_path / "store"), Question(LIMIT, 0.95)
    for look in range(12):
        judge_asked([_run(tmp_path, f"run-{look}", 11)], question, store)
    assert judge_asked([_run(tmp_path, "too-short", 39)], question, store).verdict is Verdict.INCONCLUSIVE
    said = judge_asked([_run(tmp_path, "long", 42)], question, store)
    assert said.verdict is Verdict.PASS
    assert "judged here 13 times before" in " ".join(said.cautions)
    assert "99.973 % confidence, and 2.7 times the measured time" in " ".join(said.cautions)


def test_another_kernel_or_command_line_is_asked_by_itself(tmp_path: Path) -> None:
    run, asked = _run(tmp_path, "run", 3), []
    for kernel, words in (("6.1", "quiet"), ("6.1", "quiet"), ("6.2", "quiet"), ("6.1", "")):
        booted = Configuration("as-booted", kernel, None, words)
        asked.append(topic_of([replace(run, head=replace(run.head, configuration=booted))], Question(LIMIT, 0.95)))
    assert asked[0] == asked[1] and len(set(asked)) == 3
    assert len({topic.families for topic in asked if topic}) == 3


def test_a_pass_of_the_idle_machine_ends_no_question_of_a_load(tmp_path: Path) -> None:
    store, asked = Store(tmp_path / "store"), Question(LIMIT, 0.95)
    loaded = [_run(tmp_path, name, seconds, load="cpu") for name, seconds in (("short", 12), ("long", 17))]
    verdicts = [
        judge_asked([run], asked, store).verdict
        for run in (loaded[0], _run(tmp_path, "idle", 30, load="none"), loaded[1])
    ]
    assert verdicts == [Verdict.INCONCLUSIVE, Verdict.PASS, Verdict.INCONCLUSIVE]


def test_runs_that_state_requirements_of_their_own_are_asked_together(tmp_path: Path) -> None:
    both = [
        _run(
            tmp_path,
            f"run-{limit_ns}",
            3,
            head={"requirement": {"limit_ns": limit_ns, "miss_rate": 0, "confidence": 0.95}},
        )
        for limit_ns in (1, 2)
    ]
    asked = topic_of(both, Question(None, 0.95))
    assert asked is not None and asked == topic_of(both[::-1], Question(None, 0.95))
    assert len({asked, *(topic_of([one], Question(None, 0.95)) for one in both)}) == 3
    for_another = Question(LIMIT, 0.95, probe="response")
    assert topic_of(both, for_another) == asked, "a limit for another probe changes nothing"
    assert topic_of([_run(tmp_path, "free", 3)], for_another) is None


def _stored(store: Store, scratch: Path, worst_ns: int, **more: object) -> Recording:
    """A run of 20 s in the store, one value of which is the worst."""
    values = [[np.append(np.full(999, 5000), worst_ns)] + [np.full(1000, 5000)] * 19]
    writer = store.begin()
    plan = Plan(values, run_id=writer.id, views=("wakeup_corrected",), **more)
    for line in write(scratch / "recording", plan).read_bytes().splitlines(keepends=True):
        writer.line(line)
    writer.end()
    return store.load(writer.id)


def test_a_pass_of_the_best_of_several_runs_is_refused_unless_that_is_stated(tmp_path: Path) -> None:
    """Two runs of the same question exceed the limit and are not given."""
    store = Store(tmp_path / "store")
    best, *others = (_stored(store, tmp_path, worst_ns) for worst_ns in (100_000, 250_000, 300_000))
    _stored(store, tmp_path, 900_000, load="another")
    assert judge([best], LIMIT).verdict is Verdict.PASS
    said = {
        selection: judge_asked([best], Question(LIMIT, 0.95, selection=selection), store) for selection in Selection
    }
    assert {selection: each.verdict for selection, each in said.items()} == {
        Selection.CHOSEN: Verdict.INCONCLUSIVE,
        Selection.CAMPAIGN: Verdict.INCONCLUSIVE,
        Selection.ONLY_THESE: Verdict.PASS,
    }
    assert all(run.run_id in said[Selection.CHOSEN].reasons[0] for run in others)
    assert "only these runs: 2 other runs of the same kind excluded, 2 of them above" in (
        said[Selection.ONLY_THESE].headline
    )
    together = judge_asked([best, *others], Question(LIMIT, 0.95, selection=Selection.CHOSEN), store)
    assert together.verdict is Verdict.FAIL


def test_runs_left_out_that_keep_the_limit_forbid_a_pass_of_chosen_runs_only(tmp_path: Path) -> None:
    """A campaign is judged by its own runs, which nobody chose; a run that was interrupted counts too."""
    store = Store(tmp_path / "store")
    best, _ = _stored(store, tmp_path, 100_000), _stored(store, tmp_path, 110_000, outcome="aborted")
    chosen, campaign = (
        judge_asked([best], Question(LIMIT, 0.95, selection=selection), store)
        for selection in (Selection.CHOSEN, Selection.CAMPAIGN)
    )
    assert (chosen.verdict, campaign.verdict) == (Verdict.INCONCLUSIVE, Verdict.PASS)
    assert "1 run of the same kind in the store" in " ".join(campaign.cautions)
    _stored(store, tmp_path, 210_000, outcome="aborted")
    again = judge_asked([best], Question(LIMIT, 0.95), store)
    assert again.verdict is Verdict.INCONCLUSIVE


def _gate(store: Store, *runs: Recording) -> LimitResult:
    [held] = check(runs, [], Limits((Limit("limits.toml", LIMIT),)), store).held
    return held


def test_a_gate_judges_the_runs_of_a_night_by_themselves(tmp_path: Path) -> None:
    store, short, long = Store(tmp_path / "store"), _run(tmp_path, "short", 12), _run(tmp_path, "long", 17)
    assert _gate(store, short).verdict is Verdict.INCONCLUSIVE
    night = _gate(store, long)
    assert night.verdict is Verdict.PASS, "the night before it takes nothing from it"
    assert "1 earlier check of other runs did not pass: confidence 95 %" in night.reason
    assert "earlier check" not in _gate(store, _run(tmp_path, "next", 17)).reason, "a pass ends the question"
    assert judge_asked([long], Question(LIMIT, 0.95), store).verdict is Verdict.PASS, "nor from a report on it"


def test_a_gate_refuses_a_pass_of_chosen_runs_as_a_report_does(tmp_path: Path) -> None:
    """Two runs of the same question exceed the limit and are not given; runs of another load are of no concern."""
    store, limits = Store(tmp_path / "store"), Limits((Limit("limits.toml", LIMIT),))
    best, *others = (_stored(store, tmp_path, worst_ns) for worst_ns in (100_000, 250_000, 300_000))
    _stored(store, tmp_path, 900_000, load="another")
    checked = {each: check([best], [], limits, store, selection=each) for each in Selection}
    assert {each: one.held[0].verdict for each, one in checked.items()} == {
        Selection.CHOSEN: Verdict.INCONCLUSIVE,
        Selection.CAMPAIGN: Verdict.PASS,
        Selection.ONLY_THESE: Verdict.PASS,
    }
    for selection in (Selection.CHOSEN, Selection.ONLY_THESE):
        assert [(one.run_id, one.n, one.exceeded, one.exceeds) for one in checked[selection].excluded] == [
            (run.run_id, 20_000, 1, True) for run in others[::-1]
        ]
        [held] = checked[selection].held
        assert all(run.run_id in held.reason for run in others)
    assert checked[Selection.CAMPAIGN].excluded == (), "the nights before are judged by themselves"
    together = check([best, *others], [], limits, store, selection=Selection.CHOSEN)
    assert (together.held[0].verdict, together.excluded) == (Verdict.FAIL, ())
    baseline = check([best], others, limits, store, selection=Selection.CHOSEN)
    assert (baseline.held[0].verdict, baseline.excluded) == (Verdict.PASS, ()), "the baseline is given, too"


def test_a_gate_without_a_run_that_keeps_the_limit_is_refused_as_well(tmp_path: Path) -> None:
    store, limits = Store(tmp_path / "store"), Limits((Limit("limits.toml", LIMIT),))
    best, other = (_stored(store, tmp_path, worst_ns) for worst_ns in (100_000, 110_000))
    for selection, verdict in ((Selection.CHOSEN, Verdict.INCONCLUSIVE), (Selection.ONLY_THESE, Verdict.PASS)):
        checked = check([best], [], limits, store, selection=selection)
        assert checked.held[0].verdict is verdict
        assert [(one.run_id, one.exceeds) for one in checked.excluded] == [(other.run_id, False)]


def test_a_gate_that_is_asked_of_more_runs_looks_again(tmp_path: Path) -> None:
    store, short, more = Store(tmp_path / "store"), _run(tmp_path, "short", 12), _run(tmp_path, "more", 3)
    assert judge([short, more], LIMIT).verdict is Verdict.PASS, "15 s would have been enough at the first look"
    _gate(store, short)
    again = _gate(store, short, more)
    assert again.verdict is Verdict.INCONCLUSIVE
    assert "judged 1 time before and did not pass, so a higher confidence is required" in again.reason


def test_the_bench_says_in_the_head_how_much_was_planned() -> None:
    line = {"series": [{"period_ns": 1_000_000}, {}], "parameters": {}, "settings": [], "marks": []}
    assert completed_head(line, "id", HeadAdditions(planned_ns=10**10))["planned_n"] == 10_000
    assert "planned_n" not in completed_head(
        line | {"parameters": {"loops": 5}}, "id", HeadAdditions(planned_ns=10**10)
    )
    assert "planned_n" not in completed_head(line | {"series": [{}]}, "id", HeadAdditions(planned_ns=10**10))
