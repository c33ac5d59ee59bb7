# SPDX-License-Identifier: GPL-2.0-or-later
"""What the monitor asks of a kernel: its types, and events off a list; and what a station more costs."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from fastenough.model import Outcome
from tests.support.monitored import sleeper, stored, watching
from tests.support.privileges import needs_root, own_mounts
from tests.support.processes import eventually, rights
from tests.support.tools import ROOT, build, configure, require

MONITOR = ROOT / "target" / "monitor"
CRASHES = "sched_set_need_resched_tp"


def sources() -> list[Path]:
    return [path for folder in ("bpf", "stations") for path in sorted((MONITOR / folder).glob("*.bpf.c"))]


def allowed() -> set[str]:
    (listed,) = re.findall(r"allowed\[\] = \{(.*?)\};", (MONITOR / "program.c").read_text(), flags=re.DOTALL)
    return set(re.findall(r'"(\w+)"', listed))


def test_programs_are_attached_to_events_of_the_list_only() -> None:
    sections = {section for path in sources() for section in re.findall(r'SEC\("\??([^"]+)/(\w+)"\)', path.read_text())}
    vectors = re.findall(r"V\((\w+)\)", (MONITOR / "monitor.h").read_text())
    assert len(sections) > 10 and {kind for kind, _ in sections} == {"tp_btf", "raw_tp"}
    assert {event for _, event in sections} | {
        f"{vector}_{side}" for vector in vectors for side in ("entry", "exit")
    } == allowed()
    assert CRASHES not in allowed()
    assert not any(CRASHES in path.read_text() for path in MONITOR.rglob("*.bpf.c"))


def test_a_kernel_that_does_not_tell_its_types_is_told_in_one_line(monitor_binary: Path, tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl"
    hidden = 'mount -t tmpfs none /sys/kernel/btf && exec "$@"'
    done = subprocess.run(
        [*own_mounts(), "sh", "-c", hidden, "sh", monitor_binary, "-D", "1s", "--record", path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 5
    assert done.stderr.count("\n") == 1 and "CONFIG_DEBUG_INFO_BTF" in done.stderr
    end = json.loads(path.read_text().splitlines()[-1])
    assert end["outcome"] == "not-applicable" and "CONFIG_DEBUG_INFO_BTF" in end["reasons"][0]


def test_without_the_rights_it_says_so(monitor_binary: Path, tmp_path: Path) -> None:
    program = tmp_path / "fastenough-monitor"
    shutil.copy(monitor_binary, program)
    done = subprocess.run(
        ["setpriv", "--bounding-set=-bpf,-perfmon,-sys_admin", program, "-D", "1s"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "CAP_BPF and CAP_PERFMON" in done.stderr


def test_rights_of_a_user_namespace_only_are_told_with_what_helps(monitor_binary: Path) -> None:
    """There all capabilities are held, and the kernel asks for those of the machine."""
    inside = ["unshare", "--user", "--map-root-user"]
    if subprocess.run([*inside, "true"], capture_output=True, check=False).returncode:
        pytest.skip("user namespaces are not allowed here")
    done = subprocess.run([*inside, monitor_binary, "-D", "1s"], capture_output=True, text=True, check=False)
    assert done.returncode == 5
    assert done.stderr.count("\n") == 1 and "root of the host" in done.stderr
    assert "kernel.unprivileged_bpf_disabled" in done.stderr and "kernel.perf_event_paranoid" in done.stderr


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of what the monitor is built from, configured."""
    require("clang", "bpftool")
    root = tmp_path / "copy"
    root.mkdir()
    for name in ("format", "gauge", "target"):
        shutil.copytree(ROOT / name, root / name)
    for name in ("meson.build", "meson_options.txt", "fastenough"):
        (root / name).symlink_to(ROOT / name)
    configure(root / "build", "-Dmonitor=enabled", root=root)
    return root


STATION = """
#include "station.h"

WAKEUP_STATION(interrupt_to_running)
{
	return between(wakeup->interrupt_ns, wakeup->running_ns);
}
"""
LINE = "  '{}': {{'origin': 'timer', 'from': 'a', 'to': 'b'}},"
CRASHING = f"""
#include "programs.h"

SEC("?tp_btf/{CRASHES}")
int BPF_PROG(on_crash)
{{
	return 0;
}}
"""


def add_station(copy: Path, name: str, line: str, text: str) -> Path:
    """One file and one line; the program that comes of it."""
    stations = copy / "target" / "monitor" / "stations"
    (stations / f"{name}.bpf.c").write_text(text)
    listed = stations / "meson.build"
    listed.write_text(listed.read_text().replace("stations = {\n", f"stations = {{\n{line}\n"))
    build(copy / "build", "target/monitor/fastenough-monitor")
    return copy / "build" / "target" / "monitor" / "fastenough-monitor"


@pytest.mark.untimed
@pytest.mark.slow
def test_a_station_is_one_file_and_one_line_and_no_event_off_the_list(
    copy: Path, sleeper_binary: Path, tmp_path: Path
) -> None:
    program = add_station(copy, "interrupt_to_running", LINE.format("interrupt-to-running"), STATION)
    with sleeper(sleeper_binary, "fe-more", acts=100) as task:
        with watching(program, tmp_path / "recording.jsonl", "--pid", str(task.pid)) as watch:
            task.sleep()
        recording = watch.recording()
    assert stored(recording, "interrupt-to-running") == stored(recording, "expiry-to-running") > 50
    assert {series.role for series in recording.series} == {"diagnostic"}
    crashing = CRASHING + STATION.replace("interrupt_to_running", "crashing")
    program = add_station(copy, "crashing", LINE.format("crashing"), crashing)
    done = subprocess.run([program, "-D", "1s"], capture_output=True, text=True, check=False)
    assert done.returncode == 5
    assert done.stderr.count("\n") == 1 and CRASHES in done.stderr and "not on the list" in done.stderr


@needs_root("BPF")
def test_a_monitor_that_watches_keeps_what_reading_its_maps_takes(monitor_binary: Path, tmp_path: Path) -> None:
    """CAP_BPF and CAP_PERFMON of all that root has, and no way to others."""
    kept = 1 << 38 | 1 << 39
    with watching(monitor_binary, tmp_path / "record", "--report=200ms") as watch:
        assert eventually(lambda: {(kept, kept, 1)} == {*rights(watch.process.pid)})
        time.sleep(0.5)
    recording = watch.recording()
    assert recording.outcome is Outcome.COMPLETED and len(recording.intervals) > 1


@needs_root("namespaces and BPF")
def test_process_ids_of_another_namespace_are_refused(monitor_binary: Path) -> None:
    apart = ["unshare", "--pid", "--fork", "--mount-proc", str(monitor_binary), "-q", "-D", "100ms"]
    by_pid, by_name = (
        subprocess.run([*apart, *chosen], capture_output=True, check=False, timeout=60)
        for chosen in (["--pid", "1"], ["--comm", "sh"])
    )
    assert by_pid.returncode == 5
    assert by_pid.stderr.count(b"\n") == 1
    assert by_name.returncode == 0


@needs_root("namespaces and BPF")
def test_control_groups_of_another_namespace_are_refused(monitor_binary: Path) -> None:
    """Its paths begin below the kernel's root, so that no task would match."""
    apart = ["unshare", "--cgroup", str(monitor_binary), "-q", "-D", "100ms"]
    by_group, by_name = (
        subprocess.run([*apart, *chosen], capture_output=True, check=False, timeout=60)
        for chosen in (["--cgroup", "/"], ["--comm", "sh"])
    )
    assert by_group.returncode == 5
    assert by_group.stderr.count(b"\n") == 1 and b"cgroup namespace" in by_group.stderr
    assert by_name.returncode == 0
