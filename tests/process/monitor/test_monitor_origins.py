# SPDX-License-Identifier: GPL-2.0-or-later
"""What woke a task, and whose wake-ups are wanted: each origin has its stations, and filters leave out all others."""

from __future__ import annotations

import os
import secrets
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.monitored import counted, events, sleeper, stored, unseen, watching
from tests.support.privileges import require_root
from tests.support.processes import eventually

SLEEPS, BATCH = 300, 50


def test_wakeups_by_another_task_are_counted_once(monitor_binary: Path, tmp_path: Path) -> None:
    """Two threads of this process that wait for each other, counted by the kernel's switches of the one.

    On a busy machine an answer is often there before it is waited for: they go on until one has slept often enough.
    """
    with watching(monitor_binary, tmp_path / "recording.jsonl", "--pid", str(os.getpid()), "--policy", "any") as watch:
        here, there = os.pipe(), os.pipe()
        slept: list[int] = []
        thread = threading.Thread(target=answer, args=(here[0], there[1], slept))
        thread.start()
        begin = sleeps(thread.native_id)
        while sleeps(thread.native_id) < begin + SLEEPS:
            for _ in range(BATCH):
                os.write(here[1], b"x")
                os.read(there[0], 1)
        os.close(here[1])
        thread.join()
        for end in (here[0], *there):
            os.close(end)
    recording = watch.recording()
    assert stored(recording, "waking-to-running") + unseen(recording) >= slept[0] >= SLEEPS
    assert stored(recording, "expiry-to-running") < slept[0]


def sleeps(thread: int | None) -> int:
    """How often a thread of this process has given up its CPU of its own accord."""
    status = Path(f"/proc/self/task/{thread}/status").read_text()
    return int(status.split("voluntary_ctxt_switches:")[1].split()[0])


def answer(read: int, write: int, slept: list[int]) -> None:
    before = sleeps(threading.get_native_id())
    while byte := os.read(read, 1):
        os.write(write, byte)
    slept.append(sleeps(threading.get_native_id()) - before)


def interrupts_of_disks() -> int:
    """How many interrupts of block devices there were so far."""
    lines = Path("/proc/interrupts").read_text().splitlines()
    return sum(
        sum(map(int, line.split()[1 : 1 + (os.cpu_count() or 1)]))
        for line in lines
        if "virtio" in line or "nvme" in line or "ahci" in line
    )


def sleeps_while(command: list[str]) -> int:
    """How often a command gave up its CPU of its own accord; skips where it fails."""
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        pytest.skip("this file system reads nothing past its cache")
    return used.ru_nvcsw


def test_wakeups_by_a_device_begin_at_its_interrupt(monitor_binary: Path, tmp_path: Path) -> None:
    content = tmp_path / "content"
    content.write_bytes(os.urandom(1 << 22))
    os.sync()
    reader = ["chrt", "-f", "40", "dd", f"if={content}", "of=/dev/null", "bs=4k", "iflag=direct"]
    with watching(monitor_binary, tmp_path / "recording.jsonl", "--policy", "fifo", "--comm", "dd") as watch:
        before, slept, tries = interrupts_of_disks(), 0, 0
        while slept <= 200 and tries < 20:  # it sleeps only where the disk is not quicker
            slept += sleeps_while(reader)
            tries += 1
        interrupts = interrupts_of_disks() - before
    recording = watch.recording()
    if not interrupts:
        pytest.skip("no device here interrupts a reader")
    assert slept // 2 <= stored(recording, "device-to-runnable") + unseen(recording) <= slept
    assert stored(recording, "device-to-runnable") > 100
    found = events(recording, "device-to-runnable")
    assert found and found[-1].culprit is not None
    assert "virtio" in str(found[-1].culprit["device"]) or "nvme" in str(found[-1].culprit["device"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "counts"),
    [
        ((), True),
        (("--policy", "fifo"), True),
        (("--policy", "rr"), False),
        (("--policy", "other"), False),
        (("--priority", "91"), True),
        (("--priority", "92"), False),
        (("--comm", "fe-filt"), True),
        (("--comm", "e-filt"), False),
        (("--pid", "{pid}"), True),
        (("--pid", "1"), False),
    ],
)
def test_filters(
    monitor_binary: Path, sleeper_binary: Path, tmp_path: Path, options: tuple[str, ...], counts: bool
) -> None:
    """Of a task of FIFO 91; no other begins with its name."""
    named = () if "--comm" in options else ("--comm", "fe-filtered")
    with sleeper(sleeper_binary, "fe-filtered", priority=91, acts=100) as task:
        words = [option.format(pid=task.pid) for option in (*options, *named)]
        with watching(monitor_binary, tmp_path / "recording.jsonl", *words) as watch:
            slept = task.sleep()
        recording = watch.recording()
    most = slept.times + slept.preempted + counted(recording, "monitor_no_sleep")
    least, most = (slept.times // 2, most) if counts else (0, 0)
    assert least <= stored(recording, "expiry-to-running") <= most


@pytest.fixture
def groups() -> Iterator[tuple[Path, Path]]:
    """A control group of version 2 with one below it."""
    require_root("control groups")
    roots = [
        root
        for root in (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))
        if (root / "cgroup.procs").exists() and (root / "cgroup.controllers").exists()
    ]
    if not roots:
        pytest.skip("no control groups of version 2")
    if Path("/proc/self/ns/cgroup").stat().st_ino != 0xEFFFFFFB:
        pytest.skip("control groups of this namespace are not those of the kernel")
    group = roots[0] / f"fastenough-test-{secrets.token_hex(4)}"
    below = group / "below"
    below.mkdir(parents=True)
    try:
        yield group, below
    finally:
        assert eventually(lambda: not (below / "cgroup.procs").read_text())
        below.rmdir()
        group.rmdir()


def test_a_control_group_and_those_below_it(
    monitor_binary: Path, sleeper_binary: Path, tmp_path: Path, groups: tuple[Path, Path]
) -> None:
    group, below = groups
    options = ("--comm", "fe-grouped", "--cgroup")
    with sleeper(sleeper_binary, "fe-grouped", acts=100) as task:
        (group / "cgroup.procs").write_text(str(task.pid))
        with (
            watching(monitor_binary, tmp_path / "in.jsonl", *options, str(group)) as inside,
            watching(monitor_binary, tmp_path / "below.jsonl", *options, f"/{group.name}/{below.name}") as elsewhere,
        ):
            task.sleep()
    assert stored(inside.recording(), "expiry-to-running") > 50
    assert not stored(elsewhere.recording(), "expiry-to-running")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--cgroup", "/no-such-group"), "no such control group: /no-such-group"),
        (("--cgroup", "/./"), "without . and .."),
        (("--cgroup", "a/../"), "without . and .."),
        (("--comm", "a-name-of-16-letters"), "the first 15 characters"),
        (("--policy", "batch"), "batch"),
        (("--k", "11"), "--k"),
        (("--loops", "5"), "unknown option --loops"),
        (("--pid", "0"), "--pid"),
    ],
)
def test_bad_input_is_one_line(monitor_binary: Path, options: tuple[str, ...], said: str) -> None:
    require_root("the monitor")
    done = subprocess.run([monitor_binary, "-D", "1s", *options], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert said in done.stderr and done.stderr.count("\n") == 1
