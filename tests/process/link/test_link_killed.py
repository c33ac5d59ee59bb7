# SPDX-License-Identifier: GPL-2.0-or-later
"""Whoever is killed, the bench, the guard or both: no process and no scratch directory is left."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastenough.link import LocalLink
from fastenough.link.guard import TREE, descendants
from fastenough.link.leftovers import clear
from tests.support.privileges import require_root
from tests.support.processes import ROOT, ended, eventually, running, with_words

_BENCH = """
import sys, time
from fastenough.link import LocalLink
link = LocalLink()
marker, scratch = sys.argv[1:]
command = f"setsid sleep {marker} & (sleep {marker} &) ; echo up; sleep {marker}; sleep {marker}"
process = link.start(["sh", "-c", command], scratch=scratch)
next(process.lines())
print(process.pid, flush=True)
try:
    print(process.wait(1000), flush=True)
finally:
    time.sleep(1000)
"""
_NO_NAMESPACE = ("setpriv", "--bounding-set", "-sys_admin")


def _may_drop() -> bool:
    return subprocess.run([*_NO_NAMESPACE, "true"], capture_output=True, check=False).returncode == 0


@pytest.fixture
def benches() -> Iterator[list[_Bench]]:
    """Benches that end with the test, whatever it found."""
    begun: list[_Bench] = []
    yield begun
    for bench in begun:
        bench.end()


class _Bench:
    """A bench of its own with a load of three sleepers."""

    def __init__(self, namespace: bool, benches: list[_Bench]) -> None:
        if not namespace and os.geteuid() == 0 and not _may_drop():
            pytest.skip("may not drop CAP_SYS_ADMIN")
        if namespace:
            require_root("PID namespaces")
        if namespace and subprocess.run(["unshare", "--pid", "--fork", "true"], check=False).returncode != 0:
            pytest.skip("may not make PID namespaces")
        before = () if namespace or os.geteuid() != 0 else _NO_NAMESPACE
        self.marker = f"7777.{secrets.randbelow(10**9):09d}"
        self.scratch = Path(LocalLink().scratch_name())
        self.process = subprocess.Popen(
            [*before, sys.executable, "-c", _BENCH, self.marker, str(self.scratch)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        benches.append(self)
        assert self.process.stdout is not None
        self.guard = int(self.process.stdout.readline())
        assert eventually(lambda: len(self.sleepers()) == 3)
        assert self.scratch.is_dir()
        self.tree = descendants(self.guard)
        own = Path("/proc/self/ns/pid").readlink()
        assert (Path(f"/proc/{self.sleepers()[0]}/ns/pid").readlink() != own) == namespace

    def sleepers(self) -> list[int]:
        return running(f"sleep {self.marker}")

    def kill(self, *who: int) -> None:
        for pid in who:
            os.kill(pid, signal.SIGKILL)

    def reports(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.mark.parametrize("namespace", [True, False])
def test_the_guard_alone(namespace: bool, benches: list[_Bench]) -> None:
    bench = _Bench(namespace, benches)
    bench.kill(bench.guard)
    assert bench.reports() == str(128 + signal.SIGKILL)
    assert with_words(bench.marker) == [bench.process.pid]
    assert all(map(ended, bench.tree))
    assert not bench.scratch.exists()


def test_what_takes_long_to_end_has_ended_before_the_waiting_does() -> None:
    """In a namespace the kernel ends it all, in its own time: here it has much memory to take back."""
    link = LocalLink()
    scratch = link.scratch_name()
    hold = "import time; held = bytearray(b'x') * (768 << 20); print('up', flush=True); time.sleep(1000)"
    process = link.start(["sh", "-c", '"$0" -c "$1"; true', sys.executable, hold], scratch=scratch)
    assert next(process.lines(60)) == b"up\n"
    tree = descendants(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait(60) == 128 + signal.SIGKILL
    assert all(map(ended, tree))
    assert not Path(scratch).exists()


@pytest.mark.parametrize("namespace", [True, False])
def test_the_bench_alone(namespace: bool, benches: list[_Bench]) -> None:
    bench = _Bench(namespace, benches)
    bench.end()
    assert eventually(lambda: with_words(bench.marker) == [])
    assert eventually(lambda: not bench.scratch.exists())


@pytest.mark.parametrize("namespace", [True, False])
def test_both_at_once(namespace: bool, benches: list[_Bench]) -> None:
    bench = _Bench(namespace, benches)
    bench.kill(bench.process.pid, bench.guard)
    bench.end()
    assert eventually(lambda: ended(bench.guard))
    if namespace:
        assert eventually(lambda: all(map(ended, bench.tree)))
    link = LocalLink()
    link.start(["true"], scratch=link.scratch_name()).wait(20)
    assert with_words(bench.marker) == []
    assert eventually(lambda: not bench.scratch.exists()), "whoever holds its lock removes it"


def test_what_belongs_to_a_living_guard_stays(benches: list[_Bench]) -> None:
    bench = _Bench(False, benches)
    before = bench.sleepers()
    clear()
    assert bench.sleepers() == before
    assert bench.scratch.is_dir()
    bench.end()
    assert eventually(lambda: not bench.scratch.exists())


def test_what_is_not_ours_stays(tmp_path: Path) -> None:
    """Neither a link to elsewhere nor a folder or process of another name or user is touched."""
    kept = tmp_path / "kept"
    kept.mkdir()
    link = Path(LocalLink().scratch_name())
    link.symlink_to(kept)
    other = link.with_name("fastenough-notours")
    other.mkdir(exist_ok=True)
    environment = dict(os.environ)
    before = [] if os.geteuid() != 0 else ["setpriv", "--reuid", "65534", "--clear-groups"]
    mark = f"{TREE}=999999999:1" if before else f"NOT{TREE}=999999999:1"
    name, _, value = mark.partition("=")
    sleeper = subprocess.Popen([*before, "sleep", "1000"], env=environment | {name: value})
    try:
        assert eventually(lambda: Path(f"/proc/{sleeper.pid}/cmdline").read_bytes().startswith(b"sleep"))
        clear()
        time.sleep(0.1)
        assert sleeper.poll() is None
        assert kept.is_dir() and link.is_symlink() and other.is_dir()
    finally:
        sleeper.kill()
        sleeper.wait()
        link.unlink()
        shutil.rmtree(other)


def test_a_load_sees_its_own_processes() -> None:
    """In a namespace, /proc is that of the namespace, or tools would take foreign processes for theirs."""
    link = LocalLink()
    process = link.start(
        [
            "sh",
            "-c",
            "readlink /proc/self/exe; test $$ = $(readlink /proc/$$/cwd >/dev/null; "
            "cut -d ' ' -f 1 /proc/$$/stat) && echo same",
        ],
        scratch=link.scratch_name(),
    )
    assert list(process.lines(20))[-1] == b"same\n"
    assert process.wait(20) == 0


def test_signals_and_statuses_pass_through() -> None:
    link = LocalLink()
    process = link.start(
        ["sh", "-c", "trap 'exit 9' INT; echo up; while :; do sleep 0.05; done"], scratch=link.scratch_name()
    )
    lines = process.lines(20)
    assert next(lines) == b"up\n"
    process.signal(signal.SIGINT)
    assert process.wait(20) == 9
    process = link.start(["sh", "-c", "kill -9 $$"], scratch=link.scratch_name())
    assert process.wait(20) == 128 + 9
