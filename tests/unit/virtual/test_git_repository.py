# SPDX-License-Identifier: GPL-2.0-or-later
"""Checkouts of commits outside of their repository, to which nothing is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastenough.model import BadInput, FastenoughError, NotApplicable
from fastenough.virtual.git_repository import open_repository
from tests.support.git_history import Commit, git, make_history

pytestmark = pytest.mark.check

HISTORY = [
    Commit("one", (), {"same": "same", "changed": "1", "removed": "x", ".gitignore": "*.o\n"}),
    Commit("two", ("one",), {"changed": "2", "removed": None, "folder/new": "n"}),
]


def contents(folder: Path, without: str = "") -> dict[str, bytes]:
    """The content of each file, by path."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    named = {str(path.relative_to(folder)): path.read_bytes() for path in files}
    return {name: content for name, content in named.items() if not without or not name.startswith(without)}


def test_a_dirty_repository_stays_as_it_is(tmp_path: Path) -> None:
    user = tmp_path / "user"
    ids = make_history(user, HISTORY)
    git(user, "checkout", "--quiet", "one")
    (user / "changed").write_text("mine")
    (user / "staged").write_text("s")
    git(user, "add", "staged")
    (user / "untracked.o").touch()
    before = contents(user)
    repository = open_repository(user)
    for name in ("one", "two"):
        repository.check_out(ids[name], tmp_path / "checkout")
        repository.candidates(ids["two"], [ids["one"]])
    assert contents(user) == before
    assert contents(tmp_path / "checkout", ".git/") == {
        ".gitignore": b"*.o\n",
        "changed": b"2",
        "folder/new": b"n",
        "same": b"same",
    }


def test_a_file_that_two_commits_share_is_not_written_again(tmp_path: Path) -> None:
    ids, folder = make_history(tmp_path / "user", HISTORY), tmp_path / "checkout"
    repository = open_repository(tmp_path / "user")
    repository.check_out(ids["one"], folder)
    before = {name: (folder / name).stat().st_mtime_ns for name in ("same", "changed")}
    repository.check_out(ids["two"], folder)
    assert [(folder / name).stat().st_mtime_ns == before[name] for name in before] == [True, False]


def test_what_an_interrupted_checkout_left_does_no_harm(tmp_path: Path) -> None:
    ids, folder = make_history(tmp_path / "user", HISTORY), tmp_path / "checkout"
    repository = open_repository(tmp_path / "user")
    repository.check_out(ids["one"], folder)
    for name in ("index.lock", "HEAD.lock"):
        (folder / ".git" / name).touch()
    (folder / "folder").mkdir()
    (folder / "folder" / "left.o").touch()
    (folder / "changed").write_text("half")
    repository.check_out(ids["one"], folder)
    assert contents(folder, ".git/") == {name: text.encode() for name, text in HISTORY[0].files.items() if text}


def test_an_interrupted_creation_is_completed(tmp_path: Path) -> None:
    ids, folder = make_history(tmp_path / "user", HISTORY), tmp_path / "checkout"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/work\n")
    open_repository(tmp_path / "user").check_out(ids["two"], folder)
    assert (folder / "changed").read_text() == "2"


def test_a_repository_around_a_damaged_checkout_stays_as_it_is(tmp_path: Path) -> None:
    user = tmp_path / "user"
    ids, folder = make_history(user, HISTORY), user / "cache" / "checkout"
    git(user, "checkout", "--quiet", "one")
    (user / "changed").write_text("mine")
    (folder / ".git" / "objects" / "info").mkdir(parents=True)
    (folder / ".git" / "HEAD").touch()
    with pytest.raises(FastenoughError):
        open_repository(user).check_out(ids["two"], folder)
    assert (user / "changed").read_text() == "mine"


def test_a_full_disk_is_no_fault_of_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = make_history(tmp_path / "user", HISTORY)
    repository = open_repository(tmp_path / "user")
    (tmp_path / "git").write_text("#!/bin/sh\necho 'fatal: write error: No space left on device' >&2; exit 128\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(OSError, match="No space left on device"):
        repository.check_out(ids["one"], tmp_path / "checkout")


def test_the_configuration_of_the_user_does_not_change_a_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids, hook, ran = make_history(tmp_path / "user", HISTORY), tmp_path / "hook", tmp_path / "ran"
    hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
    hook.chmod(0o755)
    settings = f"[core]\nautocrlf = true\nfsmonitor = {hook}\n[init]\ntemplateDir = {tmp_path}\n"
    (tmp_path / ".gitconfig").write_text(settings)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_DEFAULT_HASH", "sha256")
    for name in ("one", "two"):
        open_repository(tmp_path / "user").check_out(ids[name], tmp_path / "checkout")
    assert (tmp_path / "checkout" / ".gitignore").read_bytes() == b"*.o\n"
    assert not ran.exists()


def test_a_repository_may_use_sha_256(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--object-format=sha256", "user")
    (tmp_path / "user" / "new").write_text("n")
    git(tmp_path / "user", "add", "new")
    git(tmp_path / "user", "commit", "--quiet", "--message=one")
    repository = open_repository(tmp_path / "user")
    repository.check_out(repository.resolve("HEAD"), tmp_path / "checkout")
    assert (tmp_path / "checkout" / "new").read_text() == "n"


def test_the_environment_of_a_hook_does_not_lead_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = make_history(tmp_path / "user", HISTORY)
    make_history(tmp_path / "other", [Commit("other")])
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "other"))
    repository = open_repository(tmp_path / "user")
    repository.check_out(ids["two"], tmp_path / "checkout")
    assert (tmp_path / "checkout" / "folder" / "new").read_text() == "n"
    assert not (tmp_path / "other" / "changed").exists()


def test_a_bare_repository_and_a_folder_within_one_are_repositories(tmp_path: Path) -> None:
    ids = make_history(tmp_path / "user", HISTORY)
    git(tmp_path, "clone", "--quiet", "--bare", "user", "bare.git")
    (tmp_path / "user" / "folder").mkdir()
    for path in (tmp_path / "bare.git", tmp_path / "user" / "folder", tmp_path / "user" / ".git"):
        repository = open_repository(path)
        assert repository.subject(ids["two"]) == "two" and repository.parents(ids["two"]) == [ids["one"]]
        repository.check_out(ids["two"], tmp_path / f"of-{path.name}")


def test_what_is_no_repository_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(BadInput, match=str(path)):
            open_repository(path)
    make_history(tmp_path, HISTORY)
    with pytest.raises(FastenoughError, match="not a tree"):
        open_repository(tmp_path).check_out("0" * 40, tmp_path / "checkout")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotApplicable, match="git is missing"):
        open_repository(tmp_path)
