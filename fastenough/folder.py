# SPDX-License-Identifier: GPL-2.0-or-later
"""A folder that others may write into: held open, so that what is done in it stays in it.

The bench may run as root in a folder of another user, who can put a link in the place of any file or folder at any
moment.  Everything here is therefore done relative to an open descriptor, follows no link, makes new files exclusively
and touches only regular files of the folder's owner, of root or of this user.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import stat
from collections import deque
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from fastenough.files import Untrusted, unfinished_file, unfinished_name

_MOST_LINKS = 40
_SEARCH = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def _parts(path: str) -> list[str]:
    return (["/"] if path.startswith("/") else []) + [part for part in path.split("/") if part not in ("", ".")]


class _Walk:
    """One path, component by component; of links only those are followed that root or this user made."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._links = 0
        self.left = deque(_parts(os.fspath(path)))
        self.at = os.open(".", _SEARCH)

    def close(self) -> None:
        os.close(self.at)

    def step(self) -> None:
        """Into the next component; raises OSError where it is missing or no folder, Untrusted for another's link."""
        part = self.left[0]
        entry = os.open(part, _SEARCH, dir_fd=self.at)
        status = os.fstat(entry)
        if not stat.S_ISLNK(status.st_mode):
            os.close(self.at)
            self.at = entry
            self.left.popleft()
            if not stat.S_ISDIR(status.st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), os.fspath(self._path))
            return
        try:
            self._links += 1
            if self._links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(self._path))
            if status.st_uid not in (0, os.geteuid()):
                raise Untrusted(
                    f"{self._path}: {part} is a symbolic link of user {status.st_uid}, which is not "
                    "followed; name the folder itself"
                )
            self.left.popleft()
            self.left.extendleft(reversed(_parts(os.readlink("", dir_fd=entry))))
        finally:
            os.close(entry)

    def make(self) -> None:
        """The next component as a new folder."""
        with contextlib.suppress(FileExistsError):
            os.mkdir(self.left[0], dir_fd=self.at)


class Folder:
    """An open folder.  ``path`` is for messages: the folder stays the same when something else is put there."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self.path = path
        self.owner = os.fstat(descriptor).st_uid

    @classmethod
    def at(cls, path: Path, *, make: bool = False) -> Self:
        """The folder at a path, made with its parents where ``make``; raises OSError or Untrusted."""
        walk = _Walk(path)
        try:
            while walk.left:
                try:
                    walk.step()
                except FileNotFoundError:
                    if not make:
                        raise
                    walk.make()
                    walk.step()
            return cls(os.open(".", _LIST, dir_fd=walk.at), path)
        finally:
            walk.close()

    @classmethod
    def nearest(cls, path: Path) -> tuple[Self, bool]:
        """The folder at a path, or the nearest above it that exists, and whether it is the folder itself."""
        walk = _Walk(path)
        try:
            with contextlib.suppress(FileNotFoundError):
                while walk.left:
                    walk.step()
            return cls(os.open(".", _LIST, dir_fd=walk.at), path), not walk.left
        finally:
            walk.close()

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def below(self, name: str, *, make: bool = False) -> Folder:
        """A folder in this one; raises Untrusted for a link, OSError as ``open`` does."""
        if make:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=self._descriptor)
        try:
            return Folder(os.open(name, _LIST, dir_fd=self._descriptor), self.path / name)
        except OSError as error:
            if self.is_link(name):
                raise Untrusted(
                    f"{self.path / name} is a symbolic link, which is not followed; put the folder itself there"
                ) from error
            raise

    def make_new(self, name: str) -> Folder:
        """A new folder in this one; raises FileExistsError for whatever is there."""
        os.mkdir(name, dir_fd=self._descriptor)
        made = self.below(name)
        if made.owner != os.geteuid():
            raise Untrusted(f"{self.path / name} was exchanged by user {made.owner} while it was made")
        return made

    def names(self) -> list[str]:
        with os.scandir(self._descriptor) as entries:
            return sorted(entry.name for entry in entries)

    def status(self, name: str) -> os.stat_result:
        """Of the entry itself, be it a link; raises OSError."""
        return os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)

    def status_below(self, name: str, file: str) -> os.stat_result | None:
        """Of an entry of the folder ``name`` in this one, without opening either; None where there is none."""
        try:
            return os.stat(f"{name}/{file}", dir_fd=self._descriptor, follow_symlinks=False)
        except OSError:
            return None

    def subfolders(self) -> list[str]:
        """The names of what is here but for regular files, in order: folders, and what stands in the place of one."""
        with os.scandir(self._descriptor) as entries:
            return sorted(entry.name for entry in entries if not entry.is_file(follow_symlinks=False))

    def is_link(self, name: str) -> bool:
        try:
            return stat.S_ISLNK(self.status(name).st_mode)
        except OSError:
            return False

    def _require_expected(self, name: str, status: os.stat_result) -> None:
        """A regular file, and not another user's whom this folder does not belong to."""
        path = self.path / name
        if not stat.S_ISREG(status.st_mode):
            what = "a symbolic link, which is not followed" if stat.S_ISLNK(status.st_mode) else "no regular file"
            raise Untrusted(f"{path} is {what}; remove it")
        if status.st_uid not in (0, os.geteuid(), self.owner):
            raise Untrusted(f"{path} belongs to user {status.st_uid}, not to the owner of the folder; remove it")
        if status.st_nlink > 1 and status.st_uid != self.owner:
            raise Untrusted(
                f"{path} is a hard link to a file that does not belong to the owner of the folder; remove it"
            )

    def _require_name(self, name: str) -> None:
        """A path would leave the folder, or follow links on its way."""
        if "/" in name:
            raise Untrusted(f"{name!r} is no name of a file in {self.path}")

    def open_file(self, name: str) -> BinaryIO:
        """A regular file, for reading; never waits.  Raises Untrusted or OSError."""
        self._require_name(name)
        try:
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self._descriptor)
        except OSError:
            if self.is_link(name):
                self._require_expected(name, self.status(name))
            raise
        try:
            self._require_expected(name, os.fstat(file))
        except BaseException:
            os.close(file)
            raise
        return os.fdopen(file, "rb")

    def read(self, name: str, most: int) -> bytes:
        """The content of a regular file of at most so many bytes; raises Untrusted or OSError."""
        with self.open_file(name) as stream:
            content = stream.read(most + 1)
        if len(content) > most:
            raise Untrusted(f"{self.path / name} is longer than the {most} bytes such a file has at most")
        return content

    def create(self, name: str, mode: int = 0o644) -> int:
        """A descriptor of a new file, for appending; raises FileExistsError for whatever is there, be it a link."""
        self._require_name(name)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(name, flags, mode, dir_fd=self._descriptor)

    def append(self, name: str) -> int:
        """A descriptor of a regular file that is there, for reading and appending; raises Untrusted or OSError."""
        self._require_name(name)
        flags = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        file = os.open(name, flags, dir_fd=self._descriptor)
        try:
            self._require_expected(name, os.fstat(file))
        except BaseException:
            os.close(file)
            raise
        return file

    def require_room(self) -> None:
        """Raises OSError where no file can be made here; leaves none."""
        trial = unfinished_name("trial")
        os.close(self.create(trial))
        self.remove(trial)

    def require_replaceable(self, name: str) -> None:
        """Raises Untrusted where something stands that ``replacing`` would not touch."""
        with contextlib.suppress(FileNotFoundError):
            self._require_expected(name, self.status(name))

    @contextlib.contextmanager
    def replacing(self, name: str, mode: int = 0o644) -> Iterator[BinaryIO]:
        """A new file that takes the place of ``name``, whole and on disk, when the block ends without an exception."""
        self.require_replaceable(name)
        beside = unfinished_name(name)
        file = self.create(beside, mode)
        try:
            with os.fdopen(file, "wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            os.rename(beside, name, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
        except BaseException:
            self.remove(beside)
            raise
        self.sync()

    def remove_unfinished(self, files: Collection[str] | None = None) -> None:
        """Remove what killed callers of ``replacing`` left, of these files only if given; the caller holds the lock."""
        for name in self.names():
            file = unfinished_file(name)
            if file is not None and (files is None or file in files):
                self.remove(name)

    def replace(self, name: str, content: bytes, mode: int = 0o644) -> None:
        """``replacing`` for content that is at hand."""
        with self.replacing(name, mode) as stream:
            stream.write(content)

    def rename(self, name: str, new: str) -> None:
        os.rename(name, new, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def move(self, name: str, to: Folder) -> None:
        """Put what is called so into another folder of the same disk; raises OSError where something is there."""
        os.rename(name, name, src_dir_fd=self._descriptor, dst_dir_fd=to._descriptor)

    def remove(self, name: str) -> None:
        """Remove a file, or the link that stands there; nothing where there is none."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._descriptor)

    def remove_tree(self, name: str) -> None:
        """Remove a folder with what is in it, as far as that can be done; no link is followed."""
        shutil.rmtree(name, ignore_errors=True, dir_fd=self._descriptor)

    @contextlib.contextmanager
    def locked(self) -> Iterator[bool]:
        """Whether the folder's lock could be had at once; it is held until the block ends, however that happens."""
        handle = os.open(".", _LIST, dir_fd=self._descriptor)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True
        finally:
            os.close(handle)

    @contextlib.contextmanager
    def turn(self, waiting: Callable[[], None]) -> Iterator[None]:
        """Hold the folder's lock until the block ends, however it does; ``waiting`` is called where another has it.

        A file system without such locks lets everybody in.
        """
        handle = os.open(".", _LIST, dir_fd=self._descriptor)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(handle, fcntl.LOCK_EX)
            except OSError as error:
                if error.errno not in (errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL):
                    raise
            yield
        finally:
            os.close(handle)

    def sync(self) -> None:
        """What was made, renamed or removed here is on disk when this returns."""
        os.fsync(self._descriptor)
