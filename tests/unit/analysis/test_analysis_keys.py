# SPDX-License-Identifier: GPL-2.0-or-later
"""Which runs are merged and which compared: the registry of keys, each of its keys tried, and its page in the docs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fastenough.analysis import MixedRuns, compare, differences, grouped, judge, keys, merge_samples, merged
from fastenough.analysis.approach_rating import same_configuration
from fastenough.analysis.compare import sides_of
from fastenough.analysis.keys import DOES_NOT_MATTER, RUN_KEYS, SERIES_KEYS, Forbids, Key
from fastenough.analysis.machine import identity_cautions
from fastenough.analysis.paired import judged_name
from fastenough.model import Configuration, Role
from fastenough.recording import Recording
from fastenough.recording.head import Head, Instant, LoadStated, RecordedSetting, Tool
from fastenough.report import setups
from fastenough.report.context import make_context
from tests.support.recordings import PROFILE, Plan, latencies, recording

ROOT = Path(__file__).resolve().parents[3]
VALUES = latencies(7, cpus=1, intervals=2)
GAUGE = {
    "name": "fastenough gauge 1.2 on atmega328p",
    "port": "/dev/ttyACM0",
    "firmware": "1.2",
    "mcu": "atmega328p",
    "tick_ps": 62_500,
    "serial": "A1",
    "calibration": {"tick_ps": 62_499.1},
    "self_test": {"passed": True},
}
TICKS: dict[str, Any] = {"unit": "ticks", "tick_ps": 62_500, "clock": "gauge"}


def _profile(**change: Any) -> Callable[[Head], Head]:
    return lambda head: replace(head, profile={**(head.profile or {}), **change})


def _head(**change: Any) -> Callable[[Head], Head]:
    return lambda head: replace(head, **change)


def _parameter(**change: Any) -> Callable[[Head], Head]:
    return lambda head: replace(head, parameters={**head.parameters, **change})


def _same(head: Head) -> Head:
    return head


OTHER: dict[str, Callable[[Head], Head]] = {
    "probe": _head(probe="spin"),
    "emulation": _head(marks=frozenset({"emulated"})),
    "emulator": _profile(emulator={"program": "qemu", "version": "10", "sha256": "ab" * 32}),
    "cost model": _profile(emulator={"cost_model": "cache"}),
    "act": _parameter(interval_ns=7),
    "board": _head(board="the other one"),
    "machine": _profile(machine=["1e" * 16]),
    "configuration": _head(configuration=Configuration("rt")),
    "kernel": _profile(kernel=PROFILE["kernel"] | {"version": "#2"}),
    "kernel configuration": _profile(kernel_config={"sha256": "b2" * 32}),
    "command line": _profile(cmdline="root=/dev/sda1"),
    "implementation": _head(implementation="linux-kernel"),
    "parameters": _parameter(priority=50),
    "settings": _head(settings=(RecordedSetting("governor", "powersave", "powersave"),)),
    "load": _head(load=LoadStated("cpu")),
    "load's commands": _head(load=LoadStated("none", (("stress-ng", "--cpu", "2"),))),
    "instrument": _head(instrument=GAUGE | {"serial": "B2"}),
    "marks": _head(marks=frozenset({"not-real-time"})),
    "firmware": _profile(firmware={"bios_version": "1.3"}),
    "device tree": _profile(device_tree={"model": "a board"}, absent={}),
    "processor": _profile(cpu=PROFILE["cpu"] | {"smt": True}),
    "microcode": _profile(cpu=PROFILE["cpu"] | {"microcode": "0x30"}),
    "CPUs in use": _profile(cpu_isolation={"isolated": "0", "nohz_full": ""}),
    "clock source": _profile(clocksource="hpet"),
    "clock event devices": _profile(clock_event_devices={"clockevent0": "hpet"}),
    "frequency policy": _profile(frequency={"cpus": {"cpu0": {"scaling_governor": "powersave"}}}),
    "idle policy": _profile(idle={"driver": "intel_idle", "governor": "teo"}),
    "RT throttling": _profile(tunables=PROFILE["tunables"] | {"sched_rt_runtime_us": -1}),
    "tunables": _profile(tunables=PROFILE["tunables"] | {"timer_migration": 0}),
    "huge pages and swap": _profile(memory=PROFILE["memory"] | {"transparent_huge_pages": "always"}),
    "hypervisor": _profile(hypervisor="kvm"),
    "CPU quota": _profile(cpu_quota={"granted_us": 50_000, "period_us": 100_000}),
    "real-time budget": _profile(real_time_budget={"granted_us": 50_000, "period_us": 100_000}),
    "CPUs allowed": _profile(cpus_allowed="0"),
    "tool": _head(tool=Tool("test", "1")),
    "packages": _profile(packages={"of_interest": {"stress-ng": "0.17"}}),
    "modules": _profile(modules=["loop", "fastenough"]),
}
"""For each key of a run a head that differs in it."""

OTHER_SERIES: dict[str, Any] = {
    "bytes": {"bytes": 10},
    "two-sided": {"two_sided": True},
    "role": {"role": Role.DIAGNOSTIC},
    "corrected": {"corrected": True},
    "relative": {"relative": True},
    "series": {"name": "gap"},
    "unit": {"unit": "us"},
    "tick": {"tick_ps": 1000},
    "resolution k": {"k": 8},
    "clock": {"clock": "realtime"},
    "from": {"from_event": "elsewhere"},
    "to": {"to_event": "elsewhere"},
    "period": {"period_ns": 5},
    "labels": {"labels": {"placement": "same"}},
}
"""For each key of a series what makes one differ in it."""


def _run(tmp_path: Path, name: str = "run-1", **change: Any) -> Recording:
    return recording(tmp_path, Plan(VALUES, run_id=name, views=("wakeup",), **change))


def _changed(run: Recording, change: Callable[[Head], Head], name: str = "run-2") -> Recording:
    return replace(run, head=replace(change(run.head), run_id=name))


def _merge(*runs: Recording) -> int:
    return merge_samples([(run, run.series[0]) for run in runs]).n


@pytest.mark.parametrize("key", RUN_KEYS, ids=lambda key: key.name)
def test_a_difference_forbids_what_the_key_says(tmp_path: Path, key: Any) -> None:
    one = _run(tmp_path)
    other = _changed(one, OTHER[key.name])
    assert _merge(one, _changed(one, _same)) == 2 * one.totals[0].total
    if key.forbids is Forbids.NOTHING:
        assert _merge(one, other) == 2 * one.totals[0].total
    else:
        with pytest.raises(MixedRuns, match=f"run-1 and run-2 cannot be merged: different {key.name}: "):
            _merge(one, other)
        assert len(grouped([one, other])) == 2
    if key.forbids is Forbids.BOTH:
        with pytest.raises(MixedRuns, match=f"cannot be compared: different {key.name}"):
            compare(one, other)
    else:
        assert any(text.startswith(f"different {key.name}: ") for text in compare(one, other)[0].differences)


def test_a_thread_of_another_number_is_the_same_and_of_another_name_is_not(tmp_path: Path) -> None:
    def with_thread(name: str, in_effect: str = "fifo:5") -> Recording:
        ceiling = RecordedSetting("rt-ceiling", "fifo:5", in_effect, thread=name)
        return _changed(_run(tmp_path), _head(settings=(ceiling,)), name)

    one = with_thread("irq/45-eth0 (231)")
    assert _merge(one, with_thread("irq/45-eth0 (244)")) == 2 * one.totals[0].total
    for other in (with_thread("irq/46-mmc (231)"), with_thread("irq/45-eth0 (244)", "fifo:50")):
        with pytest.raises(MixedRuns, match="different settings: "):
            _merge(one, other)


def _of_build(tmp_path: Path, run_id: str, build_id: str | None) -> Recording:
    return _changed(_run(tmp_path), _profile(kernel=PROFILE["kernel"] | {"build_id": build_id}), run_id)


def test_two_builds_of_one_kernel_are_not_merged_and_an_unknown_one_is_with_the_first(tmp_path: Path) -> None:
    older, first, second = _run(tmp_path), _of_build(tmp_path, "run-2", "ab12"), _of_build(tmp_path, "run-3", "cd34")
    assert grouped([older, first, second]) == [[older, first], [second]]
    assert _merge(older, first) == 2 * older.totals[0].total
    with pytest.raises(MixedRuns, match="different kernel: build_id: 'ab12' against 'cd34'"):
        _merge(first, second)
    assert compare(older, first)[0].differences == ()
    assert compare(first, second)[0].differences == ("different kernel: build_id: 'ab12' against 'cd34'",)
    titles = [group.title for group in make_context([first, second], judge([first, second])).groups]
    assert [title.rpartition("build ")[2] for title in titles] == ["ab12", "cd34"]


@pytest.mark.parametrize("name", ["affinity", "housekeeping"])
def test_ranges_of_cpus_are_the_same_as_each_cpu(tmp_path: Path, name: str) -> None:
    def with_cpus(run_id: str, cpus: str) -> Recording:
        return _changed(_run(tmp_path), _head(settings=(RecordedSetting(name, None, cpus),)), run_id)

    one = with_cpus("run-1", "0-2,8")
    assert _merge(one, with_cpus("run-2", "0,1,2,8")) == 2 * one.totals[0].total
    for cpus in ("0,2,8", "0-3,8"):
        with pytest.raises(MixedRuns, match="different settings: "):
            _merge(one, with_cpus("run-3", cpus))


@pytest.mark.parametrize("key", SERIES_KEYS, ids=lambda key: key.name)
def test_series_that_differ_are_not_merged(tmp_path: Path, key: Any) -> None:
    one = _run(tmp_path)
    other = _changed(one, _head(series=(replace(one.series[0], **OTHER_SERIES[key.name]),)))
    with pytest.raises(MixedRuns, match=f"cannot be merged: different {key.name}: "):
        _merge(one, other)
    assert len(grouped([one, other])) == 2


@pytest.mark.parametrize("distant", [0, 1])
def test_threads_with_intervals_a_distance_apart_are_not_compared_together(tmp_path: Path, distant: int) -> None:
    plan = Plan(latencies(1, intervals=1), views=("wakeup",))
    plain = [recording(tmp_path, replace(plan, run_id=name)) for name in ("run-1", "run-2")]
    runs, series = plain.copy(), plain[distant].head.series
    apart = tuple(replace(one, period_ns=1_000_000 + 500_000 * (one.cpu or 0)) for one in series)
    distance = {**plain[distant].head.parameters, "distance_ns": 500_000}
    runs[distant] = replace(plain[distant], head=replace(plain[distant].head, series=apart, parameters=distance))
    refusal = f"run-{distant + 1} has another interval on each CPU .*distance.*affinity"
    with pytest.raises(MixedRuns, match=refusal):
        sides_of(runs[:1], runs[1:])
    with pytest.raises(MixedRuns, match=refusal):
        judged_name(runs[distant])
    runs[distant] = replace(runs[distant], head=replace(runs[distant].head, series=apart[:1]))
    assert judged_name(runs[distant]) == "wakeup"


@pytest.mark.parametrize(
    "change",
    [
        _profile(hostname="another name"),
        _profile(boot_id="another boot", uptime_s=9.0, load_average="8 8 8"),
        _profile(memory=PROFILE["memory"] | {"free_bytes": 5}),
        _profile(real_time_tasks=[{"pid": 77}]),
        _profile(kernel=PROFILE["kernel"] | {"tainted": 4096}),
        _parameter(duration_ns=5, loops=3, floor_ns=21, seed=4, limit_ns=9),
        _head(begin=Instant(5 * 10**14, 1_800_000_000_000_000_000)),
        _head(cost_ns={"clock_read_ns": 31}),
    ],
)
def test_what_changes_from_day_to_day_does_not_matter(tmp_path: Path, change: Callable[[Head], Head]) -> None:
    one = _run(tmp_path)
    other = _changed(one, change)
    assert grouped([one, other]) == [[one, other]]
    assert compare(one, other)[0].differences == ()


def test_runs_taken_on_two_days_with_one_gauge_are_merged_with_the_longer_tick(tmp_path: Path) -> None:
    """Port, calibration and self-test are of one session; what counts is the instrument itself."""
    one = _run(tmp_path, "monday", series=TICKS, head={"instrument": GAUGE})
    later = GAUGE | {"port": "/dev/ttyACM3", "calibration": {"tick_ps": 62_510.4}, "self_test": None}
    two = _run(tmp_path, "tuesday", series=TICKS | {"tick_ps": 62_510}, head={"instrument": later})
    assert grouped([one, two]) == [[one, two]]
    merged = merge_samples([(one, one.series[0]), (two, two.series[0])])
    assert merged.unit_ns == 62.51 and merged.n == 2 * one.totals[0].total
    for change in ({"serial": "B2"}, {"firmware": "1.3"}, {"mcu": "rp2040"}):
        assert len(grouped([one, _changed(one, _head(instrument=GAUGE | change))])) == 2


def test_user_space_and_kernel_can_be_compared_and_not_merged(tmp_path: Path) -> None:
    user = _run(tmp_path, head={"parameters": {"interval_ns": 1_000_000, "method": "clock_nanosleep-abs"}})
    kernel = _run(
        tmp_path,
        "run-2",
        series={"from": "the timer's expiry", "to": "the task runs"},
        head={"implementation": "linux-kernel", "parameters": {"interval_ns": 1_000_000, "method": "hrtimer"}},
    )
    (found,) = compare(user, kernel)
    assert any(text.startswith("different implementation") for text in found.differences)
    assert any("different to" in text for text in found.differences), "that they lie between other events is said"
    with pytest.raises(MixedRuns, match="different implementation"):
        merge_samples(
            [
                (user, user.series[0]),
                (
                    kernel,
                    replace(kernel.series[0], from_event=user.series[0].from_event, to_event=user.series[0].to_event),
                ),
            ]
        )


def test_self_measured_and_by_gauge_can_be_compared_and_not_merged(tmp_path: Path) -> None:
    own = _run(
        tmp_path,
        marks=("self-measured",),
        series={"name": "response"},
        head={"probe": "response", "parameters": {"in": 3, "out": 4, "chip": "gpio-mockup"}},
    )
    gauge = _run(
        tmp_path,
        "run-2",
        series=TICKS | {"name": "latency-falling"},
        head={"probe": "response", "parameters": {"min_ns": 10**6, "max_ns": 10**7}, "instrument": GAUGE},
    )
    (found,) = compare(own, gauge)
    assert found.series == "response and latency-falling" and found.n == (4000, 4000)
    assert any(text.startswith("different instrument") for text in found.differences)
    assert any(text.startswith("different marks") for text in found.differences)
    assert len(grouped([own, gauge])) == 2


def test_an_absent_profile_equals_nothing_not_even_another(tmp_path: Path) -> None:
    one = _run(tmp_path)
    bare = [_changed(one, _head(profile=None), f"bare-{number}") for number in (1, 2)]
    assert len(grouped([one, *bare])) == 3
    with pytest.raises(MixedRuns, match=r"unknown for run bare-1 \(it holds no profile\) against unknown for"):
        _merge(*bare)
    differences = compare(*bare)[0].differences
    assert len(differences) == 1 and differences[0].startswith(
        "whether these agree is unknown for run bare-1 (it holds no"
    )
    assert "clock source" in differences[0] and "microcode" in differences[0]
    assert merge_samples([(bare[0], series) for series in bare[0].series]).run_ids == ("bare-1",)


def test_a_fact_that_was_not_collected_equals_nothing(tmp_path: Path) -> None:
    one = _run(tmp_path)
    older = [
        _changed(one, _head(profile={name: fact for name, fact in PROFILE.items() if name != "clocksource"}), run)
        for run in ("a", "b")
    ]
    assert len(grouped([one, *older])) == 3
    unread = [
        _changed(one, _profile(idle=None, absent={"idle": "the kernel manages no idle states here"}), run)
        for run in ("a", "b")
    ]
    assert len(grouped(unread)) == 1, "both lack it, for one reason that was found out"
    assert len(grouped([one, *unread])) == 2
    not_parsed = [
        _changed(one, _profile(idle=None, absent={"idle": "not understood: ValueError()"}), run) for run in ("a", "b")
    ]
    assert len(grouped(not_parsed)) == 2


def _of_machine(run: Recording, name: str, *identifiers: str) -> Recording:
    return _changed(run, _profile(machine=list(identifiers) or None), name)


def test_machines_of_one_name_are_not_merged_and_older_recordings_are_as_before(tmp_path: Path) -> None:
    run = _run(tmp_path)
    older, one, card, other = (
        _of_machine(run, name, *identifiers)
        for name, identifiers in (("older", ()), ("one", "a"), ("card", "ab"), ("other", "c"))
    )
    assert grouped([older, one, other, card]) == [[older, one, card], [other]]
    assert grouped([other, older]) == [[other, older]]
    assert grouped([older, older]) == [[older, older]]
    assert len(judge([one, other]).judgments) == 2
    assert not [text for text in judge([older, one, card]).cautions if "machine" in text]


def test_two_machines_of_one_name_and_two_names_of_one_machine_are_caveats(tmp_path: Path) -> None:
    run = _run(tmp_path)
    one, other = _of_machine(run, "one", "a"), _of_machine(run, "other", "b")
    named = _changed(one, _head(board="bench-3"), "named")
    older = _changed(_of_machine(run, "older"), _head(board="bench-4"), "older")
    assert identity_cautions([one, other]) == [
        "The runs of board testboard are of 2 machines (machine ID or hardware differ); they are not merged"
    ]
    assert identity_cautions([one, named]) == [
        "Boards testboard, bench-3 are one machine; runs under different names are not merged"
    ]
    assert identity_cautions([one, one]) == identity_cautions([one, older]) == []
    assert set(identity_cautions([one, named])) <= set(judge([one, named]).cautions)
    assert not same_configuration(one.head, other.head) and same_configuration(one.head, older.head)


def test_groups_of_a_report_are_told_apart_by_what_differs(tmp_path: Path) -> None:
    one = _run(tmp_path)
    runs = [
        one,
        _changed(one, OTHER["clock source"]),
        _changed(one, _head(profile=None), "run-3"),
        _changed(one, _head(profile=None), "run-4"),
    ]
    titles = [group.title for group in make_context(runs, judge(runs)).groups]
    assert len(set(titles)) == 4
    assert "clock source tsc" in titles[0] and "clock source hpet" in titles[1]
    assert "run run-3" in titles[2] and "run run-4" in titles[3]


def test_a_name_holds_no_setting_that_follows_from_a_parameter_in_it_and_no_mark_that_all_have(tmp_path: Path) -> None:
    def of_thread(policy: str) -> tuple[dict[str, Any], ...]:
        return ({"name": "policy", "thread": "periodic (7)", "requested": policy, "in_effect": policy},)

    runs = [
        _run(tmp_path, name, settings=of_thread(policy), marks=marks, head={"parameters": {"task": task}})
        for name, task, policy, marks in (
            ("a", "ordinary", "other", ("self-measured", "virtual-machine")),
            ("b", "real-time", "fifo", ("virtual-machine",)),
            ("c", "real-time", "rr", ("virtual-machine",)),
        )
    ]
    titles = [group.title.removeprefix("load none · ") for group in make_context(runs, judge(runs)).groups]
    assert titles == ["task ordinary · self-measured", "task real-time · policy fifo", "task real-time · policy rr"]


def test_what_is_the_same_of_every_cpu_is_named_once_and_as_words(tmp_path: Path) -> None:
    def governor(name: str) -> dict[str, Any]:
        return {"cpus": {f"cpu{cpu}": {"scaling_governor": name, "scaling_max_freq": "3000"} for cpu in range(4)}}

    runs = [
        _run(tmp_path, name, head={"profile": PROFILE | {"frequency": governor(name)}})
        for name in ("performance", "powersave")
    ]
    titles = [group.title for group in make_context(runs, judge(runs)).groups]
    assert titles == ["load none · scaling_governor performance", "load none · scaling_governor powersave"]


def test_times_of_an_act_are_told_in_a_unit_that_people_read(tmp_path: Path) -> None:
    runs = [
        _run(tmp_path, name, head={"parameters": {"interval_ns": interval_ns}})
        for name, interval_ns in (("a", 100_000_000), ("b", 200_000))
    ]
    titles = [group.title for group in make_context(runs, judge(runs)).groups]
    assert [title.partition("interval ")[2] for title in titles] == ["100 ms", "200 µs"]


def test_every_key_stands_in_the_method_with_its_reason() -> None:
    page = " ".join((ROOT / "docs" / "method.md").read_text().split())
    for key in (*RUN_KEYS, *SERIES_KEYS):
        assert f"| {key.name} | {key.forbids} | {key.why} |" in page, f"docs/method.md lacks the key {key.name}"
    for name, why in DOES_NOT_MATTER.items():
        assert f"| {name} | {why} |" in page, f"docs/method.md does not say why {name} does not matter"
    assert page.count("| merging |") + page.count("| merging and comparing |") + page.count("| nothing |") == len(
        RUN_KEYS
    ) + len(SERIES_KEYS), "docs/method.md names a key that is no more"


def test_another_key_is_one_line_and_reaches_merging_comparing_and_titles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = _run(tmp_path)
    other = _changed(one, _profile(numa={"node0": "0"}))
    assert grouped([one, other]) == [[one, other]]
    line = Key("memory nodes", Forbids.MERGING, lambda head, _: (head.profile or {}).get("numa"), "far away")
    for module in (keys, differences, merged, sys.modules[compare.__module__], setups):
        monkeypatch.setattr(module, "RUN_KEYS", (*RUN_KEYS, line))
    assert grouped([one, other]) == [[one], [other]]
    with pytest.raises(MixedRuns, match=r"different memory nodes: nothing against {'node0': '0'}"):
        _merge(one, other)
    assert "different memory nodes: nothing against {'node0': '0'}" in compare(one, other)[0].differences
    titles = [group.title for group in make_context([one, other], judge([one, other])).groups]
    assert titles == ["load none · memory nodes none", "load none · node0 0"]


@pytest.mark.parametrize(
    "profile",
    [
        {"absent": "all of it", "idle": 1},
        {"absent": {"idle": 7}},
        {"tunables": "x"},
        {"memory": {"huge_pages": {}}, "frequency": {"deep": [[[]]]}},
    ],
)
def test_a_profile_that_holds_anything_is_compared_all_the_same(tmp_path: Path, profile: dict[str, Any]) -> None:
    runs = [_run(tmp_path), *(_run(tmp_path, name, head={"profile": PROFILE | profile}) for name in ("a", "b"))]
    assert grouped(runs) == [[runs[0]], runs[1:]]
    assert compare(runs[0], runs[1])[0].differences
    assert make_context(runs, judge(runs)).groups
