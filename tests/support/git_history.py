# SPDX-License-Identifier: GPL-2.0-or-later
"""Git repositories whose commits are made to measure."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_IDENTITY = {f"GIT_{who}_{what}": "test" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


@dataclass(frozen=True)
class Commit:
    """A commit by its name, with the names of its parents and the files that it changes (None: removes)."""

    name: str
    parents: Sequence[str] = ()
    files: Mapping[str, str | None] = field(default_factory=dict)


def git(folder: Path, *arguments: str, text: str = "") -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        input=text,
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | _IDENTITY,
    )
    return done.stdout


def make_history(folder: Path, commits: Sequence[Commit]) -> dict[str, str]:
    """A repository without a checkout; each commit is a branch of its name.  Returns the ids by name."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet", "--initial-branch=work")
    git(folder, "fast-import", "--quiet", text="".join(map(_imported, commits)))
    lines = git(folder, "for-each-ref", "--format=%(refname:short) %(objectname)").splitlines()
    return dict(line.split() for line in lines)


def _imported(commit: Commit) -> str:
    """The commit as input of git fast-import."""
    origin = "".join(
        f"{word} refs/heads/{parent}\n"
        for word, parent in zip(["from", *["merge"] * len(commit.parents)], commit.parents, strict=False)
    )
    files = "".join(
        f"D {path}\n" if content is None else f"M 100644 inline {path}\n{_data(content)}"
        for path, content in commit.files.items()
    )
    head = f"commit refs/heads/{commit.name}\ncommitter test <test> 1767225600 +0000\n{_data(commit.name)}"
    return f"{head}{origin}{files}\n"


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}\n"
