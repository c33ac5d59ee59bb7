# SPDX-License-Identifier: GPL-2.0-or-later
"""A forked command is like a started one: arguments, directory, environment, output, exit."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastenough.link.guard import descendants
from tests.support.cli_calls import environment
from tests.support.fork_server import ForkServer


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    server = ForkServer(environment())
    yield server
    server.close()


def _started(words: list[str], cwd: Path, variables: dict[str, str]) -> tuple[int, bytes, bytes]:
    command = [sys.executable, "-m", "fastenough", *words]
    done = subprocess.run(command, cwd=cwd, env=variables, capture_output=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "words", [["lsit"], ["show", "--help"], ["list", "--json"], ["compare", "a", "b"], ["farm", "compact", "x"]]
)
def test_forked_twice_a_command_answers_as_a_started_one(server: ForkServer, tmp_path: Path, words: list[str]) -> None:
    variables = environment(COLUMNS="70")
    expected = _started(words, tmp_path, variables)
    for _ in range(2):
        done = server.run(words, tmp_path, variables, 60)
        assert (done.returncode, done.stdout, done.stderr) == expected


def test_directory_and_environment_are_those_of_the_call(server: ForkServer, tmp_path: Path) -> None:
    for cwd, store in ((tmp_path, "one"), (tmp_path.parent, "two")):
        words = ["run", "timer", "--duration", "100ms", "--store", store]
        assert server.run(words, cwd, environment(), 60).returncode == 0
        assert (cwd / store).is_dir()
    width = [
        max(map(len, server.run(["run", "--help"], tmp_path, environment(COLUMNS=columns), 60).stdout.splitlines()))
        for columns in ("60", "100")
    ]
    assert width[0] < width[1] <= 100


def test_a_command_beyond_its_time_is_killed(tmp_path: Path) -> None:
    server = ForkServer(environment())
    began = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        server.run(["run", "timer", "--duration", "300s", "--store", "store"], tmp_path, environment(), 1)
    server.close()
    assert time.monotonic() - began < 200


def test_a_server_is_no_child_of_the_tests(server: ForkServer) -> None:
    assert server.can_fork(environment())
    assert "fork_server" not in "".join(Path(f"/proc/{pid}/cmdline").read_text() for pid in descendants(os.getpid()))


def test_what_a_process_has_from_its_start_is_not_forked(server: ForkServer) -> None:
    umask = os.umask(0o077)
    try:
        assert not server.can_fork(environment())
    finally:
        os.umask(umask)
    assert server.can_fork(environment())


def test_what_an_interpreter_reads_when_it_starts_is_not_forked(server: ForkServer) -> None:
    assert server.can_fork(environment(COLUMNS="70", HOME=os.sep))
    assert not server.can_fork(environment(PYTHONUTF8="0"))
    assert not server.can_fork(environment(LC_ALL="C"))
