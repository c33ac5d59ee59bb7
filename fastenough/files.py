# SPDX-License-Identifier: GPL-2.0-or-later
"""Files that another user may have touched: no link is followed, new ones are exclusive, owners are checked.

The bench may run as root beside other users.  A folder is *trusted* when no user but its owner can change it and its
owner is this user or root; a file is *expected* when it is a regular one of such an owner.
"""

from __future__ import annotations

import contextlib
import errno
import grp
import os
import pwd
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from fastenough.model import FastenoughError

_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_MOST_LINKS = 40
_UNFINISHED = re.compile(r"\.(.+)\.[0-9a-f]+\.new", re.ASCII | re.DOTALL)
_ACCESS_LIST = "system.posix_acl_access"


class Untrusted(FastenoughError):
    """A file or folder that another user controls, or that is not what it should be; nothing was done with it."""


def refusal_text(error: OSError | Untrusted, advice: str) -> str:
    """The reason why a file was not read or written, and what to do; an Untrusted error has its own advice."""
    return str(error) if isinstance(error, Untrusted) else f"{error.strerror}; {advice}"


def _require_owner(path: Path, owner: int) -> None:
    if owner not in (0, os.geteuid()):
        raise Untrusted(
            f"{path} belongs to user {owner}, not to the user who runs this ({os.geteuid()}); "
            "name another place, or run this as its owner"
        )


def others_may_write(path: Path, found: os.stat_result) -> bool:
    """Whether a file or folder lets any user but this one and root write: by its mode, as a member of its group, or
    by an access control list.
    """
    if found.st_mode & stat.S_IWOTH:
        return True
    return bool(found.st_mode & stat.S_IWGRP) and (_has_access_list(path) or not _is_own_group(found.st_gid))


def _has_access_list(path: Path) -> bool:
    """Whether a file has a list of further users (acl(5)): the group's bits of its mode bound what they may do."""
    try:
        os.getxattr(path, _ACCESS_LIST, follow_symlinks=False)
    except OSError as error:
        return error.errno not in (errno.ENODATA, errno.ENOTSUP)
    return True


def _is_own_group(gid: int) -> bool:
    """Whether a group is root's or has this user's name, and nobody else is in it.

    Users whose primary group it is count.  A group of another name may have members that no file here lists.
    """
    allowed = {0, os.geteuid()}
    try:
        group = grp.getgrgid(gid)
        own = pwd.getpwuid(os.geteuid()).pw_name
        members = {pwd.getpwnam(name).pw_uid for name in group.gr_mem}
    except KeyError:
        return False
    return (
        (gid == 0 or group.gr_name == own)
        and members <= allowed
        and all(user.pw_uid in allowed for user in pwd.getpwall() if user.pw_gid == gid)
    )


def _places_on_the_way(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Every folder, link and file that is passed where a path is opened, links at each hop; what is missing is none.

    Raises OSError as ``open`` does.
    """
    left, at, links = list(reversed(path.absolute().parts)), Path("/"), 0
    while left:
        part = left.pop()
        at = Path(part) if part.startswith("/") else at.parent if part == ".." else at / part
        try:
            found = at.lstat()
        except FileNotFoundError:
            continue
        yield at, found
        if stat.S_ISLNK(found.st_mode):
            links += 1
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(path))
            left.extend(reversed(at.readlink().parts))
            at = at.parent


def changeable_by_others(path: Path, trusted: int | None = None) -> Path | None:
    """The first place on the way to ``path`` that another user than this one and root could exchange, if any.

    What is missing is passed over: whoever makes it must be able to write into what is there.  ``trusted``: a user
    who may as well.
    """
    for place, found in _places_on_the_way(path):
        if found.st_uid not in (0, os.geteuid(), trusted):
            return place
        sticky = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX
        if not stat.S_ISLNK(found.st_mode) and not sticky and others_may_write(place, found):
            return place
    return None


def require_trusted(path: str, trusted: int | None = None) -> None:
    """Raises Untrusted for a file that another user than this one, root and ``trusted`` could have put there."""
    place = changeable_by_others(Path(path), trusted)
    if place is not None:
        raise Untrusted(
            f"{place} can be changed by other users, so {path} is not used as root; move it to a folder "
            "that only you can write (chmod go-w), or run fastenough as its owner"
        )


def private_directory(path: Path) -> Path:
    """The folder, made with mode 0700 where it is missing; raises Untrusted, or OSError where it cannot be made.

    Only its last component is made and checked: its parent must be a place where others cannot rename what is ours
    (``/run``, ``/var/lib``, a home, or a sticky folder).
    """
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise Untrusted(f"{path} is not a directory; remove it")
    if status.st_uid != os.geteuid():
        raise Untrusted(
            f"{path} belongs to user {status.st_uid}, not to the user who runs this ({os.geteuid()}); "
            "remove it, or name another place"
        )
    if status.st_mode & _OTHERS_MAY_WRITE:
        raise Untrusted(f"{path} can be written by other users; check its contents, then run: chmod 700 {path}")
    return path


def open_regular(path: Path) -> BinaryIO:
    """A regular file, for reading; raises Untrusted for a link, a FIFO or a device, OSError as ``open`` does."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if path.is_symlink():
            raise Untrusted(f"{path} is a symbolic link, which is not followed; put the file itself there") from error
        raise
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise Untrusted(f"{path} is no regular file; remove it")
    return os.fdopen(file, "rb")


def read_regular(path: Path, most: int) -> bytes:
    """The content of a regular file of at most so many bytes; raises Untrusted or OSError."""
    with open_regular(path) as stream:
        content = stream.read(most + 1)
    if len(content) > most:
        raise Untrusted(f"{path} is longer than the {most} bytes such a file has at most")
    return content


def create_exclusive(path: Path, mode: int = 0o644) -> int:
    """A descriptor of a new file, for writing; raises FileExistsError for whatever is there, be it a link."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)


def write_all(file: int, content: bytes) -> None:
    """Write every byte, however many writes that takes; raises OSError."""
    view = memoryview(content)
    while view:
        view = view[os.write(file, view) :]


def sync_directory(path: Path) -> None:
    """What was renamed or removed in a folder is on disk when this returns."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def unfinished_name(name: str) -> str:
    """A random name for a file that is to take the place of ``name``."""
    return f".{name}.{secrets.token_hex(8)}.new"


def unfinished_file(name: str) -> str | None:
    """The file that an :func:`unfinished_name` was made for; None for any other name."""
    match = _UNFINISHED.fullmatch(name)
    return match and match[1]


@contextlib.contextmanager
def replacing(path: Path, mode: int = 0o644, *, new: bool = False) -> Iterator[BinaryIO]:
    """A new file that takes the place of ``path``, whole and on disk, when the block ends without an exception.

    It is made beside it under a random name; a link or a file of another user that stands there is refused.  ``new``:
    raises FileExistsError for whatever is there when the block ends.
    """
    with contextlib.suppress(FileNotFoundError):
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode):
            raise Untrusted(f"{path} is no regular file and is not replaced; remove it, or name another place")
        _require_owner(path, found.st_uid)
    beside = path.with_name(unfinished_name(path.name))
    try:
        with os.fdopen(create_exclusive(beside, mode), "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if new:
            _name_new(beside, path)
        else:
            beside.rename(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def _name_new(file: Path, path: Path) -> None:
    """Rename a file; raises FileExistsError for whatever is at ``path``."""
    try:
        os.link(file, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        os.close(create_exclusive(path))
        file.rename(path)
    else:
        file.unlink()


def replace_whole(path: Path, content: bytes, mode: int = 0o644) -> None:
    """``replacing`` for content that is at hand; raises Untrusted or OSError."""
    with replacing(path, mode) as stream:
        stream.write(content)


def lock_holder(path: Path) -> str:
    """Which other process holds a lock on a file, in words such as ``process 123 (python, stopped)``.

    Told by the kernel (proc_locks(5)); empty where none is seen from here.
    """
    with contextlib.suppress(OSError, ValueError):
        found = path.stat()
        wanted = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
        for line in Path("/proc/locks").read_text().splitlines():
            fields = line.replace("-> ", "").split()
            if fields[5] == wanted and "->" not in line and int(fields[4]) not in (0, os.getpid()):
                return _process_told(int(fields[4]))
    return ""


def _process_told(pid: int) -> str:
    stat_line = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    name = "".join(letter if letter.isprintable() else "?" for letter in stat_line.partition("(")[2].rpartition(")")[0])
    stopped = ", stopped: kill -CONT lets it go on" if stat_line.rpartition(")")[2].split()[0] in "tT" else ""
    return f"process {pid} ({name}{stopped})"
