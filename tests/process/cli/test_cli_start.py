# SPDX-License-Identifier: GPL-2.0-or-later
"""The list of all commands is there at once: none of them is loaded for it."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest

from fastenough.cli import COMMANDS, cli
from tests.process.store.test_store_listing import HEAVY

pytestmark = pytest.mark.untimed

_LOADED = """
import atexit, sys
atexit.register(lambda: print("loaded", *sys.modules, file=sys.stderr))
from fastenough.cli import main
main(sys.argv[1:])
"""


def _loaded(argument: str, *more: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", _LOADED, argument, *more], text=True, capture_output=True, check=True)
    said, *modules = done.stderr.split()
    assert said == "loaded"
    return set(modules)


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_no_command_is_loaded_to_list_them(argument: str) -> None:
    assert not {module for module, _ in COMMANDS.values()} & _loaded(argument)


def test_nothing_heavy_is_loaded_for_the_help_of_a_light_command() -> None:
    assert not HEAVY & _loaded("list", "--help")


@pytest.mark.parametrize("command", ["check", "hunt"])
def test_help_waits_for_nothing_that_only_results_need(command: str) -> None:
    assert not {"scipy.stats", "sqlalchemy", "matplotlib", "pyarrow"} & _loaded(command, "--help")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_of_each_what_its_own_help_says(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    first, _, _ = (command.help or "").partition("\n\n")
    assert COMMANDS[name][1] == " ".join(first.split())
