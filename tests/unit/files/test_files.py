# SPDX-License-Identifier: GPL-2.0-or-later
"""No link is followed, nothing foreign is replaced, and a reader never hangs on what is no file."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fastenough.cli.output import new_file, replace_file
from fastenough.files import (
    Untrusted,
    changeable_by_others,
    open_regular,
    private_directory,
    read_regular,
    replace_whole,
    replacing,
)
from fastenough.model import BadInput
from tests.support.privileges import needs_root

NOBODY = 65534
as_root = needs_root("files of another user")


def test_a_link_is_neither_read_nor_replaced(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("secret")
    link = tmp_path / "link"
    link.symlink_to(victim)
    with pytest.raises(Untrusted, match="symbolic link"):
        open_regular(link)
    with pytest.raises(Untrusted, match="no regular file"):
        replace_whole(link, b"planted")
    assert victim.read_text() == "secret"


def test_a_refusal_gives_one_advice(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/dev/stdout")
    for path, advice in (
        ("link", "remove it, or name another place"),
        ("none/file", "name a file in a writable folder"),
    ):
        with pytest.raises(BadInput, match=f"cannot be written: [^;]+; {advice}$"):
            replace_file(tmp_path / path, b"")


def test_a_fifo_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(Untrusted, match="no regular file"):
        read_regular(tmp_path / "fifo", 10)


def test_a_file_longer_than_expected_is_refused(tmp_path: Path) -> None:
    (tmp_path / "long").write_bytes(b"x" * 11)
    assert len(read_regular(tmp_path / "long", 11)) == 11
    with pytest.raises(Untrusted, match="longer than"):
        read_regular(tmp_path / "long", 10)


@as_root
def test_what_belongs_to_another_user_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "theirs"
    path.write_text("theirs")
    os.chown(path, NOBODY, NOBODY)
    with pytest.raises(Untrusted, match=f"user {NOBODY}"):
        replace_whole(path, b"ours")
    assert path.read_text() == "theirs"


def test_a_failed_replacement_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    replace_whole(path, b"old")
    with pytest.raises(RuntimeError), replacing(path) as stream:
        stream.write(b"half")
        raise RuntimeError
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_private_directory_is_ours_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        assert private_directory(tmp_path / "state").stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(before)
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(Untrusted, match="written by other users"):
        private_directory(tmp_path / "open")
    (tmp_path / "link").symlink_to(tmp_path / "state")
    with pytest.raises(Untrusted, match="not a directory"):
        private_directory(tmp_path / "link")


@as_root
def test_a_planted_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    planted = tmp_path / "planted"
    planted.mkdir()
    os.chown(planted, NOBODY, NOBODY)
    with pytest.raises(Untrusted, match=f"user {NOBODY}"):
        private_directory(planted)


@contextmanager
def acting_as(user: int, group: int) -> Iterator[None]:
    os.setegid(group)
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


@pytest.fixture
def reachable(tmp_path: Path) -> Path:
    """A folder of root's on whose way any user may look around."""
    for place in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        place.chmod(0o755)
    return tmp_path


@as_root
def test_a_primary_group_that_others_have_too_is_no_protection(reachable: Path) -> None:
    """Debian's users nobody and _apt share nogroup; a checkout with umask 002 can be rewritten by either."""
    checkout = reachable / "checkout"
    checkout.mkdir()
    os.chown(checkout, NOBODY, NOBODY)
    for mode, place in ((0o775, checkout), (0o755, None)):
        checkout.chmod(mode)
        with acting_as(NOBODY, NOBODY):
            assert changeable_by_others(checkout / "guard.py") == place


@as_root
def test_a_group_of_this_users_own_is_none_of_others(reachable: Path) -> None:
    own = reachable / "own"
    own.mkdir(mode=0o775)
    own.chmod(0o775)
    assert changeable_by_others(own) is None


@as_root
def test_every_hop_of_a_chain_of_links_is_checked(reachable: Path) -> None:
    """first -> theirs/second -> program: whoever owns the folder in between decides what runs."""
    theirs, program = reachable / "theirs", reachable / "program"
    theirs.mkdir()
    program.touch()
    (theirs / "second").symlink_to(program)
    (reachable / "first").symlink_to(theirs / "second")
    assert changeable_by_others(reachable / "first") is None
    theirs.chmod(0o777)
    assert changeable_by_others(reachable / "first") == theirs
    theirs.chmod(0o755)
    os.chown(theirs, NOBODY, NOBODY)
    assert changeable_by_others(reachable / "first") == theirs


def test_links_in_a_circle_come_to_an_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="Too many levels"):
        changeable_by_others(tmp_path / "a")


@as_root
def test_a_list_of_further_users_is_no_protection(reachable: Path) -> None:
    """acl(5): the mode of the file below says no more than that its group, root's, may write."""
    program, entry = reachable / "program", struct.Struct("<HHI")
    program.touch(mode=0o644)
    names = {"owner": 0x01, "user": 0x02, "group": 0x04, "mask": 0x10, "others": 0x20}
    for mask, place in ((4, None), (6, program)):
        rights = [("owner", 6, -1), ("user", 6, NOBODY), ("group", 4, -1), ("mask", mask, -1), ("others", 4, -1)]
        try:
            os.setxattr(
                program,
                "system.posix_acl_access",
                struct.pack("<I", 2)
                + b"".join(entry.pack(names[who], may, number & 0xFFFFFFFF) for who, may, number in rights),
            )
        except OSError as error:
            pytest.skip(f"this file system has no such lists: {error.strerror}")
        assert changeable_by_others(program) == place


@pytest.mark.parametrize("links", [True, False])
def test_a_new_file_replaces_none_that_was_made_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "no hard links here")

    if not links:
        monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "file"
    with pytest.raises(BadInput, match="exists"), new_file(path) as stream:
        stream.write(b"new")
        path.write_bytes(b"theirs")
    assert (path.read_bytes(), list(tmp_path.iterdir())) == (b"theirs", [path])
    path.unlink()
    with new_file(path) as stream:
        stream.write(b"new")
    assert (path.read_bytes(), list(tmp_path.iterdir())) == (b"new", [path])
