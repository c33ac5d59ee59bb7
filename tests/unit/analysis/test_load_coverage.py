# SPDX-License-Identifier: GPL-2.0-or-later
"""Which runs must have been measured under which loads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
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
_INTERRUPTS = RecordedSetting("irq-affinity", "0", "0")
_POWERSAVE = PROFILE | {"frequency": {"cpus": {"cpu0": {"scaling_governor": "powersave"}}}}
_UNREAD = PROFILE | {"kernel_config": None, "absent": PROFILE["absent"] | {"kernel_config": "/boot/config: denied"}}
_ELSEWHERE = PROFILE | {"machine": None, "absent": PROFILE["absent"] | {"machine": "no identifier"}}


@pytest.fixture(name="run", scope="module")
def _run(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return recording(tmp_path_factory.mktemp("coverage"), Plan([[np.full(10, 1000)]]))


def _variant(run: Recording, run_id: str, load: str, **head: Any) -> Recording:
    return replace(run, head=replace(run.head, run_id=run_id, load=LoadStated(load), **head))


def _later(run: Recording, seconds: int) -> Recording:
    begin = run.head.begin
    return replace(run, head=replace(run.head, begin=replace(begin, wall_ns=begin.wall_ns + seconds * 10**9)))


def _gaps(runs: Sequence[Recording], *, planned: bool = False) -> list[str]:
    return list(coverage_gaps(runs, planned=planned))


@pytest.mark.parametrize(
    "change",
    [
        {"implementation": "linux-kernel"},
        {"settings": (_PRIORITY,)},
        {"profile": PROFILE | {"cpu_isolation": {"isolated": "", "nohz_full": ""}}},
        {"profile": _POWERSAVE},
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


def test_the_newest_setup_needs_all_loads(run: Recording) -> None:
    before = [_later(_variant(run, load, load), 1) for load in ("none", "own")]
    now = _later(_variant(run, "now", "none", profile=_POWERSAVE), 2)
    (gap,) = _gaps([*before, now])
    assert "run now" in gap and "run own" in gap and "powersave" in gap
    assert not _gaps([_variant(run, "earlier", "none", profile=_POWERSAVE), *before])


def test_the_order_of_the_runs_does_not_matter(run: Recording) -> None:
    runs = [
        _later(_variant(run, "cpu-before", "cpu", profile=_POWERSAVE), 1),
        _later(_variant(run, "cpu", "cpu"), 2),
        _later(_variant(run, "io", "io"), 3),
        _later(_variant(run, "unknown", "none", profile=None), 4),
    ]
    assert not any(_gaps(order) for order in permutations(runs))


def test_the_newest_run_of_several_alike_counts(tmp_path: Path) -> None:
    """Without load under an earlier governor, and again after the run under load."""
    measured = [recording(tmp_path, Plan([[np.full(10, value)]], run_id=f"r{value}")) for value in (1, 2, 3, 4)]
    runs = [
        _later(_variant(measured[0], "first", "none", profile=_POWERSAVE), 1),
        *(_later(_variant(measured[count], load, load), 2) for count, load in ((1, "none"), (2, "own"))),
        _later(_variant(measured[3], "again", "none", profile=_POWERSAVE), 3),
    ]
    assessment = judge(runs, Requirement(1_000_000))
    reasons = assessment.reasons
    assert [reason for reason in reasons if "was not measured under load own" in reason and "run again" in reason]
    assert assessment.next_steps.count("Measure one setup under all of these loads") == 1
    assert not any("missing runs" in step for step in assessment.next_steps)


def test_each_gap_is_stated_once_with_the_run_under_its_load(run: Recording) -> None:
    elsewhere = [_variant(run, load, load, implementation="linux-kernel") for load in ("cpu", "io")]
    unknown = _variant(run, "unknown", "none", profile=None)
    gaps = _gaps([*elsewhere, _variant(run, "idle", "none"), unknown])
    of_user = [gap for gap in gaps if "setup of run idle" in gap or "setup of run unknown" in gap]
    assert len(of_user) == 2 == len(set(of_user))
    for load in ("cpu", "io"):
        assert [gap for gap in of_user if f"under load {load}, only that of run {load} was" in gap]


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


@pytest.mark.parametrize(("setting", "gaps"), [(_BENCH, 0), (_INTERRUPTS, 1)])
def test_only_a_setting_of_the_bench_need_not_be_stated(run: Recording, setting: RecordedSetting, gaps: int) -> None:
    """Pulled recordings have none of the bench; of the board, a setting that was not made is another setup."""
    settings = (*run.head.settings, setting)
    assert len(_gaps([_variant(run, "idle", "none", settings=settings), _variant(run, "busy", "own")])) == gaps


def test_an_ordinary_user_reads_less_than_root(run: Recording) -> None:
    kernel = PROFILE["kernel"] | {"preemption": "voluntary", "build_id": "ab"}
    tunables = {"timer_migration": "1", "tracer": "nop"}
    of_root = _variant(run, "root", "none", profile=PROFILE | {"kernel": kernel, "tunables": tunables})
    unread: dict[str, Any] = {
        "kernel": kernel | {"preemption": "stock", "build_id": None},
        "tunables": tunables | {"tracer": None},
    }
    assert not _gaps([of_root, _variant(run, "user", "own", profile=PROFILE | unread)])
    unread["tunables"]["timer_migration"] = "0"
    assert len(_gaps([of_root, _variant(run, "other", "own", profile=PROFILE | unread)])) == 1


@pytest.mark.parametrize("planned", [False, True])
def test_a_parameter_that_only_one_version_states_is_no_difference(run: Recording, planned: bool) -> None:
    """Of one version, a parameter that a run does not state has its default."""
    parameters = {**run.head.parameters, "distance_ns": 0}
    for version, gaps in (("1", 0), ("0", 0 if planned else 1)):
        tool = replace(run.head.tool, version=version)
        now = _variant(run, "now", "own", parameters=parameters, tool=tool)
        assert len(_gaps([_variant(run, "before", "none"), now], planned=planned)) == gaps
    upgraded = _variant(run, "now", "own", parameters=parameters, tool=replace(tool, version="1"), profile=_POWERSAVE)
    assert len(_gaps([_variant(run, "before", "none"), upgraded], planned=planned)) == 1


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


@pytest.mark.parametrize(
    ("selection", "planned", "expected"),
    [
        (Selection.CAMPAIGN, None, False),
        (Selection.CHOSEN, None, True),
        (Selection.CAMPAIGN, False, True),
        (Selection.ONLY_THESE, True, False),
    ],
)
def test_a_pack_of_a_campaign_requires_the_loads_of_its_plan(
    run: Recording, tmp_path: Path, selection: Selection, planned: bool | None, expected: bool
) -> None:
    """Older packs do not state whether the runs were planned: None."""
    in_kernel = recording(tmp_path, Plan([[np.full(10, 2000)]]))
    runs = [_variant(run, "user", "none"), _variant(in_kernel, "kernel", "own", implementation="linux-kernel")]
    question = PackedQuestion(
        Requirement(1_000_000), 0.95, None, ("none", "own"), (), selection.name, (), planned=planned
    )
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
