# SPDX-License-Identifier: GPL-2.0-or-later
"""What the primitives record: every act, where it took place, what was refused; and what they leave behind: nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from fastenough.model import Outcome, Series
from fastenough.recording import Recording, read_recording
from tests.support.presence import present
from tests.support.privileges import needs_root
from tests.support.processes import ended, eventually, recorded
from tests.support.tools import require

PAIRS = [
    "semaphore",
    "condvar",
    "futex",
    "eventfd",
    "signal",
    "mqueue",
    "barrier",
    "mutex-contended",
    "mutex-pi",
    "fifo-message",
]
BOUNDED_S = 15

needs_two_cpus = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")


def _command(probe: str, path: Path, *arguments: str) -> list[str]:
    return [probe, *arguments, "--quiet", "--allow-difference", f"--record={path}"]


def _record(probe: str, path: Path, *arguments: str) -> Recording:
    path.unlink(missing_ok=True)
    subprocess.run(_command(probe, path, *arguments), check=False, capture_output=True, timeout=120)
    return read_recording(path)


def _stored(recording: Recording, series: Series) -> int:
    histogram = recording.totals.get(series.id)
    return histogram.total if histogram else 0


def _median_ns(recording: Recording, series: Series) -> int:
    histogram = recording.totals[series.id]
    rank = np.searchsorted(np.cumsum(histogram.count), histogram.total / 2)
    return int(histogram.highest()[rank])


def _site(cpu: int) -> tuple[str, str]:
    topology = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology")
    return (topology / "physical_package_id").read_text(), (topology / "core_id").read_text()


@pytest.mark.parametrize("probe", [*PAIRS, "mutex", "switch"])
def test_every_act_is_recorded_once(probe_binary: str, tmp_path: Path, probe: str) -> None:
    recording = _record(probe_binary, tmp_path / "r", probe, "-l300", "-i200us")
    assert recording.outcome is Outcome.COMPLETED, recording.end
    (series,) = recording.series
    assert _stored(recording, series) == 300
    assert series.from_event and series.to_event and series.from_event != series.to_event
    assert present(recording.totals[series.id].minimum, "minimum") > 0
    assert all(present(recording.head.cost_ns[name], name) > 0 for name in ("clock_read_ns", "clock_step_ns"))


@pytest.mark.parametrize("word", ["same", "smt", "core", "socket"])
def test_places_are_chosen_by_topology_and_recorded(probe_binary: str, tmp_path: Path, word: str) -> None:
    recording = _record(probe_binary, tmp_path / "r", "futex", "-l50", f"--placement={word}")
    parameters = recording.head.parameters
    if recording.outcome is Outcome.NOT_APPLICABLE:
        assert recording.end is not None and f"--placement {word}" in recording.end.reasons[0]
        return
    assert word == parameters["placement"] == recording.series[0].labels["placement"]
    first, second = parameters["first_cpu"], parameters["second_cpu"]
    same_socket, same_core = (a == b for a, b in zip(_site(first), _site(second), strict=True))
    relation = "same" if first == second else "socket" if not same_socket else "smt" if same_core else "core"
    assert relation == word
    granted = {setting.thread: setting.in_effect for setting in recording.head.settings if setting.name == "affinity"}
    assert granted["waker"] == str(first) and granted["waiter"] == str(second)


def test_a_spinlock_on_one_cpu_is_not_applicable(probe_binary: str, tmp_path: Path) -> None:
    recording = _record(probe_binary, tmp_path / "r", "spinlock", "-l100", "-a0")
    assert recording.outcome is Outcome.NOT_APPLICABLE
    assert recording.end is not None and "needs two CPUs" in recording.end.reasons[0]


@needs_two_cpus
def test_a_spinlock_is_handed_over_between_two_cpus(probe_binary: str, tmp_path: Path) -> None:
    recording = _record(probe_binary, tmp_path / "r", "spinlock", "-l3000", "-i500us")
    assert recording.outcome is Outcome.COMPLETED, recording.end
    assert sum(_stored(recording, series) for series in recording.named("acquire")) == 6000
    assert 0 < sum(_stored(recording, series) for series in recording.named("handover")) < 6000
    assert {series.cpu for series in recording.series} == {
        recording.head.parameters[f"{place}_cpu"] for place in ("first", "second")
    }


@needs_root("real-time policies")
def test_recovery_grows_with_the_medium_task_only_without_inheritance(probe_binary: str, tmp_path: Path) -> None:
    medians: dict[str, dict[int, int]] = {"yes": {}, "no": {}}
    for medium_ms in (1, 5):
        recording = _record(probe_binary, tmp_path / "r", "inversion", f"--medium={medium_ms}ms", "-l60")
        assert recording.outcome is Outcome.COMPLETED, recording.end
        for series in recording.named("recovery"):
            assert _stored(recording, series) == 30
            medians[series.labels["inheritance"]][medium_ms] = _median_ns(recording, series)
        assert recording.head.parameters["medium_ns"] == medium_ms * 1_000_000
    without, with_it = medians["no"], medians["yes"]
    assert 4_000_000 - 500_000 < without[5] - without[1] < 4_000_000 + 500_000
    assert with_it[5] - with_it[1] < (without[5] - without[1]) / 20
    assert with_it[5] < without[5] / 20


def test_inversion_without_priorities_is_not_applicable(probe_binary: str, tmp_path: Path) -> None:
    assert _record(probe_binary, tmp_path / "r", "inversion", "-l2", "--policy=other").outcome is Outcome.NOT_APPLICABLE


@pytest.mark.slow
@pytest.mark.parametrize("channel", ["pipe", "named"])
def test_transfers_by_block_and_by_pipe(probe_binary: str, tmp_path: Path, channel: str) -> None:
    for view, sizes in (("block", {"10", "100", "1024", "10240"}), ("pipe", {"10", "100", "1024", "4096", "10240"})):
        recording = _record(
            probe_binary, tmp_path / "r", "fifo", f"--by={view}", "--largest=16384", "-l44", f"--channel={channel}"
        )
        assert recording.outcome is Outcome.COMPLETED, recording.end
        assert {series.labels[view] for series in recording.series} >= sizes
        assert {series.bytes for series in recording.series} == {1 << 20, 10 << 20}
        assert sum(_stored(recording, series) for series in recording.series) == 44


@pytest.fixture
def crowded_cpu() -> Iterator[int]:
    """A CPU that several others keep busy."""
    cpu = min(os.sched_getaffinity(0))
    busy = [subprocess.Popen(["taskset", "-c", str(cpu), sys.executable, "-c", "while True: pass"]) for _ in range(6)]
    yield cpu
    for process in busy:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_a_rest_after_slow_work_is_not_taken_for_death(probe_binary: str, tmp_path: Path, crowded_cpu: int) -> None:
    """Two transfers among busy processes, the second longer than the watch waits; then the writer rests."""
    recording = _record(
        probe_binary,
        tmp_path / "r",
        "fifo",
        "--by=block",
        "--largest=16384",
        "--policy=other",
        "-l3",
        "--timeout=400ms",
        f"--affinity={crowded_cpu}",
    )
    assert recording.outcome is Outcome.COMPLETED, recording.end
    assert max(recording.totals[series.id].maximum or 0 for series in recording.series) > 400_000_000


@needs_root("real-time policies")
def test_a_refused_pipe_size_is_reported_with_its_reason(probe_binary: str, tmp_path: Path) -> None:
    require("setpriv")
    most = int(Path("/proc/sys/fs/pipe-max-size").read_text())
    path = tmp_path / "r"
    subprocess.run(
        [
            "setpriv",
            "--bounding-set=-sys_resource",
            "--inh-caps=-sys_resource",
            *_command(probe_binary, path, "fifo", "--by=pipe", "-l60"),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )
    recording = read_recording(path)
    refused = [series for series in recording.series if int(series.labels["pipe"]) > most]
    assert refused
    for series in recording.series:
        assert (series.refused is not None) == (series in refused)
        assert (_stored(recording, series) == 0) == (series in refused)
    assert all("EPERM" in (s.refused or "") and str(most) in (s.refused or "") for s in refused)


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_a_named_fifo_leaves_no_file(probe_binary: str, tmp_path: Path, ending: signal.Signals) -> None:
    folder = tmp_path / "fifos"
    folder.mkdir()
    process = subprocess.Popen(
        _command(probe_binary, tmp_path / "r", "fifo", "--channel=named", "--largest=16384"),
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert eventually(lambda: recorded(tmp_path / "r"), 60)
    process.send_signal(ending)
    process.wait(timeout=BOUNDED_S)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("placement", ["same", "core"])
def test_shared_memory_by_size(probe_binary: str, tmp_path: Path, placement: str) -> None:
    recording = _record(probe_binary, tmp_path / "r", "shm", f"--placement={placement}", "-D1s", "--largest=1048576")
    if recording.outcome is Outcome.NOT_APPLICABLE:
        pytest.skip("no other core")
    assert recording.outcome is Outcome.COMPLETED, recording.end
    assert [series.bytes for series in recording.series][:4] == [10, 100, 1024, 10240]
    assert all(_stored(recording, series) for series in recording.series)


def _children(pid: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found


@pytest.fixture
def shm_run(probe_binary: str, tmp_path: Path) -> tuple[subprocess.Popen[bytes], int, Path]:
    """A probe at work and the normal process it shares memory with."""
    path = tmp_path / "r"
    process = subprocess.Popen(
        _command(probe_binary, path, "shm", "--placement=same", "--timeout=500ms", "--largest=10240"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert eventually(lambda: recorded(path), 60)
    (child,) = _children(process.pid)
    return process, child, path


@pytest.mark.parametrize(
    ("what", "reason"), [(signal.SIGKILL, "ended by signal KILL"), (signal.SIGSTOP, "no act completed within")]
)
def test_a_dead_or_stopped_partner_fails_the_run(
    shm_run: tuple[subprocess.Popen[bytes], int, Path], what: signal.Signals, reason: str
) -> None:
    process, child, path = shm_run
    os.kill(child, what)
    assert process.wait(timeout=BOUNDED_S) == 4
    end = read_recording(path).end
    assert end is not None and end.outcome == "failed" and reason in end.reasons[0]
    assert eventually(lambda: ended(child))


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL])
def test_the_partner_ends_with_the_probe(
    shm_run: tuple[subprocess.Popen[bytes], int, Path], ending: signal.Signals
) -> None:
    process, child, _ = shm_run
    process.send_signal(ending)
    process.wait(timeout=BOUNDED_S)
    assert eventually(lambda: ended(child))


@pytest.mark.slow
@pytest.mark.parametrize("task", ["real-time", "ordinary"])
def test_traffic_is_switched_off_half_way(probe_binary: str, tmp_path: Path, task: str) -> None:
    recording = _record(probe_binary, tmp_path / "r", "jitter", "-D2s", "--report=100ms", f"--task={task}")
    assert recording.outcome is Outcome.COMPLETED, recording.end
    counts = {}
    for series in recording.named("wakeup"):
        counts[series.labels["traffic"]] = [
            (interval.histograms[series.id].total if series.id in interval.histograms else 0)
            for interval in recording.intervals
        ]
        periods = _stored(recording, series) + recording.missed(series.id)
        assert 900 <= periods <= 1100
    assert sum(counts["on"][:9]) > 0 and sum(counts["off"][:9]) == 0
    assert sum(counts["off"][11:]) > 0 and sum(counts["on"][12:]) == 0


def test_jitter_wants_an_end_to_know_its_middle(probe_binary: str) -> None:
    done = subprocess.run([probe_binary, "jitter"], capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 2 and "--duration" in done.stderr and len(done.stderr.splitlines()) == 1


def test_a_low_priority_leaves_no_room_for_the_waker(probe_binary: str) -> None:
    done = subprocess.run([probe_binary, "semaphore", "-p1"], capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 2 and "--priority" in done.stderr


def test_condvar_intervals_keep_minimum_and_maximum(probe_binary: str, tmp_path: Path) -> None:
    recording = _record(probe_binary, tmp_path / "r", "condvar", "-D1s", "--report=200ms")
    ends = [(h.minimum, h.maximum) for interval in recording.intervals for h in interval.histograms.values() if h.total]
    assert len(ends) >= 4
    assert all(low is not None and high is not None and 0 < low <= high for low, high in ends)
