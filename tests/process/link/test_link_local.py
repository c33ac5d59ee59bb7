# SPDX-License-Identifier: GPL-2.0-or-later
"""The local link: commands run, and nothing outlives the bench, however it ends."""

from __future__ import annotations

import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from fastenough.link import LocalLink, Stalled, find_probe
from fastenough.link.modules import insert_module, require_own_module
from fastenough.model import BadInput, NotApplicable
from tests.support.ordinary_user import ordinary_user
from tests.support.privileges import require_root
from tests.support.processes import eventually, running, start_bench, with_words

pytestmark = pytest.mark.machines


@pytest.fixture
def marker() -> str:
    """An odd number of seconds to sleep, by which the sleeper is found again."""
    return f"7777.{secrets.randbelow(10**9):09d}"


def test_run_gives_status_and_both_outputs() -> None:
    completed = LocalLink().run(["sh", "-c", "cat; echo wrong >&2; exit 7"], input=b"right")
    assert (completed.status, completed.stdout, completed.stderr) == (7, b"right", b"wrong\n")


def test_status_of_a_command_ended_by_a_signal() -> None:
    assert LocalLink().run(["sh", "-c", "kill -9 $$"]).status == 128 + 9


def test_a_module_that_another_user_could_exchange_is_not_inserted(tmp_path: Path) -> None:
    module = tmp_path / "open" / "evil.ko"
    module.parent.mkdir()
    module.write_bytes(b"no module")
    require_own_module(LocalLink(), str(module))
    module.parent.chmod(0o777)
    with pytest.raises(BadInput, match="can be changed by other users"):
        insert_module(LocalLink(), str(module))


_READ_RAISED = """
import errno, sys
from fastenough.link.local import SudoLink
link = SudoLink().raised
folder = sys.argv[1]
print(link.read(f"{folder}/preempt").decode(), [link.exists(f"{folder}/{name}") for name in ("preempt", "missing")])
for name in ("missing", "folder"):
    try:
        link.read(f"{folder}/{name}")
    except OSError as error:
        print(errno.errorcode[error.errno])
"""


def test_root_reads_what_the_user_may_not(tmp_path: Path) -> None:
    """The folder is as debugfs: root's own."""
    with ordinary_user(sudo=True) as user:
        folder = Path(tempfile.mkdtemp())  # with mode 0700
        try:
            (folder / "preempt").write_text("none voluntary (full)")
            (folder / "folder").mkdir()
            done = subprocess.run(
                [*user.prefix(), user.python, "-c", _READ_RAISED, str(folder)],
                cwd=user.home,
                env=user.environment(),
                capture_output=True,
                text=True,
                check=False,
            )
        finally:
            shutil.rmtree(folder)
    assert done.stdout.splitlines() == ["none voluntary (full) [True, False]", "ENOENT", "EPERM"], done.stderr


def test_missing_command() -> None:
    with pytest.raises(FileNotFoundError):
        LocalLink().run(["no-such-command-anywhere"])


def test_too_slow_a_command_is_ended(marker: str) -> None:
    with pytest.raises(Stalled):
        LocalLink().run(["sh", "-c", f"sleep {marker} & sleep {marker}"], timeout_s=0.3)
    assert with_words(marker) == []


def test_lines_come_as_they_are_written() -> None:
    process = LocalLink().start(["sh", "-c", "echo one; read answer; echo two; printf torn"], input=b"\n")
    assert list(process.lines(60)) == [b"one\n", b"two\n", b"torn"]
    assert process.wait(60) == 0


def test_silence_is_noticed() -> None:
    process = LocalLink().start(["sleep", "100"])
    with pytest.raises(Stalled):
        next(process.lines(0.1))
    process.stop()


def test_escaped_children_are_ended(marker: str) -> None:
    sleep = f"sleep {marker}"
    escape = f"setsid {sleep} & ({sleep} &) ; nohup setsid sh -c '{sleep}' & echo up; {sleep}"
    process = LocalLink().start(["sh", "-c", escape])
    assert next(process.lines(60)) == b"up\n"
    assert eventually(lambda: len(running(f"sleep {marker}")) == 4)
    process.stop()
    assert with_words(marker) == []


def test_children_end_with_their_command(marker: str) -> None:
    process = LocalLink().start(["sh", "-c", f"setsid sleep {marker} & exit 3"])
    assert process.wait(60) == 3
    assert with_words(marker) == []


def test_what_ignores_the_request_is_killed(marker: str) -> None:
    process = LocalLink().start(["sh", "-c", f"trap '' TERM INT; echo up; sleep {marker}; sleep {marker}"])
    next(process.lines(60))
    assert process.stop() == 128 + signal.SIGKILL
    assert with_words(marker) == []


def test_interrupt_reaches_the_command() -> None:
    process = LocalLink().start(["sh", "-c", "trap 'echo caught; exit 5' INT; echo up; while :; do sleep 0.05; done"])
    lines = process.lines(60)
    assert next(lines) == b"up\n"
    process.signal(signal.SIGINT)
    assert next(lines) == b"caught\n"
    assert process.wait(60) == 5


@pytest.mark.slow
@pytest.mark.parametrize("scratch", [False, True])
def test_a_signal_reaches_a_command_that_is_just_being_started(scratch: bool) -> None:
    link = LocalLink()
    for _ in range(10):
        process = link.start(["sleep", "100"], scratch=link.scratch_name() if scratch else None)
        process.signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM


def test_limit_ends_what_nobody_ends(marker: str) -> None:
    process = LocalLink().start(["sleep", marker], limit_s=0.5)
    assert process.wait(60) == 128 + signal.SIGTERM


def test_scratch_is_made_and_removed() -> None:
    link = LocalLink()
    scratch = link.scratch_name()
    process = link.start(["sh", "-c", f"echo data > {scratch}/file; ls {scratch}; sleep 100"], scratch=scratch)
    assert next(process.lines(60)) == b"file\n"
    process.stop()
    assert not Path(scratch).exists()


_BENCH = """
import sys, time
from fastenough.link import LocalLink
link = LocalLink()
marker, scratch = sys.argv[1:]
first = link.start(["sh", "-c", f"setsid sleep {marker} & trap '' TERM; echo up; sleep {marker}; sleep {marker}"],
                   scratch=scratch)
second = link.start(["sleep", marker])
print(next(first.lines()).decode(), end="", flush=True)
time.sleep(1000)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_nothing_outlives_the_bench(number: signal.Signals, marker: str) -> None:
    scratch = LocalLink().scratch_name()
    bench = start_bench(_BENCH, marker, scratch)
    assert bench.stdout is not None
    assert bench.stdout.readline() == "up\n"
    assert eventually(lambda: len(running(f"sleep {marker}")) == 3)
    bench.send_signal(number)
    bench.communicate()
    assert eventually(lambda: with_words(marker) == [])
    assert eventually(lambda: not Path(scratch).exists())


def test_what_a_real_time_bench_starts_is_ordinary() -> None:
    require_root("real-time priorities")
    script = "from fastenough.link import LocalLink; print(LocalLink().run(['chrt', '-p', '0']).text)"
    command = ["chrt", "-f", "3", sys.executable, "-c", script]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if "Operation not permitted" in answer.stderr:
        pytest.skip("may not use real-time priorities")
    assert "SCHED_OTHER" in answer.stdout


def test_one_process_does_not_hold_the_leash_of_another() -> None:
    link = LocalLink()
    before = set(Path("/proc/self/fd").iterdir())
    processes = [link.start(["sleep", "100"]) for _ in range(3)]
    begun = time.monotonic()
    for process in processes:
        process.stop()
    del process, processes
    assert time.monotonic() - begun < 30
    assert set(Path("/proc/self/fd").iterdir()) == before


def test_files(tmp_path: Path) -> None:
    link = LocalLink()
    file = str(tmp_path / "value")
    link.write(file, b"one")
    assert link.read(file) == b"one"
    assert link.exists(file)
    assert link.glob(f"{tmp_path}/val*") == [file]
    with pytest.raises(OSError):
        link.read(str(tmp_path / "none"))


def test_probe_is_found_or_its_fix_is_named(probe_binary: str) -> None:
    try:
        assert Path(find_probe()).is_file()
    except NotApplicable as reason:
        assert "meson setup" in str(reason)
