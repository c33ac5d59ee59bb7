# SPDX-License-Identifier: GPL-2.0-or-later
"""The SSH server of the load by Brown and Martin lets nobody in but the load itself."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from fastenough.link import LocalLink
from fastenough.loads import RunningLoad, find_load, require_tools
from fastenough.loads.load import Expectation
from fastenough.model import NotApplicable
from tests.support.processes import eventually

_LOAD = find_load("brown-martin")
_SERVER_ONLY = replace(_LOAD, commands=_LOAD.commands[:1], expects=Expectation())
_OPTIONS = (
    "-F",
    "none",
    "-o",
    "StrictHostKeyChecking=no",
    "-o",
    "UserKnownHostsFile=/dev/null",
    "-o",
    "LogLevel=ERROR",
)


class _Server:
    """The load's server at work, and a client of it."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.port = int(re.findall(r"^Port (\d+)$", (scratch / "conf").read_text(), re.MULTILINE)[0])

    def ssh(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["ssh", *_OPTIONS, "-p", str(self.port), *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def with_key(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.ssh("-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes", "-i", str(self.scratch / "user"), *words)


@contextmanager
def _serving() -> Iterator[_Server]:
    with RunningLoad(LocalLink(), _SERVER_ONLY, 1, 60) as running:
        running.begin()
        scratch = next(
            Path(found[0])
            for line in running.command_lines
            for word in line
            if (found := re.findall(r"/\S*/fastenough-[0-9a-f]{12}", word))
        )
        assert eventually(lambda: (scratch / "copy").exists() or not running.proof().ran, 180)
        assert running.proof().reasons == ()
        yield _Server(scratch)


@pytest.fixture(scope="module")
def server() -> Iterator[_Server]:
    try:
        require_tools(LocalLink(), _SERVER_ONLY)
    except NotApplicable as reason:
        pytest.skip(str(reason))
    if LocalLink().run(_SERVER_ONLY.trial).status:
        pytest.skip("brown-martin does not apply here")
    with _serving() as serving:
        yield serving


def test_it_copies_by_its_key(server: _Server) -> None:
    assert eventually(lambda: (server.scratch / "copy").stat().st_size == (server.scratch / "large").stat().st_size)
    assert server.with_key("127.0.0.1", "echo in").stdout == "in\n"


@pytest.mark.parametrize("methods", ["password", "keyboard-interactive", "password,keyboard-interactive", "hostbased"])
def test_only_keys_are_offered(server: _Server, methods: str) -> None:
    done = server.ssh(
        "-o",
        "PubkeyAuthentication=no",
        "-o",
        f"PreferredAuthentications={methods}",
        "-o",
        "NumberOfPasswordPrompts=1",
        "127.0.0.1",
        "echo in",
    )
    assert done.returncode == 255
    assert done.stdout == ""
    assert "Permission denied (publickey)." in done.stderr


def test_no_other_user_is_let_in(server: _Server) -> None:
    other = "nobody" if os.geteuid() == 0 else "root"
    done = server.with_key("-l", other, "127.0.0.1", "echo in")
    assert (done.returncode, done.stdout) == (255, "")
    assert "Permission denied" in done.stderr


def test_another_key_is_refused(server: _Server, tmp_path: Path) -> None:
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    done = server.ssh("-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes", "-i", str(key), "127.0.0.1", "echo in")
    assert (done.returncode, done.stdout) == (255, "")


def test_nothing_is_forwarded(server: _Server) -> None:
    through = server.with_key("-W", f"127.0.0.1:{server.port}", "127.0.0.1")
    assert "SSH-2.0" not in through.stdout
    assert through.returncode != 0
    back = server.with_key("-o", "ExitOnForwardFailure=yes", "-R", "0:127.0.0.1:1", "127.0.0.1", "echo in")
    assert (back.returncode, back.stdout) == (255, "")
    terminal = server.with_key("-tt", "127.0.0.1", "tty")
    assert "/dev/" not in terminal.stdout


def test_it_listens_on_loopback_only(server: _Server) -> None:
    wanted = f":{server.port:04X}"
    listening = [
        line.split()[1]
        for file in ("/proc/net/tcp", "/proc/net/tcp6")
        for line in Path(file).read_text().splitlines()[1:]
        if line.split()[1].endswith(wanted) and line.split()[3] == "0A"
    ]
    assert listening == [f"0100007F{wanted}"]


_NUMBERS = """#!/bin/sh
echo >>{folder}/calls
[ $(wc -l <{folder}/calls) -gt {taken} ] && echo 4321 || echo 1234
"""


def _with_taken_ports(monkeypatch: pytest.MonkeyPatch, folder: Path, taken: int) -> None:
    """As many times, the number that the load draws is that of a port in use."""
    (folder / "od").write_text(_NUMBERS.format(folder=folder, taken=taken))
    (folder / "od").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@pytest.mark.usefixtures("server")
def test_where_a_port_is_in_use_it_takes_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _with_taken_ports(monkeypatch, tmp_path, 2)
    with socket.create_server(("127.0.0.1", 20000 + 1234)), _serving() as other:
        assert other.port == 20000 + 4321


@pytest.mark.usefixtures("server")
def test_where_no_port_is_free_the_load_ends_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _with_taken_ports(monkeypatch, tmp_path, 1000)
    with socket.create_server(("127.0.0.1", 20000 + 1234)), RunningLoad(LocalLink(), _SERVER_ONLY, 1, 60) as running:
        running.begin()
        assert eventually(lambda: not running.proof().ran)
        assert "its SSH server does not listen: Cannot bind any address" in running.proof().reasons[0]
