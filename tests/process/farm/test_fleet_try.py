# SPDX-License-Identifier: GPL-2.0-or-later
"""A whole fleet on this machine: each of its processes is killed, and nothing is lost or stored twice."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest

from fastenough.link.guard import descendants
from tests.support.cli_calls import ROOT, environment, fastenough
from tests.support.processes import eventually

pytestmark = [
    pytest.mark.machines,
    pytest.mark.skipif(shutil.which("nats-server") is None, reason="nats-server is not installed"),
]
_TRY = (sys.executable, "-m", "fastenough", "farm", "try", "--fleet=30", "--for=16s", "--interval=2s", "--json")
_PARTS = ("nats-server", "farm take", "fleet.simulated", "postgres")


def part(parent: int, name: str) -> int | None:
    """The first process below ``parent`` whose command names a part."""
    for pid in descendants(parent):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if name in command and "guard" not in command and "fleet.trial" not in command:
            return pid
    return None


def tried(folder: Path, *kill: str) -> Mapping[str, Any]:
    """The result of a fleet of 30 boards; each of ``kill`` is killed once after some data have come."""
    with subprocess.Popen(
        [*_TRY, f"--dir={folder}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        cwd=ROOT,
    ) as process:
        eventually(lambda: any(folder.rglob("*.parquet")), 60)
        for name in kill:
            pid = part(process.pid, name)
            assert pid is not None, name
            os.kill(pid, signal.SIGKILL)
            time.sleep(1.0)
        out, error = process.communicate(timeout=180)
        assert process.returncode == 0, error
    return dict(json.loads(out))


@pytest.mark.slow
def test_each_process_may_be_killed_and_each_interval_is_stored_once(tmp_path: Path) -> None:
    result = tried(tmp_path / "out", *_PARTS)
    assert result["published"] == result["stored"] == result["archived"] > 30 * 2 * 5
    assert result["lost"] == 0
    assert sum(usage["restarts"] for usage in result["parts"].values()) >= len(_PARTS)
    with duckdb.connect() as duck:
        rows, keys, boards = duck.execute(
            "SELECT count(*), count(DISTINCT (board, run, cpu, interval)), count(DISTINCT board) "
            f"FROM read_parquet('{tmp_path}/out/archive/**/*.parquet', hive_partitioning = true)"
        ).fetchall()[0]
    assert (rows, keys, boards) == (result["stored"], result["stored"], 30)


def test_an_archive_that_exists_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "archive").mkdir()
    assert fastenough("farm", "try", "--fleet=1", f"--dir={tmp_path}", cwd=tmp_path).returncode == 2
    assert not list((tmp_path / "archive").iterdir())


@pytest.mark.parametrize("part", ["2/1", "a/b"])
def test_a_part_that_is_none_is_refused(part: str, tmp_path: Path) -> None:
    words = "--nats=nats://127.0.0.1:1", f"--archive={tmp_path}/archive", f"--part={part}"
    assert fastenough("farm", "take", *words, cwd=tmp_path).returncode == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_server_that_does_not_answer_is_said(tmp_path: Path) -> None:
    ended = fastenough("farm", "take", "--nats=nats://127.0.0.1:1", f"--archive={tmp_path}/archive", cwd=tmp_path)
    assert ended.returncode == 4
    assert ended.stderr.count(b"\n") == 1
