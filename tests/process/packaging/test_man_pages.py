# SPDX-License-Identifier: GPL-2.0-or-later
"""Manual pages hold what the commands say of themselves, and are set without a complaint."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fastenough.cli import COMMANDS, cli
from fastenough.cli.commands import Command
from tests.process.cli.test_cli import leaves
from tests.support.packaging_programs import man_pages
from tests.support.tools import program, require

pytestmark = pytest.mark.untimed


@pytest.fixture(scope="module")
def programs(probe_binary: str, monitor_binary: Path, inject_binary: Path, build_directory: Path) -> dict[str, str]:
    publisher = [program(build_directory, f"target/publisher/fastenough-{name}") for name in ("publisher", "executor")]
    paths = [Path(probe_binary), monitor_binary, inject_binary, *map(Path, publisher)]
    return {path.name: str(path) for path in paths}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, programs: dict[str, str]) -> Path:
    out = tmp_path_factory.mktemp("man")
    man_pages.main([str(out), *programs.values()])
    return out


@pytest.fixture(scope="module")
def read(made: Path) -> Callable[[str], str]:
    """A page as a person reads it, on one line."""
    require("groff")

    def text(page: str) -> str:
        done = subprocess.run(
            ["groff", "-ww", "-man", "-Kutf8", "-Tutf8", "-P-bcou", "-rHY=0", made / page],
            text=True,
            capture_output=True,
            check=True,
        )
        assert done.stderr == ""
        return " ".join(done.stdout.split())

    return text


def _words(text: str) -> str:
    return " ".join(text.replace("\b", "").split())


def test_every_page_is_set_without_a_complaint(made: Path, read: Callable[[str], str]) -> None:
    pages = {page.name for page in made.iterdir()}
    assert pages == {
        "fastenough.1",
        "fastenough-probe.8",
        "fastenough-monitor.8",
        "fastenough-inject.8",
        "fastenough-publisher.8",
        "fastenough-executor.8",
        *(f"fastenough-{name}.1" for name in COMMANDS),
    }
    assert all(read(page).startswith(page.partition(".")[0].upper()) for page in pages)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_in_its_page_what_its_help_says(name: str, read: Callable[[str], str]) -> None:
    said = read(f"fastenough-{name}.1")
    for path, command in leaves(cli, "fastenough"):
        if path.split()[1] != name:
            continue
        assert path in said
        for option in command.params:
            assert all(word in said for word in (option.opts if option.param_type_name == "option" else [])), path
        assert isinstance(command, Command) and _words(command.example) in said
    sections = [part for part in ("EXIT STATUS", "EXAMPLES", "SEE ALSO") if part in said]
    assert sections == ["EXIT STATUS", "EXAMPLES", "SEE ALSO"]
    stores = [
        path
        for path, command in leaves(cli, "fastenough")
        if path.split()[1] == name and any(option.name == "store_path" for option in command.params)
    ]
    assert not stores or "FILES fastenough-data" in said
    assert _words(COMMANDS[name][1].rstrip(".")) in said
    assert _words(COMMANDS[name][1]) in read("fastenough.1")


@pytest.mark.parametrize("name", ["fastenough-probe", "fastenough-monitor", "fastenough-inject"])
def test_a_program_says_in_its_page_what_its_help_says(
    name: str, read: Callable[[str], str], programs: dict[str, str]
) -> None:
    listed = json.loads(
        subprocess.run([programs[name], "--list-json"], text=True, capture_output=True, check=True).stdout
    )
    watches = all(probe["watches"] for probe in listed["probes"])
    options = [
        *(option for probe in listed["probes"] for option in probe["options"]),
        *(option for option in listed["options"] if not (watches and option["acts"])),
    ]
    said = read(f"{name}.8")
    assert options
    for option in options:
        assert re.search(rf"--{option['name']}\b", said), option["name"]
        assert _words(option["help"]) in said
    assert all(probe["summary"] in said for probe in listed["probes"])


@pytest.mark.parametrize(("name", "least"), [("fastenough-publisher", 10), ("fastenough-executor", 5)])
def test_the_publisher_says_in_its_page_what_its_help_says(
    name: str, least: int, read: Callable[[str], str], programs: dict[str, str]
) -> None:
    help_text = subprocess.run([programs[name], "--help"], text=True, capture_output=True, check=True).stdout
    said = read(f"{name}.8")
    options = re.findall(r"^ +(--\S+) +(.*)", help_text, re.MULTILINE)
    assert len(options) > least and all(option in said and meaning in said for option, meaning in options)


def test_help_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(ValueError, match="neither an option"):
        list(man_pages.help_sections("Options:\n      lost\n"))
