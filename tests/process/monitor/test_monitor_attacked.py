# SPDX-License-Identifier: GPL-2.0-or-later
"""The monitor while all changes under it: it is stopped, tasks come and go, change their policy, or have one number."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from fastenough.recording import Recording
from fastenough.recording.culprits import culprit_text
from tests.process.monitor.test_monitor_counts import assert_sums_agree
from tests.support.monitored import Slept, counted, events, sleeper, stored, unseen, watching
from tests.support.tools import ROOT

STOPPED_S = 2.0
BRIEF, FOLLOWED = 6000, 5120
"""More tasks than are followed at a time."""
ALIKE = """
import ctypes, os, sys
fields = [0] * 11
number = ctypes.c_int(int(sys.argv[1]))
fields[4], fields[8], fields[9] = 17, ctypes.addressof(number), 1  # SIGCHLD; set_tid, one of them
child = ctypes.CDLL(None, use_errno=True).syscall(435, (ctypes.c_uint64 * 11)(*fields), 88)  # clone3
if not child:
    os.execv(sys.argv[2], sys.argv[2:])
sys.exit(1 if child < 0 else os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def assert_all_seen(recording: Recording, *slept: Slept) -> None:
    """Each sleep of these tasks was counted, or is among those with a reason; and none twice."""
    seen = stored(recording, "expiry-to-running") + unseen(recording) - counted(recording, "monitor_no_sleep")
    times = sum(one.times for one in slept)
    assert times <= seen <= times + sum(one.preempted for one in slept)
    assert_sums_agree(recording)


@pytest.mark.slow
def test_a_monitor_that_is_stopped_loses_nothing(monitor_binary: Path, sleeper_binary: Path, tmp_path: Path) -> None:
    """The kernel counts on meanwhile; an interval is longer than it should be."""
    with sleeper(sleeper_binary, "fe-stopped", acts=int(1500 * STOPPED_S)) as task:
        with watching(monitor_binary, tmp_path / "r", "--pid", str(task.pid), "--report", "100ms") as watch:
            task.let_go()
            watch.process.send_signal(signal.SIGSTOP)
            time.sleep(STOPPED_S)
            watch.process.send_signal(signal.SIGCONT)
            slept = task.sleep()
        recording = watch.recording()
    assert_all_seen(recording, slept)
    assert max(one.end_mono_ns - one.begin_mono_ns for one in recording.intervals) > STOPPED_S * 0.9e9


def test_thousands_of_tasks_that_come_and_go_take_no_room(monitor_binary: Path, tmp_path: Path) -> None:
    program = tmp_path / "fe-brief"
    subprocess.run(
        ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", program, ROOT / "tests/sources/brief_tasks.c"], check=True
    )
    with watching(monitor_binary, tmp_path / "r", "--comm", "fe-brief") as watch:
        subprocess.run(["chrt", "-f", "10", program, str(BRIEF)], check=True, timeout=200)
    recording = watch.recording()
    assert counted(recording, "monitor_dropped") == 0
    traced = stored(recording, "expiry-to-running") + unseen(recording)
    assert traced >= 1.1 * FOLLOWED, "the kernel may trace none for a while, also not the only sleep of a task"
    assert_sums_agree(recording)


def test_a_policy_that_changes_on_the_way(monitor_binary: Path, sleeper_binary: Path, tmp_path: Path) -> None:
    """Who watches any policy sees all of its wake-ups; who watches real-time ones, those of its real-time half."""
    with sleeper(sleeper_binary, "fe-changes") as task:
        words = ("--pid", str(task.pid))
        with (
            watching(monitor_binary, tmp_path / "any", *words, "--policy", "any") as every,
            watching(monitor_binary, tmp_path / "fifo", *words) as real_time,
        ):
            ended = threading.Event()
            changing = threading.Thread(target=change_policy, args=(task.pid, ended))
            changing.start()
            slept = task.sleep()
            ended.set()
            changing.join()
    assert_all_seen(every.recording(), slept)
    assert_sums_agree(real_time.recording())
    assert 0 < stored(real_time.recording(), "expiry-to-running") < stored(every.recording(), "expiry-to-running")
    others = "those of its other half are nobody's, and not unseen"
    assert unseen(real_time.recording()) <= unseen(every.recording()) + slept.times // 50, others


def change_policy(pid: int, ended: threading.Event) -> None:
    """Of a task, to and fro until it has ended."""
    for round_ in range(10**6):
        if ended.wait(0.013):
            return
        policy, priority = (os.SCHED_OTHER, 0) if round_ % 2 else (os.SCHED_FIFO, 80)
        try:
            os.sched_setscheduler(pid, policy, os.sched_param(priority))
        except ProcessLookupError:
            return


def test_a_number_that_is_given_again_is_another_task(
    monitor_binary: Path, sleeper_binary: Path, tmp_path: Path
) -> None:
    with sleeper(sleeper_binary, "fe-first", acts=200) as task:
        with watching(monitor_binary, tmp_path / "r", "--pid", str(task.pid)) as watch:
            first = task.sleep()
            alike = [
                sys.executable,
                "-c",
                ALIKE,
                str(task.pid),
                str(sleeper_binary),
                "fe-second",
                "1",
                "80",
                "0",
                "1000000",
                "300",
            ]
            done = subprocess.run(alike, input="go\n", capture_output=True, text=True, check=False, timeout=60)
            assert done.returncode == 0, done.stderr
        recording = watch.recording()
    times, preempted = map(int, done.stdout.splitlines()[1].split())
    assert_all_seen(recording, first, Slept(times, preempted, (), ()))
    told = [str(event.culprit["task"]) for event in events(recording, "expiry-to-running") if event.culprit]
    assert told[0] == "fe-first"


def test_a_name_of_hostile_bytes_is_told_in_letters(monitor_binary: Path, sleeper_binary: Path, tmp_path: Path) -> None:
    """It comes from whoever runs a task here: neither a recording nor a terminal may take it for more than a name."""
    name = '\x1b[31m"\\\n\udcff\udcc3,\t'
    with sleeper(sleeper_binary, name, acts=200) as task:
        with watching(monitor_binary, tmp_path / "r", "--pid", str(task.pid)) as watch:
            slept = task.sleep()
        recording = watch.recording()
    assert_all_seen(recording, slept)
    said = [culprit_text(event.culprit) for event in events(recording, "expiry-to-running") if event.culprit]
    assert said and all(line.isprintable() for line in said), said
