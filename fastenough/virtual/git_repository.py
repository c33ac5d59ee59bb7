# SPDX-License-Identifier: GPL-2.0-or-later
"""A git repository whose commits are built: its history, and checkouts outside of it.

Nothing is written to the repository: a checkout borrows its objects.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fastenough.model import BadInput, FastenoughError, NotApplicable
from fastenough.virtual.packages import require_space

_LOCAL_VARIABLES = {
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_PREFIX",
}
"""Variables that name a repository, as in the environment of hooks."""
_OWN_CONFIGURATION = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_ATTR_NOSYSTEM": "1"}
"""Environment of checkouts: a user's hooks, filters and ends of lines would change what is built."""


@dataclass(frozen=True)
class GitRepository:
    """``objects``: absolute path of its folder of objects, ``object_format``: their hash.  Commits are full ids."""

    path: Path
    objects: Path
    object_format: str

    def resolve(self, revision: str) -> str:
        """The commit of a revision; raises BadInput if there is none."""
        arguments = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        found = _git(self.path, *arguments)
        if found.returncode or found.stdout.startswith("^"):
            raise BadInput(f"{self.path}: no commit {revision!r}; see: git log --oneline")
        return found.stdout.strip()

    def subject(self, commit: str) -> str:
        """The first line of the message."""
        return self._read("log", "-1", "--no-show-signature", "--format=%s", commit).strip()

    def parents(self, commit: str) -> list[str]:
        """The parents, first parent first."""
        return self._read("rev-list", "--parents", "-1", commit).split()[1:]

    def merge_bases(self, first: str, second: str) -> list[str]:
        """The best common ancestors of two commits, none without common history."""
        return _git(self.path, "merge-base", "--all", first, second).stdout.split()

    def candidates(self, bad: str, good: Sequence[str]) -> list[str]:
        """The ancestors of a commit, itself included, that are no ancestors of ``good``; first the one that halves them
        best."""
        lines = self._read("rev-list", "--bisect-all", bad, "--not", *good).splitlines()
        return [line.split()[0] for line in lines]

    def check_out(self, commit: str, folder: Path) -> None:
        """Make a folder, which is used for nothing else, the tree of a commit.

        Files that have the same content in the commit checked out before are not written, so that they are not
        compiled again.
        """
        for lock in (folder / ".git").glob("*.lock"):  # left by a git that was killed
            lock.unlink()
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder, "init", "--quiet", "--template=", f"--object-format={self.object_format}")
        alternates = folder / ".git" / "objects" / "info" / "alternates"
        alternates.parent.mkdir(exist_ok=True)
        alternates.write_text(f"{self.objects}\n")
        _write(folder, "checkout", "--quiet", "--force", "--detach", commit)
        _write(folder, "clean", "--quiet", "-ffdx")

    def _read(self, *arguments: str) -> str:
        return _require(_git(self.path, *arguments), self.path)


def open_repository(path: Path) -> GitRepository:
    """The repository of a folder, bare or with a work tree.

    Raises BadInput with git's reason if it is none, NotApplicable without git.
    """
    if shutil.which("git") is None:
        raise NotApplicable("git is missing; run: apt-get install git")
    if not path.is_dir():
        raise BadInput(f"{path}: no such directory; name a git repository")
    found = _git(path, "rev-parse", "--show-object-format", "--git-path", "objects")
    if found.returncode:
        raise BadInput(f"{path}: not a git repository that can be read: {' '.join(found.stderr.split())}")
    object_format, objects = found.stdout.strip().split("\n", 1)
    return GitRepository(path.resolve(), (path / objects).resolve(), object_format)


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run git on a user's repository."""
    environment = {name: value for name, value in os.environ.items() if name not in _LOCAL_VARIABLES}
    return _run(folder, arguments, environment)


def _write(folder: Path, *arguments: str) -> None:
    """Run git on a checkout, without the user's configuration, and never on a repository around it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    place = {"GIT_DIR": str(folder / ".git"), "GIT_WORK_TREE": str(folder)}
    attributes = ("-c", f"core.attributesFile={os.devnull}")
    _require(_run(folder, (*attributes, *arguments), environment | _OWN_CONFIGURATION | place), folder)


def _run(folder: Path, arguments: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", "-C", str(folder), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        env={**environment, "LC_ALL": "C"},
        close_fds=False,
    )


def _require(done: subprocess.CompletedProcess[str], folder: Path) -> str:
    """The output of a git that succeeded; raises OSError on a full disk, else FastenoughError with its last line."""
    if done.returncode:
        require_space(done.stderr, folder)
        raise FastenoughError(f"git: {_reason(done)}")
    return done.stdout


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines else f"exit status {done.returncode}"
