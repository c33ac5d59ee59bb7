# SPDX-License-Identifier: GPL-2.0-or-later
"""Another platform is a folder of its own: frame and acts are compiled for it unchanged."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fastenough.model import Outcome
from fastenough.recording import read_recording
from tests.support.presence import present
from tests.support.privileges import needs_root
from tests.support.tools import ROOT, build, configure, require

pytestmark = pytest.mark.untimed

FOLDER = ROOT / "tests/sources/throwaway_platform"
PROBE = ROOT / "target" / "probe"
SEAM = {"sleep.h", "sync.h", "pins.h"}
LINUX_ONLY = {
    "kernel",
    "response",
    "periodic",
    "futex",
    "eventfd",
    "signal",
    "mqueue",
    "fifo",
    "fifo-message",
    "shm",
    "jitter",
    "timerlat",
    "wakeups",
}
"""What needs pins or the system calls of Linux, of which the throw-away platform has neither."""


@pytest.fixture(scope="module")
def throwaway_probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy of this checkout to which one folder was added, and in which nothing was changed."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in ("meson.build", "meson_options.txt"):
        shutil.copy(ROOT / name, copy)
    for name in ("format", "gauge", "target"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(FOLDER, copy / "target" / "probe" / "platform" / "throwaway")
    configure(copy / "build", "-Dprobe_platform=throwaway", root=copy)
    build(copy / "build", "target/probe/fastenough-probe-throwaway")
    return copy / "build" / "target" / "probe" / "fastenough-probe-throwaway"


def _names(probe: Path | str) -> set[str]:
    listed = subprocess.run([str(probe), "--list"], capture_output=True, text=True, check=True).stdout
    return {line.split()[0] for line in listed.splitlines()}


def test_it_has_the_acts_whose_headers_it_implements(throwaway_probe: Path, probe_binary: str) -> None:
    assert _names(throwaway_probe) == _names(probe_binary) - LINUX_ONLY


@pytest.mark.parametrize("method", ["pselect", "busy"])
def test_the_timer_act_runs_there_unchanged(throwaway_probe: Path, tmp_path: Path, method: str) -> None:
    path = tmp_path / "r"
    subprocess.run(
        [
            str(throwaway_probe),
            "timer",
            "-D",
            "300ms",
            "-i",
            "5ms",
            "--method",
            method,
            "--policy",
            "other",
            "-a",
            "0",
            "-q",
            "--allow-difference",
            "--record",
            str(path),
        ],
        check=True,
        timeout=60,
        stdout=subprocess.DEVNULL,
    )
    recording = read_recording(path)
    assert recording.outcome is Outcome.COMPLETED
    assert recording.head.implementation == "throwaway-user"
    each, corrected = recording.series
    assert recording.totals[corrected.id].total == recording.totals[each.id].total + recording.missed(each.id) > 30


@needs_root("a real-time priority")
@pytest.mark.parametrize("strays", [False, True])
def test_a_thread_that_its_core_lost_fails_the_run(throwaway_probe: Path, tmp_path: Path, strays: bool) -> None:
    """What was measured while Linux had the thread is of Linux."""
    path = tmp_path / "r"
    environment = {name: value for name, value in os.environ.items() if name != "THROWAWAY_STRAYS"}
    if strays:
        environment["THROWAWAY_STRAYS"] = "1"
    done = subprocess.run(
        [str(throwaway_probe), "timer", "-D", "200ms", "-i", "5ms", "-a", "0", "-q", "--record", str(path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == (4 if strays else 0), done.stderr
    assert read_recording(path).outcome is (Outcome.FAILED if strays else Outcome.COMPLETED)
    assert ("left the real-time core 1 times" in done.stderr) == strays
    end = json.loads(path.read_text().splitlines()[-1])
    counted = [setting["in_effect"] for setting in end["settings"] if setting["name"] == "mode_switches"]
    assert counted == [int(strays)], "a count of 0 is recorded, so that it differs from an unknown one"
    changes = present(read_recording(path).end, "end").changes
    assert [change.name for change in changes] == ["mode_switches"] * strays


def test_a_primitive_it_has_not_is_not_applicable_there(throwaway_probe: Path) -> None:
    done = subprocess.run(
        [str(throwaway_probe), "mutex-pi", "-D", "300ms", "--policy", "other", "-a", "0", "-q", "--allow-difference"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 5 and "priority inheritance" in done.stderr, done.stderr
    subprocess.run(
        [str(throwaway_probe), "mutex", "-D", "100ms", "--policy", "other", "-a", "0", "-q", "--allow-difference"],
        check=True,
        timeout=60,
        stdout=subprocess.DEVNULL,
    )


def test_acts_call_nothing_but_the_seam() -> None:
    """What is Linux's own stands in the platform's folder, and in the acts that measure it."""
    system = re.compile(r"\b(pthread_|sem_|sched_[a-z]+\(|clock_nanosleep|clock_gettime|nanosleep\(|syscall\()")
    sources = [
        *(PROBE / "acts" / "sync").glob("*.[ch]"),
        *(PROBE / "acts" / "gpio").glob("*.[ch]"),
        PROBE / "acts" / "timer.c",
        PROBE / "acts" / "spin.c",
        *(PROBE / "inject").glob("*.c"),
    ]
    assert len(sources) > 12
    for source in sources:
        code = re.sub(r"/\*.*?\*/", "", source.read_text(), flags=re.DOTALL)
        assert not system.search(code), f"{source}: {system.search(code)}"


def test_both_platforms_implement_the_same_headers() -> None:
    linux = {path.name for path in (PROBE / "platform" / "linux").glob("*.h")}
    assert linux == SEAM
    assert {path.name for path in FOLDER.glob("*.h")} <= linux
    assert {path.name for path in (PROBE / "platform" / "xenomai").glob("*.h")} <= linux | {"cobalt.h"}
    assert {path.name for path in (PROBE / "platform" / "evl").glob("*.h")} <= linux | {"core.h"}


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="reads the code of an x86-64 processor")
def test_no_timed_loop_calls_by_pointer(probe_binary: str) -> None:
    """Each method, way and primitive has a loop of its own, in which its functions are called directly."""
    require("objdump")
    code = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", probe_binary], capture_output=True, text=True, check=True
    ).stdout
    loops = re.findall(
        r"^[0-9a-f]+ <((?:act|act_and_keep|respond|repeat)_\w+|wake_on|wait_on)>:\n(.*?)\n\n",
        code,
        re.MULTILINE | re.DOTALL,
    )
    assert len({name for name, _ in loops}) >= 8 + 8 + 2 + 2 + 2
    assert [name for name, body in loops if _calls_by_pointer_in_a_loop(body)] == []


def _calls_by_pointer_in_a_loop(body: str) -> bool:
    """Whether a jump back spans a call by pointer; one before the loop takes no time of it."""
    code = [(int(at, 16), text) for at, text in re.findall(r"^ *([0-9a-f]+):\s+(.*)", body, re.MULTILINE)]
    jumps = [(int(found[1], 16), at) for at, text in code if (found := re.match(r"j\w+\s+([0-9a-f]+)", text))]
    calls = [at for at, text in code if re.match(r"(call|jmp)q?\s+\*", text)]
    return any(target <= at <= source for target, source in jumps for at in calls)
