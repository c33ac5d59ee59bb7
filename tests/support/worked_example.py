# SPDX-License-Identifier: GPL-2.0-or-later
"""The worked example of the documents: its files, its commands, and what they print, compared with what it shows.

A command line follows ``$``, its output is in the lines below it.  ``…`` stands for any text: alone on a line for any
number of lines.  Ids of runs and campaigns differ each time.  An id of the page stands for the id that was printed in
its place.  The page names each file before the block with its content.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

from fastenough.virtual.custom_kernels import find_kernel
from fastenough.virtual.deterministic import emulator_of
from fastenough.virtual.module import cross_compiler
from fastenough.virtual.packages import file_hash
from tests.support.cli_calls import command_line
from tests.support.documented import PAGES

PAGE = "worked-example.md"
TIMEOUT_S = 3600.0
_ARCH = "arm64"
_DIGITS = 16
_FILE = re.compile(r"`([\w-]+\.toml)`[^`]*:\n\n```toml\n(.*?)```", re.DOTALL)
_SESSION = re.compile(r"```\n(\$ .*?)```", re.DOTALL)
_ID = r"(?:[a-z]+-)*\d{8}T\d{6}\d*Z-[0-9a-f]{4,6}"
_OMITTED = {"…\n": "(?:.*\n)*?", "…": ".*"}
_TOKEN = re.compile(f"({_ID}|^…\n|…)", re.MULTILINE)
_LONG = re.compile(r"^hunt |(worst|first-look)\.toml")
"""Campaigns under load, which take minutes, and the hunt, which takes half an hour."""


@dataclass(frozen=True)
class Step:
    """A command of the page without its prompt, and the output that the page shows."""

    line: str
    shown: str

    @property
    def words(self) -> str:
        """The words after ``fastenough``; empty for another program."""
        return self.line.removeprefix("fastenough ") if self.line.startswith("fastenough ") else ""

    @property
    def is_long(self) -> bool:
        """Whether it takes long: only the bench runs it, and what comes after it."""
        return bool(_LONG.search(self.words))

    def pattern(self) -> re.Pattern[str]:
        """What its output must match; the groups are the ids of the page, in their order."""
        return re.compile("".join(map(_pattern_of, _TOKEN.split(self.shown))))

    @property
    def ids(self) -> list[str]:
        return re.findall(_ID, self.shown)


def _pattern_of(text: str) -> str:
    """The pattern of an id, of one of the two kinds of omissions, or of text between them."""
    if text in _OMITTED:
        return _OMITTED[text]
    return f"({_ID})" if re.fullmatch(_ID, text) else re.escape(text)


def steps() -> Iterator[Step]:
    """The commands of the page, in their order."""
    for session in _SESSION.findall(PAGES[PAGE]):
        for command in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
            line, _, shown = command.replace("\\\n", "").partition("\n")
            yield Step(" ".join(line.split()), shown)


def short_steps() -> Iterator[Step]:
    """The commands before the first that takes long; later ones depend on its runs."""
    return takewhile(lambda step: not step.is_long, steps())


def write_files(folder: Path) -> None:
    """Write the files that the page shows."""
    for name, content in _FILE.findall(PAGES[PAGE]):
        (folder / name).write_text(content)


@dataclass
class Reader:
    """A reader of the page who types its commands in a folder.  ``ids``: id that was printed, by that of the page."""

    folder: Path
    ids: dict[str, str] = field(default_factory=dict)

    def output(self, step: Step) -> str:
        """What a command prints: first its progress and errors, then its result."""
        line = re.sub(_ID, lambda match: self.ids.get(match[0], match[0]), step.line)
        if step.words:
            done = command_line(*shlex.split(line)[1:], cwd=self.folder, timeout_s=TIMEOUT_S)
        else:
            done = subprocess.run(["sh", "-c", line], cwd=self.folder, capture_output=True, text=True, check=False)
        return done.stderr + done.stdout

    def agrees(self, step: Step, output: str) -> bool:
        """Whether the page shows this output; stores the ids in it."""
        match = step.pattern().fullmatch(output)
        if match:
            self.ids.update(zip(step.ids, match.groups(), strict=True))
        return match is not None

    def assign_in_order(self, step: Step, output: str) -> None:
        """Store the ids in an output that differs from the page in their order, so that later commands find them."""
        self.ids.update(zip(dict.fromkeys(step.ids), dict.fromkeys(re.findall(_ID, output)), strict=False))


def versions() -> list[str]:
    """The rows of the page's table of versions, as they are on this machine."""
    kernels = {name: find_kernel(name) for name in ("stock", "rt")}
    emulator = emulator_of(kernels["stock"].machine)
    compiler = cross_compiler(_ARCH)
    program, library = (Path(_printed(compiler, f"-print-{kind}")) for kind in ("prog-name=cc1", "file-name=libc.a"))
    release = _printed("dpkg-query", "-W", "-f", "${Version}", "libc6-dev-arm64-cross")
    return [
        _row(emulator["program"], emulator["version"], emulator["sha256"]),
        *(_row(f"kernel {name}", kernel.release, file_hash(kernel.image)) for name, kernel in kernels.items()),
        _row("busybox", "Debian's, of the kernels' release", file_hash(kernels["stock"].busybox)),
        _row(
            compiler,
            _printed(compiler, "-dumpfullversion"),
            file_hash(program),
        ),
        _row("libc.a of arm64", release, file_hash(library)),
    ]


def _row(name: str, version: str, sha256: str) -> str:
    return f"| `{name}` | {version} | `{sha256[:_DIGITS]}` |"


def _printed(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def other_versions() -> list[str]:
    """The rows of this machine that the page does not have."""
    return [row for row in versions() if row not in PAGES[PAGE].splitlines()]
