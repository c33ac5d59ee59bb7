# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough check --since``: nights add up since the last change, and nothing else does."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Unpack
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.typing import NDArray

from fastenough.analysis.excluded_runs import Selection
from fastenough.analysis.gate import Growth, Limit, LimitResult
from fastenough.analysis.nights import NightsEvidence
from fastenough.jobs.check import check
from fastenough.jobs.limits import Limits
from fastenough.jobs.nights import SinceChange, change_of
from fastenough.model import BadInput, Verdict
from fastenough.recording import Recording, read_recording
from fastenough.store import Store
from tests.process.cli.test_cli_variants import keep
from tests.support.cli_calls import command_line
from tests.support.json_documents import require_valid
from tests.support.junit_rules import faults
from tests.support.recordings import PROFILE, Plan, RunFields, write

pytestmark = [pytest.mark.untimed, pytest.mark.slow]

DAY_NS = 86_400 * 10**9
IN_1970 = -20_700
"""A day before that of the baseline, 2026-09-21."""
LIMITS = Limits((Limit("limit 1", Growth(0.9, more_share=0.1)),))
OTHER_KERNEL = {"profile": PROFILE | {"kernel": PROFILE["kernel"] | {"release": "9.9"}}}


def values(seed: int, slower: float, intervals: int = 24) -> list[list[NDArray[np.int64]]]:
    random = np.random.default_rng(seed)
    return [[(slower * random.lognormal(np.log(20_000), 0.3, 500)).astype(np.int64) for _ in range(intervals)]]


class Nights:
    """A store with nights after a baseline."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = Store(folder / "fastenough-data")
        self.baseline = self.measured_again(0)
        self.ids: list[str] = []

    def measured_again(self, day: float) -> Recording:
        """A baseline of that day."""
        plan = Plan(values(0, 1.0, 90), run_id="base", begin_ns=int(day * DAY_NS))
        return read_recording(write(self.folder / "base.jsonl", plan))

    def add(self, *days: float, slower: float = 1.0, **more: Unpack[RunFields]) -> str:
        """A run of each of these days; returns the id of the last one."""
        for day in days:
            begin_ns = int(day * DAY_NS)
            run_values = values(len(self.ids) + 1, slower)
            self.ids.append(keep(self.store, self.folder / "scratch", values=run_values, begin_ns=begin_ns, **more))
        return self.ids[-1]

    def held(self, change: SinceChange | None = None, selection: Selection = Selection.CAMPAIGN) -> LimitResult:
        """The result of the newest run."""
        newest = self.store.load(self.ids[-1])
        [held] = check(
            [newest], [self.baseline], LIMITS, self.store, selection=selection, since=change or SinceChange()
        ).limits
        return held

    def evidence(self, change: SinceChange | None = None) -> NightsEvidence:
        nights = self.held(change).nights
        assert nights is not None
        return nights


@pytest.mark.parametrize(("slower", "verdict"), [(1.3, Verdict.FAIL), (1.0, Verdict.PASS), (1.1, Verdict.INCONCLUSIVE)])
def test_nights_add_up(slower: float, verdict: Verdict, tmp_path: Path) -> None:
    nights = Nights(tmp_path)
    for day in range(1, 10):
        nights.add(day, slower=slower)
        if day == 1:
            assert nights.held().verdict is Verdict.INCONCLUSIVE and nights.evidence().nights == 1
    held = nights.held()
    assert held.verdict is verdict and held.run_ids == tuple(nights.ids)
    assert held.nights is not None and held.nights.nights == 9


def test_evidence_begins_anew_with_each_change(tmp_path: Path) -> None:
    nights = Nights(tmp_path)
    nights.add(1, 2, slower=3.0)
    nights.add(3, 4, 5, head=OTHER_KERNEL)
    held = nights.held()
    assert held.run_ids == tuple(nights.ids[2:]) and "a change of kernel" in held.reason
    nights.add(6, head=OTHER_KERNEL | {"board": "another"})
    nights.add(7, head=OTHER_KERNEL)
    assert nights.evidence().nights == 4, "another board in the same store is no change"
    nights.baseline = nights.measured_again(4.5)
    assert nights.evidence().nights == 2, "the nights after the new baseline"


def test_a_change_can_be_stated(tmp_path: Path) -> None:
    nights = Nights(tmp_path)
    nights.add(1, 2, 3, 4, 5)
    by_run, by_date = (change_of(nights.store, said) for said in (nights.ids[2], "2026-09-24T14:13"))
    assert nights.held(by_run).run_ids == nights.held(by_date).run_ids == tuple(nights.ids[2:])
    assert "as requested" in nights.held(by_run).reason
    assert change_of(nights.store, "last") == SinceChange() and nights.evidence().nights == 5
    with pytest.raises(BadInput, match="before the change"):
        nights.held(change_of(nights.store, "2030-01-01"))
    for wrong in ("2026-13-01", "nonsense"):
        with pytest.raises(BadInput):
            change_of(nights.store, wrong)


def test_what_happens_to_nights_does_not_mislead(tmp_path: Path) -> None:
    """Missing nights, two runs in one night, a run that cannot be trusted, and a clock that was set back."""
    nights = Nights(tmp_path)
    nights.add(1, 2, 9, 9.2)
    assert nights.evidence().nights == 3
    nights.add(10, slower=9.0, lost=5)
    nights.add(11)
    held = nights.held()
    assert held.nights is not None and held.nights.nights == 4 and "1 untrusted run left out" in held.reason
    nights.add(IN_1970, slower=9.0)
    nights.add(13)
    assert nights.evidence().nights == 5, "the night in 1970 is before the baseline; the others count"
    nights.add(IN_1970)
    assert nights.evidence().nights == 6, "the newest run counts, and the nights stored before it"


@pytest.mark.parametrize("slower", [1.0, 3.0])
def test_a_deleted_night_refuses_a_pass_if_values_exceed_the_limit(slower: float, tmp_path: Path) -> None:
    nights = Nights(tmp_path)
    gone = nights.add(1, slower=slower)
    nights.add(*range(2, 11))
    assert nights.held().verdict is (Verdict.PASS if slower == 1 else Verdict.INCONCLUSIVE)
    shutil.rmtree(nights.store.path / "runs" / gone)
    nights.store = Store(nights.store.path)
    held = nights.held()
    assert held.verdict is Verdict.INCONCLUSIVE and gone in held.reason
    assert nights.held(selection=Selection.ONLY_THESE).verdict is Verdict.PASS


def test_every_output_states_the_evidence(tmp_path: Path) -> None:
    nights = Nights(tmp_path)
    nights.add(1, 2, slower=1.3)
    (tmp_path / "limits.toml").write_text('[[limit]]\nquantile = "90%"\nslower-by = "10%"\n')
    options = ("check", nights.ids[-1], "--baseline", "base.jsonl", "--limits", "limits.toml", "--only-these")
    done = command_line(*options, "--junit", "check.xml", "--markdown", "check.md", "--since", "--json", cwd=tmp_path)
    document = require_valid("check", done.stdout)
    evidence = document["limits"][0]["nights"]
    assert (done.returncode, document["verdict"], evidence["nights"]) == (3, "INCONCLUSIVE", 2)
    assert evidence["expected"] == "FAIL" and 2 < evidence["expected_night"] < 10
    stated = f"FAIL at night {evidence['expected_night']}"
    assert stated in command_line(*options, "--since", "last", cwd=tmp_path).stdout
    assert stated in (tmp_path / "check.md").read_text()
    error = ElementTree.parse(tmp_path / "check.xml").getroot()[0][0].find("error")
    assert error is not None and stated in (error.get("message") or "")
    assert faults((tmp_path / "check.xml").read_bytes()) == []
    refused = command_line("check", "--baseline", "base.jsonl", "--since", cwd=tmp_path)
    assert refused.returncode == 2 and "--since requires" in refused.stderr
