# SPDX-License-Identifier: GPL-2.0-or-later
"""CPUs and CPU time that were withheld from a run are never passed over in a verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fastenough.analysis import Assessment, judge, words
from fastenough.analysis.machine import counter_total, cpus_of_fact
from fastenough.model import Requirement, Verdict
from tests.support.recordings import COUNTERS, PROFILE, Plan, latencies, recording

LOOSE = Requirement(limit_ns=1_000_000)
POLICY = {"name": "policy", "requested": "fifo", "in_effect": "fifo"}
PINNED = tuple(
    {"name": "affinity", "thread": "timer", "cpu": cpu, "requested": str(cpu), "in_effect": str(cpu)} for cpu in (0, 1)
)


def _profile(online: object) -> dict[str, Any]:
    return {"profile": PROFILE | {"cpu_isolation": {"online": online, "offline": ""}}}


def _judged(folder: Path, cpus: int = 2, online: object = "0-1", **what: Any) -> Assessment:
    counters = COUNTERS | {"cgroup_throttled": 0} | what.pop("counters", {})
    plan = Plan(latencies(1, cpus=cpus), counters=counters, head=_profile(online), **what)
    return judge([recording(folder, plan)], LOOSE)


def test_nothing_withheld_is_a_pass_without_a_word(tmp_path: Path) -> None:
    found = _judged(tmp_path, settings=(POLICY, *PINNED))
    assert found.verdict is Verdict.PASS
    assert "not measured" not in found.headline + " ".join(found.reasons)
    assert "on each CPU, at most 1 disturbance" in found.reasons[0]


def test_a_cpu_that_was_not_measured_is_named(tmp_path: Path) -> None:
    found = _judged(tmp_path, online="0-3")
    assert found.verdict is Verdict.PASS
    assert found.headline.endswith("; CPUs 2-3 were not measured")
    assert "on each CPU measured, at most 1 disturbance" in found.reasons[0]
    assert "not measured" not in " ".join(found.reasons), "it is said once"
    alone = _judged(tmp_path, cpus=1)
    assert alone.headline.endswith("; CPU 1 was not measured")


@pytest.mark.parametrize("online", [None, "", "rubbish", "0-9999999999", 7, ["0"]])
def test_a_profile_that_says_nothing_breaks_nothing(tmp_path: Path, online: object) -> None:
    assert _judged(tmp_path, online=online).verdict is Verdict.PASS


@pytest.mark.parametrize("online", ["0-65535," * 100, "0-99999999", "rubbish"])
def test_an_impossible_list_of_cpus_is_unknown(tmp_path: Path, online: str) -> None:
    plan = Plan(latencies(1), head=_profile(online))
    assert cpus_of_fact(recording(tmp_path, plan), "online") == set()


def test_a_quota_that_was_used_up_is_broken(tmp_path: Path) -> None:
    found = _judged(tmp_path, counters={"cgroup_throttled": 296})
    assert found.verdict is Verdict.BROKEN
    assert "296 periods" in found.reasons[0]


@pytest.mark.parametrize("settings", [PINNED, ({"name": "cpu", "requested": 1, "in_effect": 1},)])
def test_pinned_threads_that_moved_are_broken(tmp_path: Path, settings: tuple[dict[str, Any], ...]) -> None:
    found = _judged(tmp_path, settings=settings, counters={"migrations": 1})
    assert found.verdict is Verdict.BROKEN
    assert "wrong CPU" in found.reasons[0]
    free = tuple(setting | {"requested": None} for setting in settings)
    assert _judged(tmp_path, settings=(POLICY, *free), counters={"migrations": 1}).verdict is Verdict.PASS


def test_a_counter_below_zero_is_unknown(tmp_path: Path) -> None:
    plan = Plan(
        latencies(1), counters=COUNTERS | {"steal_ns": -9_440_000_000}, head=_profile("0-1"), marks=("virtual-machine",)
    )
    run = recording(tmp_path, plan)
    assert counter_total(run, "steal_ns") is None
    found = judge([run], LOOSE)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "cannot be read" in " ".join(found.cautions)


def test_cpus_in_words() -> None:
    assert words.cpus([3]) == "CPU 3"
    assert words.cpus([0, 2, 3, 4, 7]) == "CPUs 0, 2-4, 7"
