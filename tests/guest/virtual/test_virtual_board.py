# SPDX-License-Identifier: GPL-2.0-or-later
"""The virtual board is a board like any other; and when it is not there, one line says why."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastenough.link.base import Link, Stalled
from fastenough.model import BadInput, FastenoughError, NotApplicable
from fastenough.virtual import board as board_module
from fastenough.virtual.board import VirtualBoard
from fastenough.virtual.initramfs import Archive
from fastenough.virtual.kernels import KERNELS, Kernel, KernelPackage
from fastenough.virtual.machines import MACHINES
from fastenough.virtual.packages import fetch
from fastenough.virtual.pins import Pins
from tests.support.processes import eventually
from tests.support.virtual_boards import booted

pytestmark = pytest.mark.untimed


@pytest.fixture(scope="module")
def board() -> Iterator[VirtualBoard]:
    yield from booted("rt")


@pytest.fixture
def link(board: VirtualBoard) -> Link:
    return board.link


def test_runs_the_kernel_it_was_asked_for(board: VirtualBoard) -> None:
    assert board.link.run(["uname", "-r"]).text.strip() == board.kernel.release
    assert board.link.read("/sys/kernel/realtime") == b"1\n"


def test_runs_commands(link: Link) -> None:
    done = link.run(["sh", "-c", "cat; echo heard >&2; exit 7"], input=b"said\n")
    assert (done.status, done.stdout, done.stderr) == (7, b"said\n", b"heard\n")
    assert link.run(["sh", "-c", "kill -9 $$"]).status == 128 + 9
    assert link.run(["printf", "%s|", "two words", "", "quote'"]).stdout == b"two words||quote'|"
    with pytest.raises(FileNotFoundError):
        link.run(["no-such-command"])
    with pytest.raises(FileNotFoundError):
        link.start(["no-such-command"])


def test_large_input_comes_back_whole(link: Link) -> None:
    content = os.urandom(3_000_001)
    assert link.run(["cat"], input=content).stdout == content


def test_reads_and_writes_files(link: Link) -> None:
    content = bytes(range(256)) * 1000
    link.write("/tmp/content", content)
    assert link.read("/tmp/content") == content
    assert link.exists("/tmp/content")
    assert link.glob("/tmp/con*") == ["/tmp/content"]
    assert link.glob("/nowhere/*") == []
    assert link.which("sh") == "/bin/sh"
    assert link.which("no-such-command") is None
    with pytest.raises(FileNotFoundError):
        link.read("/tmp/no-such-file")
    with pytest.raises(OSError, match="Invalid argument"):
        link.write("/proc/sys/kernel/printk_ratelimit_burst", b"nonsense")


def test_lines_come_as_they_are_written(link: Link) -> None:
    process = link.start(["sh", "-c", "mkfifo /tmp/fifo; echo one; read answer </tmp/fifo; echo two; printf rest"])
    assert next(process.lines(60)) == b"one\n"
    with pytest.raises(Stalled):
        next(process.lines(0.3))
    link.run(["sh", "-c", "echo go >/tmp/fifo"])
    assert list(process.lines(60)) == [b"two\n", b"rest"]
    assert process.wait(60) == 0


def test_several_commands_at_once(link: Link) -> None:
    slow = [link.start(["sh", "-c", f"sleep 0.5; echo {number}"]) for number in range(5)]
    assert link.run(["echo", "quick"]).stdout == b"quick\n"
    assert [list(process.lines(60)) for process in slow] == [[b"%d\n" % number] for number in range(5)]
    assert [process.wait(60) for process in slow] == [0] * 5


def sleepers(link: Link) -> int:
    """Whoever has it in its words; those that do sleep are ``asleep``."""
    return link.run(["ps"]).text.count("sleep 987")


def asleep(link: Link) -> int:
    """The command is what stands last in a line of ps; how many columns are before it differs."""
    lines = (line.split() for line in link.run(["ps"]).text.splitlines())
    return sum(line[-2:] == ["sleep", "987"] and line[-3] != "setsid" for line in lines)


TREE = "(setsid sleep 987 &) ; sleep 987 & trap '' TERM; touch here; sleep 987 & wait; wait; wait"


def test_nothing_outlives_its_command(link: Link) -> None:
    scratch = link.scratch_name()
    process = link.start(["sh", "-c", f"cd {scratch}; {TREE}"], scratch=scratch)
    assert eventually(lambda: link.exists(f"{scratch}/here") and asleep(link) == 3)
    assert process.stop() == 128 + 9
    assert sleepers(link) == 0
    assert not link.exists(scratch)


def test_a_command_that_ends_takes_its_children_along(link: Link) -> None:
    assert link.run(["sh", "-c", "(setsid sleep 987 &) ; echo done"]).stdout == b"done\n"
    assert sleepers(link) == 0


def test_signals_reach_the_command(link: Link) -> None:
    process = link.start(["sh", "-c", "trap 'echo caught; exit 3' INT; echo ready; while :; do sleep 0.05; done"])
    lines = process.lines(60)
    assert next(lines) == b"ready\n"
    assert process.pid > 1
    process.signal(signal.SIGINT)
    assert next(lines) == b"caught\n"
    assert process.wait(60) == 3


def test_a_stalled_command_is_ended(link: Link) -> None:
    with pytest.raises(Stalled, match=r"sleep: no output for 0\.3 s"):
        link.run(["sleep", "987"], timeout_s=0.3)
    assert eventually(lambda: sleepers(link) == 0)


def test_pins_that_are_not_there_are_refused(board: VirtualBoard) -> None:
    for line in (-1, 3, 8):
        with pytest.raises(BadInput, match=r"no free input line"):
            board.pins.drive(line, 1)
    with pytest.raises(Stalled, match="output 1 did not become 1"):
        board.pins.wait(1, 1, 0.1)


@pytest.fixture
def own_temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory for temporary files of this test alone, with a path short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="fe-") as directory:
        monkeypatch.setenv("TMPDIR", directory)
        monkeypatch.setattr(tempfile, "tempdir", directory)
        yield Path(directory)


def test_ends_with_its_bench_and_leaves_nothing(own_temporary: Path) -> None:
    """The whole process is killed: QEMU goes with it, and the next board clears its directory away.

    Boards of other tests, which would clear it away as well, have another directory for temporary files.
    """
    code = (
        "import time; from fastenough.virtual.board import VirtualBoard; board = VirtualBoard('rt'); "
        "print(board.qemu.pid, flush=True); time.sleep(60)"
    )
    bench = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert bench.stdout is not None
    qemu_pid = int(bench.stdout.readline())
    bench.kill()
    bench.wait()
    assert eventually(lambda: not Path(f"/proc/{qemu_pid}").exists())
    left = f"fastenough-board-{bench.pid}-*"
    assert list(own_temporary.glob(left))
    with VirtualBoard("rt"):
        assert not list(own_temporary.glob(left))


def test_a_guest_that_does_not_boot_shows_its_console(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(kernel: Kernel) -> bytes:
        archive = Archive()
        archive.file("init", b"no program", 0o755)
        return archive.finish()

    monkeypatch.setattr(board_module, "build_initramfs", broken)
    with pytest.raises(FastenoughError, match=r"(?s)does not start; last output: .*Kernel panic") as error:
        VirtualBoard("stock", snapshot=False, boot_timeout_s=30.0)
    assert "\n" not in str(error.value)


def test_a_guest_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kernel = dataclasses.replace(fetch("stock"), tree=tmp_path)
    kernel.image.parent.mkdir(parents=True)
    kernel.image.write_bytes(bytes(1 << 20))
    monkeypatch.setattr(board_module, "find_kernel", lambda name: kernel)
    monkeypatch.setattr(board_module, "build_initramfs", lambda kernel: b"")
    with pytest.raises(FastenoughError, match="does not start; last output: nothing"):
        VirtualBoard("stock", snapshot=False, boot_timeout_s=1.0)


def test_without_qemu_it_is_not_applicable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MACHINES, "arm64", dataclasses.replace(MACHINES["arm64"], program="qemu-no-such-system"))
    with pytest.raises(NotApplicable, match="missing; run: apt-get install qemu-system-arm"):
        VirtualBoard("stock", snapshot=False)


def test_kernels_that_are_not_there_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="unknown kernel 'best'; choose one of stock, rt"):
        fetch("best")
    monkeypatch.setitem(KERNELS, "future", KernelPackage("99.9-"))
    with pytest.raises(FastenoughError, match=r"no package linux-image-99.9-arm64:arm64 in the apt sources"):
        fetch("future")
    (tmp_path / "file").touch()
    monkeypatch.setenv("FASTENOUGH_CACHE", str(tmp_path / "file"))
    with pytest.raises(BadInput, match="name a writable place in FASTENOUGH_CACHE"):
        fetch("stock")


def test_pins_are_drained_always(board: VirtualBoard) -> None:
    """Nobody looks at the edges, and the guest runs on."""
    assert isinstance(board.pins, Pins)
    chip = next(path for path in board.link.glob("/sys/class/gpio/gpiochip*"))
    line = int(board.link.read(f"{chip}/base")) + 1
    script = (
        f"cd /sys/class/gpio; echo {line} >export; cd gpio{line}; echo out >direction; "
        "for turn in $(seq 3000); do echo 1 >value; echo 0 >value; done; "
        f"cd ..; echo {line} >unexport"
    )
    before = board.pins.counts[1]
    assert board.link.run(["sh", "-c", script], timeout_s=60.0).status == 0
    board.pins.settle()
    assert board.pins.counts[1] - before == pytest.approx(6000, abs=2)
