# SPDX-License-Identifier: GPL-2.0-or-later
"""Classes of commands and options: examples, lazily loaded groups, suggestions, former names of options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

Commands = Mapping[str, tuple[str, str]]
"""Command name to its module, as ``module`` or ``module:attribute``, and the first sentence of its help."""


class Option(click.Option):
    """An option with former names, which are accepted and not shown.  It takes a value."""

    def __init__(self, *arguments: Any, former_names: Sequence[str] = (), **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.former_names = tuple(former_names)

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        super().add_to_parser(parser, ctx)
        if self.former_names:
            parser.add_option(obj=self, opts=list(self.former_names), dest=self.name, action="store", nargs=self.nargs)


class Command(click.Command):
    """A command whose help ends in an example; an unknown option gets the nearest ones that the help shows."""

    def __init__(self, *arguments: Any, example: str = "", **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.example = example

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            possibilities = [name for option in self.get_params(ctx) for name in (*option.opts, *option.secondary_opts)]
            raise click.NoSuchOption(error.option_name, possibilities=possibilities, ctx=ctx) from None

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        if self.example:
            with formatter.section("Example"):
                formatter.write(f"{' ' * formatter.current_indent}{self.example}\n")


class Group(Command, click.Group):
    """A group of commands with examples; an unknown command gets the nearest ones."""

    command_class = Command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            raise click.exceptions.NoSuchCommand(
                error.command_name, possibilities=self.list_commands(ctx), ctx=ctx
            ) from None


class LazyGroup(Group):
    """``sections``: heading to commands; the list of commands is shown without loading any."""

    def __init__(self, *arguments: Any, sections: Mapping[str, Commands], **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._sections = sections

    @property
    def _entries(self) -> Commands:
        return {name: entry for commands in self._sections.values() for name, entry in commands.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._entries:
            return None
        module, _, attribute = self._entries[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute or "command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self._entries))
        for heading, commands in self._sections.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), summary) for name, (_, summary) in commands.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        names = [
            CompletionItem(name, help=summary)
            for name, (_, summary) in self._entries.items()
            if name.startswith(incomplete)
        ]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]
