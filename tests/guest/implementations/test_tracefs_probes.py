# SPDX-License-Identifier: GPL-2.0-or-later
"""The probes that read what the kernel itself measures: what it says is counted, and what is missing is told."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from fastenough.campaign.tracing import kernel_settings, with_trace
from fastenough.implementations import Act
from fastenough.implementations.linux_user import probe_arguments
from fastenough.model import NotApplicable, Outcome
from fastenough.recording import Recording, read_recording
from fastenough.settings import Settings
from fastenough.settings.tracing import INSTANCE, TRACEFS
from fastenough.virtual.board import VirtualBoard
from fastenough.virtual.probe import PROBE
from tests.support.virtual_boards import booted

pytestmark = pytest.mark.untimed

US = 1000


def _read(path: Path) -> Recording:
    """Checked line by line: buckets, totals and counts add up."""
    return read_recording(path)


def _start(probe: str, act: str, folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [probe, act, f"--instance={folder}", "--affinity=0", f"--record={folder}/recording", "--quiet", *arguments],
        stderr=subprocess.PIPE,
    )


def _total(recording: Recording, name: str) -> tuple[int, int, int]:
    """Of CPU 0: stored, lost, and values of which the order is not known."""
    [series] = recording.named(name)
    return recording.totals[series.id].total, recording.lost(series.id), recording.order_unknown(series.id)


def _sample(number: int, context: str, ns: int, cpu: int = 0, later_s: float = 0.0) -> bytes:
    return (
        f"           <...>-168     [{cpu:03}] ....... {time.monotonic() + later_s:12.6f}: #{number:<5} "
        f"context {context:>6} timer_latency {ns:>10} ns\n"
    ).encode()


def _pipe(folder: Path, clock: str = "mono") -> int:
    """A file descriptor that writes what the tracer would."""
    (folder / "trace_clock").write_text(f"local global [{clock}] boot\n")
    os.mkfifo(folder / "trace_pipe")
    return os.open(folder / "trace_pipe", os.O_RDWR)


# --- what is told is counted


def test_samples_that_were_overwritten_are_counted(probe_binary: str, tmp_path: Path) -> None:
    holder = _pipe(tmp_path)
    os.write(holder, _sample(4, "irq", 999_000) + _sample(4, "thread", 999_000) + b"half of a li")
    process = _start(probe_binary, "timerlat", tmp_path, "--duration=1500ms")
    time.sleep(0.7)
    told = b"".join(
        _sample(number, context, number * US, cpu)
        for number in (5, 6, 9, 10)
        for context in ("irq", "thread")
        for cpu in (0, 4000)
    )
    os.write(holder, b"\nCPU:0 [LOST 2 EVENTS]\n" + told + b"nonsense: #7 context\n" + _sample(11, "irq", 1)[:40])
    assert process.wait(30) == 0
    os.close(holder)
    recording = _read(tmp_path / "recording")
    assert recording.head.probe == "timerlat"
    for name in ("expiry-to-interrupt", "expiry-to-running"):
        assert _total(recording, name) == (4, 2, 1)
        [series] = recording.named(name)
        total = recording.totals[series.id]
        assert (total.minimum, total.maximum, total.sum) == (5 * US, 10 * US, 30 * US)
        assert series.role.value == "diagnostic" and series.labels == {"station": name}


def test_samples_of_the_run_that_came_before_the_first_reading_count(probe_binary: str, tmp_path: Path) -> None:
    holder = _pipe(tmp_path)
    early = b"".join(_sample(number, "irq", 999_000) for number in (7, 8, 9))
    late = b"".join(
        _sample(number, context, 5 * US, later_s=600) for number in (12, 13) for context in ("irq", "thread")
    )
    os.write(holder, early + late)
    process = _start(probe_binary, "timerlat", tmp_path, "--duration=300ms")
    assert process.wait(30) == 0
    os.close(holder)
    recording = _read(tmp_path / "recording")
    assert _total(recording, "expiry-to-interrupt") == (2, 2, 1)
    assert _total(recording, "expiry-to-running") == (2, 11, 1)


def _stopped(process: subprocess.Popen[bytes], holder: int, lines: list[bytes]) -> None:
    """End the run while these lines are in the pipe: the probe stands still until both are done."""
    process.send_signal(signal.SIGSTOP)
    os.write(holder, b"".join(lines))
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGCONT)


def _endless(probe: str, folder: Path) -> subprocess.Popen[bytes]:
    process = _start(probe, "timerlat", folder, "--duration=60s", "--until-interrupt")
    time.sleep(0.7)
    return process


def test_samples_in_the_pipe_at_the_end_of_the_run_count(probe_binary: str, tmp_path: Path) -> None:
    """A number that is missing before the first from after the end may be of the run."""
    holder = _pipe(tmp_path)
    fcntl.fcntl(holder, fcntl.F_SETPIPE_SZ, 1 << 20)
    process = _endless(probe_binary, tmp_path)
    last = 10_000
    later = [_sample(last + number, "irq", 999_000_000, later_s=600) for number in (3, 4, 7)]
    _stopped(process, holder, [_sample(number, "irq", number * US) for number in range(1, last + 1)] + later)
    assert process.wait(30) == 0
    os.close(holder)
    recording = _read(tmp_path / "recording")
    [series] = recording.named("expiry-to-interrupt")
    # The reader may come to the later ones before it knows of the end: they are of the run then.
    assert _total(recording, series.name) in ((last, 2, 1), (last + 3, 4, 2))
    assert recording.totals[series.id].maximum == last * US


@pytest.mark.parametrize("contexts", [("irq", "thread"), ("irq",)], ids=["later", "unknown"])
def test_a_pipe_that_is_never_empty_does_not_hold_the_run(
    probe_binary: str, tmp_path: Path, contexts: tuple[str, ...]
) -> None:
    """The run ends when all samples are from after it; it fails where samples of one kind may still follow."""
    holder = _pipe(tmp_path)
    process = _endless(probe_binary, tmp_path)
    process.send_signal(signal.SIGINT)
    os.set_blocking(holder, False)
    number = 0
    while process.poll() is None:
        number += 1
        lines = b"".join(_sample(number, context, US, later_s=600) for context in contexts)
        with suppress(BlockingIOError):
            os.write(holder, lines * 20)
    os.close(holder)
    reasons = _read(tmp_path / "recording").reasons
    assert process.returncode in ((0,) if len(contexts) == 2 else (0, 4))
    assert not reasons or "trace_pipe" in reasons[0]


def test_samples_by_another_clock_are_not_measured(probe_binary: str, tmp_path: Path) -> None:
    holder = _pipe(tmp_path, "uptime")
    process = _start(probe_binary, "timerlat", tmp_path, "--duration=100ms")
    assert process.wait(30) == 5
    os.close(holder)
    assert "trace_clock" in _read(tmp_path / "recording").reasons[0]


def _histogram(folder: Path, counts: dict[tuple[int, int], int], dropped: int = 0) -> None:
    """As the kernel writes it: by CPU and latency in us."""
    path = folder / "events" / "synthetic" / "fastenough_wakeup"
    path.mkdir(parents=True, exist_ok=True)
    lines = [f"{{ common_cpu: {cpu:10}, lat: {us:10} }} hitcount: {count:10}\n" for (cpu, us), count in counts.items()]
    totals = f"\nTotals:\n    Hits: 9\n    Entries: 1\n    Dropped: {dropped}\n"
    (path / "new").write_text("# event histogram\n#\n\n" + "".join(lines) + totals)
    (path / "new").rename(path / "hist")


def _tasks(folder: Path, **dropped: int) -> None:
    """The histograms by task, of the events whose pairs are wake-ups."""
    for event in ("sched_waking", "sched_switch"):
        path = folder / "events" / "sched" / event
        path.mkdir(parents=True)
        totals = f"Totals:\n    Hits: 9\n    Entries: 1\n    Dropped: {dropped.get(event, 0)}\n"
        (path / "hist").write_text(f"# event histogram\n\n{totals}")


def test_what_the_histograms_rose_by_is_counted_once(probe_binary: str, tmp_path: Path) -> None:
    _tasks(tmp_path)
    _histogram(tmp_path, {(0, 7): 100, (0, 50): 1})
    process = _start(probe_binary, "wakeups", tmp_path, "--duration=2s", "--report=200ms")
    time.sleep(0.8)
    _histogram(tmp_path, {(0, 7): 1100, (0, 50): 1, (0, 3): 2, (4000, 9): 5})
    time.sleep(0.5)
    _histogram(tmp_path, {(0, 7): 1100, (0, 50): 2, (0, 3): 2, (4000, 9): 5})
    assert process.wait(30) == 0
    recording = _read(tmp_path / "recording")
    [series] = recording.named("runnable-to-running")
    total = recording.totals[series.id]
    assert _total(recording, series.name) == (1003, 0, 1003)
    assert (total.minimum, total.maximum, total.sum) == (3 * US, 50 * US, (7000 + 6 + 50) * US)


def _refused(probe: str, folder: Path) -> Recording:
    process = _start(probe, "wakeups", folder, "--duration=300ms")
    assert process.wait(30) == 4
    return _read(folder / "recording")


def test_a_full_histogram_of_latencies_fails_the_run(probe_binary: str, tmp_path: Path) -> None:
    _tasks(tmp_path)
    _histogram(tmp_path, {(0, 7): 100}, 3)
    recording = _refused(probe_binary, tmp_path)
    assert recording.reasons == ("the kernel's histograms were full: 3 wake-ups are missing",)


@pytest.mark.parametrize("event", ["sched_waking", "sched_switch"])
def test_a_full_histogram_of_tasks_fails_the_run(probe_binary: str, tmp_path: Path, event: str) -> None:
    _tasks(tmp_path, **{event: 3})
    _histogram(tmp_path, {(0, 7): 100})
    recording = _refused(probe_binary, tmp_path)
    assert recording.reasons == ("the kernel's histograms were full: 3 wake-ups are missing",)


@pytest.mark.parametrize("event", ["sched_waking", "sched_switch"])
def test_a_histogram_that_counts_nothing_fails_the_run(probe_binary: str, tmp_path: Path, event: str) -> None:
    _tasks(tmp_path)
    (tmp_path / "events" / "sched" / event / "hist").write_text("")
    _histogram(tmp_path, {(0, 7): 100})
    assert f"{event}/hist cannot be read" in _refused(probe_binary, tmp_path).reasons[0]


MOST_ENTRIES = 1 << 17
"""Of a histogram of the kernel."""


def test_a_full_length_histogram_is_read_to_its_end(probe_binary: str, tmp_path: Path) -> None:
    _tasks(tmp_path)
    _histogram(tmp_path, {(0, us): 1 for us in range(MOST_ENTRIES)}, 3)
    recording = _refused(probe_binary, tmp_path)
    assert recording.reasons == ("the kernel's histograms were full: 3 wake-ups are missing",)


def test_a_histogram_with_more_entries_than_a_kernels_fails_the_run(probe_binary: str, tmp_path: Path) -> None:
    _tasks(tmp_path)
    _histogram(tmp_path, {(0, us): 1 for us in range(MOST_ENTRIES + 1)})
    assert f"more than {MOST_ENTRIES} entries" in _refused(probe_binary, tmp_path).reasons[0]


def test_a_histogram_without_its_end_fails_the_run(probe_binary: str, tmp_path: Path) -> None:
    _tasks(tmp_path)
    _histogram(tmp_path, {(0, 7): 100})
    path = tmp_path / "events" / "synthetic" / "fastenough_wakeup" / "hist"
    path.write_text(path.read_text().partition("Totals")[0])
    assert "hist cannot be read" in _refused(probe_binary, tmp_path).reasons[0]


@pytest.mark.parametrize("act", ["timerlat", "wakeups"])
def test_without_an_instance_nothing_is_measured(probe_binary: str, tmp_path: Path, act: str) -> None:
    process = _start(probe_binary, act, tmp_path, "--duration=100ms")
    assert process.wait(30) == 5
    recording = _read(tmp_path / "recording")
    assert recording.outcome is Outcome.NOT_APPLICABLE and "No such file" in recording.reasons[0]


# --- the kernel itself

KERNELS = ["rt", "stock", *(pytest.param(name, marks=pytest.mark.matrix) for name in ("rt-6.12", "stock-6.12"))]


@pytest.fixture(scope="module", params=KERNELS)
def board(request: pytest.FixtureRequest) -> Iterator[VirtualBoard]:
    yield from booted(request.param)


def _measured(
    board: VirtualBoard, journal: Path, name: str, load: list[str], **parameters: str
) -> tuple[Recording, Recording | None]:
    """What an act of the kernel's records in the guest, and beside it a probe with real-time tasks."""
    with Settings(board.link, journal) as settings:
        act = Act(name, parameters, 4.0)
        act = with_trace(act, settings.apply_all(kernel_settings(act, board.link)), print)
        watching = board.link.start([PROBE, *probe_arguments(act)])
        stream = watching.lines(60.0)
        lines = [next(stream)]
        beside = [*board.link.start([PROBE, *load]).lines(60.0)] if load else []
        lines += stream
        watching.wait(60.0)
    assert not board.link.exists(INSTANCE)
    places = journal.parent / "watching", journal.parent / "beside"
    places[0].write_bytes(b"".join(lines))
    places[1].write_bytes(b"".join(beside))
    return _read(places[0]), _read(places[1]) if load else None


@pytest.mark.parametrize("tasks", [{}, {"comm": "fastenough"}], ids=["all", "named"])
def test_the_kernel_counts_every_wake_up(board: VirtualBoard, tmp_path: Path, tasks: dict[str, str]) -> None:
    load = ["timer", "--interval=20ms", "--loops=50", "--affinity=0", "--threads=1", "--allow-difference", "--record=-"]
    recording, beside = _measured(board, tmp_path / "journal", "wakeups", load, **tasks)
    assert recording.outcome is Outcome.COMPLETED and beside is not None
    acts = sum(beside.totals[series.id].total for series in beside.named("wakeup"))
    stored = sum(recording.totals[series.id].total for series in recording.series)
    assert acts == 50 and stored >= acts
    events = board.link.run(["cat", f"{TRACEFS}/synthetic_events"]).text
    assert "fastenough" not in events


def test_the_kernels_own_tracer_is_read(board: VirtualBoard, tmp_path: Path) -> None:
    if "rt" not in board.kernel.name:
        with pytest.raises(NotApplicable, match="CONFIG_TIMERLAT_TRACER is off"):
            _measured(board, tmp_path / "journal", "timerlat", [])
        return
    recording, _ = _measured(board, tmp_path / "journal", "timerlat", [])
    assert recording.outcome is Outcome.COMPLETED
    both = recording.named("expiry-to-interrupt"), recording.named("expiry-to-running")
    for interrupt, thread in zip(*both, strict=True):
        early, late = recording.totals[interrupt.id], recording.totals[thread.id]
        assert early.total > 10 and abs(early.total - late.total) <= 1
        assert early.minimum is not None and late.minimum is not None and late.minimum >= early.minimum
