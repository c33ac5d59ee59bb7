# SPDX-License-Identifier: GPL-2.0-or-later
"""What exists is documented, and what the documents point to exists."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

import click
import pytest

from fastenough.cli import COMMANDS, cli
from fastenough.facts import FACTS
from fastenough.loads import LOADS
from fastenough.settings import SETTINGS
from tests.process.probe.test_probe_runs import GRID_METHODS, RELATIVE_METHODS
from tests.support import worked_example
from tests.support.documented import PAGES, ROOT, WHOLE, documented_commands, is_incomplete

pytestmark = pytest.mark.untimed

EVERYTHING = "\n".join(PAGES.values())
SCHEMA = json.loads((ROOT / "format" / "recording-2.schema.json").read_text())
RECORD_TYPES = [choice["$ref"].rpartition("/")[2] for choice in SCHEMA["oneOf"]]


def probe_names() -> list[str]:
    """The list of acts, read as text: one ``'name': {'needs': ...`` a line."""
    registry = (ROOT / "target" / "probe" / "acts" / "meson.build").read_text()
    return [name.replace("_", "-") for name in re.findall(r"^  '(\w+)': \{'needs'", registry, re.MULTILINE)]


def test_the_registry_is_as_the_probe_says(probe_binary: Path) -> None:
    said = subprocess.run([str(probe_binary), "--help"], text=True, capture_output=True, check=True).stdout
    assert probe_names()
    assert [name for name in probe_names() if not re.search(rf"^\s+{name}\b", said, re.MULTILINE)] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_are_documented(name: str) -> None:
    assert f"`fastenough {name}`" in PAGES["commands.md"]


@pytest.mark.parametrize("page", sorted(PAGES.keys() - {"README.md"}))
def test_the_readme_leads_to_every_page(page: str) -> None:
    assert f"](docs/{page})" in PAGES["README.md"]


@pytest.mark.parametrize("name", probe_names())
def test_probes_are_documented(name: str) -> None:
    assert f"`{name}`" in EVERYTHING


@pytest.mark.parametrize("name", LOADS)
def test_loads_are_documented(name: str) -> None:
    assert f"`{name}`" in PAGES["loads.md"]


@pytest.mark.parametrize("name", RECORD_TYPES)
def test_record_types_are_documented(name: str) -> None:
    assert f"### `{name}`" in PAGES["format.md"]


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_are_documented(name: str) -> None:
    assert f"`{name}`" in PAGES["settings.md"]


@pytest.mark.parametrize("name", [fact.name for fact in FACTS])
def test_facts_are_documented(name: str) -> None:
    assert f"`{name}`" in PAGES["facts.md"]


@pytest.mark.parametrize(("kind", "methods"), [("absolute", GRID_METHODS), ("[Rr]elative", RELATIVE_METHODS)])
def test_methods_are_said_to_be_what_they_are(kind: str, methods: list[str]) -> None:
    said = re.search(rf"{kind} methods \(([^)]*)\)", PAGES["method.md"])
    assert said and sorted(re.findall(r"`([^`]+)`", said[1])) == sorted(methods)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    folder = ROOT if page == "README.md" else ROOT / "docs"
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", PAGES[page])
    assert [target for target in targets if not (folder / target).exists()] == []


def test_documents_named_in_the_help_exist() -> None:
    named = {
        name
        for source in (ROOT / "fastenough").rglob("*.py")
        for name in re.findall(r"\bdocs/\w[\w-]*\.md", source.read_text())
    }
    assert named
    assert sorted(name for name in named if not (ROOT / name).exists()) == []


_LOAD = 'name = "own"\nsource = "x"\ncommands = [["true"]]\n'


@pytest.mark.parametrize(("page", "words"), sorted(set(documented_commands())))
def test_documented_commands_are_taken(page: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their options, values and number of arguments; what they need beyond that is not looked at."""
    if is_incomplete(words):
        return
    assert not re.search(r"\b(cpu=|--cpus )[1-9]|governor=", words), "not every machine has that"
    monkeypatch.chdir(tmp_path)
    for name in ("camera.toml", "worst.toml", "trace.dat", "FILE", "arch/arm64/boot/Image"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(_LOAD)
    worked_example.write_files(tmp_path)
    (tmp_path / "modules").mkdir()
    command: click.Command = cli
    arguments = shlex.split(words.partition(">")[0])
    context = click.Context(cli)
    while isinstance(command, click.Group) and arguments and not arguments[0].startswith("-"):
        below = command.get_command(context, arguments.pop(0))
        assert below is not None, words
        command, context = below, click.Context(below, parent=context)
    if arguments or words in WHOLE:
        command.make_context(words, arguments)


def test_the_probe_shown_in_adding_compiles(tmp_path: Path) -> None:
    shown = re.search(r"```c\n(.*?)```", PAGES["adding.md"], re.DOTALL)
    assert shown
    source = tmp_path / "yield.c"
    source.write_text(shown[1])
    probe = ROOT / "target" / "probe"
    subprocess.run(
        [
            "cc",
            "-std=gnu11",
            "-D_GNU_SOURCE",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-fsyntax-only",
            f"-I{probe / 'frame'}",
            f"-I{probe / 'platform' / 'linux'}",
            f"-I{ROOT / 'format'}",
            str(source),
        ],
        check=True,
    )
