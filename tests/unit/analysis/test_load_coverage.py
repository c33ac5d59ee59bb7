# SPDX-License-Identifier: GPL-2.0-or-later
"""Which runs must have been measured under which loads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastenough.analysis import judge
from fastenough.analysis.differences import difference
from fastenough.analysis.excluded_runs import Selection
from fastenough.analysis.load_coverage import coverage_gaps
from fastenough.model import Requirement
from fastenough.pack.question import PackedQuestion, judged_alone
from fastenough.recording import LoadStated, Recording
from fastenough.recording.head import RecordedSetting
from tests.support.recordings import PROFILE, Plan, recording

pytestmark = pytest.mark.quick

_PRIORITY = RecordedSetting("priority", 10, 10)
_BENCH = RecordedSetting("control-priority", 50, 50)
_UNREAD = PROFILE | {"kernel_config": None, "absent": PROFILE["absent"] | {"kernel_config": "/boot/config: denied"}}
_ELSEWHERE = PROFILE | {"machine": None, "absent": PROFILE["absent"] | {"machine": "no identifier"}}


@pytest.fixture(name="run", scope="module")
def _run(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return recording(tmp_path_factory.mktemp("coverage"), Plan([[np.full(10, 1000)]]))


def _variant(run: Recording, run_id: str, load: str, **head: Any) -> Recording:
    return replace(run, head=replace(run.head, run_id=run_id, load=LoadStated(load), **head))


def _gaps(runs: Sequence[Recording], *, planned: bool = False) -> list[str]:
    return list(coverage_gaps(runs, planned=planned))


@pytest.mark.parametrize(
    "change",
    [
        {"implementation": "linux-kernel"},
        {"settings": (_PRIORITY,)},
        {"profile": PROFILE | {"cpu_isolation": {"isolated": "", "nohz_full": ""}}},
        {"profile": PROFILE | {"frequency": {"cpus": {"cpu0": {"scaling_governor": "powersave"}}}}},
        {"profile": PROFILE | {"kernel": PROFILE["kernel"] | {"version": "#2"}}},
        {"board": "other", "profile": _ELSEWHERE},
    ],
)
def test_loads_may_not_be_divided_among_setups(run: Recording, change: dict[str, Any]) -> None:
    idle, busy = _variant(run, "idle", "none"), _variant(run, "busy", "own", **change)
    assert any("run idle" in gap and "run busy" in gap for gap in _gaps([idle, busy]))
    assert not _gaps([idle, _variant(run, "same", "own")])


def test_one_complete_setup_of_a_subject_suffices(run: Recording) -> None:
    """An earlier priority, measured under fewer loads, takes nothing from the present one."""
    earlier = _variant(run, "earlier", "none", settings=(_PRIORITY,))
    now = [_variant(run, load, load) for load in ("none", "own")]
    assert not _gaps([earlier, *now])
    other_subject = _variant(run, "kernel", "none", implementation="linux-kernel")
    assert len(_gaps([other_subject, *now])) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"configuration": None, "profile": None},
        {"board": None},
        {"profile": _UNREAD},
        {"board": "renamed"},
    ],
)
def test_what_a_run_does_not_state_is_no_difference(run: Recording, change: dict[str, Any]) -> None:
    assert not _gaps([_variant(run, "idle", "none"), _variant(run, "busy", "own", **change)])


def test_a_setting_that_only_one_run_states_is_no_difference(run: Recording) -> None:
    settings = (*run.head.settings, _BENCH)
    assert not _gaps([_variant(run, "idle", "none", settings=settings), _variant(run, "busy", "own")])


def test_an_unknown_run_does_not_join_two_setups(run: Recording) -> None:
    unknown = _variant(run, "unknown", "none", profile=None)
    kernels = [
        _variant(run, name, name, profile=PROFILE | {"kernel": {"release": name}}) for name in ("first", "second")
    ]
    assert len(_gaps([unknown, *kernels])) >= 2


def test_each_entry_of_a_plan_has_its_own_loads(run: Recording) -> None:
    runs = [_variant(run, f"user-{load}", load) for load in ("none", "cpu")]
    runs += [_variant(run, f"kernel-{load}", load, implementation="linux-kernel") for load in ("none", "io")]
    fast = {**run.head.parameters, "interval_ns": 200_000}
    runs.append(_variant(run, "fast", "net", parameters=fast))
    assert _gaps(runs) and not _gaps(runs, planned=True)
    upgraded = PROFILE | {"kernel": PROFILE["kernel"] | {"version": "#2"}}
    resumed = [_variant(run, "before", "none"), _variant(run, "after", "cpu", profile=upgraded)]
    assert len(_gaps(resumed, planned=True)) == 2, "the system changed within one entry"


def test_runs_beyond_a_plan_need_no_load(run: Recording, tmp_path: Path) -> None:
    """In a farm, pulled recordings and those of earlier cycles are further data."""
    further = recording(tmp_path, Plan([[np.full(10, 2000)]], run_id="pulled"))
    planned = _variant(run, "planned", "none")
    pulled = _variant(further, "pulled", "application", settings=(_PRIORITY,))
    for ids, expected in (((), True), ((planned.run_id,), False)):
        reasons = judge([planned, pulled], Requirement(1_000_000), planned=ids).reasons
        assert any("was not measured under load" in reason for reason in reasons) is expected


@pytest.mark.parametrize(("selection", "expected"), [(Selection.CAMPAIGN, False), (Selection.CHOSEN, True)])
def test_a_pack_of_a_campaign_requires_the_loads_of_its_plan(
    run: Recording, tmp_path: Path, selection: Selection, expected: bool
) -> None:
    in_kernel = recording(tmp_path, Plan([[np.full(10, 2000)]]))
    runs = [_variant(run, "user", "none"), _variant(in_kernel, "kernel", "own", implementation="linux-kernel")]
    question = PackedQuestion(Requirement(1_000_000), 0.95, None, ("none", "own"), (), selection.name, ())
    reasons = judged_alone(runs, question).reasons
    assert any("was not measured under load" in reason for reason in reasons) is expected


def test_runs_without_a_profile_are_compared_once(run: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of imported runs state the same: nothing."""
    compared: list[str] = []

    def counted(*arguments: Any, **more: Any) -> str | None:
        compared.append("")
        return difference(*arguments, **more)

    monkeypatch.setattr("fastenough.analysis.load_coverage.difference", counted)
    loads = ("none", "cpu", "io", "vm")
    runs = [_variant(run, f"run-{count}", loads[count % 4], profile=None) for count in range(400)]
    assert not _gaps(runs) and len(compared) < 50
