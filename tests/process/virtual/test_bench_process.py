# SPDX-License-Identifier: GPL-2.0-or-later
"""The bench process beside other users: planted files are refused, and no file names the process that is signalled."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from fastenough.files import Untrusted
from fastenough.model import BadInput, FastenoughError
from fastenough.virtual import bench_process
from fastenough.virtual.bench_process import RUN_SETTING, bench_directory, down, up
from fastenough.virtual.kernels import Kernel
from fastenough.virtual.process_lock import end_holder, hold_lock, holder
from tests.support.privileges import needs_root
from tests.support.processes import eventually

pytestmark = pytest.mark.untimed

ROOT = Path(__file__).resolve().parents[3]
NOBODY = 65534
as_root = needs_root("files of another user")


@pytest.fixture
def run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the bench would be; not there yet."""
    folder = tmp_path / "run"
    monkeypatch.setenv(RUN_SETTING, str(folder))
    return folder


@contextmanager
def bystander(
    script: str = "import time; print(flush=True); time.sleep(60)", *words: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that must survive, or one that does what it is told; it runs when the context begins."""
    process = subprocess.Popen([sys.executable, "-c", script, *words], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    process.stdout.readline()
    try:
        yield process
    finally:
        process.kill()
        process.wait()


LOCKING = (
    "import fcntl, os, sys, time; file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT); "
    "fcntl.{lock}(file, fcntl.LOCK_EX); print(flush=True); time.sleep(60)"
)


def plant(folder: Path, pid: int, owner: int) -> None:
    """What a bench leaves while it runs, made by another user, that names a process."""
    (folder / "bench").mkdir(parents=True)
    for path in (folder / "bench.lock", folder / "bench" / "keeper", folder / "keeper"):
        path.write_text(str(pid))
    (folder / "bench" / "state.json").write_text(
        json.dumps(
            {
                "kernel": "stock",
                "release": "",
                "pid": pid,
                "qemu_pid": pid,
                "boot_s": 1,
                "restored": True,
                "directory": "/tmp",
                "gauge": None,
                "gauge_reason": "",
            }
        )
    )
    for path in (folder, *folder.rglob("*")):
        os.chown(path, owner, owner)


@as_root
def test_a_planted_folder_is_refused(run_folder: Path) -> None:
    with bystander() as victim:
        plant(run_folder, victim.pid, NOBODY)
        with bystander(LOCKING.format(lock="flock"), str(run_folder / "bench.lock")):
            for act in (down, lambda: up("stock"), bench_process.bench_state):
                with pytest.raises(Untrusted, match="belongs to user 65534"):
                    act()
        assert victim.poll() is None
    assert (run_folder / "bench" / "state.json").exists()


@as_root
def test_a_link_to_a_folder_of_ones_own_is_refused(run_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir(mode=0o700)
    run_folder.symlink_to(tmp_path / "mine")
    with pytest.raises(Untrusted, match="is not a directory"):
        down()


def test_a_folder_that_others_may_write_is_refused(run_folder: Path) -> None:
    run_folder.mkdir()
    run_folder.chmod(0o777)
    with pytest.raises(Untrusted, match="can be written by other users"):
        down()


@pytest.mark.parametrize("content", ["", "0", "1", "-1", "{pid}"])
def test_no_file_names_the_process_that_is_ended(run_folder: Path, content: str) -> None:
    """Another process holds the lock in the former way; a file names a third process, or a group."""
    with bystander() as victim:
        plant(run_folder, victim.pid, os.geteuid())
        run_folder.chmod(0o700)
        (run_folder / "bench.lock").write_text(content.format(pid=victim.pid))
        with bystander(LOCKING.format(lock="flock"), str(run_folder / "bench.lock")) as other:
            assert down()
            assert (victim.poll(), other.poll()) == (None, None)
    assert not (run_folder / "bench").exists()


def test_the_holder_of_the_lock_is_ended_and_no_other(run_folder: Path) -> None:
    bench_directory().mkdir()
    lock = run_folder / "bench.lock"
    with bystander() as victim, bystander(LOCKING.format(lock="lockf"), str(lock)) as keeping:
        lock.write_text(str(victim.pid))
        assert holder(lock) == keeping.pid
        with pytest.raises(BlockingIOError), hold_lock(lock):
            pass
        with pytest.raises(BadInput, match=rf"already running \(process {keeping.pid}\)"):
            up("stock")
        assert down()
        assert keeping.wait(60) == -signal.SIGTERM
        assert victim.poll() is None
    assert holder(lock) is None


def test_a_holder_that_the_kernel_does_not_end_is_named_with_a_remedy(
    run_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command of the message shows the process and is complete."""
    monkeypatch.setattr(bench_process, "end_holder", lambda lock, number, timeout_s: False)
    bench_directory()
    with bystander(LOCKING.format(lock="lockf"), str(run_folder / "bench.lock")) as keeping:
        with pytest.raises(FastenoughError) as failure:
            down()
        show = str(failure.value).partition("with: ")[2].partition(";")[0].split()
        shown = subprocess.run(show, capture_output=True, text=True, check=True).stdout
        assert show[0] == "ps" and shown.splitlines()[1].split()[0] == str(keeping.pid)
    assert str(failure.value).endswith("fastenough bench down")


def test_a_holder_that_will_not_end_is_killed(run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_process, "_DOWN_TIMEOUT_S", 0.2)
    lock = run_folder / "bench.lock"
    bench_directory()
    stubborn = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + LOCKING.format(lock="lockf")
    with bystander(stubborn, str(lock)) as keeping:
        down()
        assert keeping.wait(60) == -signal.SIGKILL


def test_asking_for_a_holder_follows_no_link_and_waits_for_nobody(tmp_path: Path) -> None:
    (tmp_path / "real").touch()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match="symbolic links"):
        holder(tmp_path / "link")
    with pytest.raises(OSError, match="symbolic links"), hold_lock(tmp_path / "link"):
        pass
    assert holder(tmp_path / "fifo") is None
    assert holder(tmp_path / "nothing") is None
    assert end_holder(tmp_path / "nothing", signal.SIGKILL, 1.0)


@as_root
def test_root_uses_run_whatever_the_caller_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[Path] = []
    monkeypatch.delenv(RUN_SETTING, raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))

    def asked_for(place: Path) -> Path:
        asked.append(place)
        return place

    monkeypatch.setattr(bench_process, "private_directory", asked_for)
    assert bench_directory() == Path("/run/fastenough/bench")
    assert asked == [Path("/run/fastenough")]


def test_a_place_that_cannot_be_is_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RUN_SETTING, "/proc/nowhere")
    with pytest.raises(BadInput, match="name a folder of your own in FASTENOUGH_RUN"):
        down()


HOSTILE = "import pathlib; pathlib.Path({mark!r}).touch(); raise SystemExit('hostile')\n"


def test_nothing_of_the_callers_folder_runs_in_the_bench_process(
    run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its modules are named as those that the bench process imports, which gets as far as refusing the kernel."""
    hostile, mark = tmp_path / "hostile", tmp_path / "ran"
    hostile.mkdir()
    for name in ("json", "os", "click", "labgrid", "fastenough", "sitecustomize", "usercustomize"):
        (hostile / f"{name}.py").write_text(HOSTILE.format(mark=str(mark)))
    monkeypatch.chdir(hostile)
    monkeypatch.setenv("PYTHONPATH", str(hostile))
    monkeypatch.setattr(bench_process, "build_probe", lambda *_: None)
    monkeypatch.setattr(bench_process, "find_kernel", lambda *_: Kernel("best", "arm64", "9.9.9", tmp_path))
    with pytest.raises(FastenoughError, match="unknown kernel 'best'"):
        up("best")
    assert not mark.exists()


def test_taken_down_while_it_comes_up_it_says_so(run_folder: Path) -> None:
    """The first start may make a kernel's files, which takes minutes on a busy machine."""
    try:
        with ThreadPoolExecutor(1) as pool:
            coming = pool.submit(up, "stock")
            assert eventually(lambda: coming.done() or bench_process.bench_pid(bench_directory()) is not None, 600.0)
            down()
            with pytest.raises(FastenoughError, match="stopped before the bench was up"):
                coming.result()
        assert bench_process.bench_pid(bench_directory()) is None
    finally:
        down()
