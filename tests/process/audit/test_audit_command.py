# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough audit``: findings by severity on a terminal, in a pipe of any width, as JSON; an audit is no verdict."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fastenough.audit import CHECKS
from fastenough.cli.audit import print_audit
from fastenough.cli.output import MOST_TEXT_WIDTH
from fastenough.jobs.audit import audit_of
from tests.support.audit_machines import machines
from tests.support.cli_calls import command_line
from tests.support.terminal import Terminal, screen

pytestmark = pytest.mark.untimed

MACHINES = machines()
SEVERITIES = ["high", "medium", "low"]


@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize("machine", ["imx", "laptop", "server", "x86-64-firecracker", "nothing-at-all"])
def test_what_weighs_most_is_told_first(
    machine: str, columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    found = audit_of("local", MACHINES[machine])
    print_audit(found, everything=False, verbose=True)
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines if " " in line.strip()) <= min(columns, MOST_TEXT_WIDTH)
    marks = [line.split()[0] for line in lines if line.startswith(tuple(f"{each} " for each in SEVERITIES))]
    assert marks == sorted(marks, key=SEVERITIES.index)
    assert sum(line.strip().startswith("reason:") for line in lines) == len(marks)
    assert bool(marks) == (machine != "nothing-at-all")
    "\n".join(lines).encode("latin-1")
    print_audit(found, everything=False, verbose=False)
    short = capsys.readouterr().out.splitlines()
    assert max(map(len, short)) <= min(columns, MOST_TEXT_WIDTH)
    assert [line.split()[0] for line in short if line.startswith(tuple(f"{each} " for each in SEVERITIES))] == marks
    assert not any(line.startswith(" ") for line in short), "one line for each finding"
    print_audit(found, everything=True, verbose=False)
    heads = ("unknown  ", "fine     ", *(each.ljust(9) for each in SEVERITIES))
    assert sum(line.startswith(heads) for line in capsys.readouterr().out.splitlines()) == len(CHECKS)


def test_programs_get_everything_and_nothing_is_left(tmp_path: Path) -> None:
    done = command_line("audit", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["board"] == "local" and "may cost latency" in said["conclusion"]
    assert [each["name"] for each in said["findings"]] == [check.name for check in CHECKS]
    assert {each["state"] for each in said["findings"]} <= {"costs", "hides", "fine", "unknown"}
    assert all(each["source"] and each["reason"] for each in said["findings"])
    assert list(tmp_path.iterdir()) == []


def test_on_a_terminal(tmp_path: Path) -> None:
    with Terminal("audit", "--all", cwd=tmp_path, columns=60) as terminal:
        status, said = terminal.end()
    assert status == 0
    assert max(map(len, screen(said))) <= 60


def test_a_board_that_there_is_not_is_one_line(tmp_path: Path) -> None:
    done = command_line("audit", "--board", "nowhere", cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
