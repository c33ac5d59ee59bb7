# SPDX-License-Identifier: GPL-2.0-or-later
"""The serial console of a labgrid place tells why the board is gone; a TCP server stands for ser2net."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import cast

import pytest

from fastenough.board import AS_BOOTED, Booted, open_board
from fastenough.board.console import Console
from fastenough.board.labgrid import POWER_CYCLED, LabgridBoard
from fastenough.link import BoardGone
from fastenough.link.ssh import Address
from fastenough.model import Outcome
from fastenough.store import Store
from tests.support.labgrid_lab import Lab, console_wire, free_port, holder
from tests.support.presence import present
from tests.support.processes import ROOT, eventually, with_words
from tests.support.ssh_boards import Server

pytestmark = [pytest.mark.machines, pytest.mark.usefixtures("at_lab")]
_PANIC = b"\x1b[31mKernel panic - not syncing: sysrq\x1b[0m\r\nCPU: 0 \xff\xfe\x07\x00bell\r\n---[ end ]---\r\n"
_READER = "labgrid_console.py"


def _dies(server: Server) -> None:
    """Its SSH sessions end at once."""
    for pid in server.processes():
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def _said(booted: Booted, what: str) -> bool:
    return eventually(lambda: what in " ".join(booted.last_words()))


def _heard(booted: Booted, lab: Lab, what: str) -> bool:
    """Whether the reader of the console has a line, said until then: it discards what comes while it opens the port."""
    console = next(one for one in cast("partial[list[str]]", booted.last_words).args if isinstance(one, Console))

    def heard() -> bool:
        lab.wire.repeat(f"{what}\n".encode())
        return what in " ".join(console.last_words())

    return eventually(heard)


@pytest.mark.slow
def test_a_run_on_a_board_that_dies_says_what_its_console_said_last(server: Server, lab: Lab, tmp_path: Path) -> None:
    bench = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "fastenough",
            "run",
            "timer",
            "interval=5ms",
            "--duration",
            "600s",
            "--board",
            "labgrid:board",
            "--store",
            str(tmp_path),
        ],
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        assert eventually(lambda: any("--record" in _command_line(pid) for pid in server.processes()))
        assert eventually(lambda: bool(lab.wire.listeners))
        for _ in range(20):  # the reader discards what comes while it opens the port
            time.sleep(0.1)
            lab.wire.repeat(b"booting\r\n")
        lab.wire.say(_PANIC)
        time.sleep(3.0)
        _dies(server)
        said, _ = bench.communicate(timeout=120)
    finally:
        bench.kill()
        bench.wait()
    assert bench.returncode == 4, said
    (run,) = Store(tmp_path).runs()
    recording = Store(tmp_path).load(run.id)
    assert recording.outcome is Outcome.FAILED
    assert recording.end is not None
    gone, console = recording.end.reasons
    assert "is gone" in gone
    assert re.match(r"last console output: (booting \| )+Kernel panic - not syncing: sysrq \| CPU: 0 ", console)
    assert console.endswith("bell | ---[ end ]---")
    assert console.isprintable()
    assert "None" in holder(lab)
    assert with_words(_READER, str(lab.wire.port)) == []


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def test_the_console_explains_only_the_loss_of_the_board(server: Server, lab: Lab) -> None:
    with open_board("labgrid:board").boot(AS_BOOTED) as booted:
        assert _heard(booted, lab, "all is well")
        assert booted.last_words() == []
        _dies(server)
        assert _said(booted, "last console output: all is well")
    assert with_words(_READER, str(lab.wire.port)) == []


def test_a_flood_is_bounded(server: Server, lab: Lab) -> None:
    with open_board("labgrid:board").boot(AS_BOOTED) as booted:
        assert _heard(booted, lab, "booting")
        for _ in range(64):
            lab.wire.say(b"\x1b[2J" + b"A" * 40000 + b"\n")
        for number in range(40):
            lab.wire.say(b"line %d\n" % number)
        _dies(server)
        assert _said(booted, "line 39")
        (words,) = booted.last_words()
        assert len(words) < 3000
        assert "line 27" not in words


@pytest.mark.slow
def test_a_console_that_comes_back_is_read_again(server: Server, lab: Lab) -> None:
    with open_board("labgrid:board").boot(AS_BOOTED) as booted:
        assert _heard(booted, lab, "before")
        first = lab.wire.listeners[0]
        first.shutdown(2)
        assert eventually(lambda: bool(lab.wire.listeners) and lab.wire.listeners[0] is not first)
        assert _heard(booted, lab, "after")
        _dies(server)
        assert _said(booted, "before | after")


@pytest.mark.slow
def test_a_board_that_does_not_come_up_says_what_its_console_said(
    server: Server, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastenough.board.labgrid.parse_address", lambda _: Address("127.0.0.1", None, free_port()))
    board, ended = LabgridBoard("board", boot_s=15.0), threading.Event()

    def fail() -> None:
        while not ended.wait(0.2):
            lab.wire.repeat(b"no boot device\x07\n")

    said = r"cannot be reached.*; last console output: no boot device"
    with lab.wire.meanwhile(fail):
        try:
            with pytest.raises(BoardGone, match=said) as refusal, board.boot(POWER_CYCLED):
                pass
        finally:
            ended.set()
    assert str(refusal.value).isprintable()
    assert "None" in holder(lab)


@pytest.mark.parametrize("protocol", ["raw", "rfc2217"])
def test_both_protocols_of_ser2net_are_read(protocol: str) -> None:
    with console_wire(protocol) as wire:
        console = Console({"host": "127.0.0.1", "port": wire.port, "protocol": protocol})
        try:

            def told() -> bool:
                wire.say(b"one\ntwo\xff\n")
                return "one | two\ufffd" in " ".join(console.last_words())

            assert eventually(told), console.last_words()
        finally:
            console.close()


def test_a_console_that_is_away_says_so() -> None:
    console = Console({"host": "127.0.0.1", "port": free_port(), "protocol": "raw"})
    try:
        assert eventually(lambda: "refused" in " ".join(console.last_words()))
        (words,) = console.last_words()
        assert words.startswith("console not readable: ")
        assert words.isprintable()
    finally:
        console.close()


def test_a_reader_that_was_stopped_answers_again(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console({"host": "127.0.0.1", "port": free_port(), "protocol": "raw"})
    try:
        assert eventually(lambda: "refused" in " ".join(console.last_words()))
        reader = present(console._process, "reader")
        os.kill(reader.pid, signal.SIGSTOP)
        with monkeypatch.context() as impatient:
            impatient.setattr("fastenough.board.console._ANSWER_S", 0.2)
            late = [console.last_words() for _ in range(2)]
        os.kill(reader.pid, signal.SIGCONT)
        time.sleep(1.0)
        assert late == [["console not readable: labgrid has not answered"]] * 2
        monkeypatch.setattr("fastenough.board.console._ANSWER_S", 60.0)
        assert "refused" in " ".join(console.last_words())
    finally:
        console.close()


def test_a_place_without_a_console_has_no_last_words() -> None:
    console = Console(None)
    assert console.last_words() == []
    console.close()


def test_a_reader_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastenough.board.console._ANSWER_S", 1.0)
    console = Console({"host": "127.0.0.1", "port": free_port()})
    assert console._process is not None
    os.kill(console._process.pid, signal.SIGSTOP)
    assert console.last_words() == ["console not readable: labgrid has not answered"]
    console.close()
    assert console._process.returncode == -signal.SIGKILL


def test_the_reader_ends_with_a_killed_bench() -> None:
    console = Console({"host": "127.0.0.1", "port": free_port()})
    assert console._process is not None
    assert console._process.stdin is not None
    console._process.stdin.close()
    assert console._process.wait(30) == 0
    console.close()
