# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough fleet``: its statuses, its document, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastenough.store import Store
from tests.support.cli_calls import command_line
from tests.support.fleet_stores import add_boards, add_run, machine
from tests.support.json_documents import require_valid
from tests.support.recordings import PROFILE

pytestmark = pytest.mark.untimed

OLD_KERNEL = {"kernel": {**PROFILE["kernel"], "release": "5.10.0"}}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six boards of one kernel, the newest board of another."""
    home = tmp_path_factory.mktemp("fleet")
    store = Store(home / "fastenough-data")
    runs = add_boards(store, 6)
    runs.append(add_run(store, "old", machine(9), seed=9, late=[5_000], profile=OLD_KERNEL))
    (home / "runs").write_text(" ".join(runs))
    return home


def run(home: Path, number: int) -> str:
    return (home / "runs").read_text().split()[number]


@pytest.mark.parametrize(
    ("words", "status", "verdict"),
    [
        (("--share", "50%"), 0, "PASS"),
        ((), 3, "INCONCLUSIVE"),
        (("--limit", "5us", "--share", "50%"), 1, "FAIL"),
    ],
)
def test_the_status_is_that_of_the_verdict(home: Path, words: tuple[str, ...], status: int, verdict: str) -> None:
    done = command_line("fleet", run(home, 0), "--limit", "200us", *words, "--json", cwd=home)
    assert (done.returncode, done.stderr) == (status, "")
    document = require_valid("fleet", done.stdout)
    assert document["verdict"] == verdict and len(document["evidence"]["boards"]) == 6
    assert [one["board"] for one in document["unpooled"]] == ["old"]
    assert {one["result"] for one in document["conditions"]} >= {"holds", "assumed"}


def test_text_names_each_board_and_each_condition(home: Path) -> None:
    done = command_line("fleet", run(home, 0), "--limit", "200us", cwd=home)
    assert done.returncode == 3 and all(f"b{number} " in done.stdout for number in range(6))
    assert done.stdout.count("; assumed") + done.stdout.count(": assumed;") >= 3 and "old" in done.stdout


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--limit", "100us", "--share", "40%"),
        ("--limit", "100us", "--share", "100%"),
        ("--limit", "100us", "--only-these"),
        ("--limit", "100us", "no-such-run"),
        ("--limit", "100us", "--probe", "response"),
        ("--limit", "100us", "FIRST", "OLD"),
    ],
)
def test_bad_input_is_one_line(words: tuple[str, ...], home: Path) -> None:
    named = {"FIRST": run(home, 0), "OLD": run(home, 6)}
    done = command_line("fleet", *(named.get(word, word) for word in words), cwd=home)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
