# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough bench``: up, status, down; and after down nothing is left, whatever happened."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fastenough.gauge.session import Gauge
from fastenough.link import find_probe
from fastenough.model import BadInput
from fastenough.virtual.bench_process import RUN_SETTING, bench_directory, open_virtual
from fastenough.virtual.packages import fetch
from tests.support.json_documents import require_valid
from tests.support.processes import ended, eventually

UP_S = 280
"""Longer than the bench process waits itself: 20 s for a snapshot, 120 s for a cold boot, and the building before."""
pytestmark = [pytest.mark.untimed, pytest.mark.timeout(900)]


def bench(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fastenough", "bench", *words],
        capture_output=True,
        text=True,
        timeout=UP_S,
        check=False,
        env={**os.environ, **environment},
    )


def bench_json(*words: str) -> dict[str, Any]:
    done = bench(*words, "--json")
    assert done.returncode == 0, done.stderr
    return dict(require_valid(f"bench {words[0]}", done.stdout))


@pytest.fixture(autouse=True)
def own_bench(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A bench of the test's own, and none of its processes afterwards."""
    fetch("stock")
    monkeypatch.setenv(RUN_SETTING, str(tmp_path_factory.mktemp("run")))
    yield bench_directory()
    bench("down")
    assert not bench_directory().exists()


def all_end(state: dict[str, Any]) -> bool:
    """Whether bench process and QEMU have ended, or end soon."""
    return eventually(lambda: ended(state["pid"]) and ended(state["qemu_pid"]))


def test_up_status_down() -> None:
    assert bench_json("status") == {"version": 2, "running": False}
    state = bench_json("up", "--kernel", "rt")
    assert state["kernel"] == "rt"
    assert bench_json("status") == state
    assert "kernel rt" in bench("status").stdout
    link = open_virtual("rt")
    assert link.run(["uname", "-r"]).text.strip() == state["release"]
    assert find_probe(link) == "/bin/fastenough-probe"
    if state["gauge"]:
        with Gauge(state["gauge"]) as gauge:
            assert gauge.identity.k > 0
    else:
        assert "apt-get install" in state["gauge_reason"] or "rebuild its firmware" in state["gauge_reason"]
    assert bench_json("down") == {"version": 2, "ended": True}
    assert all_end(state)
    assert bench_json("down") == {"version": 2, "ended": False}


def test_one_after_another_may_use_it_but_there_is_only_one() -> None:
    bench_json("up")
    first = open_virtual("")
    first.start(["sleep", "987"])
    first.close()
    second = open_virtual("")
    assert eventually(lambda: "sleep 987" not in second.run(["ps"]).text)
    second.close()
    again = bench("up", "--kernel", "rt")
    assert (again.returncode, again.stdout) == (2, "")
    assert "a virtual bench is already running" in again.stderr
    assert again.stderr.count("\n") == 1
    with pytest.raises(BadInput, match="runs kernel stock, not rt"):
        open_virtual("rt")


@pytest.mark.parametrize("victim", ["pid", "qemu_pid"])
def test_nothing_is_left_after_a_crash(victim: str) -> None:
    state = bench_json("up")
    os.kill(state[victim], signal.SIGKILL)
    assert all_end(state)
    assert bench_json("status") == {"version": 2, "running": False}
    with pytest.raises(BadInput, match="no virtual bench is running; start one with"):
        open_virtual("")


def test_an_interrupted_up_leaves_nothing(own_bench: Path) -> None:
    starting = subprocess.Popen(
        [sys.executable, "-m", "fastenough", "bench", "up", "--cold"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert eventually(lambda: starting.poll() is not None or own_bench.exists(), 60)
    assert starting.poll() is None
    starting.send_signal(signal.SIGINT)
    starting.communicate(timeout=30)
    assert not list(own_bench.glob("*.sock"))


def test_without_qemu_it_says_what_to_install(tmp_path: Path) -> None:
    for tool in ("dpkg", "make"):
        (tmp_path / tool).symlink_to(shutil.which(tool) or pytest.fail(f"{tool} is missing"))
    done = bench("up", PATH=str(tmp_path))
    assert done.returncode == 5
    assert done.stderr == (
        "fastenough: not applicable: qemu-system-aarch64 is missing; run: apt-get install qemu-system-arm\n"
    )


def test_an_unknown_kernel_is_refused() -> None:
    done = bench("up", "--kernel", "best")
    assert done.returncode == 2
    assert "unknown kernel 'best'; choose one of stock, rt, " in done.stderr
