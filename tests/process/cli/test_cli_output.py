# SPDX-License-Identifier: GPL-2.0-or-later
"""What is printed can be printed anywhere, and what others wrote never drives the terminal."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from fastenough.cli.output import clean, say
from fastenough.store import Store
from tests.support.cli_calls import ROOT, environment, fastenough
from tests.support.recordings import PROFILE, Plan, latencies, write

pytestmark = pytest.mark.untimed

HOSTILE = "evil\x1b]0;owned\x07\x1b[2J\r\n\x9b31m[/x][bold]\u202e"
DRIVES = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xa8-\xae]")
ASCII = {"PYTHONIOENCODING": "ascii"}
LATIN = {"PYTHONIOENCODING": "latin-1"}
C = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def _keep(store: Store, scratch: Path, **more: Any) -> str:
    writer = store.begin({"campaign": "c", "plan_sha256": "p", "position": 0, "positions": 1})
    plan = Plan(latencies(1), run_id=writer.id, **more)
    for line in write(scratch, plan).read_bytes().splitlines(keepends=True):
        writer.line(line)
    writer.end()
    return writer.id


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store: one run as it should be, one full of control characters and markup."""
    home = tmp_path_factory.mktemp("hostile")
    store = Store(home / "fastenough-data")
    _keep(store, home / "scratch")
    _keep(
        store,
        home / "scratch",
        reasons=(HOSTILE,),
        outcome="failed",
        load="none",
        settings=({"name": f"x{HOSTILE}", "requested": "a", "in_effect": HOSTILE, "reason": HOSTILE},),
        series={"from": HOSTILE, "to": HOSTILE, "labels": {"way": HOSTILE}},
        head={
            "board": HOSTILE,
            "configuration": HOSTILE,
            "profile": PROFILE | {"hostname": HOSTILE, "hypervisor": HOSTILE},
        },
    )
    return home


COMMANDS = [("list",), ("show", "last"), ("report",), ("store", "verify"), ("store", "rebuild")]


@pytest.mark.slow
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_control_characters_do_not_reach_the_terminal(hostile: Path, arguments: tuple[str, ...]) -> None:
    ended = fastenough(*arguments, cwd=hostile)
    assert ended.returncode in (0, 3, 4), ended.stderr
    assert not DRIVES.search(ended.stdout + ended.stderr)
    if arguments in (("list",), ("show", "last")):
        # As the reader has cleaned it, and taken for no markup.
        assert "\ufffd31m[/x][bold]\ufffd".encode() in ended.stdout


def test_compare_two_runs_of_a_hostile_store(hostile: Path) -> None:
    runs = [run["id"] for run in json.loads(fastenough("list", "--json", cwd=hostile).stdout)]
    ended = fastenough("compare", *runs, cwd=hostile)
    assert ended.returncode in (0, 2), ended.stderr
    assert not DRIVES.search(ended.stdout + ended.stderr)


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("run", HOSTILE),
        ("run", "timer", f"{HOSTILE}=1"),
        ("run", "timer", f"interval={HOSTILE}"),
        ("show", HOSTILE),
        ("list", "--store", HOSTILE),
        ("run", "--plan", HOSTILE),
        (HOSTILE,),
        ("assess", "--board", HOSTILE),
        ("assess", "--interval", HOSTILE),
    ],
    ids=range(9),
)
def test_complaints_are_clean_and_one_line(hostile: Path, probe_binary: str, arguments: tuple[str, ...]) -> None:
    ended = fastenough(*arguments, cwd=hostile)
    assert ended.returncode == 2, ended.stderr
    assert not DRIVES.search(ended.stdout + ended.stderr)
    assert ended.stderr.count(b"\n") == 1


def test_a_plan_with_control_characters(tmp_path: Path, probe_binary: str) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('name = "x"\n[[run]]\nprobe = "timer"\n[run.parameters]\nmethod = "\\u001b[2J[/x]"\n')
    ended = fastenough("run", "--plan", str(plan), cwd=tmp_path)
    assert ended.returncode == 2
    assert b"\\x1b[2J[/x]" in ended.stderr
    assert not DRIVES.search(ended.stdout + ended.stderr)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "more"),
    [
        *((arguments, ASCII) for arguments in (*COMMANDS, ("doctor",), ("show", "naïve µs →"), ("--help",))),
        (("show", "last"), LATIN),
        (("show", "last"), C),
        (("show", "naïve µs →"), C),
    ],
)
def test_every_encoding_will_do(
    hostile: Path, probe_binary: str, arguments: tuple[str, ...], more: dict[str, str]
) -> None:
    ended = fastenough(*arguments, cwd=hostile, more=more)
    assert ended.returncode not in (1, 120), ended.stderr
    assert b"Traceback" not in ended.stderr
    assert b"defect" not in ended.stderr
    if arguments == ("show", "last"):
        assert b"times in us" in ended.stdout or "times in µs".encode("latin-1") in ended.stdout


def _on_terminal(cwd: Path, *arguments: str) -> tuple[int, bytes]:
    """The command with a terminal for its output; its status and what the terminal got."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "fastenough", *arguments],
        cwd=cwd,
        stdin=slave,
        env=environment(TERM="xterm", COLUMNS="200"),
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    said = b""
    while True:
        try:
            said += os.read(master, 65536)
        except OSError:
            break
    os.close(master)
    return process.wait(60), said


@pytest.mark.slow
def test_on_a_terminal_only_our_own_sequences(hostile: Path) -> None:
    """Bold headings are ours; the recording's title and clearing of the screen are not."""
    for arguments in (("list",), ("show", "last")):
        status, said = _on_terminal(hostile, *arguments)
        assert status == 0
        assert b"\x1b[1m" in said
        assert b"\x1b]0" not in said
        assert b"\x1b[2J" not in said
        assert b"\x07" not in said


@pytest.mark.slow
def test_a_live_bar_is_still_drawn(tmp_path: Path, probe_binary: str) -> None:
    status, said = _on_terminal(tmp_path, "run", "timer", "--duration", "2s")
    assert status == 0
    assert b"s left" in said
    assert b"\x1b[2K" in said
    assert b"38;2;249;38;114m" not in said and b"\x1b[31m" not in said, "red is for what is wrong"


def test_output_that_cannot_be_written_is_no_verdict(hostile: Path) -> None:
    command = [sys.executable, "-m", "fastenough", "list"]
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            command, cwd=hostile, env=environment(), stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert ended.returncode == 4
    assert ended.stderr == b"fastenough: No space left on device\n"
    closed = subprocess.run(
        ["sh", "-c", 'exec "$@" >&- 2>&-', "sh", *command], cwd=hostile, env=environment(), check=False
    )
    assert closed.returncode == 0


_DEFECTIVE = """
import fastenough.cli.listing, fastenough.cli, sys
def fall(*_): raise ZeroDivisionError("no \\x1b good")
fastenough.cli.listing.existing_store = fall
fastenough.cli.main(["list"])
"""


def test_a_defect_is_no_verdict(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _DEFECTIVE],
        cwd=tmp_path,
        env=environment(TMPDIR=str(tmp_path)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 4
    assert ended.stderr.count("\n") == 1
    assert "internal error (ZeroDivisionError: no \\x1b good); please report it with" in ended.stderr
    [trace] = tmp_path.glob("fastenough-defect-*.txt")
    assert "in fall" in trace.read_text()
    assert trace.stat().st_mode & 0o777 == 0o600


def test_clean_leaves_ordinary_text_alone() -> None:
    assert clean("größer als 5 µs → ja") == "größer als 5 µs → ja"
    assert clean("a\x1b[0m\nb\u2028\udc80") == "a\\x1b[0m\\x0ab\\u2028\\udc80"


def test_no_command_goes_round_the_one_way_to_the_terminal() -> None:
    """Consoles and raw streams are made in output.py only."""
    wrong = [
        f"{path.name}: {word}"
        for path in sorted((ROOT / "fastenough" / "cli").glob("*.py"))
        for word in ("Console(", "sys.stdout.buffer", "sys.__stdout__", "os.write(1", "rich.print")
        if word in path.read_text() and path.name != "output.py"
    ]
    assert not wrong


@pytest.mark.slow
def test_a_home_that_cannot_be_written_is_no_news(hostile: Path) -> None:
    """matplotlib keeps its caches elsewhere then, and need not say so."""
    nowhere = {"HOME": "/proc/nowhere", "XDG_CONFIG_HOME": "/proc/nowhere", "XDG_CACHE_HOME": "/proc/nowhere"}
    ended = fastenough("report", cwd=hostile, more=nowhere)
    assert ended.returncode in (3, 4)
    assert ended.stderr == b""


@pytest.mark.slow
def test_a_load_of_ones_own_gets_no_package_it_does_not_come_in(tmp_path: Path, probe_binary: str) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'name = "x"\nloads = ["mine"]\nduration = "1s"\n[[load]]\nname = "mine"\n'
        'commands = [["/nonexistent/cmd"]]\n[[run]]\nprobe = "timer"\n'
    )
    ended = fastenough("run", "--plan", str(plan), cwd=tmp_path)
    assert ended.returncode == 5
    assert b"load mine requires /nonexistent/cmd, which is not installed: install it" in ended.stderr
    assert b"apt-get" not in ended.stderr


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("columns", range(24, 60, 3))
def test_no_line_ends_between_a_number_and_its_unit(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    said, text = _Terminal(), "CPU 0: no more than one disturbance above 20,000 µs in 1.11 s (95 %); measure 30 ms more"
    monkeypatch.setattr(sys, "stdout", said)
    monkeypatch.setenv("COLUMNS", str(columns))
    say(text)
    lines = said.getvalue().splitlines()
    assert len(lines) > 1 and " ".join(line.strip() for line in lines) == text
    parted = [(line, after) for line, after in pairwise(lines) if re.match(r"\s*(%|µs|ms|s)(?!\w)", after)]
    assert not [line for line, _ in parted if re.search(r"[^U] \(?[\d.,]+$", line)]
