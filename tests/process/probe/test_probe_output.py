# SPDX-License-Identifier: GPL-2.0-or-later
"""Whoever reads the probe's output may stop reading, and what others wrote beside it stays theirs."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from fastenough.model import Outcome
from fastenough.recording import read_recording
from tests.support.privileges import needs_root, require_root
from tests.support.processes import eventually
from tests.support.tools import program

PAGE = 4096
TIMER = ["timer", "-a", str(min(os.sched_getaffinity(0))), "--allow-difference"]
ENDING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT]


@pytest.fixture(scope="module")
def tight_probe(build_directory: Path) -> Path:
    """The probe with the patience of one second."""
    return program(build_directory, "target/probe/tight-probe")


class StuckPipe:
    """A pipe of one page that nobody reads."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()
        fcntl.fcntl(self.writing, fcntl.F_SETPIPE_SZ, PAGE)

    def held(self) -> int:
        count: int = struct.unpack("i", fcntl.ioctl(self.reading, termios.FIONREAD, bytes(4)))[0]
        return count

    def full(self) -> bool:
        """Whether it holds something and takes no more; a line that does not fit whole waits as a whole."""
        before = self.held()
        time.sleep(0.2)
        return 0 < before == self.held()

    def blocks(self) -> bool:
        return not fcntl.fcntl(self.writing, fcntl.F_GETFL) & os.O_NONBLOCK

    def close(self) -> None:
        os.close(self.reading)
        os.close(self.writing)


@pytest.fixture
def pipe() -> Iterator[StuckPipe]:
    pipe = StuckPipe()
    yield pipe
    pipe.close()


def _ended(process: subprocess.Popen[bytes], timeout_s: float = 15.0) -> tuple[int, str]:
    """Its exit status and what it said; killed where it does not end."""
    try:
        _, error = process.communicate(timeout=timeout_s)
    finally:
        process.kill()
    return process.returncode, error.decode()


@pytest.mark.slow
@pytest.mark.parametrize("number", ENDING)
def test_a_signal_ends_a_run_that_nobody_reads(probe_binary: str, pipe: StuckPipe, number: signal.Signals) -> None:
    process = subprocess.Popen(
        [probe_binary, *TIMER, "--report", "20ms", "--record", "-"], stdout=pipe.writing, stderr=subprocess.PIPE
    )
    assert eventually(pipe.full)
    process.send_signal(number)
    status, error = _ended(process)
    assert status == 128 + number
    assert f"ended by signal {number.name.removeprefix('SIG')}" in error and "its reader does not read" in error
    assert error.count("\n") == 1
    assert pipe.blocks(), "the descriptor belongs to the caller too"


def test_a_signal_ends_a_run_whose_messages_nobody_reads(probe_binary: str, pipe: StuckPipe) -> None:
    process = subprocess.Popen(
        [probe_binary, *TIMER, "--report", "20ms", "--record", "-"], stdout=pipe.writing, stderr=pipe.writing
    )
    assert eventually(pipe.full)
    process.send_signal(signal.SIGTERM)
    try:
        assert process.wait(60) == 128 + signal.SIGTERM
    finally:
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_waiting_for_a_reader(probe_binary: str, tmp_path: Path, number: signal.Signals) -> None:
    os.mkfifo(tmp_path / "fifo")
    process = subprocess.Popen(
        [probe_binary, *TIMER, "--quiet", "--record", str(tmp_path / "fifo")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    time.sleep(0.5)  # at any moment: before, while and after it waits
    process.send_signal(number)
    status, _ = _ended(process)
    assert abs(status) in (number, 128 + number)


@pytest.mark.slow
def test_a_reader_that_takes_nothing_fails_the_run(tight_probe: Path, pipe: StuckPipe, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [str(tight_probe), *TIMER, "--report", "20ms", "--record", "-"], stdout=pipe.writing, stderr=subprocess.PIPE
    )
    status, error = _ended(process)
    assert status == 4
    assert "its reader has read nothing for 1 s" in error and error.count("\n") == 1
    assert pipe.blocks()


def test_a_reader_that_only_rests_loses_nothing(tight_probe: Path, tmp_path: Path) -> None:
    pipe = StuckPipe()
    process = subprocess.Popen(
        [str(tight_probe), *TIMER, "-D", "2s", "--report", "20ms", "--record", "-"], stdout=pipe.writing
    )
    assert eventually(pipe.full)
    os.close(pipe.writing)
    with os.fdopen(pipe.reading, "rb") as stream, (tmp_path / "r").open("wb") as copy:
        while block := stream.read1(PAGE):
            copy.write(block)
            time.sleep(0.01)  # slower than it is written, faster than it is given up
    assert process.wait(60) == 0
    assert read_recording(tmp_path / "r").outcome is Outcome.COMPLETED


@pytest.mark.parametrize("form", [["--json"], ["--histogram", "1000"]])
def test_a_summary_that_nobody_reads_is_a_failure(tight_probe: Path, pipe: StuckPipe, form: list[str]) -> None:
    os.write(pipe.writing, bytes(PAGE))
    process = subprocess.Popen(
        [str(tight_probe), *TIMER, "-D", "50ms", *form], stdout=pipe.writing, stderr=subprocess.PIPE
    )
    status, error = _ended(process)
    assert (status, error.count("\n")) == (4, 1)
    assert "the summary cannot be written" in error


def test_a_summary_that_has_no_room_is_a_failure(probe_binary: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [probe_binary, *TIMER, "-D", "50ms", "--json"], stdout=full, stderr=subprocess.PIPE, timeout=30, check=False
        )
    assert done.returncode == 4
    assert b"the summary cannot be written: No space left on device" in done.stderr


def _last_line(path: Path) -> bytes:
    return path.read_bytes().rstrip().rpartition(b"\n")[2]


def test_a_terminal_that_is_stopped_holds_up_nothing(probe_binary: str, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    termios.tcflow(theirs, termios.TCOOFF)  # what Ctrl-S does
    command = [probe_binary, *TIMER, "-D", "2500ms", "--record", str(tmp_path / "r")]
    with subprocess.Popen(command, stdout=theirs) as process:
        try:
            assert eventually((tmp_path / "r").exists)
            assert eventually(lambda: b'"type":"end"' in _last_line(tmp_path / "r"))
            termios.tcflow(theirs, termios.TCOON)
            os.close(theirs)
            shown = _drained(ours)
            assert process.wait(60) == 0
        finally:
            process.kill()
    assert read_recording(tmp_path / "r").outcome is Outcome.COMPLETED
    assert b"wakeup_corrected" in shown.rpartition(b"\x1b[J")[2]


def _drained(terminal: int) -> bytes:
    shown = b""
    try:
        while block := os.read(terminal, PAGE):
            shown += block
    except OSError:  # a terminal whose other end closed reads as an error
        os.close(terminal)
    return shown


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    require_root("it mounts a small disk")
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(disk)], check=False).returncode:
        pytest.skip("this machine lets nobody mount a tmpfs")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def _fill(probe: str, output: IO[bytes], *arguments: str) -> tuple[int, str]:
    return _ended(
        subprocess.Popen(
            [probe, *TIMER, "-i", "500us", "--report", "20ms", *arguments], stdout=output, stderr=subprocess.PIPE
        ),
        30,
    )


@needs_root("mounts")
@pytest.mark.parametrize("mode", ["ab", "r+b"])
def test_a_full_disk_takes_nothing_from_others(probe_binary: str, small_disk: Path, tmp_path: Path, mode: str) -> None:
    shared = small_disk / "shared"
    theirs = b"a line of somebody else\n" * 4000
    shared.write_bytes(theirs)
    with shared.open(mode) as output:
        output.seek(0, os.SEEK_END)
        status, error = _fill(probe_binary, output, "--record", "-")
    assert status == 4 and "No space left on device" in error
    held = shared.read_bytes()
    assert held.startswith(theirs)
    ours = tmp_path / "ours"
    ours.write_bytes(held.removeprefix(theirs))
    recording = read_recording(ours)  # the last line is torn, and readers pass over it
    assert recording.intervals and recording.cut_off and len(held) % PAGE == 0, "the torn line was cut"


@needs_root("mounts")
def test_what_another_appends_to_our_file_is_not_cut(probe_binary: str, small_disk: Path) -> None:
    ours = small_disk / "ours"
    command = [probe_binary, *TIMER, "-i", "500us", "--report", "20ms", "--quiet", "--record", str(ours)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert eventually(lambda: ours.exists() and ours.stat().st_size > PAGE)
    with ours.open("r+b") as other:
        other.seek(1_000_000)  # with a hole before it, which takes no room
        other.write(b"a line of somebody else\n")
    status, _ = _ended(process, 30)
    assert status == 4
    assert ours.read_bytes().endswith(b"a line of somebody else\n")
