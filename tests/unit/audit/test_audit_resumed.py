# SPDX-License-Identifier: GPL-2.0-or-later
"""A resumed audit uses the runs of the interrupted audit, and none of an earlier one."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fastenough.cli import audit_measure
from fastenough.cli.audit_measure import MeasureArguments, measured_audit
from fastenough.jobs.ab import AbRuns, AbTest, _AbCampaign
from fastenough.jobs.audit import Audit
from fastenough.store import Store

CHANGES = {"swappiness": "1", "stat-interval": "60"}


class _Bench:
    """Stands in for the runs of the trials; the audit is interrupted in the trial with the number ``last``."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store, self.last, self.resumed = store, -1, list[bool]()
        monkeypatch.setattr(audit_measure, "make_ab_test", self._make)
        monkeypatch.setattr(audit_measure, "boards_for", lambda plan, *others: (None, plan))
        monkeypatch.setattr(MeasureArguments, "changes", lambda arguments, audit: CHANGES)

    def _make(self, trial: AbTest, store: Store, *others: object, resume: bool, **more: Any) -> AbRuns:
        campaign = _AbCampaign(store, trial)
        if resume:
            campaign.resume()
        campaign.begin().end()
        self.resumed.append(resume)
        stopped = signal.SIGINT if len(self.resumed) == self.last + 1 else 0
        return AbRuns(campaign.campaign, (), (), (), stopped)

    def audit(
        self, *, resume: bool, last: int = -1, machine: str = "a, b, 6.1", loads: Sequence[str] = ("none",)
    ) -> Any:
        """Whether each trial was resumed, in the order of the trials."""
        self.last, self.resumed = last, []
        arguments = MeasureArguments("local", loads, 3, 10**10, "1ms", (), False, resume)
        measured_audit(arguments, Audit("local", machine, ()), self.store)
        return self.resumed


def test_trials_of_an_earlier_audit_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = _Bench(Store(tmp_path), monkeypatch)
    assert bench.audit(resume=False) == [False, False]
    assert bench.audit(resume=False, last=0) == [False]
    assert bench.audit(resume=True) == [True, False]
    assert bench.audit(resume=True) == [True, True]


def test_an_audit_of_another_kernel_or_load_is_not_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = _Bench(Store(tmp_path), monkeypatch)
    bench.audit(resume=False, last=1)
    assert bench.audit(resume=True, machine="a, b, 6.2") == [False, False]
    assert bench.audit(resume=True, loads=("none", "cpu")) == [False] * 4
