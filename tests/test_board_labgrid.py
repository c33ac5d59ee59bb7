# SPDX-License-Identifier: GPL-2.0-or-later
"""A board that labgrid switches: a real coordinator and exporter on loopback, a power switch that speaks HTTP."""

from __future__ import annotations

import http.server
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from processes import eventually
from ssh_boards import Server, ssh_server
from tools import TOOLS, require

from fastenough.board import AS_BOOTED, open_board
from fastenough.board.labgrid import COORDINATOR_SETTING, POWER_CYCLED
from fastenough.link import BoardGone
from fastenough.model import BadInput, NotApplicable

_EXPORT = """board:
  NetworkPowerPort:
    model: rest
    host: 'http://127.0.0.1:{switch}/relay/{{index}}/value'
    index: 0
  NetworkService:
    address: board
    username: root
bare:
  NetworkPowerPort:
    model: rest
    host: 'http://127.0.0.1:{switch}/relay/{{index}}/value'
    index: 1
"""


@dataclass
class Switch:
    """What was switched, in order; ``stuck`` while it answers nobody."""

    port: int = 0
    said: list[tuple[str, bytes]] = field(default_factory=list)
    stuck: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class Lab:
    coordinator: str
    exporter: subprocess.Popen[bytes]
    switch: Switch


@contextmanager
def _switch() -> Iterator[Switch]:
    switch = Switch()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            while switch.stuck.is_set():
                time.sleep(0.1)
            switch.said.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *words: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    switch.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield switch
    finally:
        switch.stuck.clear()
        server.shutdown()
        server.server_close()


def _refused(kind: type[Exception] | tuple[type[Exception], ...], said: str, name: str = "labgrid:board",
             configuration: str = AS_BOOTED) -> None:
    with pytest.raises(kind, match=said), open_board(name).boot(configuration):
        pass


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _client(lab: str, *words: str) -> str:
    done = subprocess.run([sys.executable, "-m", "labgrid.remote.client", "-x", lab, *words], capture_output=True,
                          text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    require("ssh", "sshd", "ssh-keygen")
    with ssh_server() as one:
        yield one


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    place = tmp_path_factory.mktemp("lab")
    address = f"127.0.0.1:{_free_port()}"
    with _switch() as switch, (place / "log").open("wb") as log:
        (place / "export.yaml").write_text(_EXPORT.format(switch=switch.port))
        coordinator = subprocess.Popen([TOOLS / "labgrid-coordinator", "-l", address], cwd=place, stdout=log,
                                       stderr=log)
        exporter = subprocess.Popen([TOOLS / "labgrid-exporter", "-c", address, "-n", "rack", "--hostname",
                                     "127.0.0.1", place / "export.yaml"], cwd=place, stdout=log, stderr=log)
        try:
            assert eventually(lambda: b"rack" in _resources(address), 60), (place / "log").read_text()
            for name in ("board", "bare"):
                _client(address, "-p", name, "create")
                _client(address, "-p", name, "add-match", f"rack/{name}/*")
            yield Lab(address, exporter, switch)
        finally:
            for process in (exporter, coordinator):
                process.kill()
                process.wait()


def _resources(address: str) -> bytes:
    return subprocess.run([sys.executable, "-m", "labgrid.remote.client", "-x", address, "resources"], check=False,
                          capture_output=True).stdout


@pytest.fixture(autouse=True)
def _known(server: Server, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(COORDINATOR_SETTING, lab.coordinator)
    for name, value in server.environment().items():
        if name not in os.environ:
            monkeypatch.setenv(name, value)


def _holder(lab: Lab, place: str = "board") -> str:
    return next(line for line in _client(lab.coordinator, "-p", place, "show").splitlines() if "acquired: " in line)


def test_a_place_is_held_switched_reached_and_let_go(server: Server, lab: Lab) -> None:
    lab.switch.said.clear()
    with open_board("labgrid:board").boot(POWER_CYCLED) as booted:
        assert booted.link.run([booted.probe, "--version"]).status == 0
        assert "None" not in _holder(lab)
        assert booted.configuration.name == POWER_CYCLED
    assert lab.switch.said == [("/relay/0/value", b"0"), ("/relay/0/value", b"1")]
    assert "None" in _holder(lab)
    assert eventually(lambda: not server.processes(), 5)


def test_as_booted_switches_nothing(lab: Lab) -> None:
    lab.switch.said.clear()
    with open_board("labgrid:board").boot(AS_BOOTED) as booted:
        assert booted.link.run(["true"]).status == 0
    assert lab.switch.said == []


def test_a_place_that_somebody_has_is_lent(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("LG_USERNAME", "somebody")
        _client(lab.coordinator, "-p", "board", "acquire")
    try:
        _refused(NotApplicable, "it is lent to .*/somebody")
        assert "somebody" in _holder(lab)
    finally:
        with monkeypatch.context() as patch:
            patch.setenv("LG_USERNAME", "somebody")
            _client(lab.coordinator, "-p", "board", "release")


def test_what_a_killed_bench_held_is_taken_over(lab: Lab) -> None:
    _client(lab.coordinator, "-p", "board", "acquire")
    with open_board("labgrid:board").boot(AS_BOOTED) as booted:
        assert booted.link.run(["true"]).status == 0
    assert "None" in _holder(lab)


def test_a_switch_that_never_answers_is_given_up(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastenough.board.labgrid._act.__defaults__", (8.0,))
    lab.switch.stuck.set()
    try:
        begin = time.monotonic()
        _refused(BoardGone, "cycle has not ended within 8 s", configuration=POWER_CYCLED)
        assert time.monotonic() - begin < 60
    finally:
        lab.switch.stuck.clear()
    assert "None" in _holder(lab)


@pytest.mark.parametrize(("name", "said"), [
    ("labgrid:nowhere", "knows no such place"), ("labgrid:bare", "has no NetworkService")])
def test_a_place_that_cannot_be_reached_says_why(name: str, said: str) -> None:
    _refused(NotApplicable, said, name)


@pytest.mark.parametrize("name", ["labgrid:", "labgrid:-p", "labgrid:a b", "labgrid:a\nb", "labgrid:../x"])
def test_names_that_are_no_places_are_refused(name: str) -> None:
    with pytest.raises(BadInput, match="is no place of labgrid's") as refusal:
        open_board(name)
    assert str(refusal.value).isprintable()


def test_a_coordinator_that_is_away_or_silent_is_said(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(COORDINATOR_SETTING, f"127.0.0.1:{_free_port()}")
    _refused(NotApplicable, "labgrid:board: acquire failed: .*(refused|[Cc]onnect|UNAVAILABLE|unavailable)")


def test_an_exporter_that_hangs_does_not_hang_us(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Last: the coordinator drops an exporter that does not answer, which then ends."""
    monkeypatch.setattr("fastenough.board.labgrid._act.__defaults__", (15.0,))
    os.kill(lab.exporter.pid, signal.SIGSTOP)
    begin = time.monotonic()
    _refused((NotApplicable, BoardGone), "labgrid:board: acquire")
    assert time.monotonic() - begin < 60
