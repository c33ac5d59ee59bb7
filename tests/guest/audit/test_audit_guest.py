# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough audit --measure --boot``: guests are booted in turns without and with arguments of the kernel."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fastenough.store import Store
from tests.support.cli_calls import command_line
from tests.support.virtual_boards import require_kernel

ARGUMENT = "nohz=off"


@pytest.mark.matrix
def test_arguments_of_the_kernel_are_booted_in_turns_and_told(tmp_path: Path) -> None:
    require_kernel("rt")
    done = command_line(
        "audit",
        "--measure",
        "--board",
        "virtual:rt",
        "--boot",
        f"rt,rt {ARGUMENT}",
        "--loads",
        "none",
        "--rounds",
        "3",
        "--duration",
        "1s",
        "--interval",
        "5ms",
        "--report",
        "told",
        "--json",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    (tried,) = json.loads(done.stdout)["measured"]["single"]
    assert tried["change"] == {"boot": f"rt {ARGUMENT}"} and tried["rounds"] == 3 and tried["effect"]
    assert f"boot=rt {ARGUMENT}" in (tmp_path / "told" / "tables" / "tried-1.csv").read_text()
    store = Store(tmp_path / "fastenough-data")
    runs = sorted((run for run in store.runs() if run.campaign == tried["campaign"]), key=lambda run: run.position or 0)
    heads = [store.load(run.id).head for run in runs]
    assert [head.configuration and ARGUMENT in (head.configuration.command_line or "").split() for head in heads] == [
        False,
        True,
        True,
        False,
    ] * 3
    assert all("emulated" in head.marks for head in heads)
