# SPDX-License-Identifier: GPL-2.0-or-later
"""A group whose commands are loaded only when they are used."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

Commands = Mapping[str, tuple[str, str]]
"""Command name to the module that defines it as ``command``, and the first sentence of its help."""


class LazyGroup(click.Group):
    """``lazily``: its commands; their list is shown without loading any."""

    def __init__(self, *arguments: Any, lazily: Commands, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._lazily = lazily

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._lazily)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._lazily:
            return None
        module, _ = self._lazily[cmd_name]
        command: click.Command = import_module(module).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in self._lazily.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        names = [
            CompletionItem(name, help=summary)
            for name, (_, summary) in self._lazily.items()
            if name.startswith(incomplete)
        ]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]
