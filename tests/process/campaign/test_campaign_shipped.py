# SPDX-License-Identifier: GPL-2.0-or-later
"""The plans in campaigns/ are those of the sources: what these state comes out of what the plans expand into."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from fastenough.campaign import RunSpec, expand, on_board, read_plan
from fastenough.campaign.progress import matrix_of
from fastenough.units import parse_duration_ns
from tests.support.processes import ROOT

pytestmark = pytest.mark.untimed

CAMPAIGNS = ROOT / "campaigns"
NAMES = sorted(path.stem for path in CAMPAIGNS.glob("*.toml"))
PAGE = (ROOT / "docs" / "plans.md").read_text()
HOUR_S = 3600.0


def _specs(name: str) -> list[RunSpec]:
    return expand(read_plan(CAMPAIGNS / f"{name}.toml"))


def _wakeups(spec: RunSpec) -> float:
    """On each CPU."""
    return spec.duration_s * 1e9 / parse_duration_ns(str(spec.parameters["interval"]))


def _values(specs: list[RunSpec], name: str) -> set[Any]:
    return {spec.parameters.get(name) for spec in specs}


@pytest.mark.parametrize("name", NAMES)
def test_each_says_what_it_answers_and_is_told_of(name: str) -> None:
    plan = read_plan(CAMPAIGNS / f"{name}.toml")
    assert plan.name == name
    assert f"`{name}.toml`" in PAGE
    assert name in ("primitives", "jitter-1khz") or (plan.title and plan.question.endswith("?"))


def test_there_is_one_for_each_source() -> None:
    assert {"brown-martin", "enea-matrix", "at91", "rtlinux", "osadl-cycle", "soak", "quick"} <= set(NAMES)


def test_brown_and_martin() -> None:
    """Two tasks, two implementations, two kernels; waits of 3 to 7071 µs, a period of 7071 µs, two hours (4.3, 4.4)."""
    for name, duration_s, load in (("brown-martin", 60.0, "none"), ("brown-martin-board", 2 * HOUR_S, "brown-martin")):
        plan, specs = read_plan(CAMPAIGNS / f"{name}.toml"), _specs(name)
        assert {(spec.probe, spec.implementation, spec.configuration) for spec in specs} == {
            (probe, by, kernel)
            for probe in ("response", "periodic")
            for by in ("linux-user", "linux-kernel")
            for kernel in ("stock", "rt")
        }
        assert len(specs) == 8
        assert {(spec.duration_s, spec.load) for spec in specs} == {(duration_s, load)}
        assert {spec.parameters["max"] for spec in specs if spec.probe == "response"} == {"7071us"}
        assert {spec.parameters["min"] for spec in specs if spec.probe == "response"} == {"3us"}
        assert {spec.parameters["period"] for spec in specs if spec.probe == "periodic"} == {"7071us"}
        assert plan.settings == {"control-priority": 10, "rt-ceiling": 5, "irq-threads": 99, "timer-threads": 99}


def test_enea() -> None:
    """Six loads; cyclictest -p99 -l 100000 at its 1000 µs (tables A.1 to A.5)."""
    specs = expand(on_board(read_plan(CAMPAIGNS / "enea-matrix.toml"), "virtual"))
    for configuration in ("stock", "rt"):
        there = [spec for spec in specs if spec.configuration == configuration]
        assert [spec.load for spec in there] == ["none", "cpu", "io", "vm", "hdd", "full"]
    assert {(_wakeups(spec), spec.parameters["priority"]) for spec in specs} == {(100_000, 99)}


def test_at91() -> None:
    """Four POSIX methods, the kernel's task and handler; -P99 -T36000, 36 million samples, doload.sh."""
    specs = _specs("at91")
    assert [(spec.parameters["method"], spec.implementation) for spec in specs] == [
        ("posix-timer", "linux-user"),
        ("setitimer", "linux-user"),
        ("nanosleep", "linux-user"),
        ("clock_nanosleep-abs", "linux-user"),
        ("kernel-thread", "linux-kernel"),
        ("timer-handler", "linux-kernel"),
    ]
    assert {spec.duration_s for spec in specs} == {36_000.0}
    assert {_wakeups(spec) for spec in specs} == {36_000_000}
    assert {spec.load for spec in specs} == {"at91"}
    assert _values(specs[:5], "priority") == {99}
    assert _values(specs, "affinity") == {0}, "all on the one CPU"


def test_rtlinux() -> None:
    """Ten tests: jitter, FIFO, shared memory, condition variable, and the seven of table 4 but for the panic."""
    specs = _specs("rtlinux")
    probes = list(dict.fromkeys(spec.probe for spec in specs))
    assert probes == [
        "timer",
        "jitter",
        "fifo",
        "shm",
        "condvar",
        "switch",
        "mutex",
        "spinlock",
        "mutex-contended",
        "semaphore",
        "inversion",
    ]
    jitter = [spec for spec in specs if spec.probe in ("timer", "jitter")]
    assert _values(jitter, "interval") == {"1ms"}, "1 kHz"
    assert {spec.load for spec in jitter} == {"none", "rtlinux-io", "rtlinux-memory"}
    assert _values([spec for spec in specs if spec.probe == "fifo"], "by") == {"pipe", "block"}


def test_osadl_cycle() -> None:
    """12 hours: half idle, two at 5 kHz, four loaded besides; at least 100 million samples of each core; 5 minutes."""
    idle, alone, loaded = _specs("osadl-cycle")
    assert [spec.duration_s for spec in (idle, alone, loaded)] == [6 * HOUR_S, 2 * HOUR_S, 4 * HOUR_S]
    assert [spec.load for spec in (idle, alone, loaded)] == ["none", "none", "osadl"]
    assert _values([alone, loaded], "interval") == {"200us"}
    assert _wakeups(alone) + _wakeups(loaded) == 108_000_000
    assert _wakeups(idle) < 1e6, "that is idle"
    assert _values([idle, alone, loaded], "report") == {"5min"}
    assert read_plan(CAMPAIGNS / "osadl-cycle.toml").monitor


def test_soak() -> None:
    """Preferably a billion measurements, at 5 kHz; no kill costs more than one of several runs."""
    specs = _specs("soak")
    assert sum(map(_wakeups, specs)) >= 1e9
    assert max(spec.duration_s for spec in specs) <= 8 * HOUR_S


@pytest.mark.parametrize("name", NAMES)
def test_the_probe_refuses_nothing_of_it(name: str, probe_binary: str) -> None:
    """What a plan asks of the probe can be done here, on any number of CPUs; each act once, over its interval."""
    acts = {
        (spec.probe, tuple(f"--{key}={value}" for key, value in spec.parameters.items()))
        for spec in _specs(name)
        if spec.implementation == "linux-user" and spec.probe in ("timer", "jitter")
    }
    for probe, options in acts:
        command = [probe_binary, probe, *options, "--duration=250ms", "--allow-difference", "--quiet"]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
        assert ended.returncode in (0, 5), (options, ended.stderr)


def test_quick() -> None:
    assert matrix_of(_specs("quick")).expected_s < 60


@pytest.mark.parametrize("name", NAMES)
def test_what_the_page_says_it_takes_is_what_it_takes(name: str) -> None:
    """Of the time that is told in the table, within a quarter."""
    said = next(line.rsplit("|", 2)[1].strip() for line in PAGE.splitlines() if line.startswith(f"| `{name}.toml` |"))
    number, unit, *each = said.split()
    told_s = float(number) * {"minute": 60.0, "minutes": 60.0, "hours": HOUR_S}[unit]
    specs = expand(read_plan(CAMPAIGNS / f"{name}.toml"))
    takes_s = matrix_of(specs).expected_s / (len({spec.configuration for spec in specs}) if each else 1)
    assert 0.75 < takes_s / told_s < 1.25, (Path(name), takes_s)
