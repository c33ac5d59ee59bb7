# SPDX-License-Identifier: GPL-2.0-or-later
"""Manual pages, generated from the help of the commands.

``python packaging/man_pages.py OUT [PROGRAM...]``: into the folder OUT a page of section 1 for each command of
fastenough, and one of section 8 for each PROGRAM, a file whose ``--help`` is that of the probe or the monitor.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import click

from fastenough import __version__
from fastenough.cli import COMMANDS, SECTIONS, cli
from fastenough.cli.commands import Commands
from fastenough.cli.monitor import RING
from fastenough.model import ExitStatus

_ITEM = re.compile(r"  ((?:-\S,| {3}) --\S+(?: \.\.| \[\.\.\])?|\S+) +(\S.*)")
"""An option or a name, and its meaning."""
_STATUSES = {
    ExitStatus.DONE: "success, PASS, or no limit given",
    ExitStatus.FAIL: "FAIL",
    ExitStatus.BAD_INPUT: "wrong usage or bad input",
    ExitStatus.INCONCLUSIVE: "INCONCLUSIVE",
    ExitStatus.BROKEN: "BROKEN, a failed run, an error of the machine, or an internal error",
    ExitStatus.NOT_APPLICABLE: "not applicable here",
}
_FILES: dict[object, str] = {
    Path("fastenough-data"): "the store: the runs and their index",
    Path("report"): "the directory of the report; its first page is index.html",
    Path("fastenough-data/tokens.json"): "the hashes of the upload tokens",
    Path("fastenough-data/fleet-users.json"): "the users of the NATS server of a fleet, with the hashes of passwords",
    RING: "the ring of recordings of the service on a board",
}
"""Defaults of options that name a file or directory, and what that is."""
COMMANDS_SECTION, PROGRAMS_SECTION = 1, 8
"""Of the manual: the command ``fastenough monitor`` and the program fastenough-monitor have pages of the same name."""


_ESCAPES = {"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti", "|": "|\\:"}
"""Characters that roff would replace, and where a line may be broken."""


@dataclass
class Section:
    """A part of a page: text, then terms with their meanings."""

    title: str
    paragraphs: list[str] = field(default_factory=list)
    items: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Page:
    name: str
    number: int
    summary: str
    sections: list[Section]


def _escaped(text: str) -> str:
    plain = "".join(_ESCAPES.get(character, character) for character in text)
    return re.sub(r"(?m)^\.", r"\\&.", plain)


def roff(page: Page) -> str:
    """The page in the language of man(7)."""
    lines = [
        f'.TH {page.name.upper()} {page.number} "" "fastenough {__version__}" "fastenough"',
        ".ad l",
        ".SH NAME",
        f"{_escaped(page.name)} \\- {_escaped(page.summary)}",
    ]
    for section in (one for one in page.sections if one.paragraphs or one.items):
        lines.append(f'.SH "{_escaped(section.title)}"')
        for paragraph in section.paragraphs:
            lines += [".PP", _escaped(paragraph)]
        for term, meaning in section.items:
            lines += [".TP", f".B {_escaped(term)}", _escaped(meaning)]
    return "\n".join(lines) + "\n"


def _sentences(text: str) -> list[str]:
    return [" ".join(paragraph.split()) for paragraph in text.replace("\b", "").split("\n\n")]


def _summary(said: str) -> str:
    return said.rstrip(".")


def _beginning() -> click.Context:
    return click.Context(cli, info_name="fastenough", **cli.context_settings)


def _options(command: click.Command, context: click.Context) -> list[tuple[str, str]]:
    records = (
        parameter.get_help_record(context)
        for parameter in command.get_params(context)
        if isinstance(parameter, click.Option)
    )
    return [record for record in records if record is not None]


def _usage(command: click.Command, context: click.Context) -> str:
    return " ".join([context.command_path, *command.collect_usage_pieces(context)])


def _below(group: click.Group, context: click.Context) -> Iterator[Section]:
    """The commands of a group, and those of groups in it."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context)
        yield Section(
            inner.command_path, [_usage(command, inner), *_sentences(command.help or "")], _options(command, inner)
        )
        if isinstance(command, click.Group):
            yield from _below(command, inner)


def _with_those_below(command: click.Command, context: click.Context) -> Iterator[click.Command]:
    """The command, and all commands of groups."""
    yield command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from _with_those_below(below, context)


def _exit_status() -> Section:
    statuses = [(str(status.value), meaning) for status, meaning in _STATUSES.items()]
    return Section("EXIT STATUS", [], [*statuses, ("128 + N", "ended by signal N")])


def _files(commands: Iterable[click.Command]) -> list[tuple[str, str]]:
    """The files and directories that options of the commands have as defaults."""
    return [
        (str(default), meaning)
        for default, meaning in _FILES.items()
        if any(parameter.default == default for command in commands for parameter in command.params)
    ]


def command_page(name: str) -> Page:
    """The manual page of one command of fastenough, from its help."""
    above = _beginning()
    command = cli.get_command(above, name)
    assert command is not None
    context = click.Context(command, info_name=name, parent=above)
    first, *more = _sentences(command.help or "")
    sections = [
        Section("SYNOPSIS", [_usage(command, context)]),
        Section("DESCRIPTION", [first, *more]),
        Section("OPTIONS", [], _options(command, context)),
    ]
    if isinstance(command, click.Group):
        sections += _below(command, context)
    commands = list(_with_those_below(command, context))
    examples = [example for one in commands if (example := getattr(one, "example", ""))]
    sections += [
        _exit_status(),
        Section("FILES", [], _files(commands)),
        Section("EXAMPLES", examples),
        _see_also("fastenough(1)"),
    ]
    return Page(f"fastenough-{name}", COMMANDS_SECTION, _summary(first), sections)


def _entries(commands: Commands) -> list[tuple[str, str]]:
    return [(f"fastenough-{name}({COMMANDS_SECTION})", summary) for name, (_, summary) in commands.items()]


def first_page(programs: list[Path]) -> Page:
    """The page of ``fastenough``: its commands, exit statuses and files."""
    context = _beginning()
    return Page(
        "fastenough",
        COMMANDS_SECTION,
        _summary(_sentences(cli.help or "")[0]),
        [
            Section("SYNOPSIS", [_usage(cli, context)]),
            Section("DESCRIPTION", _sentences(cli.help or "")),
            Section("OPTIONS", [], _options(cli, context)),
            *(Section(heading.upper(), [], _entries(names)) for heading, names in SECTIONS.items()),
            _exit_status(),
            Section("FILES", [], [(str(name), meaning) for name, meaning in _FILES.items()]),
            Section("EXAMPLES", [cli.example]),
            _see_also(*(f"{program.name}({PROGRAMS_SECTION})" for program in programs)),
        ],
    )


def _see_also(*names: str) -> Section:
    return Section("SEE ALSO", [", ".join(names)] if names else [])


def help_sections(said: str) -> Iterator[Section]:
    """The help of the probe or the monitor, part by part; the first has no title."""
    section = Section("")
    for line in said.splitlines():
        item = _ITEM.fullmatch(line)
        if item:
            section.items.append((item[1].strip(), item[2]))
        elif line.startswith(" ") and section.items:
            term, meaning = section.items[-1]
            section.items[-1] = (term, f"{meaning} {line.strip()}")
        elif line.endswith(":"):
            yield section
            section = Section(line.removesuffix(":").upper())
        elif line.startswith(" "):
            raise ValueError(f"neither an option nor the rest of one: {line!r}")
        elif line:
            section.paragraphs.append(line)
    yield section


def _asked(program: Path, *words: str) -> str:
    return subprocess.run([program, *words], text=True, capture_output=True, check=True).stdout


def program_page(program: Path) -> Page:
    """The page of the probe or the monitor, from its help, with the options of each of its probes."""
    head, *sections = help_sections(_asked(program, "--help"))
    usage, summary = (line.removeprefix("Usage: ") for line in head.paragraphs)
    probes = next((section.items for section in sections if section.title == "PROBES"), [])
    for name, _ in probes:
        sections += [
            section
            for section in help_sections(_asked(program, name, "--help"))
            if section.title == f"OPTIONS OF {name.upper()}" and section.items
        ]
    return Page(
        program.name,
        PROGRAMS_SECTION,
        _summary(summary[:1].lower() + summary[1:]),
        [Section("SYNOPSIS", [usage]), *sections, _see_also("fastenough(1)")],
    )


def main(argv: list[str]) -> None:
    out, programs = Path(argv[0]), [Path(name) for name in argv[1:]]
    out.mkdir(parents=True, exist_ok=True)
    for page in [first_page(programs), *map(command_page, COMMANDS), *map(program_page, programs)]:
        (out / f"{page.name}.{page.number}").write_text(roff(page))


if __name__ == "__main__":
    main(sys.argv[1:])
