# SPDX-License-Identifier: GPL-2.0-or-later
"""All runs of a store that answer a question are its data, however often and in whatever words it is asked."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pytest

from fastenough.analysis import judge
from fastenough.analysis.excluded_runs import Selection
from fastenough.analysis.gate import Limit, LimitResult
from fastenough.jobs.assess import Question, judge_asked
from fastenough.jobs.check import check
from fastenough.jobs.limits import Limits
from fastenough.model import Requirement, Verdict
from fastenough.recording import Recording
from fastenough.recording.building import HeadAdditions, completed_head
from fastenough.store import Store, directory
from fastenough.store.directory import RUN_FILE
from tests.support.recordings import COUNTERS, PROFILE, Plan, RunFields, recording, write

LIMIT = Requirement(200_000)
GOLDEN = Path(__file__).resolve().parents[3] / "format" / "golden" / "timer-2.jsonl"


def _run(folder: Path, run_id: str, seconds: int, **more: Unpack[RunFields]) -> Recording:
    values = [[np.full(1000, 5000)] * seconds]
    return recording(folder, Plan(values, run_id=run_id, views=("wakeup_corrected",), **more))


def test_growing_data_pass_at_the_stated_confidence_at_any_look(tmp_path: Path) -> None:
    """15 s without an event are 3.0 return times, whether they were looked at before or not."""
    store, question = Store(tmp_path / "store"), Question(LIMIT, 0.95)
    runs = [_run(tmp_path, f"run-{number}", 3) for number in range(5)]
    said = [judge_asked(runs[: count + 1], question, store) for count in range(5)]
    assert [one.verdict for one in said] == [Verdict.INCONCLUSIVE] * 4 + [Verdict.PASS]
    assert {one.confidence for each in said for judgment in each.judgments for one in judgment.evidence} == {0.95}


REWORDED: tuple[Callable[[int], Requirement], ...] = (
    lambda number: replace(LIMIT, limit_ns=LIMIT.limit_ns + number),
    lambda number: replace(LIMIT, return_time_ns=LIMIT.return_time_ns - number),
    lambda number: replace(LIMIT, confidence=LIMIT.confidence + number * 1e-6),
    lambda number: replace(LIMIT, longest_burst=1 + number),
)
"""Ways to ask nearly the same, by number."""


@pytest.mark.check
@pytest.mark.parametrize("reworded", REWORDED)
def test_a_question_in_other_words_gains_nothing(tmp_path: Path, reworded: Callable[[int], Requirement]) -> None:
    """One value above each of the limits forbids a PASS of the runs that were measured until none was seen."""
    store = Store(tmp_path / "store")
    _stored(store, tmp_path, 250_000)
    best = _stored(store, tmp_path, 100_000)
    assert {judge_asked([best], Question(reworded(number), 0.95), store).verdict for number in range(20)} == {
        Verdict.INCONCLUSIVE
    }


def test_what_is_advised_is_enough(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    said = judge_asked([_run(tmp_path, "run", 12)], Question(LIMIT, 0.95), store)
    [finding] = said.judgments[0].findings
    assert said.verdict is Verdict.INCONCLUSIVE and finding.more_ns
    enough = math.ceil(12 + finding.more_ns / 1e9)
    following = [_run(tmp_path, f"after-{more}", more) for more in (enough, enough - 2)]
    assert [judge([run], LIMIT).verdict for run in following] == [Verdict.PASS, Verdict.INCONCLUSIVE]


def test_measuring_anew_until_it_passes_passes_by_all_runs_together_only(tmp_path: Path) -> None:
    """Four misses are allowed in each run.  The first has two, which decides nothing; those that follow have none, and
    pass by themselves, but not before all of them together do."""
    store, allowed = Store(tmp_path / "store"), Requirement(200_000, 2e-4, longest_burst=1)
    _stored(store, tmp_path, 250_000, times=2)
    alone, verdicts = [], []
    for _ in range(3):
        newest = _stored(store, tmp_path, 100_000)
        alone.append(judge([newest], allowed).verdict)
        verdicts.append(judge_asked([newest], Question(allowed, 0.95), store).verdict)
    assert alone == [Verdict.PASS] * 3
    assert verdicts == [Verdict.INCONCLUSIVE, Verdict.PASS, Verdict.PASS]


@pytest.mark.check
def test_new_runs_that_fail_alone_fail_by_all_runs_together_only(tmp_path: Path) -> None:
    """Four misses are allowed in each run; eleven decide if the others are as bad, and nothing if these had none."""
    allowed = Requirement(200_000, 2e-4, longest_burst=1)
    for worst_ns, expected in ((100_000, Verdict.INCONCLUSIVE), (250_000, Verdict.FAIL)):
        store = Store(tmp_path / f"store-{worst_ns}")
        for _ in range(2):
            _stored(store, tmp_path, worst_ns, times=11)
        newest = _stored(store, tmp_path, 250_000, times=11)
        assert judge([newest], allowed).verdict is Verdict.FAIL
        verdicts = [
            judge_asked([newest], Question(allowed, 0.95, selection=selection), store).verdict
            for selection in (Selection.CAMPAIGN, Selection.CHOSEN, Selection.ONLY_THESE)
        ]
        assert verdicts == [expected, expected, Verdict.FAIL]
    assert judge_asked([newest], Question(LIMIT, 0.95), store).verdict is Verdict.FAIL, "one miss is one too many"


def test_a_gate_judges_the_runs_of_a_night_by_themselves(tmp_path: Path) -> None:
    store, short, long = Store(tmp_path / "store"), _run(tmp_path, "short", 12), _run(tmp_path, "long", 17)
    assert [_gate(store, run).verdict for run in (short, long)] == [Verdict.INCONCLUSIVE, Verdict.PASS]
    assert _gate(store, short, _run(tmp_path, "more", 3)).verdict is Verdict.PASS, "or of several nights together"


def _stored(store: Store, scratch: Path, worst_ns: int, times: int = 1, **more: Unpack[RunFields]) -> Recording:
    """A run of 20 s in the store, of which single values, seconds apart, are the worst."""
    values = [np.full(1000, 5000) for _ in range(20)]
    for number in range(times):
        values[number * 20 // times][500] = worst_ns
    return _kept(store, scratch, [values], **more)


def _kept(store: Store, scratch: Path, values: list[Any], **more: Unpack[RunFields]) -> Recording:
    writer = store.begin()
    plan = Plan(values, run_id=writer.id, views=("wakeup_corrected",), **more)
    for line in write(scratch / "recording", plan).read_bytes().splitlines(keepends=True):
        writer.line(line)
    writer.end()
    return store.load(writer.id)


@pytest.mark.parametrize(("first", "newest", "expected"), [(2, 0, Verdict.INCONCLUSIVE), (0, 11, Verdict.FAIL)])
def test_broken_runs_of_the_kind_support_no_verdict(first: int, newest: int, expected: Verdict, tmp_path: Path) -> None:
    """Runs of a throttled board have no miss: they neither help a PASS nor dilute a FAIL.  Numbers of misses."""
    store, allowed = Store(tmp_path / "store"), Requirement(200_000, 2e-4, longest_burst=1)
    if first:
        _stored(store, tmp_path, 250_000, times=first)
    for _ in range(2):
        _stored(store, tmp_path, 100_000, counters=COUNTERS | {"throttled": 3})
    judged = _stored(store, tmp_path, 250_000 if newest else 100_000, times=newest or 1)
    assert judge_asked([judged], Question(allowed, 0.95), store).verdict is expected


SHORT, LONG = Requirement(100_000), Requirement(500_000)
RARE = Requirement(500_000, 2e-4, longest_burst=1)


def _head(requirement: Requirement) -> dict[str, Any]:
    return {"requirement": {name: value for name, value in asdict(requirement).items() if value is not None}}


def _result_of(requirement: Requirement, earlier_ns: int, store: Store, scratch: Path, **more: Any) -> Verdict:
    """The verdict on a requirement that the judged run meets, after an earlier run of its plan whose maximum is
    ``earlier_ns``; the run exceeds SHORT, its other requirement."""
    _stored(store, scratch, earlier_ns, **more)
    runs = [_stored(store, scratch, 200_000, head=_head(stated)) for stated in (SHORT, requirement)]
    assessment = judge_asked(runs, Question(None, 0.95), store)
    verdicts = {result.requirement: result.verdict for result in assessment.requirement_results}
    assert assessment.verdict is verdicts[SHORT] is Verdict.FAIL
    withdrawn = [reason for reason in assessment.reasons if "withdrawn" in reason]
    assert len(withdrawn) == len(assessment.next_steps) == (verdicts[requirement] is not Verdict.PASS)
    assert all("500 µs" in reason for reason in withdrawn)
    return verdicts[requirement]


@pytest.mark.parametrize(
    ("requirement", "earlier_ns", "times", "expected"),
    [
        (LONG, 5_000, 1, Verdict.PASS),
        (LONG, 450_000, 1, Verdict.PASS),
        (LONG, 550_000, 1, Verdict.INCONCLUSIVE),
        (RARE, 5_000, 1, Verdict.PASS),
        (RARE, 550_000, 4, Verdict.INCONCLUSIVE),
    ],
)
def test_an_earlier_run_withdraws_a_pass_on_the_requirement_that_it_contradicts_only(
    tmp_path: Path, requirement: Requirement, earlier_ns: int, times: int, expected: Verdict
) -> None:
    """Four values in 20,000 above the limit are the allowed rate, but leave too little evidence for a PASS."""
    store = Store(tmp_path / "store")
    assert _result_of(requirement, earlier_ns, store, tmp_path, times=times) is expected


@pytest.mark.parametrize(("worst_ns", "expected"), [(450_000, Verdict.PASS), (550_000, Verdict.INCONCLUSIVE)])
def test_a_deleted_run_withdraws_a_pass_on_the_requirement_that_it_exceeds_only(
    tmp_path: Path, worst_ns: int, expected: Verdict
) -> None:
    store = Store(tmp_path / "store")
    lost = _stored(store, tmp_path, worst_ns)
    shutil.rmtree(store.path / "runs" / lost.run_id)
    assert _result_of(LONG, 5_000, Store(store.path), tmp_path) is expected


@pytest.mark.parametrize("selection", [Selection.CAMPAIGN, Selection.CHOSEN])
@pytest.mark.parametrize("earlier_ns", [5_000, 5_000_000])
def test_an_earlier_run_of_another_probe_withdraws_no_pass(
    tmp_path: Path, selection: Selection, earlier_ns: int
) -> None:
    store = Store(tmp_path / "store")
    _stored(store, tmp_path, earlier_ns)
    head = _head(SHORT)
    timer = _stored(store, tmp_path, 200_000, head=head)
    response = _stored(store, tmp_path, 50_000, head=head | {"probe": "response"})
    assessment = judge_asked([timer, response], Question(None, 0.95, selection=selection), store)
    assert assessment.verdict is Verdict.FAIL
    assert [(result.probe, result.verdict) for result in assessment.requirement_results] == [
        ("timer", Verdict.FAIL),
        ("response", Verdict.PASS),
    ]


def test_a_failure_that_all_runs_do_not_show_is_withdrawn_by_itself(tmp_path: Path) -> None:
    """Eleven misses in one run exceed the rate; in three they do not.  A single value shows the other failure."""
    store, rare = Store(tmp_path / "store"), replace(RARE, limit_ns=150_000)
    for _ in range(2):
        _stored(store, tmp_path, 5_000)
    stated = (SHORT, rare)
    runs = [_stored(store, tmp_path, 200_000, times=11, head=_head(one)) for one in stated]
    assert [result.verdict for result in judge(runs[1:] + runs[:1]).requirement_results] == [Verdict.FAIL] * 2
    assessment = judge_asked(runs, Question(None, 0.95), store)
    verdicts = {result.requirement: result.verdict for result in assessment.requirement_results}
    assert assessment.verdict is Verdict.FAIL
    assert verdicts == {SHORT: Verdict.FAIL, rare: Verdict.INCONCLUSIVE}


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


OLDER = {name: value for name, value in PROFILE.items() if name != "real_time_budget"}
NOT_UNDERSTOOD = PROFILE | {"idle": None, "absent": PROFILE["absent"] | {"idle": "not understood: KeyError('x')"}}


@pytest.mark.check
@pytest.mark.parametrize(("profile", "miss_rate"), [(OLDER, 0.0), (NOT_UNDERSTOOD, 0.0), (OLDER, 2e-4)])
def test_runs_that_may_be_of_the_kind_forbid_a_pass_too(
    profile: dict[str, Any], miss_rate: float, tmp_path: Path
) -> None:
    """A fact of the machine is unknown, so that runs are not merged, whatever was measured before."""
    store, required = Store(tmp_path / "store"), Requirement(200_000, miss_rate, longest_burst=1 if miss_rate else None)
    stated = {name: value for name, value in vars(required).items() if value is not None}
    head: dict[str, Any] = {"profile": profile, "requirement": stated}
    late = _stored(store, tmp_path, 250_000, times=2, head={"profile": profile})
    _stored(store, tmp_path, 900_000, load="another", head=head)
    best = _stored(store, tmp_path, 100_000, head=head)
    verdicts = {
        selection: judge_asked([best], Question(None, 0.95, selection=selection), store).verdict
        for selection in Selection
    }
    assert verdicts == {
        Selection.CHOSEN: Verdict.INCONCLUSIVE,
        Selection.CAMPAIGN: Verdict.INCONCLUSIVE,
        Selection.ONLY_THESE: Verdict.PASS,
    }
    both = judge_asked([best, late], Question(None, 0.95, selection=Selection.CHOSEN), store)
    assert both.verdict is (Verdict.INCONCLUSIVE if miss_rate else Verdict.FAIL), "named, it is judged as well"
    newest = _stored(store, tmp_path, 100_000, head=head)
    by_all = judge_asked([newest], Question(None, 0.95), store).verdict
    assert by_all is (Verdict.PASS if miss_rate else Verdict.INCONCLUSIVE), "all of them together keep the rate"


def test_runs_of_two_kinds_are_not_merged_by_one_that_may_be_of_either(tmp_path: Path) -> None:
    """The judged run does not state its kernel; the others ran on two, and have a CPU more."""
    store, required = Store(tmp_path / "store"), Requirement(200_000, 2e-4, longest_burst=1)
    kernels = [PROFILE | {"kernel": PROFILE["kernel"] | {"release": release}} for release in ("6.1", "6.6")]
    for profile in kernels:
        values = [[np.full(1000, 5000)] * 20, [np.full(1000, 300_000 if profile is kernels[1] else 5000)] * 20]
        _kept(store, tmp_path, values, head={"profile": profile})
    best = _stored(store, tmp_path, 100_000, head={"profile": None})
    assert judge_asked([best], Question(required, 0.95), store).verdict is Verdict.INCONCLUSIVE
    late = _stored(store, tmp_path, 250_000, times=12, head={"profile": None})
    assert judge_asked([late], Question(required, 0.95), store).verdict is Verdict.FAIL


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


def _assert_refused_for(lost: Recording, judged: Recording, store: Store, selection: Selection) -> None:
    """A lost run above the limit is named, and refuses a PASS unless only the judged run counts."""
    assessment = judge_asked([judged], Question(LIMIT, 0.95, selection=selection), store)
    verdict = Verdict.PASS if selection is Selection.ONLY_THESE else Verdict.INCONCLUSIVE
    assert assessment.verdict is verdict
    assert (
        lost.run_id in " ".join((*assessment.reasons, *assessment.cautions))
        and "1 of them above" in assessment.headline
    )
    checked = check([judged], [], Limits((Limit("limits.toml", LIMIT),)), store, selection=selection)
    if selection is not Selection.CAMPAIGN:
        assert checked.limits[0].verdict is verdict
        assert [(one.run_id, one.n, one.exceeded, one.maximum_ns) for one in checked.excluded] == [
            (lost.run_id, 20_000, None, 250_000)
        ]


@pytest.mark.parametrize("selection", list(Selection))
def test_a_run_above_the_limit_that_was_deleted_forbids_a_pass_unless_that_is_stated(
    tmp_path: Path, selection: Selection
) -> None:
    """The summary that the store has of it is enough; runs that kept the limit may be deleted as one likes."""
    store = Store(tmp_path / "store")
    best = _stored(store, tmp_path, 100_000)
    worst, *others = (_stored(store, tmp_path, 250_000), _stored(store, tmp_path, 110_000))
    others.append(_stored(store, tmp_path, 900_000, load="another"))
    for run in others:
        shutil.rmtree(store.path / "runs" / run.run_id)
    before = judge_asked([best], Question(LIMIT, 0.95, selection=Selection.ONLY_THESE), Store(store.path))
    assert "1 other run of the same kind" in before.headline
    shutil.rmtree(store.path / "runs" / worst.run_id)
    now = Store(store.path)
    _assert_refused_for(worst, best, now, selection)


@pytest.mark.parametrize("selection", list(Selection))
def test_a_damaged_run_above_the_limit_forbids_a_pass_unless_that_is_stated(
    tmp_path: Path, selection: Selection
) -> None:
    """As a deleted run does; a damaged run that kept the limit does not."""
    store = Store(tmp_path / "store")
    best, worst, other = (_stored(store, tmp_path, worst_ns) for worst_ns in (100_000, 250_000, 110_000))
    for run in (worst, other):
        file = store.path / "runs" / run.run_id / "recording.jsonl.zst"
        file.chmod(0o600)
        file.write_bytes(file.read_bytes()[:-7])
    for now in (store, Store(store.path)):
        _assert_refused_for(worst, best, now, selection)


@pytest.mark.parametrize(
    "edit",
    [{"load": "cpu"}, {"worst_ns": 1}, {"state": "damaged", "load": "cpu"}, {"state": "cut-off", "sha256": None}],
)
def test_an_edited_summary_hides_no_run_above_the_limit(tmp_path: Path, edit: dict[str, str | int | None]) -> None:
    """The recording is what it was: its own load and maximum count, and the run is damaged."""
    store = Store(tmp_path / "store")
    worst, best = _stored(store, tmp_path, 250_000, load="none"), _stored(store, tmp_path, 100_000, load="none")
    file = store.path / "runs" / worst.run_id / RUN_FILE
    file.chmod(0o600)
    file.write_text(json.dumps(json.loads(file.read_text()) | edit))
    now = Store(store.path)
    assessment = judge_asked([best], Question(LIMIT, 0.95), now)
    assert assessment.verdict is Verdict.INCONCLUSIVE
    assert "1 of them above" in assessment.headline
    assert list(now.verify()) == list(now.rebuild()) == [worst.run_id]
    assert [(run.state, run.load, run.worst_ns) for run in now.runs()] == [
        ("damaged", "none", 250_000),
        ("ended", "none", 100_000),
    ]


def test_a_run_that_is_known_to_be_damaged_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "store")
    lost = _stored(store, tmp_path, 250_000)
    (store.path / "runs" / lost.run_id / RUN_FILE).unlink()
    assert [run.state for run in Store(store.path).runs()] == ["damaged"]
    monkeypatch.setattr(directory, "content_of", None)
    assert [run.worst_ns for run in Store(store.path).runs()] == [250_000]


def test_an_import_counts_as_its_recording_says_whatever_version_summarised_it(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    imported = _stored(store, tmp_path, 250_000, marks=("imported",))
    file = store.path / "runs" / imported.run_id / RUN_FILE
    file.chmod(0o600)
    file.write_text(json.dumps(json.loads(file.read_text()) | {"samples": 0, "worst_ns": None}))
    assert Store(store.path).rebuild() == {}
    assert [(run.state, run.worst_ns) for run in store.runs()] == [("ended", 250_000)]


def test_an_unreadable_summary_hides_no_run_above_the_limit(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    worst, best = _stored(store, tmp_path, 250_000), _stored(store, tmp_path, 100_000)
    (store.path / "runs" / worst.run_id / RUN_FILE).unlink()
    assessment = judge_asked([best], Question(LIMIT, 0.95), Store(store.path))
    assert assessment.verdict is Verdict.INCONCLUSIVE
    assert "1 of them above" in assessment.headline


def _gate(store: Store, *runs: Recording) -> LimitResult:
    [held] = check(runs, [], Limits((Limit("limits.toml", LIMIT),)), store).limits
    return held


@pytest.mark.check
def test_a_gate_refuses_a_pass_of_chosen_runs_as_a_report_does(tmp_path: Path) -> None:
    """Two runs of the same question exceed the limit and are not given; runs of another load are of no concern."""
    store, limits = Store(tmp_path / "store"), Limits((Limit("limits.toml", LIMIT),))
    best, *others = (_stored(store, tmp_path, worst_ns) for worst_ns in (100_000, 250_000, 300_000))
    _stored(store, tmp_path, 900_000, load="another")
    checked = {each: check([best], [], limits, store, selection=each) for each in Selection}
    assert {each: one.limits[0].verdict for each, one in checked.items()} == {
        Selection.CHOSEN: Verdict.INCONCLUSIVE,
        Selection.CAMPAIGN: Verdict.PASS,
        Selection.ONLY_THESE: Verdict.PASS,
    }
    for selection in (Selection.CHOSEN, Selection.ONLY_THESE):
        assert [(one.run_id, one.n, one.exceeded, one.exceeds) for one in checked[selection].excluded] == [
            (run.run_id, 20_000, 1, True) for run in others[::-1]
        ]
        [held] = checked[selection].limits
        assert all(run.run_id in held.reason for run in others)
    assert checked[Selection.CAMPAIGN].excluded == (), "the nights before are judged by themselves"
    together = check([best, *others], [], limits, store, selection=Selection.CHOSEN)
    assert (together.limits[0].verdict, together.excluded) == (Verdict.FAIL, ())
    baseline = check([best], others, limits, store, selection=Selection.CHOSEN)
    assert (baseline.limits[0].verdict, baseline.excluded) == (Verdict.PASS, ()), "the baseline is given, too"


def test_a_gate_without_a_run_that_keeps_the_limit_is_refused_as_well(tmp_path: Path) -> None:
    store, limits = Store(tmp_path / "store"), Limits((Limit("limits.toml", LIMIT),))
    best, other = (_stored(store, tmp_path, worst_ns) for worst_ns in (100_000, 110_000))
    for selection, verdict in ((Selection.CHOSEN, Verdict.INCONCLUSIVE), (Selection.ONLY_THESE, Verdict.PASS)):
        checked = check([best], [], limits, store, selection=selection)
        assert checked.limits[0].verdict is verdict
        assert [(one.run_id, one.exceeds) for one in checked.excluded] == [(other.run_id, False)]


def test_the_bench_says_in_the_head_how_much_was_planned() -> None:
    line = {"series": [{"period_ns": 1_000_000}, {}], "parameters": {}, "settings": [], "marks": []}
    assert completed_head(line, "id", HeadAdditions(planned_ns=10**10))["planned_n"] == 10_000
    assert "planned_n" not in completed_head(
        line | {"parameters": {"loops": 5}}, "id", HeadAdditions(planned_ns=10**10)
    )
    of_probe = json.loads(GOLDEN.open().readline())
    assert completed_head(of_probe, "id", HeadAdditions(planned_ns=3 * 10**9))["planned_n"] == 300
    assert "planned_n" not in completed_head(line | {"series": [{}]}, "id", HeadAdditions(planned_ns=10**10))
    assert "planned_n" not in completed_head(of_probe, "id", HeadAdditions(planned_ns=5 * 10**6)), "half a period"
