# SPDX-License-Identifier: GPL-2.0-or-later
"""Which recording to look into while it is measured, and how it gets on: growing, quiet, ended, or left to itself."""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fastenough.files import Untrusted
from fastenough.folder import Folder
from fastenough.jobs.following import LiveRecording
from fastenough.jobs.tail import FileFate, FileTail
from fastenough.model import BadInput, FastenoughError
from fastenough.store.directory import LIVE_FILE, RUN_FILE, SEALED_FILE, is_live
from fastenough.store.reading import run_folders

_QUIET_S, _QUIET_INTERVALS = 3.0, 3
_GIVE_UP_S, _GIVE_UP_INTERVALS = 30.0, 10
REPLACED = "the file was replaced; the new file is read from its beginning"


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """What may not be read is one line, with whose it is."""
    try:
        yield
    except PermissionError as error:
        raise _not_allowed(path) from error
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    except Untrusted as error:
        raise BadInput(str(error)) from error


def _not_allowed(path: Path) -> BadInput:
    return BadInput(f"{path}: permission denied; run as {_owner(path)}, or request read permission")


def _owner(path: Path) -> str:
    """Of the path, or of the nearest folder above it that tells."""
    for place in (path, *path.absolute().parents):
        try:
            return pwd.getpwuid(place.stat().st_uid).pw_name
        except (OSError, KeyError):
            continue
    return "its owner"


class LiveFile:
    """One recording that may still grow.  ``path`` is for messages; raises BadInput for what cannot be followed.

    ``remark``: what became of the file, once; "" otherwise.  ``each_interval`` is called behind each interval, of which
    a look may take several.
    """

    def __init__(self, folder: Folder, name: str) -> None:
        self.path = folder.path / name
        self._folder = folder
        self._name = name
        self.remark = ""
        self.over = ""
        self.each_interval: Callable[[LiveRecording], None] = lambda _: None
        self._begin()

    def _begin(self) -> None:
        with _readable(self.path):
            self._tail = FileTail(self._folder, self._name)
        self.following = LiveRecording(str(self.path))
        stood_s = time.time() - self._tail.grown_wall_ns / 1e9
        self._grown_mono_s = time.monotonic() - min(max(0.0, stood_s), 2 * _QUIET_S)

    def close(self) -> None:
        self._tail.close()
        self._folder.close()

    @property
    def behind_bytes(self) -> int:
        """How much was recorded and has not been read yet."""
        return self._tail.behind_bytes

    @property
    def grown_wall_ns(self) -> int:
        """When something was added last."""
        return self._tail.grown_wall_ns

    @property
    def quiet_s(self) -> float:
        """How long nothing was added; 0 while that is nothing to speak of."""
        quiet_s = time.monotonic() - self._grown_mono_s
        return quiet_s if quiet_s > self._intervals_s(_QUIET_S, _QUIET_INTERVALS) else 0.0

    @property
    def patience_s(self) -> float:
        """After how long without a new line it is given up."""
        return self._intervals_s(_GIVE_UP_S, _GIVE_UP_INTERVALS)

    def _intervals_s(self, least_s: float, intervals: int) -> float:
        head = self.following.head
        return max(least_s, 0.0 if head is None else intervals * head.interval_ns / 1e9)

    def look(self) -> bool:
        """Take what was added; whether there was anything.  ``over`` says why nothing will be added any more."""
        if self._take():
            return True
        with _readable(self.path):
            fate = self._tail.fate()
        if fate is FileFate.GONE and not self._take():
            self.over = self._why_gone()
        elif fate in (FileFate.REPLACED, FileFate.SHORTENED):
            self._tail.close()
            self._begin()
            self.remark = REPLACED
        elif self.quiet_s > 0 and self._left_alone():
            self.over = "the recording process has ended"
        elif self.quiet_s > self.patience_s:
            self.over = f"no new data for {self.patience_s:.0f} s"
        return False

    def _take(self) -> bool:
        with _readable(self.path):
            lines = self._tail.take()
        for line in lines:
            before = self.following.last
            self.following.take(line)
            if self.following.last is not before:
                self.each_interval(self.following)
        if lines:
            self._grown_mono_s = time.monotonic()
        if self.following.end is not None:
            self.over = "ended"
        return bool(lines)

    def _left_alone(self) -> bool:
        """Whether a run in the store has no writer any more; of other files nobody knows."""
        return self._name == LIVE_FILE and not is_live(self._folder)

    def _why_gone(self) -> str:
        try:
            self._folder.status(SEALED_FILE)
        except OSError:
            return "the file was removed"
        return "the recording process died; its data were sealed"


class StoreRuns:
    """The runs of a store, looked at without its index; raises BadInput where that cannot be."""

    def __init__(self, store: Path) -> None:
        self._path = store / "runs"
        with _readable(self._path):
            if not self._path.is_dir():
                raise BadInput(f"no store at {store}; 'fastenough run' creates one, --store selects another")
            self._runs = Folder.at(self._path)

    def close(self) -> None:
        self._runs.close()

    def find(self, prefix: str) -> str:
        """The folder of the one run whose id begins so, ``last`` being the newest; raises BadInput."""
        with _readable(self._path):
            names = [name for run_id, name in run_folders(self._runs) if prefix == "last" or run_id.startswith(prefix)]
        if prefix == "last":
            names = names[-1:]
        if len(names) != 1:
            how_many = "no run" if not names else f"{len(names)} runs"
            raise BadInput(
                f"{how_many} in {self._path.parent} with an id that begins with {prefix!r}; see 'fastenough list'"
            )
        return names[0]

    def under_way(self) -> str | None:
        """The folder of the newest run that is being recorded, None where there is none."""
        with _readable(self._path):
            names = [name for _, name in run_folders(self._runs)]
        denied = ""
        for name in reversed(names):
            try:
                if self._is_under_way(name):
                    return name
            except PermissionError:
                denied = denied or name
            except (OSError, FastenoughError):
                continue
        if denied:
            raise _not_allowed(self._path / denied)
        return None

    def _is_under_way(self, name: str) -> bool:
        """A run's writer takes its lock before it writes ``run.json``: one without that is left alone."""
        if self._runs.status_below(name, SEALED_FILE) is not None:
            return False
        with self._runs.below(name) as folder:
            return _has(folder, RUN_FILE) and is_live(folder)

    def recording(self, name: str) -> tuple[Folder, str]:
        """Folder and file name of a run's recording, which may be sealed."""
        with _readable(self._path / name):
            folder = self._runs.below(name)
            return folder, LIVE_FILE if _has(folder, LIVE_FILE) else SEALED_FILE


def _has(folder: Folder, name: str) -> bool:
    try:
        folder.status(name)
    except FileNotFoundError:
        return False
    return True


def at_path(path: Path) -> tuple[Folder, str]:
    """Folder and file name of a recording at a path, which may be that of a run's folder; raises BadInput."""
    with _readable(path):
        if not path.is_dir():
            if not path.exists():
                raise BadInput(f"no such file: {path}; name a recording or a run of the store (see 'fastenough list')")
            return Folder.at(path.parent), path.name
        folder = Folder.at(path)
        return folder, LIVE_FILE if _has(folder, LIVE_FILE) else SEALED_FILE


def is_path(named: str) -> bool:
    """Whether a file is meant, and no run of the store."""
    with suppress(OSError):
        return os.sep in named or Path(named).exists()
    return False
