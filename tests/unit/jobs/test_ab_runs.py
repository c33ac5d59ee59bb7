# SPDX-License-Identifier: GPL-2.0-or-later
"""The runs of an A/B test that was resumed: each keeps its arm, and no pair is made of runs of two pairs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fastenough.board import Booted
from fastenough.campaign import Entry, Plan
from fastenough.campaign.runner import ChangedSystem
from fastenough.jobs.ab import AbTest, _AbCampaign, make_ab_test, require_visible
from fastenough.jobs.audit import trials
from fastenough.link import FakeLink
from fastenough.model import Configuration, NotApplicable
from fastenough.recording.head import RecordedSetting
from fastenough.store import Store


def _recording(run: str) -> Any:
    return SimpleNamespace(run_id=run)


@pytest.mark.parametrize("missing", [[], [0], [0, 1], [6], [7], [6, 7], [2, 3, 19], [8, 9, 10, 11], [0, 3]])
def test_runs_keep_their_arms_and_their_pairs(tmp_path: Path, missing: list[int]) -> None:
    """A damaged run is found by the resumed test, which is stopped before it was made again."""
    plan = Plan("ab", (Entry("timer", ("none",), 0.2, {"interval": ("1ms",)}),), boards=("local",))
    campaign = _AbCampaign(Store(tmp_path), AbTest(plan, {"swappiness": "1"}, 5))
    campaign.made = {position: str(position) for position in range(20) if position not in missing}
    result = campaign.result()
    whole = [first for first in range(0, 20, 2) if not {first, first + 1} & set(missing)]
    assert [{int(pair.without.run_id), int(pair.with_change.run_id)} for pair in result.pairs(_recording)] == [
        {first, first + 1} for first in whole
    ]
    for pair in result.pairs(_recording):
        assert campaign.order[int(pair.without.run_id)] == "A" and campaign.order[int(pair.with_change.run_id)] == "B"
        assert pair.change_first == (int(pair.with_change.run_id) < int(pair.without.run_id))
    assert result.rounds == sum({2 * r, 2 * r + 2} <= set(whole) for r in range(0, 10, 2))
    assert len(result.runs) == len(result.order) == 20 - len(missing)


@dataclass
class _Board:
    """A board that runs the kernel that its configuration names."""

    name: str = "local"

    def configurations(self) -> tuple[str, ...]:
        return ("6.1", "6.2", "6.3")

    @contextmanager
    def boot(self, configuration: str) -> Iterator[Booted]:
        yield Booted(FakeLink({}), Configuration(configuration, configuration), "probe")


KERNELS = pytest.mark.parametrize(
    ("kernels", "booted", "changed"),
    [
        ({"A": "6.1", "B": "6.1"}, "", None),
        ({"A": "6.0", "B": "6.0"}, "", "kernel 6.1, .* had 6.0"),
        ({"A": "6.1", "B": "6.2"}, "6.2", None),
        ({"A": "6.1", "B": "6.3"}, "6.2", "kernel 6.2, .* had 6.3"),
    ],
)
"""Kernels of the stored runs of each arm, the configuration with the change, and the difference of the board."""


@KERNELS
def test_a_test_is_resumed_only_on_the_systems_of_its_runs(
    kernels: dict[str, str], booted: str, changed: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def resume(campaign: _AbCampaign) -> None:
        campaign.made = {position: campaign.order[position] for position in (0, 1)}

    monkeypatch.setattr(_AbCampaign, "resume", resume)
    _assert_resumed(kernels, booted, changed, Store(tmp_path), monkeypatch)


@KERNELS
def test_a_test_of_an_audit_begins_only_on_the_systems_of_its_earlier_tests(
    kernels: dict[str, str], booted: str, changed: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test itself has no stored run; those of another audit are of no concern."""

    class Stored(Store):
        def runs(self, *, last: int | None = None, brief: bool = False, **equal: Any) -> list[Any]:
            runs = [("other", "audit-0-x", "6.1"), ("A", "audit-1-x", "6.1"), ("B", "audit-1-x", booted)]
            of_configuration = [run for run in runs if run[2] == equal["configuration"]]
            return [SimpleNamespace(id=run, campaign=campaign) for run, campaign, _ in of_configuration]

    monkeypatch.setattr(_AbCampaign, "resume", lambda campaign: None)
    _assert_resumed(kernels | {"other": "5.0"}, booted, changed, Stored(tmp_path), monkeypatch, audit="audit-1")


def test_an_audit_boots_each_configuration_once_to_compare_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its next tests are those of the same program, which has not changed the system."""
    booted: list[str] = []
    plan = Plan("ab", (Entry("timer", ("none",), 0.2, {}),), boards=("local",), configurations=("6.1",))
    campaign, compared = _AbCampaign(Store(tmp_path), AbTest(plan, {"swappiness": "1"}, 5, audit="audit-1")), set[str]()
    monkeypatch.setattr(campaign, "require_system_of", lambda runs, board, name: booted.append(name))
    for _ in range(2):
        campaign.require_same_systems(lambda name: _Board(), compared)
    assert booted == ["6.1"]


def _assert_resumed(
    kernels: dict[str, str],
    booted: str,
    changed: str | None,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    *,
    audit: str = "",
) -> None:
    """The next run is made unless the board is ``changed``."""

    def load(campaign: _AbCampaign, run: str) -> Any:
        return SimpleNamespace(
            head=SimpleNamespace(configuration=Configuration("", kernels[run]), profile=None, machine=None, board=None)
        )

    def reached(*_: object) -> None:
        raise NotApplicable("the next run would be made")

    monkeypatch.setattr(_AbCampaign, "load", load)
    monkeypatch.setattr("fastenough.jobs.ab.require_changeable", reached)
    plan = Plan("ab", (Entry("timer", ("none",), 0.2, {}),), boards=("local",), configurations=("6.1",))
    trial = AbTest(plan, {} if booted else {"swappiness": "1"}, 5, booted, audit=audit)
    with pytest.raises(ChangedSystem if changed else NotApplicable, match=changed):
        make_ab_test(trial, store, lambda *_: None, opened=lambda name: _Board(), resume=True)


def _holding(us: int | None) -> Any:
    hold = RecordedSetting("cpu_dma_latency_us", None if us is None else 0, us)
    return SimpleNamespace(head=SimpleNamespace(settings=(RecordedSetting("policy", "fifo", "fifo"), hold)))


@pytest.mark.parametrize(("held_us", "value"), [(0, "10"), (10, "10"), (0, "0")])
def test_idle_states_that_the_probe_prevents_are_no_effect_of_a_setting(held_us: int, value: str) -> None:
    with pytest.raises(NotApplicable, match="latency=off"):
        require_visible(_holding(held_us), {"swappiness": "1", "idle-latency": value})


@pytest.mark.parametrize(("held_us", "change"), [(None, "idle-latency"), (20, "idle-latency"), (0, "swappiness")])
def test_other_changes_are_visible(held_us: int | None, change: str) -> None:
    require_visible(_holding(held_us), {change: "10"})


def test_an_audit_measures_idle_states_that_the_probe_allows() -> None:
    plan = Plan("audit", (Entry("timer", ("none",), 0.2, {"interval": ("1ms",)}),), boards=("local",))
    idle, other = trials(plan, {"idle-latency": "10", "swappiness": "1"}, ("cpu",), 3)
    for arm in (idle.plan, idle.with_change()):
        assert arm.entries[0].parameters == {"interval": ("1ms",), "latency": ("off",)}
    assert other.plan.entries[0].parameters == {"interval": ("1ms",)}
