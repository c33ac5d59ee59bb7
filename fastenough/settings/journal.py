# SPDX-License-Identifier: GPL-2.0-or-later
"""The journal of original values, on disk before anything is changed, and the places that its entries name.

The journal is a file, so it is not trusted: only what a setting of fastenough can have written is restored.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Required, TypedDict, cast

from fastenough.files import lock_holder, private_directory, replace_whole, sync_directory, unfinished_file, write_all
from fastenough.link import Link
from fastenough.link.base import path_matches
from fastenough.model import FastenoughError
from fastenough.settings.kernel_module import ModulePlace
from fastenough.settings.pin import PinPlace
from fastenough.settings.place import CpusPlace, FilePlace, Place, TaskPlace
from fastenough.settings.tracing import InstancePlace

_MOST_BYTES = 16 << 20
_SHOWN_CHARACTERS = 200


class JournalEntry(TypedDict, total=False):
    """An entry of the journal: the boot, the place as ``Place.entry`` describes it, its original value, and the place
    that must have its original value first, if there is one (``needs``).

    Only ``boot_id`` and ``place`` were checked; the others may be missing or have any value.
    """

    boot_id: Required[str]
    place: Required[Mapping[str, object]]
    original: object
    needs: object


Damaged = tuple[str, str]
"""An unusable line of the journal, and the reason."""


def _folder_of(path: Path) -> None:
    """Create the folder of a file and missing folders above it, not writable by others whatever the umask."""
    for folder in reversed(path.parents):
        if not folder.exists():
            private_directory(folder)
    private_directory(path.parent)


def _open_own(path: Path) -> int:
    """Open a regular file that only this user can change; raise OSError, or FastenoughError for any other file."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        if path.is_symlink():
            raise _not_trusted(path) from error
        raise
    status = os.fstat(descriptor)
    if (
        not stat.S_ISREG(status.st_mode)
        or status.st_uid != os.geteuid()
        or status.st_nlink != 1
        or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    ):
        os.close(descriptor)
        raise _not_trusted(path)
    return descriptor


def _not_trusted(path: Path) -> FastenoughError:
    return FastenoughError(
        f"{path} is not a regular file that only user {os.geteuid()} can change, so it is not trusted; "
        "inspect it, then remove it"
    )


_MACHINE = Path("/sys/devices/system/cpu")
"""Directory to lock: any user may lock it, and all users share it, whereas each user has separate journals."""


def lock_machine() -> int | None:
    """Lock this machine against the benches of other users until the descriptor is closed; None without sysfs.

    Raise FastenoughError while another bench holds it.  A container with its own network has its own sysfs, hence its
    own lock.
    """
    try:
        machine = os.open(_MACHINE, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(machine, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(machine)
        raise _busy(_MACHINE, _MACHINE) from error
    return machine


class BoardBusy(FastenoughError):
    """Another bench is measuring on the board."""


def _busy(locked: Path, named: Path) -> BoardBusy:
    return BoardBusy(
        f"another fastenough is measuring on this board ({lock_holder(locked) or 'a process'} holds {named}); "
        "wait for it, or stop it"
    )


class Journal:
    """Original values, oldest first, in a file that one bench at a time locks.

    The lock is a separate file beside it, since the journal is replaced as a whole.
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
            self._file = self._open()
        except BlockingIOError as error:
            os.close(self._lock)
            raise _busy(path.with_name(f"{path.name}.lock"), path) from error
        except BaseException:
            os.close(self._lock)
            raise

    def _unusable(self, error: OSError) -> FastenoughError:
        return FastenoughError(
            f"{self._path}: {error.strerror}; make it writable: fastenough changes nothing on a board "
            "before it has stored the original value"
        )

    def _open(self) -> int:
        """Open the journal and remove a torn last line and half-written files of a bench that was killed."""
        for temporary in self._path.parent.glob(".*.new"):
            if unfinished_file(temporary.name) == self._path.name:
                temporary.unlink(missing_ok=True)
        try:
            descriptor = _open_own(self._path)
            content = self._content(descriptor)
            if not content.endswith(b"\n"):
                os.ftruncate(descriptor, content.rfind(b"\n") + 1)
            sync_directory(self._path.parent)
        except BlockingIOError:
            raise
        except OSError as error:
            raise self._unusable(error) from error
        return descriptor

    def _content(self, file: int) -> bytes:
        if os.fstat(file).st_size > _MOST_BYTES:
            raise FastenoughError(f"{self._path} is too long for a journal; inspect it, then remove it")
        return os.pread(file, _MOST_BYTES, 0)

    def _read(self) -> tuple[list[JournalEntry], list[Damaged]]:
        entries: list[JournalEntry] = []
        damaged: list[Damaged] = []
        for line in self._content(self._file).splitlines():
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError):
                entry = None
            if (
                isinstance(entry, dict)
                and isinstance(entry.get("place"), dict)
                and isinstance(entry.get("boot_id"), str)
            ):
                entries.append(cast(JournalEntry, entry))
            else:
                damaged.append((line.decode(errors="replace"), "not an entry of a setting"))
        return entries, damaged

    def entries(self) -> list[JournalEntry]:
        """Return the usable entries, oldest first."""
        return self._read()[0]

    def damaged(self) -> list[Damaged]:
        """Return the lines that are not entries."""
        return self._read()[1]

    def append(self, entry: JournalEntry) -> None:
        """Append one entry: completely on disk when this returns, not at all when it raises."""
        previous_bytes = os.fstat(self._file).st_size
        try:
            write_all(self._file, json.dumps(entry).encode() + b"\n")
            os.fsync(self._file)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, previous_bytes)
            raise FastenoughError(f"{self._path}: {error.strerror}; nothing was changed") from error

    def replace(self, entries: list[JournalEntry]) -> None:
        """Replace all entries; if the bench is killed meanwhile, either all old or all new ones are there."""
        content = b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)
        if self._content(self._file) == content:
            return
        try:
            replace_whole(self._path, content, 0o600)
            descriptor = _open_own(self._path)
        except OSError as error:
            raise FastenoughError(
                f"{self._path}: {error.strerror}; it still lists values that were restored already; the "
                "next start checks them again"
            ) from error
        os.close(self._file)
        self._file = descriptor

    def store_damaged(self, lines: Sequence[Damaged]) -> list[str]:
        """Move unusable lines to a file beside the journal; return a warning for each."""
        path = self._path.with_name(f"{self._path.name}.damaged")
        storage = f"stored in {path}"
        try:
            descriptor = _open_own(path)
            try:
                write_all(descriptor, b"".join(line.encode(errors="replace") + b"\n" for line, _ in lines))
            finally:
                os.close(descriptor)
        except (OSError, FastenoughError) as error:
            storage = f"not stored in {path}: {error}"
        return [
            f"{self._path} has an unusable line, skipped: {reason} ({storage}): {line[:_SHOWN_CHARACTERS]!a}"
            for line, reason in lines
        ]

    def close(self) -> None:
        os.close(self._file)
        os.close(self._lock)


_KERNELS_OWN = ("/proc/", "/sys/")
_MOST_VALUE_CHARACTERS = 1 << 15


class UnusableEntry(ValueError):
    """An entry that no setting can have written; it was not applied."""


def _text(entry: Mapping[str, object], name: str, pattern: str) -> str:
    value = entry.get(name)
    if not isinstance(value, str) or not re.fullmatch(pattern, value, re.DOTALL):
        raise UnusableEntry(f"invalid {name}: {ascii(value)[:80]}")
    return value


def _number(entry: Mapping[str, object], name: str, least: int) -> int:
    value = entry.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 1 << 63:
        raise UnusableEntry(f"invalid {name}: {ascii(value)[:80]}")
    return value


def is_among(path: str, patterns: Sequence[str]) -> bool:
    """Whether a path matches one of the patterns; a star does not match a slash."""
    return not {".", ".."} & set(path.split("/")) and any(path_matches(path, pattern) for pattern in patterns)


def _file(entry: Mapping[str, object], link: Link, files: Sequence[str]) -> FilePlace:
    path = _text(entry, "path", r"/[^\0]*")
    if not is_among(path, files):
        raise UnusableEntry(f"no setting writes {ascii(path)[:200]}")
    resolved = os.path.realpath(path) if link.name == "local" else path
    if not resolved.startswith(_KERNELS_OWN):
        raise UnusableEntry(f"{ascii(path)[:200]} leads to {ascii(resolved)[:200]}, outside of /proc and /sys")
    return FilePlace(path)


def _task(entry: Mapping[str, object], link: Link, files: Sequence[str]) -> TaskPlace:
    return TaskPlace(_number(entry, "tid", 1), _number(entry, "start_ticks", 0), _text(entry, "comm", r"[^\0]{0,64}"))


def _cpus(entry: Mapping[str, object], link: Link, files: Sequence[str]) -> CpusPlace:
    return CpusPlace(_number(entry, "pid", 1), _number(entry, "start_ticks", 0))


def _pin(entry: Mapping[str, object], link: Link, files: Sequence[str]) -> PinPlace:
    return PinPlace(_number(entry, "number", 0), _text(entry, "name", r"[^\0]{0,200}"))


def _module(entry: Mapping[str, object], link: Link, files: Sequence[str]) -> ModulePlace:
    return ModulePlace(_text(entry, "name", r"\w{1,64}"))


def _trace(entry: Mapping[str, object], link: Link, files: Sequence[str]) -> InstancePlace:
    return InstancePlace()


KINDS: Mapping[str, tuple[Callable[[Mapping[str, object], Link, Sequence[str]], Place], str]] = {
    "file": (_file, rf"[^\0]{{0,{_MOST_VALUE_CHARACTERS}}}"),
    "task": (_task, r"(other|fifo|rr|batch|idle):\d{1,2}(:reset)?"),
    "cpus": (_cpus, r"\d[\d,-]{0,4000}"),
    "pin": (_pin, "in|out"),
    "module": (_module, "absent"),
    "trace": (_trace, "absent"),
}
"""For each kind of place: how to make it from an entry, and which original values are valid."""


def place_and_original(entry: JournalEntry, link: Link, files: Sequence[str]) -> tuple[Place, str]:
    """Return the place that an entry names and its original value.

    ``files``: patterns of the files that settings write.  Raise UnusableEntry.
    """
    place = entry["place"]
    kind = place.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise UnusableEntry(f"unknown kind of place: {ascii(kind)[:80]}")
    read_place, valid_values = KINDS[kind]
    return read_place(place, link, files), _text(entry, "original", valid_values)
