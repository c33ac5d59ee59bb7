# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough check``: what is shown to be slower fails, what is shown not to be passes, nothing else does."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any, Unpack
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

from fastenough.analysis.bootstrap import BootstrapDifference
from fastenough.analysis.clusters import holm
from fastenough.analysis.excluded_runs import Selection
from fastenough.analysis.gate import Growth, Limit, LimitResult
from fastenough.analysis.resampling import NoInterval
from fastenough.cli.check import _print
from fastenough.cli.check import command as check_command
from fastenough.cli.report import choose_runs
from fastenough.jobs.check import CheckResult, check, read_baseline
from fastenough.jobs.limits import Limits, read_limits
from fastenough.jobs.nights import earlier_nights
from fastenough.model import BadInput, Requirement, Verdict
from fastenough.recording import Recording, read_recording
from fastenough.report.gate_summary import plain
from fastenough.store import Store
from tests.process.cli.test_cli_variants import keep
from tests.support.cli_calls import command_line
from tests.support.junit_rules import faults
from tests.support.presence import present
from tests.support.recordings import PROFILE, Plan, RunFields, latencies, write

pytestmark = pytest.mark.untimed

GROWTH = '[[limit]]\nquantile = "95%"\nslower-by = "{}"\n'
ABSOLUTE = '[[limit]]\nlimit = "{}"\nmiss-rate = {}\n'
Values = list[list[NDArray[np.int64]]]


def shifted(seed: int, shift_ns: int) -> Values:
    return [[row + shift_ns for row in rows] for rows in latencies(seed)]


class Bench:
    """A store with one new run or more, and the file of a baseline."""

    def __init__(self, folder: Path, shift_ns: int = 0, **more: Unpack[RunFields]) -> None:
        self.folder = folder
        self.baseline = write(folder / "base.jsonl", Plan(shifted(1, 0), run_id="base"))
        self.store = Store(folder / "fastenough-data")
        self.runs = [keep(self.store, folder / "scratch", values=shifted(2, shift_ns), **more)]

    def check(self, limits: str | None, *more: str) -> subprocess.CompletedProcess[str]:
        (self.folder / "limits.toml").write_text(limits or "")
        named = () if limits is None else ("--limits", "limits.toml")
        return command_line("check", *self.runs, "--baseline", "base.jsonl", *named, *more, cwd=self.folder)


@pytest.mark.parametrize(
    ("shift_ns", "allowed", "status", "verdict"),
    [
        (3000, "1us", 1, "FAIL"),
        (3000, "10us", 0, "PASS"),
        (0, "1us", 0, "PASS"),
        (3000, "3us", 3, "INCONCLUSIVE"),
        (3000, "10%", 1, "FAIL"),
        (3000, "200%", 2, "must lie between"),
        (3000, "90%", 0, "PASS"),
    ],
)
def test_growth_is_judged_by_its_interval(
    tmp_path: Path, shift_ns: int, allowed: str, status: int, verdict: str
) -> None:
    done = Bench(tmp_path, shift_ns).check(GROWTH.format(allowed))
    assert done.returncode == status, done.stdout + done.stderr
    assert verdict in done.stdout + done.stderr
    if status != 2:
        assert done.stdout.startswith("compared with the baseline, timer, load none, on testboard: ")
        assert ("the new run is greater at 50 %" in done.stdout) == bool(shift_ns)


def test_dependence_is_the_reason_where_more_samples_are_none(tmp_path: Path) -> None:
    """A calm half and a busy one; and of ten intervals, too few samples."""
    halves = [[row + 20_000 * (number >= 15) for number, row in enumerate(rows)] for rows in shifted(2, 0)]
    for values, why in ((halves, NoInterval.DEPENDENT), ([rows[:10] for rows in halves], NoInterval.FEW_SAMPLES)):
        folder = tmp_path / why.name
        folder.mkdir()
        bench = Bench(folder)
        bench.runs = [keep(bench.store, folder / "scratch", values=values)]
        done = bench.check(GROWTH.format("1us"), "--only-these")
        assert done.returncode == 3, done.stdout + done.stderr
        assert {reason for reason in NoInterval if reason in done.stdout} == {why}, done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("limits", "confidence", "status"), [(12, "99.98%", 1), (1, "99.99%", 1), (1, "99.9999%", 2)])
def test_every_confidence_that_is_taken_can_be_shown(tmp_path: Path, limits: int, confidence: str, status: int) -> None:
    """4,000 draws alone cannot resolve any of these: 12 limits at 99.98 % need chances of 1 in 60,000."""
    limit = GROWTH.format("1us") + f'confidence = "{confidence}"\n'
    done = Bench(tmp_path, 30_000).check(limit * limits)
    assert done.returncode == status, done.stdout + done.stderr


def test_each_limit_is_judged_at_its_own_confidence() -> None:
    """At the strictest of both, the first would not be shown either."""
    draws = np.random.default_rng(1).normal(3.0, 1.0, 4000)
    chance = BootstrapDifference(draws, draws, 100).chance_of_no_more()
    assert 2e-4 < chance < 0.01
    assert holm([chance / (1 - confidence) for confidence in (0.95, 0.9999)], 1.0) == [True, False]
    assert holm([chance, chance], 1 - 0.9999) == [False, False]


def test_chances_far_beyond_the_draws_are_told_apart() -> None:
    draws = np.random.default_rng(2).normal(0.0, 1.0, 4000)
    chances = [
        BootstrapDifference(draws + shift, draws + shift, 60).chance_of_no_more() for shift in (0, 2, 3, 4, 6, 9)
    ]
    assert chances == sorted(chances, reverse=True) and len(set(chances)) == len(chances)
    assert chances[2] < 0.01 and chances[-1] < 1e-8
    for shift, confidence in ((4.0, 0.999), (6.0, 0.9999)):
        difference = BootstrapDifference(draws - shift, draws - shift, 60)
        assert difference.is_no_more(confidence) == (-difference.interval(2 * confidence - 1)[1] >= 0)


@pytest.mark.slow
def test_a_limit_without_a_baseline_is_a_requirement(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    assert bench.check(ABSOLUTE.format("1ms", 0)).returncode == 0
    failed = bench.check(ABSOLUTE.format("3us", 0.01))
    assert failed.returncode == 1 and "FAIL: " in failed.stdout
    both = bench.check(ABSOLUTE.format("3us", 0.01) + GROWTH.format("1us"))
    assert both.returncode == 1 and "1 of 2 limits met" in both.stdout


@pytest.mark.slow
def test_the_environment_is_warned_of_by_its_keys(tmp_path: Path) -> None:
    profile = PROFILE | {"clocksource": "hpet", "modules": ["loop", "nfs"]}
    allowed = '[allow]\ndiffers = ["configuration"]\n'
    done = Bench(tmp_path, head={"profile": profile, "configuration": "rt"}).check(allowed + GROWTH.format("1us"))
    lines = done.stdout.splitlines()
    assert lines[1].startswith("warning: the environment of timer, load none, on testboard differs")
    assert [line.split(":")[0].strip() for line in lines[2:5]] == [
        "different configuration",
        "different clock source",
        "different modules",
    ]
    assert done.returncode == 0, "a warning is no verdict"
    (tmp_path / "same-dir").mkdir()
    same = Bench(tmp_path / "same-dir")
    assert "warning" not in same.check(GROWTH.format("1us")).stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("broken", "status", "said"),
    [
        ({"lost": 7}, 4, "lost"),
        ({"outcome": "failed", "reasons": ("it fell over",)}, 4, "it fell over"),
        ({"marks": ("virtual-machine",), "counters": {"steal_ns": None}}, 3, "could not be read"),
        (
            {
                "load": "cpu",
                "load_proof": {"name": "cpu", "ran": False, "cpu_time_s": 0.0, "processes": 0, "reasons": ["no"]},
            },
            1,
            "the baseline has no comparable run",
        ),
    ],
)
def test_what_cannot_be_trusted_or_compared_never_passes(
    tmp_path: Path, broken: RunFields, status: int, said: str
) -> None:
    done = Bench(tmp_path, **broken).check(GROWTH.format("100us"))
    assert done.returncode == status, done.stdout + done.stderr
    assert said in done.stdout and "PASS" not in done.stdout


OTHERS: dict[str, dict[str, Any]] = {
    "board": {"board": "another"},
    "kernel": {"profile": PROFILE | {"kernel": PROFILE["kernel"] | {"release": "9.9"}}},
    "configuration": {"configuration": "rt"},
    "processor": {"profile": PROFILE | {"cpu": PROFILE["cpu"] | {"count": 64}}},
    "command line": {"profile": PROFILE | {"cmdline": "quiet mitigations=off"}},
}


@pytest.mark.slow
@pytest.mark.parametrize("key", OTHERS)
def test_another_machine_or_kernel_is_a_failure_unless_it_is_allowed(tmp_path: Path, key: str) -> None:
    bench = Bench(tmp_path, head=OTHERS[key])
    limits = GROWTH.format("10us")
    done = bench.check(limits, "--junit", "check.xml", "--json")
    said = json.loads(done.stdout)
    assert (done.returncode, said["verdict"]) == (1, "FAIL")
    assert [one["requirement"] for one in said["departures"]] == [f"same {key} as the baseline"]
    assert [one["verdict"] for one in said["limits"]] == ["PASS"], "slower it is not"
    suite = ElementTree.parse(tmp_path / "check.xml").getroot()[0]
    assert [suite.get(name) for name in ("tests", "failures", "errors")] == ["2", "1", "0"]
    assert faults((tmp_path / "check.xml").read_bytes()) == []
    assert bench.check(f'[allow]\ndiffers = ["{key}"]\n{limits}').returncode == 0


@pytest.mark.slow
def test_a_load_that_is_no_longer_measured_is_a_failure_unless_it_is_allowed(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    proof = {"name": "cpu", "ran": True, "cpu_time_s": 60.0, "processes": 2, "reasons": []}
    write(tmp_path / "cpu.jsonl", Plan(shifted(3, 0), run_id="cpu", load="cpu", load_proof=proof))
    also = ("--baseline", "cpu.jsonl", "--junit", "check.xml")
    done = bench.check(GROWTH.format("10us"), *also)
    assert done.returncode == 1
    failed = ElementTree.parse(tmp_path / "check.xml").getroot()[0].findall("testcase/failure")
    assert len(failed) == 1 and "load cpu" in (done.stdout.partition("FAIL: ")[2])
    assert bench.check('[allow]\nmissing = ["cpu"]\n' + GROWTH.format("10us"), *also).returncode == 0
    assert bench.check(None, *also).returncode == 0, "nothing is gated without limits"


@pytest.mark.slow
def test_a_board_that_is_no_longer_measured_is_a_failure_unless_boards_may_differ(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    write(tmp_path / "other.jsonl", Plan(shifted(3, 0), run_id="other", head={"board": "another"}))
    done = bench.check(GROWTH.format("10us"), "--baseline", "other.jsonl")
    assert done.returncode == 1 and "on another" in done.stdout.partition("FAIL: ")[2]
    allowed = '[allow]\ndiffers = ["board"]\n'
    assert bench.check(allowed + GROWTH.format("10us"), "--baseline", "other.jsonl").returncode == 0


def bursty(seed: int, slower: float, intervals: int = 40) -> Values:
    """A machine whose latency is another in each interval, by a factor of two and more."""
    random = np.random.default_rng(seed)
    return [
        [
            (slower * level * random.lognormal(np.log(20_000), 0.2, 500)).astype(np.int64)
            for level in random.lognormal(0.0, 0.5, intervals)
        ]
    ]


def night(store: Store, scratch: Path, number: int, slower: float, **more: Unpack[RunFields]) -> str:
    return keep(store, scratch, values=bursty(number + 1, slower), begin_ns=number * 86_400 * 10**9, **more)


@pytest.mark.slow
@pytest.mark.parametrize(("slower", "verdict"), [(1.0, Verdict.PASS), (1.3, Verdict.FAIL)])
def test_nights_since_the_last_change_are_taken_together(tmp_path: Path, slower: float, verdict: Verdict) -> None:
    """Alone a night shows no regression of 30 %; what was before another kernel, or before the baseline, is not
    taken in."""
    store = Store(tmp_path / "store")
    plan = Plan(bursty(0, 1.0, 400), run_id="base", begin_ns=86_400 * 10**9)
    base = read_recording(write(tmp_path / "base.jsonl", plan))
    limits = Limits((Limit("limit 1", Growth(0.5, more_share=0.14)),))
    night(store, tmp_path / "scratch", 0, 9.0)
    for number in (2, 3):
        night(store, tmp_path / "scratch", number, 9.0, head=OTHERS["kernel"])
    ids = [night(store, tmp_path / "scratch", number, slower) for number in range(4, 20)]
    (alone,) = check([store.load(ids[0])], [base], limits, store).limits
    assert alone.verdict is (Verdict.INCONCLUSIVE if slower > 1 else Verdict.PASS) and alone.run_ids == (ids[0],)
    last = store.load(ids[-1])
    (together,) = check([last], [base], limits, store).limits
    assert together.verdict is verdict
    assert [one.run_id for one in earlier_nights(store, [last], [base]).runs] == ids[-2::-1]
    assert (1 < len(together.run_ids) < 16) == (slower > 1), "no more nights than are needed"


@pytest.mark.slow
def test_the_greatest_confidence_can_be_asked_of_many_nights(tmp_path: Path) -> None:
    """Each window has its share of the error, and so a greater confidence than can be asked for."""
    store = Store(tmp_path / "store")
    base = read_recording(write(tmp_path / "base.jsonl", Plan(bursty(0, 1.0, 400), run_id="base")))
    (tmp_path / "limits.toml").write_text('[[limit]]\nquantile = "50%"\nslower-by = "14%"\nconfidence = "99.99%"\n')
    ids = [night(store, tmp_path / "scratch", number, 3.0) for number in range(1, 5)]
    limits = read_limits(tmp_path / "limits.toml")
    (held,) = check([store.load(ids[-1])], [base], limits, store).limits
    assert held.verdict is Verdict.FAIL and held.limit == limits.limits[0]


@pytest.mark.slow
def test_an_unsound_baseline_never_passes(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    write(bench.baseline, Plan(shifted(1, 0), run_id="base", lost=3))
    done = bench.check(GROWTH.format("100us"))
    assert done.returncode == 4 and "run base: " in done.stdout


def test_a_baseline_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for name in ("base.jsonl.zst", "no/such", str(tmp_path)):
        with pytest.raises(BadInput, match="no such baseline"):
            read_baseline(store, [name])
    with pytest.raises(BadInput, match=r"no run .* begins with '2026'"):
        read_baseline(store, ["2026"])


def test_each_run_counts_once(tmp_path: Path) -> None:
    """Values that were counted twice would halve the bound on their rate."""
    bench = Bench(tmp_path)
    [run] = bench.runs
    assert choose_runs(bench.store, (run, "last", run[:-2])).runs == (run,)
    with pytest.raises(BadInput, match="given twice"):
        read_baseline(bench.store, [str(bench.baseline), run, str(bench.baseline)])
    assert [recording.run_id for recording in read_baseline(bench.store, [str(bench.baseline), run])] == ["base", run]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limits", "status", "said"),
    [
        ('[[limit]]\nboard = "other"\nlimit = "1ms"\n', 3, "the file has no limit for a measured board"),
        ('[[limit]]\nboard = "testboard"\nload = "cpu"\nlimit = "1ms"\n', 3, "no run matches this limit"),
        ('[[limit]]\nprobe = "spin"\nlimit = "1ms"\n' + ABSOLUTE.format("1ms", 0), 3, "no run matches this limit"),
        ('[[limit]]\nboard = "other"\nlimit = "1us"\n' + ABSOLUTE.format("1ms", 0), 0, "1 of 1 limit met"),
        (None, 0, "no limits given"),
    ],
)
def test_a_limit_that_is_for_nothing_is_not_kept_by_that(
    tmp_path: Path, limits: str | None, status: int, said: str
) -> None:
    done = Bench(tmp_path).check(limits)
    assert (done.returncode, said in done.stdout) == (status, True), done.stdout + done.stderr


@pytest.mark.slow
def test_files_for_a_ci(tmp_path: Path) -> None:
    bench = Bench(tmp_path, 3000, head={"configuration": "<b>|evil"})
    limits = "".join(map(GROWTH.format, ("1us", "50us", "3us")))
    bench.check(f'[allow]\ndiffers = ["configuration"]\n{limits}', "--junit", "check.xml", "--markdown", "check.md")
    assert faults((tmp_path / "check.xml").read_bytes()) == []
    suite = ElementTree.parse(tmp_path / "check.xml").getroot()[0]
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["3", "1", "1", "0"]
    failure = suite[0].find("failure")
    assert failure is not None and "wakeup_corrected at 95 %" in (failure.get("message") or "")
    page = (tmp_path / "check.md").read_text()
    assert page.startswith("## fastenough: FAIL\n\ncompared with the baseline, ")
    assert "<b>" not in page and r"\<b\>\|evil" in page
    assert page.count("| FAIL |") == page.count("| INCONCLUSIVE |") == page.count("| PASS |") == 1
    assert "maximum (no test)" in page
    assert plain("a|b\n# c") == r"a\|b \# c"
    nowhere = bench.check(GROWTH.format("1us"), "--junit", "no/such/check.xml")
    assert nowhere.returncode == 2 and "cannot be written" in nowhere.stderr
    said = json.loads(bench.check(f'[allow]\ndiffers = ["configuration"]\n{GROWTH.format("50us")}', "--json").stdout)
    assert said["verdict"] == "PASS" and said["limits"][0]["verdict"] == "PASS"
    unlimited = bench.check(None, "--junit", "none.xml")
    assert unlimited.returncode == 0
    assert ElementTree.parse(tmp_path / "none.xml").getroot()[0].get("skipped") == "1"
    assert faults((tmp_path / "none.xml").read_bytes()) == []


def test_a_run_above_the_limit_that_is_not_named_forbids_a_pass(tmp_path: Path) -> None:
    """Unless --only-these is given, which the first sentence of each output then states."""
    bench, limits = Bench(tmp_path), ABSOLUTE.format("1ms", 0)
    assert bench.check(limits).returncode == 0
    hidden = keep(bench.store, tmp_path / "scratch", values=shifted(3, 2_000_000))
    files = ("--junit", "check.xml", "--json")
    refused = bench.check(limits, *files)
    said = json.loads(refused.stdout)
    assert (refused.returncode, said["verdict"], said["limits"][0]["verdict"]) == (3, "INCONCLUSIVE", "INCONCLUSIVE")
    assert [(one["run_id"], one["exceeds"], one["exceeded"] == one["n"]) for one in said["excluded"]] == [
        (hidden, True, True)
    ]
    suite = ElementTree.parse(tmp_path / "check.xml").getroot()[0]
    assert [suite.get(name) for name in ("tests", "failures", "errors")] == ["1", "0", "1"]
    assert hidden in (suite[0][0].get("message") or "") and hidden in bench.check(limits).stdout
    assert faults((tmp_path / "check.xml").read_bytes()) == []
    stated = bench.check(limits, "--only-these", *files)
    said = json.loads(stated.stdout)
    assert (stated.returncode, said["verdict"], [one["run_id"] for one in said["excluded"]]) == (0, "PASS", [hidden])
    assert "only these runs: 1 other run of the same kind excluded, 1 of them above" in said["conclusion"]


class _Counting(Store):
    """A store that counts how often each run is read."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.reads: Counter[str] = Counter()

    def load(self, run: str) -> Recording:
        self.reads[run] += 1
        return super().load(run)


def _growth_of(others: int, scratch: Path) -> tuple[_Counting, Recording, Recording, list[str]]:
    """A store with a good run and later bad ones, with the good run, its baseline and the ids of the bad ones."""
    store, day_ns = _Counting(scratch / "store"), 86_400 * 10**9
    base = read_recording(write(scratch / "base.jsonl", Plan(shifted(1, 0), run_id="base", begin_ns=2 * day_ns)))
    keep(store, scratch / "scratch", values=shifted(2, 50_000), begin_ns=day_ns)
    good = keep(store, scratch / "scratch", values=shifted(3, 0), begin_ns=3 * day_ns)
    bad = [
        keep(store, scratch / "scratch", values=shifted(4 + n, 50_000), begin_ns=(4 + n) * day_ns)
        for n in range(others)
    ]
    chosen = store.load(good)
    store.reads.clear()
    return store, chosen, base, bad


@pytest.mark.parametrize(
    ("selection", "verdict", "listed"),
    [
        (Selection.CHOSEN, Verdict.INCONCLUSIVE, True),
        (Selection.ONLY_THESE, Verdict.PASS, True),
        (Selection.CAMPAIGN, Verdict.PASS, False),
    ],
)
def test_growth_that_is_not_named_forbids_a_pass(
    selection: Selection, verdict: Verdict, listed: bool, tmp_path: Path
) -> None:
    store, good, base, bad = _growth_of(2, tmp_path)
    limits = Limits((Limit("limit 1", Growth(0.95, more_ns=10_000)),))
    checked = check([good], [base], limits, store, selection=selection)
    assert checked.verdict is checked.limits[0].verdict is verdict
    assert {one.run_id for one in checked.excluded} == (set(bad) if listed else set()), "and none before the baseline"
    assert all(one.exceeds and one.exceeded == one.n for one in checked.excluded)


def test_a_run_that_did_not_grow_is_listed_as_within_the_limit(tmp_path: Path) -> None:
    store, good, base, bad = _growth_of(1, tmp_path)
    limits = Limits((Limit("limit 1", Growth(0.95, more_ns=1_000_000)),))
    (one,) = check([good], [base], limits, store, selection=Selection.CHOSEN).excluded
    assert one.run_id == bad[0] and not one.exceeds


@pytest.mark.parametrize(("quantile", "exceeds"), [(0.95, True), (0.5, False)])
def test_growth_of_some_values_counts_by_the_share_that_the_quantile_permits(
    quantile: float, exceeds: bool, tmp_path: Path
) -> None:
    store, good, base, _ = _growth_of(0, tmp_path)
    values = [[row + 50_000 * (np.arange(row.size) % 5 == 0) for row in rows] for rows in latencies(4)]
    keep(store, tmp_path / "scratch", values=values, begin_ns=4 * 86_400 * 10**9)
    limits = Limits((Limit("limit 1", Growth(quantile, more_ns=10_000)),))
    (one,) = check([good], [base], limits, store, selection=Selection.CHOSEN).excluded
    assert one.exceeds is exceeds and 0.2 <= present(one.exceeded, "values above the limit") / one.n < 0.5


def test_each_other_run_is_read_once_whatever_the_number_of_limits(tmp_path: Path) -> None:
    store, good, base, bad = _growth_of(4, tmp_path)
    limits = [
        *(Limit(f"limit {n}", Growth(0.95, more_ns=n * 1000)) for n in (10, 20, 30)),
        *(Limit(f"limit {n}", Requirement(n * 1_000_000, 0.1)) for n in (1, 2, 3)),
    ]
    checked = check([good], [base], Limits(tuple(limits)), store, selection=Selection.CHOSEN)
    assert len(checked.limits) == len(limits)
    assert set(bad) <= store.reads.keys() and max(store.reads.values()) == 1


def test_the_newest_campaign_is_not_compared_with_its_own_last_run(tmp_path: Path) -> None:
    store = Store(tmp_path / "fastenough-data")
    origin = {"campaign": "c", "plan_sha256": "p", "positions": 2, "planned": ("one", "two")}
    for number in (0, 1):
        keep(store, tmp_path / "scratch", values=shifted(1, 0), origin=origin | {"position": number})
    done = CliRunner().invoke(check_command, ["--baseline", "last", "--store", str(store.path)])
    assert isinstance(done.exception, BadInput) and "of the campaign that is checked" in str(done.exception)


@pytest.mark.slow
def test_the_newest_campaign_is_checked_without_its_baseline(tmp_path: Path) -> None:
    store = Store(tmp_path / "fastenough-data")
    origin = {"campaign": "c", "plan_sha256": "p", "positions": 3, "planned": ("one", "two", "three")}
    base = keep(store, tmp_path / "scratch", values=shifted(1, 0), origin=origin | {"position": 0})
    alone = command_line("check", "--baseline", base, cwd=tmp_path)
    assert alone.returncode == 2 and "is the baseline" in alone.stderr
    keep(store, tmp_path / "scratch", values=shifted(2, 0), origin=origin | {"position": 1})
    (tmp_path / "limits.toml").write_text(GROWTH.format("10us"))
    done = command_line("check", "--baseline", base, "--limits", "limits.toml", cwd=tmp_path)
    assert done.returncode == 3 and "not measured: run 3 of 3 (three)" in done.stdout
    named = command_line("check", base, "--baseline", base, cwd=tmp_path)
    assert named.returncode == 2 and "is the baseline" in named.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '[[limit]]\nmaximum = "100us"\n',
            "limits.toml:2: limit 1: maximum is not supported: a maximum is a single value",
        ),
        ('[[limit]]\nlimit = "1ms"\nmax = "100us"\n', "limits.toml:3: limit 1: max is not supported"),
        (
            '[[limit]]\nquantile = "100%"\nslower-by = "5us"\n',
            "quantile = 100 % is the maximum: a maximum is a single value",
        ),
        ('[[limit]]\nquantile = 1.0\nslower-by = "5us"\n', "is the maximum"),
        ('[[limit]]\nslower-by = "5us"\n', "slower-by requires a quantile"),
        ('[[limit]]\nquantile = "99%"\n', "write either slower-by"),
        ('[[limit]]\nquantile = "99%"\nslower-by = "5us"\nlimit = "1ms"\n', "write either slower-by"),
        ('[[limit]]\nquantile = "99%"\nlimit = "1ms"\n', "quantile belongs to slower-by"),
        ('[[limit]]\nquantile = "99%"\nslower-by = "fast"\n', "slower-by: 'fast' is no duration"),
        ('[[limit]]\nquantile = "99%"\nslower-by = "5us"\nmiss-rate = 0.1\n', "unknown key 'miss-rate'"),
        ('[[limit]]\nlimit = "1ms"\nconfidence = 1\n', "limits.toml:3: limit 1: confidence must"),
        ('[[limit]]\nlimit = "1ms"\nbord = "x"\n', "unknown key 'bord'"),
        ('[allow]\ndiffers = ["colour"]\n[[limit]]\nlimit = "1ms"\n', "[allow]: differs: unknown value 'colour'"),
        ('[allow]\nloads = ["cpu"]\n[[limit]]\nlimit = "1ms"\n', "limits.toml:2: [allow]: unknown key 'loads'"),
        ("", "limit is missing"),
        ("limit = []", "the file has no limit"),
        ("x = [", "invalid TOML"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_the_reason(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "limits.toml").write_text(text)
    with pytest.raises(BadInput) as refused:
        read_limits(tmp_path / "limits.toml")
    assert said in str(refused.value) and "\n" not in str(refused.value)
    with pytest.raises(BadInput, match="no such file of limits"):
        read_limits(tmp_path / "missing.toml")


@pytest.mark.check
def test_each_reason_names_its_subject_where_there_are_several(capsys: pytest.CaptureFixture[str]) -> None:
    limit = Limit("limits.toml: limit 1", Requirement(150_000))
    results = [
        LimitResult(limit, Verdict.INCONCLUSIVE, "3 s measured", f"timer, load {name}") for name in ("none", "cpu")
    ]
    _print(CheckResult(Verdict.INCONCLUSIVE, (), (), tuple(results), ()), "no difference is shown")
    printed = capsys.readouterr().out
    for result in results:
        assert f"INCONCLUSIVE: {result.subject}: {limit.text}: 3 s measured" in " ".join(printed.split())
    _print(CheckResult(Verdict.INCONCLUSIVE, (), (), tuple(results[:1]), ()), "no difference is shown")
    assert f"INCONCLUSIVE: {limit.text}: 3 s measured" in " ".join(capsys.readouterr().out.split())
