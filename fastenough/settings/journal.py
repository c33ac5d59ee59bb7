# SPDX-License-Identifier: GPL-2.0-or-later
"""What has to be put back: on disk before anything is changed, and replayed by whoever comes next."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fastenough.files import lock_holder, private_directory, replace_whole, sync_directory, write_all
from fastenough.model import FastenoughError

_MOST_BYTES = 16 << 20
_SHOWN = 200
Damaged = tuple[str, str]
"""A line of the journal that cannot be used, and why."""


def _folder_of(path: Path) -> None:
    """Its folder, and what is missing above it: nobody else may write there, whatever the umask."""
    for folder in reversed(path.parents):
        if not folder.exists():
            private_directory(folder)
    private_directory(path.parent)


def _open_own(path: Path) -> int:
    """A regular file of this user's that no other can change; raises OSError, or FastenoughError for any other."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        file = os.open(path, flags, 0o600)
    except OSError as error:
        if path.is_symlink():
            raise _not_trusted(path) from error
        raise
    found = os.fstat(file)
    if (
        not stat.S_ISREG(found.st_mode)
        or found.st_uid != os.geteuid()
        or found.st_nlink != 1
        or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    ):
        os.close(file)
        raise _not_trusted(path)
    return file


def _not_trusted(path: Path) -> FastenoughError:
    return FastenoughError(
        f"{path} is no file that only user {os.geteuid()} can change, so it is not trusted; look "
        "what is in it and remove it"
    )


class Journal:
    """Original values, oldest first, in a file that one bench at a time may hold.

    The lock is a file of its own beside it, since the journal is replaced whole.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            _folder_of(path)
            self._lock = _open_own(path.with_name(f"{path.name}.lock"))
        except OSError as error:
            raise self._unusable(error) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._file = self._opened()
        except BlockingIOError as error:
            os.close(self._lock)
            holder = lock_holder(path.with_name(f"{path.name}.lock"))
            raise FastenoughError(
                f"another fastenough is measuring on this board ({holder or 'it'} holds {path}); "
                "wait until it has ended, or end it"
            ) from error
        except BaseException:
            os.close(self._lock)
            raise

    def _unusable(self, error: OSError) -> FastenoughError:
        return FastenoughError(
            f"{self._path}: {error.strerror}; make it writable, for nothing is changed on a board "
            "without noting down how it was"
        )

    def _opened(self) -> int:
        """Open it, without what a bench left that was killed while it wrote: a torn last line, a file half written."""
        for left in self._path.parent.glob(f".{self._path.name}.*.new"):
            left.unlink(missing_ok=True)
        try:
            file = _open_own(self._path)
            content = self._content(file)
            if not content.endswith(b"\n"):
                os.ftruncate(file, content.rfind(b"\n") + 1)
            sync_directory(self._path.parent)
        except BlockingIOError:
            raise
        except OSError as error:
            raise self._unusable(error) from error
        return file

    def _content(self, file: int) -> bytes:
        if os.fstat(file).st_size > _MOST_BYTES:
            raise FastenoughError(f"{self._path} is longer than any journal; look what is in it and remove it")
        return os.pread(file, _MOST_BYTES, 0)

    def _read(self) -> tuple[list[dict[str, Any]], list[Damaged]]:
        found: list[dict[str, Any]] = []
        damaged: list[Damaged] = []
        for line in self._content(self._file).splitlines():
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError):
                entry = None
            if isinstance(entry, dict) and isinstance(entry.get("place"), dict):
                found.append(entry)
            else:
                damaged.append((line.decode(errors="replace"), "it is no note of a setting"))
        return found, damaged

    def entries(self) -> list[dict[str, Any]]:
        """What was noted."""
        return self._read()[0]

    def damaged(self) -> list[Damaged]:
        """The lines that are no notes."""
        return self._read()[1]

    def note(self, entry: dict[str, Any]) -> None:
        """Append one entry; whole and on disk when this returns, and not there at all when it raises."""
        before = os.fstat(self._file).st_size
        try:
            write_all(self._file, json.dumps(entry).encode() + b"\n")
            os.fsync(self._file)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, before)
            raise FastenoughError(f"{self._path}: {error.strerror}; nothing was changed") from error

    def replace(self, entries: list[dict[str, Any]]) -> None:
        """Keep these entries only; a bench killed meanwhile leaves either all of the old or all of the new ones."""
        content = b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)
        if self._content(self._file) == content:
            return
        try:
            replace_whole(self._path, content, 0o600)
            file = _open_own(self._path)
        except OSError as error:
            raise FastenoughError(
                f"{self._path}: {error.strerror}; it still holds what was put back already, and the "
                "next start looks at that again"
            ) from error
        os.close(self._file)
        self._file = file

    def set_aside(self, lines: Sequence[Damaged]) -> list[str]:
        """Keep unusable lines in a file beside the journal; returns what is to be told of each."""
        aside = self._path.with_name(f"{self._path.name}.damaged")
        where = f"kept in {aside}"
        try:
            file = _open_own(aside)
            try:
                write_all(file, b"".join(line.encode(errors="replace") + b"\n" for line, _ in lines))
            finally:
                os.close(file)
        except (OSError, FastenoughError) as error:
            where = f"it cannot be kept in {aside} ({error})"
        return [
            f"{self._path} holds a line that is skipped: {reason} ({where}): {line[:_SHOWN]!a}"
            for line, reason in lines
        ]

    def close(self) -> None:
        os.close(self._file)
        os.close(self._lock)
