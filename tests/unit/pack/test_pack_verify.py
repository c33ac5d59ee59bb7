# SPDX-License-Identifier: GPL-2.0-or-later
"""A pack says what follows from its recordings, or it is found out."""

from __future__ import annotations

import hashlib
import json
import shutil
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zstandard

from fastenough.analysis.excluded_runs import Selection
from fastenough.campaign.expand import PLAN_FILE
from fastenough.jobs.verify import Verified, verify
from fastenough.model import BadInput, Verdict
from fastenough.store import Store
from tests.support.packs import LIMIT, add_run, files_of, pack_of, text_of, with_files, zipped

pytestmark = pytest.mark.check

DOCUMENTS = [
    *("question.json", "versions.json", "assessment.json", "assumptions.json", "uncertainty.json", "machines.json"),
    "manifest.json",
]
PLAN = b'name = "quick"\n'
REQUIREMENT = {"miss_rate": 0.0, "confidence": 0.95}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Three runs: two under no load, the second of which exceeds the limit, and one under another load with a plan."""
    home = tmp_path_factory.mktemp("packs")
    store = Store(home / "fastenough-data")
    add_run(store, home / "scratch")
    add_run(store, home / "scratch", latest_ns=300_000)
    add_run(store, home / "scratch", load="cpu", attached={PLAN_FILE: PLAN})
    return store


@pytest.fixture(scope="module")
def runs(store: Store) -> list[str]:
    return [run.id for run in store.runs()]


@pytest.fixture(scope="module")
def good(store: Store, runs: list[str]) -> bytes:
    """The first and the last run."""
    return pack_of(store, [runs[0], runs[2]], selection=Selection.ONLY_THESE)


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Two runs with two requirements, of which one is met; an earlier run contradicts neither verdict."""
    home = tmp_path_factory.mktemp("several")
    store = Store(home / "fastenough-data")
    add_run(store, home / "scratch")
    limits_ns = (50_000, 200_000)
    judged = [
        add_run(store, home / "scratch", latest_ns=100_000, head={"requirement": REQUIREMENT | {"limit_ns": limit_ns}})
        for limit_ns in limits_ns
    ]
    return pack_of(store, judged, required=None)


def verified(folder: Path, pack: bytes) -> Verified:
    path = folder / "x.zip"
    path.write_bytes(pack)
    return verify(path)


def require_refused(folder: Path, pack: bytes, reason: str = "") -> None:
    with pytest.raises(BadInput, match=reason or None) as caught:
        verified(folder, pack)
    said = str(caught.value)
    assert said.startswith(str(folder / "x.zip")) and "\n" not in said and len(said) < 600


def changed(raw: bytes, change: Callable[[Any], object]) -> bytes:
    document = json.loads(raw)
    change(document)
    return text_of(document)


def test_a_pack_holds_everything_and_is_verified(tmp_path: Path, store: Store, runs: list[str], good: bytes) -> None:
    files = files_of(good)
    packed = [runs[0], runs[2]]
    assert list(files) == [*(f"recordings/{run}.jsonl.zst" for run in packed), "plans/1.toml", *DOCUMENTS]
    assert files["plans/1.toml"] == PLAN
    assert all(files[f"recordings/{run}.jsonl.zst"] == store.sealed(run) for run in packed)
    assert set(json.loads(files["machines.json"])) == set(packed)
    found = verified(tmp_path, good)
    assert found.same and not found.differences and found.signer is None and found.runs == tuple(packed)
    assert found.assessment.verdict is Verdict.PASS and found.versions == found.versions_here
    assert json.loads(files["assessment.json"])["headline"] == found.assessment.headline


def test_the_same_runs_give_the_same_bytes_elsewhere(
    tmp_path: Path, store: Store, runs: list[str], good: bytes
) -> None:
    copy = Store(shutil.copytree(store.path, tmp_path / "elsewhere"))
    assert pack_of(copy, [runs[2], runs[0], runs[0]], selection=Selection.ONLY_THESE) == good
    for word in (str(tmp_path), str(store.path), socket.gethostname()):
        assert word.encode() not in good


def test_each_assumption_states_its_check_and_result(store: Store, runs: list[str], good: bytes) -> None:
    of_good = json.loads(files_of(good)["assumptions.json"])
    assert {one["result"] for one in of_good} == {"holds", "contradicted", "not checked"}
    assert [one["assumption"] for one in of_good if one["result"] == "contradicted"] == [
        "No run of the same kind was left out"
    ]
    assert all(one["check"] for one in of_good)
    bad = pack_of(store, runs, required=replace(LIMIT, longest_burst=3))
    contradicted = [one for one in json.loads(files_of(bad)["assumptions.json"]) if one["result"] == "contradicted"]
    assert [one["assumption"] for one in contradicted] == ["The evidence of probe timer under load none suffices"]
    assert any("3 activations" in one["assumption"] for one in json.loads(files_of(bad)["assumptions.json"]))


def test_each_printed_latency_has_its_uncertainty(good: bytes) -> None:
    budgets = json.loads(files_of(good)["uncertainty.json"])
    assert [(budget["load"], budget["series"]) for budget in budgets] == [
        ("none", "wakeup_corrected"),
        ("cpu", "wakeup_corrected"),
    ]
    for budget in budgets:
        assert [one["latency"] for one in budget["latencies"]][-1] == "maximum"
        assert all(one["expanded_ns"] > 0 and one["contributions"] for one in budget["latencies"])


@pytest.mark.parametrize("selection", Selection)
def test_runs_left_out_are_stated_and_count(
    tmp_path: Path, store: Store, runs: list[str], selection: Selection
) -> None:
    pack = pack_of(store, [runs[0]], selection=selection)
    question = json.loads(files_of(pack)["question.json"])
    (left,) = question["excluded"]
    apart = with_files(pack, {"question.json": text_of(question | {"all_runs_agree": False})})
    assert verified(tmp_path, apart).same is (selection is Selection.ONLY_THESE)
    assert (left["run_id"], left["exceeded"], left["exceeds"]) == (runs[1], 1, True)
    found = verified(tmp_path, pack)
    allowed = selection is Selection.ONLY_THESE
    assert found.same and found.assessment.verdict is (Verdict.PASS if allowed else Verdict.INCONCLUSIVE)
    assert runs[1] in found.not_recomputed[0]


def test_missing_runs_are_stated(tmp_path: Path, store: Store, runs: list[str]) -> None:
    found = verified(tmp_path, pack_of(store, runs[:1], missing=("run 2 of 2",), selection=Selection.ONLY_THESE))
    assert found.assessment.verdict is Verdict.INCONCLUSIVE
    assert "run 2 of 2" in found.not_recomputed[1]


@pytest.mark.parametrize(
    "case",
    [
        (Selection.CAMPAIGN, (), "holds"),
        (Selection.CAMPAIGN, ("run 2 of 2",), "contradicted"),
        (Selection.CHOSEN, (), "not checked"),
        (Selection.ONLY_THESE, (), "not checked"),
    ],
)
def test_planned_runs_of_named_runs_are_not_known(
    tmp_path: Path, store: Store, runs: list[str], case: tuple[Selection, tuple[str, ...], str]
) -> None:
    selection, missing, result = case
    pack = pack_of(store, [runs[0], runs[2]], selection=selection, missing=missing)
    (planned,) = [one for one in json.loads(files_of(pack)["assumptions.json"]) if "planned" in one["assumption"]]
    assert (planned["result"], planned["findings"]) == (result, list(missing))
    assert ("the store lacked no planned run" in verified(tmp_path, pack).not_recomputed) is (result == "holds")


STATEMENTS: dict[str, Callable[[Any], object]] = {
    "excluded runs": lambda asked: asked.update(excluded=[]),
    "missing runs": lambda asked: asked.update(missing=["run 7"]),
    "all runs combined": lambda asked: asked.update(all_runs_agree=False),
}


@pytest.mark.parametrize("what", STATEMENTS)
def test_each_statement_that_rests_on_the_store_is_listed(
    tmp_path: Path, store: Store, runs: list[str], what: str
) -> None:
    """A forger can change each of them, and the hashes with it."""
    pack = pack_of(store, [runs[0], runs[2]], selection=Selection.CAMPAIGN)
    listed = verified(tmp_path, pack).not_recomputed
    assert len(listed) == 4 and "1 run" in listed[3]
    question = changed(files_of(pack)["question.json"], STATEMENTS[what])
    assert verified(tmp_path, with_files(pack, {"question.json": question})).not_recomputed != listed


def test_a_pack_without_planned_runs_states_nothing_about_a_plan(tmp_path: Path, store: Store, runs: list[str]) -> None:
    pack = pack_of(store, [runs[0]], selection=Selection.ONLY_THESE)
    assert len(verified(tmp_path, pack).not_recomputed) == 1


@pytest.mark.parametrize("place", ["recordings", "plans/1.toml", *DOCUMENTS])
def test_a_change_of_any_file_is_detected(tmp_path: Path, good: bytes, place: str) -> None:
    """The checksums of ZIP are right: it is the manifest that finds it."""
    files = files_of(good)
    name = next(name for name in files if name.startswith(place))
    content = bytearray(files[name])
    content[len(content) // 2] ^= 1
    require_refused(tmp_path, zipped(files | {name: bytes(content)}))


def test_a_pack_with_keys_of_an_older_version_is_verified(tmp_path: Path, store: Store, runs: list[str]) -> None:
    """The keys of the assessment were renamed; a changed figure is still found out."""
    packed = pack_of(store, runs, selection=Selection.ONLY_THESE)
    assessment = files_of(packed)["assessment.json"]
    former = assessment
    for key, old in ((b"next_steps", b"settle"), (b"next_step", b"settle"), (b"evidence", b"shown")):
        former = former.replace(b'"%s":' % key, b'"%s":' % old)
    assert former.count(b'"settle":') > 1 and former.count(b'"shown":') > 1
    found = verified(tmp_path, with_files(packed, {"assessment.json": former}))
    assert found.same and not found.differences
    forged = former.replace(b'"exceeded": 0', b'"exceeded": 1')
    assert forged != former and not verified(tmp_path, with_files(packed, {"assessment.json": forged})).same


def test_an_excluded_run_without_a_key_of_this_version_is_understood(
    tmp_path: Path, store: Store, runs: list[str]
) -> None:
    packed = pack_of(store, [runs[0]], selection=Selection.CAMPAIGN)
    current = files_of(packed)["question.json"]
    former = changed(current, lambda asked: [run.pop("maximum_is_least") for run in asked["excluded"]])
    assert former.count(b"maximum_is_least") < current.count(b"maximum_is_least")
    results = [verified(tmp_path, with_files(packed, {"question.json": question})) for question in (current, former)]
    assert results[0].assessment == results[1].assessment


@pytest.mark.parametrize("agree", [True, False])
def test_a_question_with_keys_of_an_older_version_is_understood(
    tmp_path: Path, store: Store, runs: list[str], agree: bool
) -> None:
    """Its key was renamed; its value still counts, and no other text is accepted for it."""
    packed = pack_of(store, [runs[0]], selection=Selection.CAMPAIGN)
    current = changed(files_of(packed)["question.json"], lambda asked: asked.update(all_runs_agree=agree))
    former = current.replace(b'"all_runs_agree":', b'"together":')
    results = [verified(tmp_path, with_files(packed, {"question.json": question})) for question in (current, former)]
    assert former != current and results[0].assessment == results[1].assessment
    assert [found.same for found in results] == [agree] * 2
    both = current.replace(b'"all_runs_agree":', b'"together": true,\n "all_runs_agree":')
    for question in (both, former.replace(b"\n ", b"\n  ", 1), former.replace(b'"together"', b'"Together"')):
        require_refused(tmp_path, with_files(packed, {"question.json": question}), "question")


def test_a_question_that_does_not_state_whether_runs_were_planned_is_understood(
    tmp_path: Path, store: Store, runs: list[str]
) -> None:
    packed = pack_of(store, [runs[0]], selection=Selection.CAMPAIGN)
    former = changed(
        files_of(packed)["question.json"], lambda asked: [asked.pop(key) for key in ("planned", "agreed_results")]
    )
    results = [verified(tmp_path, pack) for pack in (packed, with_files(packed, {"question.json": former}))]
    assert results[0].assessment == results[1].assessment


def test_missing_added_and_moved_files_are_detected(tmp_path: Path, good: bytes) -> None:
    files = files_of(good)
    for name in files:
        require_refused(tmp_path, zipped({one: content for one, content in files.items() if one != name}))
    for name in ("plans/2.toml", "recordings/other.jsonl.zst", "more.json", "setup.sh"):
        require_refused(tmp_path, zipped({name: b""} | files), "is not listed")
        require_refused(tmp_path, zipped(files | {name: b""}), "does not end with")
    require_refused(tmp_path, zipped(dict(reversed(files.items()))), "does not end with")
    *others, last = files
    moved = {name: files[name] for name in (*reversed(others), last)}
    require_refused(tmp_path, zipped(moved), "order")


MANIFESTS: dict[str, Callable[[Any], object]] = {
    "another version": lambda manifest: manifest.update(version=2),
    "a huge number": lambda manifest: manifest["members"][0].update(bytes=10**4000),
    "too many digits": lambda manifest: manifest.update(version=1 << 63),
    "a fraction": lambda manifest: manifest["members"][0].update(bytes=1.0),
    "a surplus key": lambda manifest: manifest.update(more=1),
    "a missing key": lambda manifest: manifest.pop("runs"),
    "no runs": lambda manifest: manifest.update(runs=[]),
    "no list": lambda manifest: manifest.update(members={}),
    "a run twice": lambda manifest: manifest["runs"].append(manifest["runs"][0]),
    "a run less": lambda manifest: manifest["runs"].pop(),
    "a run with a path": lambda manifest: manifest["runs"][0].update(id="../x"),
    "a plan that is not there": lambda manifest: manifest["runs"][0].update(plan="plans/2.toml"),
    "a recording as a plan": lambda manifest: manifest["runs"][0].update(plan=manifest["members"][0]["name"]),
    "no plan": lambda manifest: manifest["runs"][1].update(plan=None),
    "another recording": lambda manifest: manifest["runs"][0].update(sha256="0" * 64),
}


@pytest.mark.parametrize("what", MANIFESTS)
def test_a_wrong_manifest_is_refused(tmp_path: Path, good: bytes, what: str) -> None:
    files = files_of(good)
    require_refused(tmp_path, zipped(files | {"manifest.json": changed(files["manifest.json"], MANIFESTS[what])}))


RAW = {
    "deep": b"[" * 100_000,
    "deep and ended": b"[" * 500 + b"]" * 500,
    "not UTF-8": b'{"a": "\xff"}\n',
    "digits": b'{"version": ' + b"9" * 10_000 + b"}\n",
    "not a number": b'{"version": NaN}\n',
    "nothing": b"",
    "another form": b"[]\n",
}


@pytest.mark.parametrize("name", ["manifest.json", "question.json", "versions.json"])
@pytest.mark.parametrize("what", RAW)
def test_json_that_is_none_is_refused(tmp_path: Path, good: bytes, name: str, what: str) -> None:
    if name == "manifest.json":
        require_refused(tmp_path, zipped(files_of(good) | {name: RAW[what]}))
    else:
        require_refused(tmp_path, with_files(good, {name: RAW[what]}), name)


def test_another_spelling_of_the_same_is_refused(tmp_path: Path, good: bytes) -> None:
    question = json.loads(files_of(good)["question.json"])
    require_refused(tmp_path, with_files(good, {"question.json": json.dumps(question).encode()}), "question")
    twice = files_of(good)["question.json"].replace(b'"missing"', b'"missing": [],\n "missing"', 1)
    require_refused(tmp_path, with_files(good, {"question.json": twice}), "question")


QUESTIONS: dict[str, Callable[[Any], object]] = {
    "a limit of 0": lambda asked: asked["required"].update(limit_ns=0),
    "a huge limit": lambda asked: asked["required"].update(limit_ns=1 << 80),
    "no confidence": lambda asked: asked.update(confidence=1.0),
    "hardly any confidence": lambda asked: asked["required"].update(confidence=5e-324),
    "hardly any confidence without a requirement": lambda asked: asked.update(required=None, confidence=5e-324),
    "hardly any miss": lambda asked: asked["required"].update(miss_rate=5e-324),
    "a selection": lambda asked: asked.update(selection="ALL"),
    "a probe": lambda asked: asked.update(probe=5),
    "loads": lambda asked: asked.update(loads="none"),
    "an excluded run": lambda asked: asked.update(excluded=[{"run_id": "x"}]),
    "truth": lambda asked: asked["excluded"][0].update(n=True),
}


@pytest.mark.parametrize("what", QUESTIONS)
def test_a_malformed_question_is_refused(tmp_path: Path, good: bytes, what: str) -> None:
    question = changed(files_of(good)["question.json"], QUESTIONS[what])
    require_refused(tmp_path, with_files(good, {"question.json": question}), "question")


REWORDED: dict[str, Callable[[Any], object]] = {
    "a lower limit": lambda asked: asked["required"].update(limit_ns=4_000),
    "no excluded run": lambda asked: asked.update(excluded=[]),
    "another selection": lambda asked: asked.update(selection="CHOSEN"),
    "a missing run": lambda asked: asked.update(missing=["run 7"]),
    "extreme results": lambda asked: asked["excluded"][0].update(n=-(1 << 62), maximum_ns=1e308, limit_ns=-5),
}


@pytest.mark.parametrize("what", REWORDED)
def test_another_question_has_another_answer(tmp_path: Path, good: bytes, what: str) -> None:
    question = changed(files_of(good)["question.json"], REWORDED[what])
    found = verified(tmp_path, with_files(good, {"question.json": question}))
    assert not found.same and found.differences


def test_a_forged_verdict_is_found_out(tmp_path: Path, store: Store, runs: list[str]) -> None:
    bad = pack_of(store, runs)
    assert verified(tmp_path, bad).same, "a FAIL that is true"
    told = changed(files_of(bad)["assessment.json"], lambda told: told.update(verdict="PASS", headline="Fast enough"))
    other = changed(files_of(bad)["versions.json"], lambda versions: versions.update(numpy="0"))
    for more in ({}, {"versions.json": other}):
        found = verified(tmp_path, with_files(bad, {"assessment.json": told} | more))
        assert not found.same and "PASS in the pack" in found.differences[0]
        assert found.assessment.verdict is not Verdict.PASS


@pytest.mark.parametrize("key", ["exceeded", "n", "verdict", "maximum_ns", "requirement"])
def test_a_forged_figure_is_found_out(tmp_path: Path, good: bytes, key: str) -> None:
    files = files_of(good)
    told = changed(files["assessment.json"], lambda told: told["judgments"][1].update({key: 17}))
    other = changed(files["versions.json"], lambda versions: versions.update(fastenough="9.9"))
    found = verified(tmp_path, with_files(good, {"assessment.json": told, "versions.json": other}))
    assert not found.same and found.differences[0].startswith(f"judgment 2: {key}")


FORGED_RESULTS: dict[str, Callable[[Any], object]] = {
    "requirement 1: verdict": lambda results: results[0].update(verdict="PASS"),
    "requirement 2: probe": lambda results: results[1].update(probe="response"),
    "requirement 2: requirement": lambda results: results[1]["requirement"].update(limit_ns=60_000),
    "the pack states 1 requirement,": lambda results: results.pop(0),
    "the pack states 3 requirements,": lambda results: results.append({**results[1], "probe": "response"}),
}


@pytest.mark.parametrize("difference", FORGED_RESULTS)
def test_a_forged_result_of_a_requirement_is_detected(tmp_path: Path, several: bytes, difference: str) -> None:
    """Also if the pack states another version."""
    files = files_of(several)
    change = FORGED_RESULTS[difference]
    forged = changed(files["assessment.json"], lambda assessment: change(assessment["requirement_results"]))
    other = changed(files["versions.json"], lambda versions: versions.update(fastenough="9.9"))
    result = verified(tmp_path, with_files(several, {"assessment.json": forged, "versions.json": other}))
    assert not result.same and result.differences[0].startswith(difference)


def test_each_verdict_that_agrees_with_the_excluded_runs_is_packed(tmp_path: Path, several: bytes) -> None:
    files = files_of(several)
    result = verified(tmp_path, several)
    assert result.same and not result.differences
    assert [one.verdict for one in result.assessment.requirement_results] == [Verdict.FAIL, Verdict.PASS]
    assert sum("200 µs, no misses: PASS" in statement for statement in result.not_recomputed) == 1
    withdrawn = changed(files["question.json"], lambda question: question["agreed_results"].pop())
    less = verified(tmp_path, with_files(several, {"question.json": withdrawn}))
    assert [one.verdict for one in less.assessment.requirement_results] == [Verdict.FAIL, Verdict.INCONCLUSIVE]
    assert not less.same and less.not_recomputed != result.not_recomputed
    unknown = changed(files["question.json"], lambda question: question["agreed_results"][0].update(verdict="GOOD"))
    require_refused(tmp_path, with_files(several, {"question.json": unknown}), "question")


def test_a_pack_without_results_of_requirements_is_understood(tmp_path: Path, several: bytes) -> None:
    """An older version neither stated nor knew the verdict on each requirement."""
    files = files_of(several)
    former = {
        "question.json": changed(files["question.json"], lambda question: question.pop("agreed_results")),
        "assessment.json": changed(files["assessment.json"], lambda stated: stated.pop("requirement_results")),
        "versions.json": changed(files["versions.json"], lambda versions: versions.update(fastenough="0.1.0")),
    }
    result = verified(tmp_path, with_files(several, former))
    assert result.same and not result.differences and result.assessment.requirement_results == ()


@pytest.mark.parametrize("name", ["assessment.json", "assumptions.json", "uncertainty.json", "machines.json"])
@pytest.mark.parametrize("content", [b"", b"{}\n", b"[1]\n", b"[" * 9000, b'{"judgments": [5]}\n'])
def test_other_text_in_a_derived_file_is_found_out(tmp_path: Path, good: bytes, name: str, content: bytes) -> None:
    found = verified(tmp_path, with_files(good, {name: content}))
    assert not found.same and any(name in text for text in found.differences)


def test_only_another_version_may_word_a_sentence_differently(tmp_path: Path, good: bytes) -> None:
    files = files_of(good)
    told = changed(files["assessment.json"], lambda told: told.update(headline="Reworded"))
    assert not verified(tmp_path, with_files(good, {"assessment.json": told})).same
    other = changed(files["versions.json"], lambda versions: versions.update(fastenough="9.9"))
    found = verified(tmp_path, with_files(good, {"assessment.json": told, "versions.json": other}))
    assert found.same and "headline" in found.differences[0] and found.assessment.headline != "Reworded"


def recording_of(good: bytes) -> tuple[str, bytes]:
    name, packed = next(iter(files_of(good).items()))
    return name, zstandard.ZstdDecompressor().stream_reader(packed).read()


def with_recording(good: bytes, content: bytes, plain: bytes) -> bytes:
    """The first recording replaced, all hashes right; ``plain``: what it expands to."""
    name, _ = recording_of(good)
    pack = with_files(good, {name: content})
    files = files_of(pack)
    manifest = changed(
        files["manifest.json"], lambda said: said["runs"][0].update(sha256=hashlib.sha256(plain).hexdigest())
    )
    return zipped(files | {"manifest.json": manifest})


MALFORMED: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda text: b"",
    "not JSON": lambda text: b"rubbish\n",
    "without its head": lambda text: text.partition(b"\n")[2],
    "with a contradicting interval": lambda text: text.replace(b'"seq":1,', b'"seq":2,', 1),
    "of another run": lambda text: text.replace(b'"run_id":"2', b'"run_id":"3', 1),
    "deep": lambda text: text.replace(b'"parameters":{', b'"parameters":{"a":' + b"[" * 9000 + b"]" * 9000 + b",", 1),
    "a huge integer": lambda text: text.replace(b'"interval_ns":1000000000', b'"interval_ns":' + b"9" * 5000, 1),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_recording_with_the_right_hash_is_refused(tmp_path: Path, good: bytes, what: str) -> None:
    _, text = recording_of(good)
    plain = MALFORMED[what](text)
    assert plain != text
    require_refused(tmp_path, with_recording(good, zstandard.compress(plain), plain))


def test_a_cut_off_recording_is_judged_as_what_it_is(tmp_path: Path, good: bytes) -> None:
    _, text = recording_of(good)
    plain = text[: text.rindex(b'{"type":"end"')]
    found = verified(tmp_path, with_recording(good, zstandard.compress(plain), plain))
    assert not found.same and found.assessment.verdict is Verdict.BROKEN


def test_damaged_compression_and_bombs_are_refused(tmp_path: Path, good: bytes) -> None:
    _, text = recording_of(good)
    require_refused(tmp_path, with_recording(good, zstandard.compress(text)[:-9], text), "damaged|mismatch")
    bomb = zstandard.compress(bytes(160 << 20), 19)
    assert len(bomb) < 32_000
    require_refused(tmp_path, with_recording(good, bomb, b""), "too many")


def test_recordings_are_bounded_together(tmp_path: Path, good: bytes) -> None:
    """Each alone is within its bound."""
    large = bytes(50 << 20)
    names = [name for name in files_of(good) if name.startswith("recordings/")]
    pack = with_files(good, dict.fromkeys(names, zstandard.compress(large)))
    files = files_of(pack)
    sha256 = hashlib.sha256(large).hexdigest()
    manifest = changed(files["manifest.json"], lambda said: [run.update(sha256=sha256) for run in said["runs"]])
    require_refused(tmp_path, zipped(files | {"manifest.json": manifest}), "its recordings expand")


def test_what_is_no_file_is_refused(tmp_path: Path, good: bytes) -> None:
    for path in (tmp_path / "absent.zip", tmp_path):
        with pytest.raises(BadInput):
            verify(path)
    (tmp_path / "real.zip").write_bytes(good)
    (tmp_path / "x.zip").symlink_to("real.zip")
    with pytest.raises(BadInput, match="symbolic link"):
        verify(tmp_path / "x.zip")


def test_only_sealed_and_intact_runs_are_packed(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    run = add_run(store, tmp_path / "scratch")
    growing = store.begin({})
    growing.line((store.opened(run).read() and b'{"type":"head"}\n') or b"")
    with pytest.raises(BadInput, match=growing.id):
        pack_of(store, [growing.id])
    growing.close()
    sealed = store.path / "runs" / run / "recording.jsonl.zst"
    sealed.chmod(0o644)
    content = bytearray(sealed.read_bytes())
    content[len(content) // 2] ^= 1
    sealed.write_bytes(content)
    with pytest.raises(BadInput, match=run):
        pack_of(Store(store.path), [run])
