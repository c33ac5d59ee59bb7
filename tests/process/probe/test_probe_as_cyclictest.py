# SPDX-License-Identifier: GPL-2.0-or-later
"""What fingers and scripts know from cyclictest: histograms, ns, aligned grids, CPUs by exception, housekeeping."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fastenough.exchange.cyclictest import IMPORTER
from fastenough.exchange.source import Source
from fastenough.facts.cpu import list_form
from fastenough.recording import Recording, read_recording
from tests.support.control_groups import own_group
from tests.support.presence import present
from tests.support.privileges import needs_root, own_mounts
from tests.support.processes import eventually

CPUS = sorted(os.sched_getaffinity(0))
ORDINARY = ("--policy", "other", "--allow-difference")
CPU_FOLDER = Path("/sys/devices/system/cpu")
needs_two_cpus = pytest.mark.skipif(len(CPUS) < 2, reason="needs two CPUs")


def _said(probe: str, *words: str) -> str:
    done = subprocess.run([probe, *words, *ORDINARY], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _refused(probe: str, *words: str) -> str:
    done = subprocess.run([probe, *words], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    return done.stderr


def _recorded(probe: str, path: Path, *words: str) -> Recording:
    _said(probe, "timer", "-q", "--record", str(path), *words)
    return read_recording(path)


def _rows(text: str) -> tuple[dict[int, list[int]], dict[str, list[int]]]:
    """Rows by their microseconds, and the lines behind them by their names."""
    body = text.split("# Histogram\n", 1)[1].splitlines()
    rows = {int(line[:6]): [int(word) for word in line[7:].split("\t")] for line in body if line[0] != "#"}
    said = re.findall(r"^# ([\w ]+): (.*)$", "\n".join(body), re.MULTILINE)
    footers = {name: [int(word) for word in words.split()] for name, words in said}
    return rows, footers


def test_the_histogram_is_one_that_scripts_for_cyclictest_read(probe_binary: str, tmp_path: Path) -> None:
    path, file = tmp_path / "r", tmp_path / "h"
    recording = _recorded(probe_binary, path, "-l", "500", "-i", "500us", "-H", "50", "--histfile", str(file))
    text = file.read_text()
    rows, footers = _rows(text)
    acts = [recording.totals[series.id] for series in recording.named("wakeup")]
    several = len(acts) > 1
    assert list(rows) == list(range(50))
    early = [one.total - one.count_above(-1) for one in acts]
    total = [sum(column) for column in zip(*rows.values(), strict=True)]
    assert footers["Total"] == total
    beyond = footers["Histogram Overflows"]
    assert [held + over + before for held, over, before in zip(total, beyond, early, strict=False)] == [
        one.total for one in acts
    ]
    for one, least, most in zip(acts, footers["Min Latencies"], footers["Max Latencies"], strict=False):
        assert one.minimum is not None and one.maximum is not None
        assert least * 1000 <= one.minimum < (least + 1) * 1000
        assert (most - 1) * 1000 < one.maximum <= most * 1000
    if several:
        assert all(row[-1] == sum(row[:-1]) for row in rows.values())
        assert (total[-1], beyond[-1]) == (sum(total[:-1]), sum(beyond[:-1]))
        assert footers["Max Latencies"][-1] == max(footers["Max Latencies"][:-1])
    assert len(footers["Min Latencies"]) == len(acts)

    found = IMPORTER.read(Source(str(file), file.read_bytes()))
    assert [series.count for series in found.series] == [held + over for held, over in zip(total, beyond, strict=True)][
        : len(acts)
    ]


def test_all_output_but_a_histogram_is_a_comment(probe_binary: str) -> None:
    """Scripts take each line without # for a row."""
    lines = _said(probe_binary, "timer", "-q", "-a", str(CPUS[0]), "-l", "20", "-h", "30").splitlines()
    rows = [line for line in lines if not line.startswith("#")]
    assert [line[:7] for line in rows] == [f"{us:06} " for us in range(30)]
    assert lines[0].startswith("#  CPU series") and any("not a real-time run" in line for line in lines)


def test_a_histogram_goes_into_a_new_file_only(probe_binary: str, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for name in ("there", "link", "no/such/folder"):
        said = _refused(probe_binary, "timer", "-l", "5", "-h", "50", "--histfile", str(tmp_path / name), *ORDINARY)
        assert "name a new file" in said
    assert there.read_text() == "mine" and not (tmp_path / "elsewhere").exists()
    assert "needs the upper limit" in _refused(probe_binary, "timer", "--histfile", str(tmp_path / "h"))


def test_times_in_ns_are_those_of_the_recording(probe_binary: str, tmp_path: Path) -> None:
    path = tmp_path / "r"
    said = _said(probe_binary, "timer", "-N", "-a", str(CPUS[0]), "-l", "200", "-h", "10", "--record", str(path))
    recording = read_recording(path)
    (wakeup,) = recording.named("wakeup")
    total = recording.totals[wakeup.id]
    head, row = (line.removeprefix("# ") for line in said.splitlines()[:2])
    assert re.findall(r"[\d.%a-z]+ ns", head) == ["min ns", "50% ns", "99% ns", "99.9% ns", "max ns"]
    cells = row.split()
    assert cells[:4] == [str(CPUS[0]), "wakeup", str(total.total), str(recording.missed(wakeup.id))]
    assert [int(cell) for cell in (cells[4], cells[-1])] == [total.minimum, total.maximum]
    assert _rows(said)[1]["Max Latencies"] == [total.maximum]


@needs_two_cpus
def test_cpus_by_exception(probe_binary: str, tmp_path: Path) -> None:
    recording = _recorded(probe_binary, tmp_path / "r", "-a", f"!{CPUS[0]}", "-l", "5")
    assert [series.cpu for series in recording.named("wakeup")] == CPUS[1:]
    assert "exclude fewer" in _refused(probe_binary, "timer", "-a", "!" + ",".join(map(str, CPUS)), "-l", "5")
    assert "is not a list of CPUs" in _refused(probe_binary, "timer", "--affinity=!", "-l", "5")


@pytest.mark.parametrize(("clock", "behind_us"), [("monotonic", 0), ("realtime", 300)])
def test_the_grid_meets_full_seconds(probe_binary: str, tmp_path: Path, clock: str, behind_us: int) -> None:
    """Due time = instant of the event less its value, but for the moment between the act and the event."""
    recording = _recorded(
        probe_binary,
        tmp_path / "r",
        "-i",
        "10ms",
        f"--secaligned={behind_us}",
        "-c",
        clock,
        "-l",
        "40",
        "-a",
        str(CPUS[0]),
    )
    assert recording.head.parameters["second_offset_ns"] == behind_us * 1000
    at = [event.at.wall_ns if clock == "realtime" else event.at.mono_ns for event in recording.events]
    behind_ns = [
        (instant - present(event.value, "value of an event") - behind_us * 1000) % 10_000_000
        for instant, event in zip(at, recording.events, strict=True)
    ]
    assert min(behind_ns) < 500_000
    assert "divide a second" in _refused(probe_binary, "timer", "--secaligned", "-i", "3ms")


def test_aligned_is_offset(probe_binary: str, tmp_path: Path) -> None:
    assert _recorded(probe_binary, tmp_path / "1", "-A", "50", "-l", "5").head.parameters["offset_ns"] == 50_000
    assert _recorded(probe_binary, tmp_path / "2", "-A", "-l", "5").head.parameters["offset_ns"] == 0


def _settings(recording: Recording, name: str) -> list[tuple[object, object, object]]:
    """Requested, in effect before and in effect after."""
    end = present(recording.end, "end")
    after = {setting.name: setting.in_effect for setting in present(end.settings, "settings of the end")}
    return [
        (setting.requested, setting.in_effect, after.get(name))
        for setting in recording.head.settings
        if setting.name == name
    ]


@needs_two_cpus
@pytest.mark.parametrize("option", ["--housekeeping", "--mainaffinity"])
def test_only_the_reporting_thread_keeps_house(probe_binary: str, tmp_path: Path, option: str) -> None:
    keeper = str(CPUS[1])
    recording = _recorded(probe_binary, tmp_path / "r", option, keeper, "-D", "100ms")
    assert _settings(recording, "housekeeping") == [(keeper, keeper, keeper)]
    pinned = [setting.in_effect for setting in recording.head.settings if setting.name == "affinity"]
    assert pinned == [str(cpu) for cpu in CPUS]
    assert _settings(_recorded(probe_binary, tmp_path / "none", "-D", "50ms"), "housekeeping") == []


@needs_two_cpus
def test_cpus_are_recorded_in_order(probe_binary: str, tmp_path: Path) -> None:
    """As the kernel lists them, however they were requested."""
    recording = _recorded(probe_binary, tmp_path / "r", f"--housekeeping={CPUS[1]},{CPUS[0]}", "-D", "50ms")
    both = list_form(set(CPUS[:2]))
    assert _settings(recording, "housekeeping") == [(both, both, both)]


def test_a_cpu_that_cannot_keep_house_is_told(probe_binary: str) -> None:
    assert "there is no CPU 4000" in _refused(probe_binary, "timer", "--housekeeping", "4000")
    assert "is not a list of CPUs" in _refused(probe_binary, "timer", "--housekeeping=")


def test_a_control_group_is_joined_and_read_back(probe_binary: str, tmp_path: Path) -> None:
    with own_group("cpu") as folder:
        recording = _recorded(probe_binary, tmp_path / "r", "--cgroup", str(folder), "-D", "50ms")
        assert _settings(recording, "cgroup") == [(str(folder), str(folder), str(folder))]
        assert (folder / "cgroup.procs").read_text() == ""


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("no/such/group", "cannot be joined"),
        ("/etc", "cannot be joined"),
        ('a"b', "printable characters"),
        ("x" * 70, "printable characters"),
    ],
)
def test_what_is_no_control_group(probe_binary: str, name: str, why: str) -> None:
    assert why in _refused(probe_binary, "timer", "--cgroup", name, *ORDINARY)


def test_all_threads_have_the_name_that_is_asked_for(probe_binary: str, tmp_path: Path) -> None:
    recording = tmp_path / "r"
    options = ["--thread-name=mine-7", "--until-interrupt", "--report=50ms", "--record", str(recording)]
    words = [probe_binary, "timer", *ORDINARY, *options]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as probe:
        tasks = Path(f"/proc/{probe.pid}/task")
        try:
            assert eventually(lambda: len(list(tasks.iterdir())) > len(CPUS))
            assert {task.joinpath("comm").read_text() for task in tasks.iterdir()} == {"mine-7\n"}
            assert eventually(  # each thread has begun
                lambda: recording.exists() and b'"type":"interval"' in recording.read_bytes()
            )
        finally:
            probe.send_signal(signal.SIGINT)
    assert probe.returncode == 0


@pytest.mark.parametrize(("name", "why"), [("a b", "letters, digits"), ("x" * 16, "longer than 15")])
def test_what_is_no_name_of_a_thread(probe_binary: str, name: str, why: str) -> None:
    assert why in _refused(probe_binary, "timer", "--thread-name", name, *ORDINARY)


def test_the_deepest_idle_state_is_held_or_cannot_be(probe_binary: str, tmp_path: Path) -> None:
    """The kernel takes the hold back when the probe ends, however it ends: nobody else holds the file."""
    words = ("timer", "--deepest-idle-state", "0", "-l", "5")
    if not list(CPU_FOLDER.glob("cpu[0-9]*/cpuidle/state0")):
        assert "no cpuidle" in _refused(probe_binary, *words)
    elif os.geteuid() == 0:
        recording = _recorded(probe_binary, tmp_path / "r", *words[1:])
        assert _settings(recording, "deepest_idle_state")[0][:2] in [(0, 0), (0, -1)]
        assert _settings(recording, "cpu_dma_latency_us")[0][1] is not None
    assert "give only one of them" in _refused(probe_binary, *words, "--latency", "5")


_WITH_STATES = """
mount -t tmpfs none /sys/devices/system/cpu || exit 77
for cpu in 0 1; do
    for state in 0:0 1:2 2:133; do
        mkdir -p "/sys/devices/system/cpu/cpu$cpu/cpuidle/state${state%:*}"
        echo "${state#*:}" >"/sys/devices/system/cpu/cpu$cpu/cpuidle/state${state%:*}/latency"
    done
done
exec "$@"
"""
"""In a mount namespace of its own: two CPUs with three idle states."""
_HOLD = Path("/dev/cpu_dma_latency")


def _held_us() -> int:
    """By anybody: the least that somebody holds."""
    return int.from_bytes(_HOLD.read_bytes()[:4], sys.byteorder, signed=True)


@needs_root("a namespace, and /dev/cpu_dma_latency")
@pytest.mark.skipif(not _HOLD.exists(), reason="no /dev/cpu_dma_latency here")
def test_the_hold_on_idle_states_ends_with_its_owner(probe_binary: str, tmp_path: Path) -> None:
    """Other probes on this machine may hold a shorter wake-up meanwhile: then that is what is in effect."""
    path = tmp_path / "r"
    command = [
        *own_mounts(),
        "sh",
        "-c",
        _WITH_STATES,
        "sh",
        probe_binary,
        "timer",
        "-a",
        "0",
        "-D",
        "60s",
        "-q",
        "--report",
        "50ms",
        "--deepest-idle-state",
        "1",
        "--record",
        str(path),
        *ORDINARY,
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        assert eventually(lambda: path.exists() and path.read_bytes().count(b"\n") > 2, 30)
        assert _held_us() in (0, 2)
        process.kill()
    assert _held_us() != 2
    recording = read_recording(path)
    settings = {setting.name: (setting.requested, setting.in_effect) for setting in recording.head.settings}
    assert settings["cpu_dma_latency_us"] in [(2, 2), (2, 0)]
    assert settings["deepest_idle_state"] in [(1, 1), (1, 0)]
