# SPDX-License-Identifier: GPL-2.0-or-later
"""A whole farm on this machine, with its website, and nothing of it left, however it ends."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from fastenough.farm import trial
from fastenough.link.guard import descendants
from fastenough.store import Store
from tests.support.cli_calls import ROOT, command_line, environment
from tests.support.privileges import needs_root
from tests.support.processes import ended, eventually

pytestmark = pytest.mark.machines

_FILE = "farm file: "
_PAGES = "website: "


@contextmanager
def tried(guests: int = 0) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "fastenough", "farm", "try", "--boards=2", f"--guests={guests}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(),
        cwd=ROOT,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def told(process: subprocess.Popen[str], begin: str) -> str:
    """The rest of the line that begins so, once it is said."""
    said = []
    for line in process.stdout or ():
        said.append(line)
        if line.startswith(begin):
            return line.removeprefix(begin).strip()
    raise AssertionError(said)


def gone(process: subprocess.Popen[str], file: Path, number: int) -> bool:
    """Whether all it had started, and its folder, have gone after a signal."""
    tree = descendants(process.pid)
    assert len(tree) >= 4, "a guard, the trial, labgrid and the rack"
    process.send_signal(number)
    return eventually(lambda: all(map(ended, tree)) and not file.parent.exists(), 30)


def test_boards_measure_and_pages_show_them_and_ctrl_c_leaves_nothing() -> None:
    with tried() as process:
        file = Path(told(process, _FILE).partition(";")[0])
        pages = told(process, _PAGES)
        states: list[str] = []

        def measuring() -> bool:
            states[:] = [command_line("farm", "status", str(file)).stdout]
            return states[0].count("measuring") + states[0].count("pulling") >= 2

        assert eventually(measuring, 120), states
        page: list[str] = []

        def listed() -> bool:
            with urllib.request.urlopen(pages, timeout=30) as answer:
                page[:] = [answer.read().decode()]
            return "board-01" in page[0]

        assert eventually(listed, 60), page
        assert "board-02" not in page[0], "the last board is not public"
        assert gone(process, file, signal.SIGINT)
        assert process.wait(30) == 128 + signal.SIGINT


def test_killed_in_the_middle_of_its_start_it_leaves_nothing() -> None:
    with tried() as process:
        file = Path(told(process, _FILE).partition(";")[0])
        assert gone(process, file, signal.SIGKILL)


@pytest.mark.matrix
def test_a_guest_boots_its_kernel_for_each_cycle_and_ends_with_the_farm() -> None:
    with tried(guests=1) as process:
        file = Path(told(process, _FILE).partition(";")[0])

        def measured() -> bool:
            with closing(Store(file.parent / "store")) as store:
                return [run.outcome for run in store.runs(board="guest-stock")] == ["completed"]

        told(process, _PAGES)
        assert eventually(lambda: any((file.parent / "tmp").glob("fastenough-board-*")), 60), "it is in /tmp"
        assert eventually(measured, 240), command_line("farm", "status", str(file)).stdout
        with closing(Store(file.parent / "store")) as store:
            (run,) = store.runs(board="guest-stock")
            head = store.load(run.id).head
        assert "emulated" in head.marks and head.configuration is not None and head.configuration.name == "stock"
        assert head.profile is not None and head.profile["kernel"]["release"] != os.uname().release
        assert gone(process, file, signal.SIGKILL)


def test_guests_are_as_many_as_there_is_room_for_and_the_reason_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert trial.guests_here(0) == ([], "")
    assert len(trial.guests_here(3)[0]) == 3 and not trial.guests_here(3)[1]
    kernels, why = trial.guests_here(4)
    assert kernels[:2] == ["stock", "rt"] and why == "3 of 4 guests: 2 CPUs can run 3 (3 for every 2 CPUs)"
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert trial.guests_here(1) == ([], "no guests: qemu-system-aarch64 is missing (apt-get install qemu-system-arm)")


def test_where_there_is_no_network_of_its_own_a_trial_says_who_can_disturb_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing:
        def unshare(self, flags: int) -> int:
            return -1

    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: Refusing())
    said: list[str] = []
    trial.leave_network(said.append)
    assert len(said) == 1 and "other local users can reach labgrid" in said[0]


@pytest.mark.slow
@needs_root("a trial of root's")
def test_nobody_else_reaches_the_labgrid_of_a_trial_of_roots() -> None:
    """labgrid's coordinator, the power switch and the consoles let everybody in who can connect to them."""
    with tried() as process:
        file = Path(told(process, _FILE).partition(";")[0])
        (coordinator,) = re.findall(r'coordinator = "([0-9.]+):(\d+)"', file.read_text())
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((coordinator[0], int(coordinator[1])), timeout=10)
        with urllib.request.urlopen(told(process, _PAGES), timeout=30) as answer:
            assert answer.status == 200
        assert gone(process, file, signal.SIGTERM)
