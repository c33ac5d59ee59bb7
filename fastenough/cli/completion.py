# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough completion``: a script with which a shell completes commands, options and their values.

click's own mechanism: the shell starts the program with ``VARIABLE`` set, which answers instead of running a command.
"""

from __future__ import annotations

import os
from typing import Any

import click
from click import shell_completion

from fastenough.cli.commands import Command
from fastenough.cli.options import json_option
from fastenough.cli.output import print_json, write_raw

PROGRAM = "fastenough"
VARIABLE = "_FASTENOUGH_COMPLETE"
SHELLS = ("bash", "zsh", "fish")


def answer(cli: click.Command) -> int:
    """Print the completions of the words that the shell has set; returns the exit status."""
    return shell_completion.shell_complete(cli, {}, PROGRAM, VARIABLE, os.environ[VARIABLE])


def script(cli: click.Command, shell: str) -> str:
    """The script that the shell reads once."""
    kind = shell_completion.get_completion_class(shell)
    assert kind is not None
    completion: Any = kind(cli, {}, PROGRAM, VARIABLE)
    return str(completion.source()).strip() + "\n"


@click.command(cls=Command, example='eval "$(fastenough completion bash)"')
@click.argument("shell", type=click.Choice(SHELLS))
@json_option
@click.pass_context
def command(ctx: click.Context, shell: str, as_json: bool) -> None:
    """Print a shell completion script.

    For bash add the line of the example to ~/.bashrc, for zsh the same with zsh to ~/.zshrc, after compinit.  For
    fish: fastenough completion fish > ~/.config/fish/completions/fastenough.fish
    """
    text = script(ctx.find_root().command, shell)
    if as_json:
        print_json({"shell": shell, "script": text})
    else:
        write_raw(text.encode())
