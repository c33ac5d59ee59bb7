# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough completion``: what makes a shell complete commands, options and their values.

click's own mechanism: the shell starts the program with ``VARIABLE`` set, which answers instead of running a command.
"""

from __future__ import annotations

import os
from typing import Any

import click
from click import shell_completion

from fastenough.cli.output import print_json, write_raw
from fastenough.cli.parameters import json_option

PROGRAM = "fastenough"
VARIABLE = "_FASTENOUGH_COMPLETE"
SHELLS = ("bash", "zsh", "fish")


def answer(cli: click.Command) -> int:
    """Print what can follow the words that the shell has set; its exit status."""
    return shell_completion.shell_complete(cli, {}, PROGRAM, VARIABLE, os.environ[VARIABLE])


def script(cli: click.Command, shell: str) -> str:
    """What the shell reads once, to ask from then on."""
    kind = shell_completion.get_completion_class(shell)
    assert kind is not None
    completion: Any = kind(cli, {}, PROGRAM, VARIABLE)
    return str(completion.source()).strip() + "\n"


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@json_option
@click.pass_context
def command(ctx: click.Context, shell: str, as_json: bool) -> None:
    """Print what makes SHELL complete the words of fastenough.

    For this session of bash: eval "$(fastenough completion bash)"; for good, put the line into ~/.bashrc. zsh: the same
    in ~/.zshrc, behind compinit. fish: fastenough completion fish > ~/.config/fish/completions/fastenough.fish
    """
    said = script(ctx.find_root().command, shell)
    if as_json:
        print_json({"shell": shell, "script": said})
    else:
        write_raw(said.encode())
