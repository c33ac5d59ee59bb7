# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough audit --measure`` on this machine: a delay that exists only while a setting has one value is found."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_calls import command_line, environment
from processes import eventually

from fastenough.store import Store

STATISTICS = Path("/proc/sys/vm/stat_interval")
SIZE_US = 1000
HOG = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))
print("ready", flush=True)
while True:
    time.sleep(0.004)
    with open(sys.argv[2]) as file:
        delaying = file.read() == sys.argv[3]
    end_ns = time.perf_counter_ns() + int(sys.argv[4]) * 1000
    while delaying and time.perf_counter_ns() < end_ns:
        pass
"""
"""Takes its CPU for so many µs every 5 ms, above the probe's priority, as long as the file holds a value."""

pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not STATISTICS.exists() or int(STATISTICS.read_text()) >= 10,
                                reason="no setting of this machine may be changed, or it is changed already")


@pytest.fixture
def hogs() -> Iterator[None]:
    """On each CPU, while the setting has the value that it has now."""
    found = [subprocess.Popen([sys.executable, "-c", HOG, str(cpu), str(STATISTICS), STATISTICS.read_text(),
                               str(SIZE_US)], stdout=subprocess.PIPE) for cpu in os.sched_getaffinity(0)]
    try:
        assert all(process.stdout is not None and process.stdout.readline() for process in found)
        yield
    finally:
        for process in found:
            process.kill()
            process.wait()


def words(*more: str) -> list[str]:
    return ["audit", "--measure", "--only", "stat-interval", "--loads", "none", "--rounds", "3", *more]


def test_an_injected_delay_is_found_and_everything_is_put_back(tmp_path: Path, probe_binary: Path, hogs: None) -> None:
    before = STATISTICS.read_text()
    done = command_line(*words("--duration", "1s", "--interval", "500us", "--emit", "files", "--json"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert STATISTICS.read_text() == before
    measured = json.loads(done.stdout)["measured"]
    tried, = measured["alone"]
    effect = tried["effect"]
    assert tried["change"] == measured["best"] == {"stat-interval": "120"} and effect["shown"]
    assert effect["quantile"] == 0.99 and -1.5 * SIZE_US < effect["effect_ns"] / 1000 < -0.4 * SIZE_US
    assert effect["lower_ns"] / 1000 <= -0.7 * SIZE_US
    assert measured["together"] == [] and "stat-interval=120" in measured["conclusions"][0]
    assert len(Store(tmp_path / "fastenough-data").runs(campaign=tried["campaign"])) == 12
    written = (tmp_path / "files" / "90-fastenough.conf").read_text()
    line = written.splitlines().index("vm.stat_interval = 120")
    assert "99 % smaller, by" in " ".join(written.splitlines()[line - 3:line]).replace("# ", "")


def test_after_kill_9_the_next_one_puts_it_back(tmp_path: Path, probe_binary: Path) -> None:
    before = STATISTICS.read_text()
    process = subprocess.Popen([sys.executable, "-m", "fastenough", *words("--duration", "5s")], cwd=tmp_path,
                               env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    runs = tmp_path / "fastenough-data" / "runs"
    assert eventually(lambda: process.poll() is not None or (
        STATISTICS.read_text() != before and any(runs.glob("*/recording.jsonl"))), 90)
    assert process.poll() is None, "it ended before the setting was made"
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    assert STATISTICS.read_text() != before
    restored = command_line("doctor", "--restore", cwd=tmp_path)
    assert "stat_interval" in restored.stdout + restored.stderr
    assert STATISTICS.read_text() == before


@pytest.mark.parametrize(("arguments", "said"), [
    (("--only", "stat-interval"), "add --measure"),
    (("--measure", "--only", "governor"), "no finding here is changed by it"),
    (("--measure", "--rounds", "2"), "--rounds"),
])
def test_wrong_usage_is_one_line(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    if "governor" in arguments and Path("/sys/devices/system/cpu/cpu0/cpufreq").exists():
        pytest.skip("this machine has governors")
    done = command_line("audit", *arguments, cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1
