# SPDX-License-Identifier: GPL-2.0-or-later
"""What the probe says when something is refused is the cause, and with just what it asks for it runs."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from fastenough.model import ExitStatus
from fastenough.recording import read_recording
from tests.support.control_groups import inside, own_group
from tests.support.privileges import needs_root, own_mounts
from tests.support.processes import ROOT

pytestmark = [pytest.mark.untimed, needs_root("rights that are taken away")]
NUMBERS = {
    "x86_64": {"sched_setattr": 314, "sched_getattr": 315, "sched_getaffinity": 204, "sched_setaffinity": 203},
    "aarch64": {"sched_setattr": 274, "sched_getattr": 275, "sched_getaffinity": 123, "sched_setaffinity": 122},
}
_FILTER = """
import ctypes, os, struct, sys
number, command = int(sys.argv[1]), sys.argv[2:]
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program):
    sys.exit("no seccomp here")
os.execv(command[0], command)
"""
"""Loads the number of the system call, compares, answers EPERM (1) to that one and allows the others (seccomp(2))."""


def _run(before: Sequence[str], probe_binary: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*before, probe_binary, "timer", "-D", "300ms", *words], capture_output=True, text=True, check=False, timeout=60
    )


def _refused(before: Sequence[str], probe_binary: str, *words: str) -> str:
    done = _run(before, probe_binary, *words)
    if "no seccomp here" in done.stderr:
        pytest.skip("no seccomp here")
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert "Success" not in done.stderr and "run as root" not in done.stderr
    return done.stderr


def _without(*capabilities: str) -> list[str]:
    return ["setpriv", "--bounding-set", ",".join(f"-{name}" for name in capabilities)]


def _filtering(call: str) -> list[str]:
    if platform.machine() not in NUMBERS:
        pytest.skip("the numbers of this machine's system calls are not known here")
    return [sys.executable, "-c", _FILTER, str(NUMBERS[platform.machine()][call])]


def test_root_without_the_capability(probe_binary: str) -> None:
    said = _refused(["prlimit", "--rtprio=0", *_without("sys_nice")], probe_binary)
    assert "policy fifo is refused (Operation not permitted): root lacks CAP_SYS_NICE here" in said
    assert "--cap-add SYS_NICE" in said and "ulimit -r 98" in said


def test_deadline_without_the_capability(probe_binary: str) -> None:
    said = _refused(_without("sys_nice"), probe_binary, "--policy", "deadline")
    assert "policy deadline is refused" in said and "grant it (--cap-add SYS_NICE)" in said


def test_a_limit_suffices_without_the_capability(probe_binary: str) -> None:
    done = _run(["prlimit", "--rtprio=98", *_without("sys_nice")], probe_binary)
    if "failed to set the RTPRIO" in done.stderr:
        pytest.skip("may not raise limits (no CAP_SYS_RESOURCE)")
    assert done.returncode == 0, done.stderr


def test_root_that_may_not_lock_memory(probe_binary: str) -> None:
    said = _refused(["prlimit", "--memlock=65536", *_without("ipc_lock")], probe_binary)
    assert "memory cannot be locked" in said
    assert "root lacks CAP_IPC_LOCK here and ulimit -l is 64" in said and "--ulimit memlock=-1" in said


def test_root_of_a_user_namespace(probe_binary: str) -> None:
    before = ["prlimit", "--rtprio=0", "unshare", "--user", "--map-root-user"]
    if subprocess.run([*before, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no user namespaces here")
    assert "root of a user namespace may not do this" in _refused(before, probe_binary)


def test_a_filter_that_refuses_to_set(probe_binary: str) -> None:
    said = _refused(_filtering("sched_setattr"), probe_binary)
    assert "a seccomp filter refuses it; let sched_setattr through" in said
    said = _refused(_filtering("sched_setaffinity"), probe_binary, "--affinity", "0")
    assert "cannot be pinned to CPU 0 (Operation not permitted: a seccomp filter refuses sched_setaffinity" in said


def test_a_filter_that_refuses_to_read_back(probe_binary: str) -> None:
    said = _refused(_filtering("sched_getattr"), probe_binary)
    assert "policy cannot be read back (Operation not permitted: a seccomp filter refuses sched_getattr" in said
    said = _refused(_filtering("sched_getaffinity"), probe_binary, "--affinity", "0")
    assert "affinity cannot be read back (Operation not permitted: a seccomp filter refuses sched_getaffinity" in said


def test_a_cpu_outside_of_the_cpuset(probe_binary: str) -> None:
    with own_group("cpuset") as group:
        (group / "cpuset.mems").write_text((group.parent / "cpuset.mems").read_text())
        (group / "cpuset.cpus").write_text("0")
        done = inside(group, [probe_binary, "timer", "-D", "300ms", "--affinity", "1"])
    assert done.returncode == 2
    assert "cannot be pinned to CPU 1 (Invalid argument: choose CPUs in use" in done.stderr


def test_what_cannot_be_read_back_is_unknown(probe_binary: str, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    done = _run(_filtering("sched_getattr"), probe_binary, "--allow-difference", "--record", str(path))
    assert done.returncode == 0, done.stderr
    recording = read_recording(path)
    policies = [setting for setting in recording.head.settings if setting.name == "policy"]
    assert {setting.in_effect for setting in policies} == {None}
    assert "not-real-time" in recording.head.marks


def test_a_control_group_that_grants_no_real_time(probe_binary: str) -> None:
    with own_group("cpu") as group:
        if not (group / "cpu.rt_runtime_us").exists():
            pytest.skip("control groups have no real-time budget here")
        done = inside(group, [probe_binary, "timer", "-D", "300ms"])
    assert done.returncode == 2
    assert f"write a number of us into {group}/cpu.rt_runtime_us" in done.stderr


def test_with_just_what_a_container_needs(probe_binary: str, tmp_path: Path) -> None:
    """What docs/containers.md names, and no other capability."""
    path = tmp_path / "r.jsonl"
    tmp_path.chmod(0o777)
    only = ["setpriv", "--bounding-set", "-all,+sys_nice,+ipc_lock", "--no-new-privs"]
    done = _run(["prlimit", "--rtprio=0", "--memlock=0", *only], probe_binary, "--record", str(path))
    assert done.returncode == 0, done.stderr
    recording = read_recording(path)
    assert "not-real-time" not in recording.head.marks
    asked = [setting for setting in recording.head.settings if setting.requested is not None]
    assert {setting.name for setting in asked} >= {"policy", "priority", "affinity", "memory_lock"}
    assert all(setting.requested == setting.in_effect for setting in asked)


@pytest.mark.slow
def test_an_assessment_with_just_what_a_container_needs(probe_binary: str, tmp_path: Path) -> None:
    """In namespaces of its own, with two capabilities: load, probe, proof and report."""
    own_mounts()
    apart = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--uts", "--ipc", "--cgroup"]
    if subprocess.run([*apart, "true"], check=False, capture_output=True).returncode:
        pytest.skip("may not make namespaces")
    only = ["prlimit", "--memlock=0", "setpriv", "--bounding-set", "-all,+sys_nice,+ipc_lock", "--no-new-privs"]
    done = subprocess.run(
        [
            *apart,
            *only,
            sys.executable,
            "-m",
            "fastenough",
            "assess",
            "--limit",
            "10s",
            "--duration",
            "4s",
            "--loads",
            "none,cpu",
            "--store",
            str(tmp_path / "store"),
            "--out",
            str(tmp_path / "report"),
        ],
        cwd=ROOT,
        env=os.environ | {"FASTENOUGH_STATE": str(tmp_path / "state")},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == ExitStatus.INCONCLUSIVE, done.stdout + done.stderr  # four seconds are too few for a PASS
    assert (tmp_path / "report" / "index.html").exists()
    assert "not run under a real-time policy" not in done.stdout
