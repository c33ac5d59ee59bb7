# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough web``: the store of one machine, served until it is ended, or written as files."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import socket
import sys
import time
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest

from fastenough.history import History
from fastenough.store import Store
from tests.support.cli_calls import command_line, environment
from tests.support.demo_site import demonstrate
from tests.support.farm_data import FarmData
from tests.support.many_boards import make_boards
from tests.support.postgresql import running_server
from tests.support.websites import command_serving

pytestmark = pytest.mark.untimed


@pytest.fixture(scope="module")
def own(farm: FarmData, tmp_path_factory: pytest.TempPathFactory) -> FarmData:
    """A copy of the store with a run of each board, which keeps its own history."""
    store = tmp_path_factory.mktemp("web") / "store"
    shutil.copytree(farm.store.path, store, ignore=shutil.ignore_patterns("*T12*", "*-osadl", "index.sqlite*"))
    return replace(farm, store=Store(store))


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return str(answer.read().decode())


@pytest.mark.slow
def test_a_machines_own_store_is_shown_until_the_command_is_ended(own: FarmData, tmp_path: Path) -> None:
    (tmp_path / "fastenough-data").symlink_to(own.store.path)
    with command_serving(sys.executable, "-m", "fastenough", cwd=tmp_path, environment=environment()) as (server, url):
        boards = json.loads(read(f"{url}index.json"))["boards"]
        assert {one["board"]["name"] for one in boards} == set(own.boards)  # no farm said which are public
        assert own.private in read(url)
        port = url.rstrip("/").rpartition(":")[2]
        taken = command_line("web", "--store", str(own.store.path), "--listen", f"127.0.0.1:{port}", cwd=tmp_path)
        assert taken.returncode == 2 and len(taken.stderr.splitlines()) == 1
        server.send_signal(signal.SIGTERM)
        assert server.wait(20) == 143
        assert server.stderr is not None and server.stderr.read().strip() == ""
    assert (own.store.path / "history.sqlite").is_file()


def test_half_requests_take_no_descriptors_from_others(own: FarmData, tmp_path: Path) -> None:
    """More of them than the process may have descriptors."""
    prefix = "prlimit", "--nofile=128:128"
    with (
        command_serving(
            *prefix,
            sys.executable,
            "-m",
            "fastenough",
            cwd=tmp_path,
            environment=environment(),
            options=("--store", own.store.path),
        ) as (_, url),
        contextlib.ExitStack() as halves,
    ):
        place = "127.0.0.1", int(url.rstrip("/").rpartition(":")[2])
        for _ in range(300):
            halves.enter_context(socket.create_connection(place, timeout=30)).sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
        assert json.loads(read(f"{url}index.json"))["boards"]


@pytest.mark.slow
def test_it_ends_though_the_database_hangs(tmp_path: Path) -> None:
    with running_server() as server:
        History.at(server.url).close()
        with command_serving(
            sys.executable,
            "-m",
            "fastenough",
            cwd=tmp_path,
            environment=environment(),
            options=("--database", server.url),
        ) as (web, url):
            read(url)
            server.send(signal.SIGSTOP)
            try:
                with socket.create_connection(("127.0.0.1", int(url.rstrip("/").rpartition(":")[2]))) as waiting:
                    waiting.sendall(b"GET /index.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                    time.sleep(0.5)
                    web.send_signal(signal.SIGTERM)
                    begun_s = time.monotonic()
                    assert web.wait(20) == 143
                    assert time.monotonic() - begun_s < 10  # 2 s on a machine that is not busy
            finally:
                server.send(signal.SIGCONT)


@pytest.mark.slow
def test_files_are_for_the_public_unless_all_boards_are_asked_for(own: FarmData, tmp_path: Path) -> None:
    asked = ("web", "--store", str(own.store.path), "--json")
    none = command_line(*asked, "--into", "public", cwd=tmp_path)
    assert none.returncode == 0 and json.loads(none.stdout)["files"] > 0
    assert not (tmp_path / "public" / "board").exists()
    assert "No visible board has data" in (tmp_path / "public" / "index.html").read_text()
    history = History.at(f"sqlite:///{own.store.path}/history.sqlite")
    own.declare(history)
    history.close()
    written = command_line(
        "web", "--store", str(own.store.path), "--into", "public", "--note", "not <real>", "--rebuild", cwd=tmp_path
    )
    assert written.returncode == 0, written.stderr
    shown = {path.name for path in (tmp_path / "public" / "board").iterdir()}
    assert shown == set(own.boards) - {own.private}
    assert "not &lt;real&gt;" in (tmp_path / "public" / "index.html").read_text()


@pytest.mark.slow
def test_a_farms_history_is_shown_as_it_is(own: FarmData, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/farm.sqlite"
    history = History.at(url)
    own.declare(history)
    history.close()
    written = command_line("web", "--database", url, "--into", "site", cwd=tmp_path)
    assert written.returncode == 0, written.stderr
    boards = json.loads((tmp_path / "site" / "index.json").read_text())["boards"]
    assert [one["seen_s"] for one in boards] == [None] * (len(own.boards) - 1)  # the farm took none
    assert command_line("web", "--database", url, "--rebuild", cwd=tmp_path).returncode == 2


@pytest.mark.slow
def test_the_demonstration_says_that_it_is_generated(own: FarmData, tmp_path: Path) -> None:
    demonstrate(own, tmp_path, tmp_path / "site")
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > len(own.boards)
    assert all("none of its numbers was measured" in page.read_text() for page in pages)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        ("--listen", "here"),
        ("--listen", "127.0.0.1:99999"),
        ("--listen", "192.0.2.1:80"),
        ("--database", "nonsense"),
        ("--store", "/nonexistent"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(own: FarmData, tmp_path: Path, options: tuple[str, str]) -> None:
    done = command_line("web", "--store", str(own.store.path), *options, cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and "Traceback" not in done.stderr


def test_a_site_with_only_a_database_keeps_its_summaries_up_to_date(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/farm.sqlite"
    history = History.at(url)
    make_boards(history, 4, refresh=False)
    history.close()
    with command_serving(
        sys.executable, "-m", "fastenough", cwd=tmp_path, options=["--database", url], environment=environment()
    ) as (_, served):
        until_s = time.monotonic() + 120
        while len(json.loads(read(f"{served}api/v1/boards?q=gateway"))["boards"]) < 4:  # a summary has the words
            assert time.monotonic() < until_s
            time.sleep(0.5)


def test_access_contradicts_options_that_show_all_or_have_no_users(tmp_path: Path) -> None:
    access = tmp_path / "access.toml"
    access.write_text('trusted = ["127.0.0.1"]\n[[group]]\nname = "lab"\nrole = "administrator"\n')
    for options in (["--all-boards"], ["--out-dir", "site"], ["--listen", "nowhere"]):
        refused = command_line("web", "--access", str(access), *options, cwd=tmp_path)
        assert refused.returncode == 2 and len(refused.stderr.splitlines()) <= 2, options
    access.write_text("trusted = 1\n")
    assert command_line("web", "--access", str(access), cwd=tmp_path).returncode == 2
