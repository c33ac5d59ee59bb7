# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/farm.md, followed from nothing: its own commands and files set up a farm of two boards behind ssh, each in a
network namespace.

Power switch and consoles are those of a simulated rack, and the test shortens times; the rest is as the page says.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from fastenough.farm import rack
from fastenough.farm.lab import SimulatedTimes, free_ports
from fastenough.farm.rack import Rack, Slot, rack_text
from fastenough.farm.state_file import read_state
from fastenough.farm.state_machine import BoardState
from fastenough.history import OWNER, PUBLIC, BoardCondition, History, Viewer, board_statuses
from fastenough.link.ssh import CONFIG_SETTING
from fastenough.model import BadInput
from fastenough.store import Store
from tests.support.cli_calls import ROOT, command_line, environment
from tests.support.namespaces import network
from tests.support.processes import eventually
from tests.support.ssh_boards import Server, ssh_server

pytestmark = pytest.mark.machines

PAGE = (ROOT / "docs" / "farm.md").read_text()
SECTION = PAGE.split("\n## Set-up\n")[1].split("\n## ")[0]
BOARDS = ("r1s1", "r1s2")
PACE = SimulatedTimes(report_s=0.25, cycle_s=2.0, boot_s=0.5)
TIMES = {"pull": "2s", "boot": "60s", "patience": "600s", "retry": "3s"}


def commands(start: str) -> list[str]:
    """The commands of the page's setup that start so."""
    prose = re.sub(r"```.*?```", "", SECTION, flags=re.DOTALL)
    found = [" ".join(said.split()) for said in re.findall(r"`([^`]+)`", prose)]
    return [said for said in found if said.startswith(f"{start} ")]


def block(language: str) -> str:
    """The page's file in this language."""
    return SECTION.split(f"```{language}\n")[1].split("```")[0]


@dataclass(frozen=True)
class Bench:
    """``addresses``: of each board's ssh server, at port 22."""

    folder: Path
    addresses: Mapping[str, str]
    ports: list[int]

    def words(self, command: str, name: str = BOARDS[0]) -> list[str]:
        """The words of a command of the page, for a board; every word of it is a name, a path or a quoted pattern."""
        said = command.replace("ADDRESS:20408", f"127.0.0.1:{self.ports[0]}").replace(BOARDS[0], name)
        program, *words = [word.strip("'") for word in said.split()]
        return [str(Path(sys.executable).parent / program), *words]

    def files(self) -> None:
        """What the page has a person write, for two boards."""
        group = yaml.safe_load(block("yaml"))[BOARDS[0]]
        exported = {}
        for number, name in enumerate(BOARDS):
            relay = f"http://127.0.0.1:{self.ports[1]}/relay/{{index}}/value"
            power = {"model": "rest", "host": relay, "index": number}
            exported[name] = group | {
                "NetworkPowerPort": power,
                "NetworkSerialPort": group["NetworkSerialPort"] | {"host": "127.0.0.1", "port": self.ports[2 + number]},
                "NetworkService": group["NetworkService"] | {"address": self.addresses[name]},
            }
        (self.folder / "rack1.yaml").write_text(yaml.safe_dump(exported))
        self.farm.write_text(self._farm_file())

    @property
    def farm(self) -> Path:
        return self.folder / "farm.toml"

    def _farm_file(self) -> str:
        """The page's, with this machine's places; without its plan, whose cycle lasts 12 h, and its PostgreSQL."""
        text = re.sub(r"\n\[\[board\.plan\]\].*", "", block("toml"), flags=re.DOTALL)
        places = {"coordinator": f"127.0.0.1:{self.ports[0]}", "store": "store", "state": "state"}
        text = re.sub(
            r"^(coordinator|store|state) = .*$", lambda key: f'{key[1]} = "{places[key[1]]}"', text, flags=re.M
        )
        text = re.sub(r"^database = .*\n", 'reconcile = "3s"\n', text, flags=re.M)
        head, table = text.split("[[board]]")
        times = "".join(f'{key} = "{value}"\n' for key, value in TIMES.items())
        return head + "".join(
            "[[board]]"
            + re.sub(
                r"^ring = .*$",
                f'ring = "{self.ring(name)}"',
                table.replace(BOARDS[0], name).rstrip() + "\n",
                flags=re.M,
            )
            + times
            for name in BOARDS
        )

    def ring(self, name: str) -> Path:
        return self.folder / "rings" / name

    def rack(self) -> None:
        for name in BOARDS:
            self.ring(name).mkdir(parents=True, mode=0o700)
        slots = tuple(Slot(port, str(self.ring(name))) for port, name in zip(self.ports[2:], BOARDS, strict=True))
        (self.folder / "rack.json").write_text(rack_text(Rack(self.ports[1], PACE.probe, PACE.boot_s, slots)))

    def states(self) -> dict[str, BoardState]:
        try:
            return read_state(self.folder / "state")[1]
        except BadInput:  # it has not begun yet
            return {}

    def measures(self) -> bool:
        """Whether all boards do."""
        states = self.states()
        return set(states) == set(BOARDS) and {one.activity for one in states.values()} <= {"measuring", "pulling"}

    def boards(self, viewer: Viewer = PUBLIC) -> dict[str, BoardCondition]:
        history = History.at(f"sqlite:///{self.folder}/store/history.sqlite")
        try:
            return {one.board.name: one.state for one in board_statuses(history, viewer, 2**33)}
        finally:
            history.close()


class Running:
    """Processes in a folder, each with a log, ended one by one or with the block."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack

    def start(self, name: str, words: list[str], **more: str) -> subprocess.Popen[bytes]:
        log = self._stack.enter_context((self._folder / f"{name}.log").open("ab"))
        process = subprocess.Popen(
            words, cwd=self._folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment(**more)
        )
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process

    def said(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text(errors="replace")

    def wait_for(self, name: str, said: str) -> None:
        assert eventually(lambda: said in self.said(name), 90), self.said(name)


def client_config(servers: Mapping[str, Server]) -> str:
    """As the farm's user has it: the key for each board."""
    return "".join(
        server.config.read_text().replace("Host board", f"Host {address}") for address, server in servers.items()
    )


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[tuple[Bench, Running, dict[str, str]]]:
    with ExitStack() as stack:
        nets = {name: stack.enter_context(network(80 + number)) for number, name in enumerate(BOARDS)}
        servers = {
            net.address: stack.enter_context(ssh_server(address=net.address, prefix=net.prefix, port=22))
            for net in nets.values()
        }
        (tmp_path / "ssh_config").write_text(client_config(servers))
        made = Bench(tmp_path, {name: net.address for name, net in nets.items()}, free_ports(2 + len(BOARDS)))
        yield made, Running(tmp_path, stack), {CONFIG_SETTING: str(tmp_path / "ssh_config")}


def set_up(bench: Bench, running: Running) -> None:
    """Step 1 of the page."""
    bench.files()
    bench.rack()
    running.start("rack", [sys.executable, "-P", str(rack.__file__), str(bench.folder / "rack.json")])
    (coordinator,), (exporter,) = commands("labgrid-coordinator"), commands("labgrid-exporter")
    running.start("coordinator", bench.words(coordinator))
    running.wait_for("coordinator", "listening on")
    running.start("exporter", bench.words(exporter))
    running.wait_for("exporter", "Exporter ready")
    create, match = commands("labgrid-client")
    for name in BOARDS:
        for command in (create, match):
            subprocess.run(bench.words(command, name), check=True, cwd=bench.folder, timeout=120)


def run_farm(bench: Bench, running: Running, more: Mapping[str, str]) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "fastenough", "farm", "run", str(bench.farm)]
    return running.start("farm", words, **more)


def test_the_page_sets_up_a_farm_of_two_boards(bench: tuple[Bench, Running, dict[str, str]]) -> None:
    made, running, more = bench
    set_up(made, running)
    farm = run_farm(made, running, more)
    assert eventually(made.measures, 180), (made.states(), running.said("farm"))
    store = Store(made.folder / "store")
    assert eventually(lambda: {run.board for run in store.runs()} == set(BOARDS), 120), running.said("farm")
    assert eventually(lambda: set(made.boards()) == set(BOARDS), 120), running.said("farm")
    assert all(store.load(run.id).damage is None for run in store.runs(state="ended"))
    said = command_line("farm", "status", str(made.farm))
    assert said.returncode == 0 and all(name in said.stdout for name in BOARDS)
    farm.terminate()
    assert farm.wait(120) == 0
    check_changes(made)


def check_changes(made: Bench) -> None:
    """The page's commands that change boards, each for a board that there is then."""
    text = PAGE.split("\n## Changing boards\n")[1].split("```")[1]
    changes = {line.split()[3]: line.partition("#")[0].split()[1:4] for line in text.strip().splitlines()}
    assert set(changes) == {"retire", "rename", "withdraw"}
    for which, *words in (("retire", "r1s2"), ("rename", "r1s1", "press-1"), ("withdraw", "press-1")):
        done = command_line(*changes[which], str(made.farm), *words)
        assert done.returncode == 0, done.stderr
    for _ in range(2):
        assert made.boards() == {"r1s2": BoardCondition.RETIRED}
        assert set(made.boards(OWNER)) == {"r1s2", "press-1"}
        assert command_line("farm", "rebuild", str(made.farm)).returncode == 0
    boards: list[dict[str, Any]] = tomllib.loads(made.farm.read_text())["board"]
    assert [(one["name"], one["public"], one.get("retired")) for one in boards] == [
        ("press-1", False, None),
        ("r1s2", True, True),
    ]
