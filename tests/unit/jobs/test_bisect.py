# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough bisect`` on a repository whose commits state how long their path is; guests are stand-ins."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fastenough.analysis.gate import Budget
from fastenough.campaign import Campaign, Entry, Plan
from fastenough.campaign.expand import WHOLE, expand
from fastenough.campaign.ledger import Ledger
from fastenough.campaign.stop import StopRequest
from fastenough.cli import bisect as command_module
from fastenough.cli import cli
from fastenough.jobs import bisect
from fastenough.jobs.bisect import (
    BisectionSetup,
    BisectionStopped,
    CommitBench,
    CommitBisection,
    LengthCriterion,
    LimitCriterion,
    RiseCriterion,
    bisect_commits,
)
from fastenough.jobs.commit_search import CommitRating
from fastenough.model import BadInput, FastenoughError
from fastenough.store import Store
from fastenough.virtual.git_repository import open_repository
from tests.support import recordings
from tests.support.deterministic_runs import COUNTED, EMULATOR, PATH, one_interval
from tests.support.git_history import Commit, make_history
from tests.support.json_documents import require_valid
from tests.support.presence import present

pytestmark = pytest.mark.check

LENGTHS = (0, 0, 16, 16, 16, 16, 160, 160, 160, 160)
"""How many instructions the path of each commit has more than ``PATH``."""
HISTORY = [
    Commit(f"c{number}", (f"c{number - 1}",) if number else (), {"length": f"{length} {number}"})
    for number, length in enumerate(LENGTHS)
]
RISE = RiseCriterion(Budget("median", 100))


class Guests:
    """Stands in for ``run_campaign``: guests of kernels that are named like commits.

    ``measured``: the kernel of each run.  ``stop_at``: number of runs before a signal ends the campaign.  ``dead``:
    kernels that do not boot.  ``lossy``: kernels whose runs lose samples.  ``broken``: commits that do not build.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ids = make_history(folder / "linux", HISTORY)
        self.repository = open_repository(folder / "linux")
        self.store = Store(folder / "fastenough-data")
        self.measured: list[str] = []
        self.stop_at: int | None = None
        self.dead: set[str] = set()
        self.lossy: set[str] = set()
        self.broken: set[str] = set()
        self.emulator: Mapping[str, str] = EMULATOR
        self.guest = "first"
        self.told: list[str] = []

    def build(self, commit: str) -> str:
        if commit in self.broken:
            raise FastenoughError("does not build: init/main.c:7:1: error: no such thing")
        return commit[:12]

    def __call__(self, plan: Plan, store: Store, *_: object, resume: bool, **__: object) -> Campaign:
        specs = expand(plan)
        ledger = Ledger.of(plan, specs, store, resume)
        for spec in specs:
            if len(self.measured) == self.stop_at:
                return Campaign(ledger.campaign, tuple(ledger.done.values()), stopped=True, signal=2)
            if not ledger.has(spec):
                self.measured.append(spec.configuration)
                writer = ledger.begin(store, spec, WHOLE)
                recorded = self._recorded(writer.id, spec.configuration, spec.load, spec.phase_ns)
                for line in recorded.read_bytes().splitlines(keepends=True):
                    writer.line(line)
                writer.end()
        return Campaign(ledger.campaign, tuple(ledger.done[position] for position in sorted(ledger.done)), False)

    def _recorded(self, run: str, kernel: str, load: str, phase_ns: int | None) -> Path:
        text = subprocess.check_output(["git", "-C", str(self.repository.path), "show", f"{kernel}:length"], text=True)
        more = int(text.split()[0])
        head: dict[str, Any] = {"profile": COUNTED | {"emulator": self.emulator}, "configuration": kernel}
        head |= {} if phase_ns is None else {"phase_ns": phase_ns}
        dead = kernel in self.dead
        values = [] if dead else one_interval([value + more for value in PATH])
        lost = 3 * (kernel in self.lossy)
        plan = recordings.Plan(values, run, load=load, marks=("emulated",), head=head, lost=lost)
        if dead:
            plan.outcome, plan.reasons = "failed", ("the guest does not start",)
        return recordings.write(self.folder / "scratch", plan)

    def bench(self) -> CommitBench:
        return CommitBench(
            self.build,
            self.emulator,
            lambda kernel: self.guest,
            _no_board,
            self.store,
            lambda progress: None,
            StopRequest(),
            self.told.append,
        )

    def bisect(
        self, criterion: LengthCriterion, good: str = "c0", bad: str = "c9", load: str = "none", phases: int = 1
    ) -> CommitBisection:
        entry = Entry("timer", (load,), 0.3, {"interval": ("1ms",)}, phases=phases)
        setup = BisectionSetup(Plan("bisect", (entry,), boards=("deterministic",)), criterion)
        return bisect_commits(self.repository, good, bad, setup, self.bench())

    def names(self, commits: Sequence[str]) -> list[str]:
        return [name for name, commit in self.ids.items() if commit in commits]


def _no_board(name: str) -> Any:
    raise AssertionError(name)


@pytest.fixture
def guests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Guests:
    guests = Guests(tmp_path)
    monkeypatch.setattr(bisect, "run_campaign", guests)
    return guests


@pytest.mark.parametrize(
    ("criterion", "first_bad"),
    [
        (RISE, "c6"),
        (RiseCriterion(Budget("median", more_share=0.02)), "c6"),
        (RiseCriterion(Budget("minimum", 0)), "c2"),
        (LimitCriterion(PATH[-1] + 100), "c6"),
        (LimitCriterion(PATH[-1]), "c2"),
        (LimitCriterion(PATH[-1] + 159), "c6"),
    ],
)
def test_the_commit_that_made_the_path_longer_is_named_with_both_figures(
    guests: Guests, criterion: LengthCriterion, first_bad: str
) -> None:
    found = guests.bisect(criterion)
    assert (found.first_bad, guests.names(found.suspects)) == (guests.ids[first_bad], [first_bad])
    results = {result.commit: result for result in found.results}
    (before,) = found.neighbours
    assert guests.names([before]) == [f"c{int(first_bad[1:]) - 1}"]
    for commit, rating in ((before, CommitRating.GOOD), (guests.ids[first_bad], CommitRating.BAD)):
        (path,) = results[commit].paths
        (name,) = guests.names([commit])
        assert results[commit].rating is rating
        assert path.figure("maximum").second == PATH[-1] + LENGTHS[int(name[1:])]
        assert path.figure("minimum").first == PATH[0], "compared with the good commit"
        configurations = [guests.store.load(run).head.configuration for run in results[commit].runs]
        assert [present(one, "configuration").name for one in configurations] == [commit[:12]]
    assert results[guests.ids[first_bad]].reason.count("instructions") >= 1
    assert len(guests.told) == len(found.results)


def test_a_repeated_search_measures_nothing(guests: Guests) -> None:
    first = guests.bisect(RISE)
    measured = len(guests.measured)
    assert guests.bisect(RISE) == first and len(guests.measured) == measured == len(set(guests.measured))
    guests.bisect(LimitCriterion(PATH[-1]))
    assert len(guests.measured) == len(set(guests.measured)), "another criterion uses the same runs"


@pytest.mark.parametrize("stop_at", [0, 1, 3])
def test_an_interrupted_search_continues_where_it_ended(guests: Guests, stop_at: int) -> None:
    guests.stop_at = stop_at
    with pytest.raises(BisectionStopped) as stopped:
        guests.bisect(RISE)
    assert stopped.value.signal == 2 and len(guests.measured) == stop_at
    guests.stop_at = None
    assert guests.names(guests.bisect(RISE).suspects) == ["c6"]
    assert len(guests.measured) == len(set(guests.measured))


def test_each_phase_of_an_interrupted_commit_is_measured_once(guests: Guests) -> None:
    guests.stop_at = 4
    with pytest.raises(BisectionStopped):
        guests.bisect(LimitCriterion(PATH[-1] + 100), load="cpu", phases=3)
    guests.stop_at = None
    found = guests.bisect(LimitCriterion(PATH[-1] + 100), load="cpu", phases=3)
    assert guests.names(found.suspects) == ["c6"]
    assert {guests.measured.count(kernel) for kernel in guests.measured} == {3}
    assert all(len(result.maxima[0].maxima[1]) == 3 for result in found.results)


def test_runs_of_another_emulator_are_not_used(guests: Guests) -> None:
    guests.bisect(RISE)
    measured = len(guests.measured)
    guests.emulator = EMULATOR | {"version": "10.0"}
    assert guests.names(guests.bisect(RISE).suspects) == ["c6"]
    assert len(guests.measured) == 2 * measured


def test_runs_of_another_guest_are_not_used(guests: Guests) -> None:
    """Another probe, or other files of the guest, make other paths: they would be blamed on a commit."""
    first = guests.bisect(RISE)
    measured, guests.guest = len(guests.measured), "second"
    again = guests.bisect(RISE)
    assert len(guests.measured) == 2 * measured
    assert not {run for result in again.results for run in result.runs} & {
        run for result in first.results for run in result.runs
    }
    guests.bisect(RISE)
    assert len(guests.measured) == 2 * measured


def test_what_does_not_build_or_boot_is_skipped(guests: Guests) -> None:
    guests.broken, guests.dead = {guests.ids["c4"]}, {guests.ids["c5"][:12]}
    found = guests.bisect(RISE, "c3", "c7")
    assert found.first_bad is None
    assert guests.names(found.suspects) == ["c4", "c5", "c6"]
    reasons = {result.commit: (result.rating, result.reason) for result in found.results}
    assert reasons[guests.ids["c4"]][0] is reasons[guests.ids["c5"]][0] is CommitRating.SKIPPED
    assert "main.c:7:1" in reasons[guests.ids["c4"]][1] and reasons[guests.ids["c5"]][1] == "the guest does not start"


def test_a_run_that_lost_samples_decides_nothing(guests: Guests) -> None:
    guests.lossy = {guests.ids["c5"][:12]}
    found = guests.bisect(RISE, "c4", "c6")
    assert (found.first_bad, guests.names(found.suspects)) == (None, ["c5", "c6"])


def test_ends_are_measured_before_they_are_believed(guests: Guests) -> None:
    with pytest.raises(BadInput, match=r"--good .* is bad: maximum 8,544 instructions, limit 8,000"):
        guests.bisect(LimitCriterion(8_000))
    with pytest.raises(BadInput, match=r"--bad .* is good"):
        guests.bisect(RISE, "c0", "c5")
    guests.broken = {guests.ids["c0"]}
    with pytest.raises(BadInput, match=r"--good .* is skipped: does not build"):
        guests.bisect(RISE)


def test_a_path_has_a_length_without_load_only(guests: Guests) -> None:
    with pytest.raises(BadInput, match="--limit"):
        guests.bisect(RISE, load="cpu")
    assert not guests.measured


@pytest.fixture
def command(guests: Guests, monkeypatch: pytest.MonkeyPatch) -> Guests:
    """The command with builds and guests that are stand-ins."""
    monkeypatch.chdir(guests.folder)
    kernels = SimpleNamespace(build=lambda commit, tell: guests.build(commit))
    monkeypatch.setattr(command_module, "CommitKernels", lambda *_: kernels)
    monkeypatch.setattr(command_module, "require_packages", lambda arch: None)
    monkeypatch.setattr(command_module, "emulator_of", lambda machine: guests.emulator)
    monkeypatch.setattr(command_module, "guest_sha256", lambda kernel: guests.guest)
    return guests


def invoke(*words: str) -> Result:
    ends = () if "--good" in words else ("--good", "c0", "--bad", "c9")
    listening = SimpleNamespace(listen=lambda: None)
    return CliRunner().invoke(cli, ["bisect", "linux", *ends, *words], obj=listening, standalone_mode=False)


def test_the_command_prints_the_first_bad_commit(command: Guests) -> None:
    done = invoke("--longer-by", "100")
    assert done.return_value == 0, done.output
    assert command.ids["c6"] in done.output and command.ids["c5"] in done.output and "+160 instructions" in done.output
    document = require_valid("bisect", invoke("--limit", "8.6us", "--json").stdout)
    assert document["first_bad"] == command.ids["c6"] and document["neighbours"] == [command.ids["c5"]]
    assert invoke("--limit", "8.6us", "--load", "cpu", "--phases", "2", "--json").return_value == 0


def test_a_range_has_a_status_of_its_own(command: Guests) -> None:
    command.broken = {command.ids["c6"]}
    done = invoke("--longer-by", "2%", "--json")
    assert done.return_value == 3
    document = require_valid("bisect", done.stdout)
    assert (document["first_bad"], len(document["suspects"])) == (None, 2)


def test_an_interrupted_command_has_the_status_of_its_signal(command: Guests) -> None:
    command.stop_at = 2
    assert invoke("--longer-by", "100").return_value == 130


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--limit", "1us", "--longer-by", "1%"),
        ("--longer-by", "5us"),
        ("--longer-by", "100", "--load", "cpu"),
        ("--longer-by", "100", "--load", "none,cpu"),
        ("--longer-by", "100", "--good", "c0", "--bad", "c77"),
    ],
)
def test_wrong_usage_measures_nothing(command: Guests, words: Sequence[str]) -> None:
    assert isinstance(invoke(*words).exception, BadInput)
    assert not command.measured
