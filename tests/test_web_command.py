# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough web``: the store of one machine, served until it is ended, or written as files."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli_calls import command_line, environment
from farm_data import FarmData, make_store

from fastenough.history import History


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> FarmData:
    return make_store(tmp_path_factory.mktemp("web") / "store", boards=4, days=1, cpus=1)


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return str(answer.read().decode())


@contextmanager
def serving(*options: str, cwd: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command at work, and the address that it tells."""
    with subprocess.Popen([sys.executable, "-m", "fastenough", "web", "--listen", "127.0.0.1:0", *options], cwd=cwd,
                          env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            told = iter(server.stdout.readline, "")
            yield server, next(line for line in told if line.startswith("http")).split()[0]
        finally:
            server.kill()


def test_a_machines_own_store_is_shown_until_the_command_is_ended(farm: FarmData, tmp_path: Path) -> None:
    with serving("--store", str(farm.store.path), cwd=tmp_path) as (server, url):
        boards = json.loads(read(f"{url}index.json"))["boards"]
        assert {one["board"]["name"] for one in boards} == set(farm.boards)  # no farm said which are public
        assert farm.private in read(url)
        port = url.rstrip("/").rpartition(":")[2]
        taken = command_line("web", "--store", str(farm.store.path), "--listen", f"127.0.0.1:{port}", cwd=tmp_path)
        assert taken.returncode == 2 and len(taken.stderr.splitlines()) == 1
        server.send_signal(signal.SIGTERM)
        assert server.wait(20) == 143
        assert server.stderr is not None and server.stderr.read().strip() == ""
    assert (farm.store.path / "history.sqlite").is_file()


def test_files_are_for_the_public_unless_all_boards_are_asked_for(farm: FarmData, tmp_path: Path) -> None:
    asked = ("web", "--store", str(farm.store.path), "--json")
    none = command_line(*asked, "--into", "public", cwd=tmp_path)
    assert none.returncode == 0 and json.loads(none.stdout)["files"] > 0
    assert not (tmp_path / "public" / "board").exists()
    assert "No board that you may see" in (tmp_path / "public" / "index.html").read_text()
    history = History.at(f"sqlite:///{farm.store.path}/history.sqlite")
    farm.declare(history)
    history.close()
    written = command_line("web", "--store", str(farm.store.path), "--into", "public", "--note", "not <real>",
                           "--rebuild", cwd=tmp_path)
    assert written.returncode == 0, written.stderr
    shown = {path.name for path in (tmp_path / "public" / "board").iterdir()}
    assert shown == set(farm.boards) - {farm.private}
    assert "not &lt;real&gt;" in (tmp_path / "public" / "index.html").read_text()


@pytest.mark.parametrize("options", [
    ("--listen", "here"), ("--listen", "127.0.0.1:99999"), ("--listen", "192.0.2.1:80"), ("--database", "nonsense"),
    ("--store", "/nonexistent")])
def test_what_cannot_be_is_said_in_one_line(farm: FarmData, tmp_path: Path, options: tuple[str, str]) -> None:
    done = command_line("web", "--store", str(farm.store.path), *options, cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and "Traceback" not in done.stderr
