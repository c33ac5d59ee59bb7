# SPDX-License-Identifier: GPL-2.0-or-later
"""Follow a recording while it is being written: its file, its data so far, and the runs of a store.

:class:`FileTail` reads complete lines from the growing file, :class:`LiveRecording` adds them up, :class:`LiveFile`
reports when the file grows, is silent, ends or is abandoned, and :class:`StoreRuns` finds the run to follow.
"""

from __future__ import annotations

import os
import pwd
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np

from fastenough.files import Untrusted
from fastenough.folder import Folder
from fastenough.model import BadInput, FastenoughError, Role, Series
from fastenough.recording import End, Event, Head, Histogram, Interval
from fastenough.recording.aggregate import Aggregator
from fastenough.recording.lines import most_line_bytes
from fastenough.recording.reader import ends_of, head_of, part_of
from fastenough.store.directory import LIVE_FILE, RUN_FILE, SEALED_FILE, is_live
from fastenough.store.reading import run_folders

_CHUNK_BYTES = 1 << 20
"""A long recording is read in chunks, so that the display is updated and Ctrl-C works meanwhile."""


class FileFate(StrEnum):
    """State of the path that was opened."""

    THERE = "there"
    GONE = "gone"
    REPLACED = "replaced"
    SHORTENED = "shortened"


class FileTail:
    """An open file that grows; it can be read to its end even if renamed or removed.  Raises OSError and Untrusted.

    Text after the last newline is read again until it is a line, because a writer may remove an incomplete line.
    """

    def __init__(self, folder: Folder, name: str) -> None:
        self._folder = folder
        self._name = name
        self._stream = folder.open_file(name)
        self._file = self._stream.fileno()
        self._taken = 0

    def close(self) -> None:
        self._stream.close()

    @property
    def behind_bytes(self) -> int:
        """Number of bytes not read yet."""
        return max(0, os.fstat(self._file).st_size - self._taken)

    @property
    def grown_wall_ns(self) -> int:
        """Time of the last write to the file."""
        return os.fstat(self._file).st_mtime_ns

    def take(self) -> list[bytes]:
        """New complete lines, at most about a megabyte; empty if nothing was added."""
        most = _CHUNK_BYTES
        while True:
            piece = os.pread(self._file, most, self._taken)
            whole = piece.rfind(b"\n") + 1
            if whole or len(piece) < most:
                break
            if most > most_line_bytes(piece):
                raise BadInput(
                    f"{self._folder.path / self._name}: a line is longer than {most_line_bytes(piece)} bytes, "
                    "the maximum in a recording"
                )
            most *= 4
        self._taken += whole
        return [line + b"\n" for line in piece[:whole].split(b"\n")[:-1]]

    def fate(self) -> FileFate:
        """Whether the path still is this file and has the bytes read so far."""
        mine = os.fstat(self._file)
        if mine.st_size < self._taken:
            return FileFate.SHORTENED
        try:
            there = self._folder.status(self._name)
        except FileNotFoundError:
            return FileFate.GONE
        return FileFate.THERE if (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino) else FileFate.REPLACED


_MOST_CULPRITS = 200
"""Maximum number of events with a cause in memory; the newest are retained."""
_TAIL_ONE_IN = 1000
"""One value in this many lies above the displayed tail."""


@dataclass(frozen=True)
class SeriesStatus:
    """One series so far; times in ns, None where it has no value yet.  For jitter they are magnitudes.

    ``tail_ns``: the 99.9 % quantile, from 1,000 values on.  ``since_maximum_ns``: measured time from the end of the
    interval in which the maximum was first reached.  ``latest_ns``: the maximum of the last interval.
    """

    series: Series
    n: int
    lost: int
    missed: int
    tail_ns: float | None
    maximum_ns: float | None
    since_maximum_ns: int | None
    latest_ns: float | None


def greatest(series: Series, minimum: int | None, maximum: int | None) -> int | None:
    """The value with the greatest deviation."""
    if minimum is None or maximum is None:
        return None
    return max(maximum, -minimum) if series.two_sided else maximum


def _tail(series: Series, total: Histogram) -> int | None:
    """Upper edge of the bucket of the quantile, so that it is never understated."""
    n = total.total
    if n < _TAIL_ONE_IN:
        return None
    edges = total.highest()
    if series.two_sided:
        edges = np.maximum(np.abs(edges), np.abs(total.lowest()))
    order = np.argsort(edges, kind="stable")
    return int(edges[order][np.searchsorted(np.cumsum(total.count[order]), n - n // _TAIL_ONE_IN)])


class LiveRecording:
    """The data of a growing recording, from its lines in order; raises BadInput with ``name`` for invalid lines.

    ``head`` is None before the first line, ``end`` before the last; ``last`` is the newest interval.  ``culprits``: the
    newest events that name one, ``culprits_seen`` how many there were, ``worst_culprit`` that of the greatest value.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._first = b""
        self.head: Head | None = None
        self.end: End | None = None
        self.last: Interval | None = None
        self.culprits: deque[Event] = deque(maxlen=_MOST_CULPRITS)
        self.culprits_seen = 0
        self.worst_culprit: Event | None = None
        self._adding = Aggregator(name, (), 0)
        self._maxima: dict[int, tuple[int, int]] = {}

    def take(self, raw: bytes) -> None:
        """Add the next line."""
        if self.end is not None:
            raise BadInput(f"{self._name}: something follows the end line")
        if self.head is None:
            self._first, self.head = raw, head_of(raw, self._name)
            self._adding = Aggregator(self._name, self.head.series, self.head.interval_ns)
            return
        part = part_of(raw, self._name, self.head)
        if isinstance(part, Interval):
            self._interval(part, self.head)
        elif isinstance(part, Event):
            self._event(part)
        else:
            self.end = ends_of(self._first, raw, self._name)[1]
            if self.end is None:
                raise BadInput(f"{self._name}: a second head: two recordings were written into one file")

    def _interval(self, interval: Interval, head: Head) -> None:
        if interval.seq != (0 if self.last is None else self.last.seq + 1):
            raise BadInput(f"{self._name}: interval {interval.seq} does not follow the one before it")
        self._adding.interval(interval)
        self.last = interval
        for series in head.series:
            value = self._greatest_of_last(series)
            if value is not None and (series.id not in self._maxima or value > self._maxima[series.id][0]):
                self._maxima[series.id] = value, interval.end_mono_ns

    def _event(self, event: Event) -> None:
        if event.culprit:
            self.culprits.append(event)
            self.culprits_seen += 1
            if self.worst_culprit is None or (event.value or 0) > (self.worst_culprit.value or 0):
                self.worst_culprit = event

    def culprits_after(self, count: int) -> list[Event]:
        """Events with a cause after the first ``count``, as far as they are in memory."""
        new = min(self.culprits_seen - count, len(self.culprits))
        return list(self.culprits)[len(self.culprits) - new :]

    def _greatest_of_last(self, series: Series) -> int | None:
        histogram = None if self.last is None else self.last.histograms.get(series.id)
        return None if histogram is None else greatest(series, histogram.minimum, histogram.maximum)

    @property
    def measured_ns(self) -> int:
        """Time from the begin of the run to the end of the newest interval."""
        return 0 if self.head is None or self.last is None else self.last.end_mono_ns - self.head.begin.mono_ns

    @property
    def planned_ns(self) -> int | None:
        """Planned duration, None if the head does not state it."""
        planned = None if self.head is None else self.head.parameters.get("duration_ns")
        return planned if type(planned) is int and planned > 0 else None

    def statuses(self) -> list[SeriesStatus]:
        """Status of the series that limits apply to, or of all series if there is none."""
        if self.head is None:
            return []
        verdict_series = [
            series for series in self.head.series if series.role is Role.VERDICT and series.refused is None
        ]
        added = self._adding.aggregate()
        return [
            self._status(series, added.totals[series.id], added.lost, added.missed)
            for series in verdict_series or self.head.series
        ]

    def _status(
        self, series: Series, total: Histogram, lost: Mapping[int, int], missed: Mapping[int, int]
    ) -> SeriesStatus:
        def in_ns(value: int | None) -> float | None:
            return None if value is None else value * series.unit_ns

        maximum, at_mono_ns = self._maxima.get(series.id, (None, 0))
        since_ns = None if maximum is None or self.last is None else self.last.end_mono_ns - at_mono_ns
        return SeriesStatus(
            series,
            total.total,
            lost[series.id],
            missed[series.id],
            in_ns(_tail(series, total)),
            in_ns(maximum),
            since_ns,
            in_ns(self._greatest_of_last(series)),
        )


_QUIET_S, _QUIET_INTERVALS = 3.0, 3
_GIVE_UP_S, _GIVE_UP_INTERVALS = 30.0, 10
REPLACED = "the file was replaced; the new file is read from its beginning"


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn errors into BadInput of one line, with the owner if permission is denied."""
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
    """Owner of the path, or of the nearest readable directory above it."""
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
        """Number of recorded bytes not read yet."""
        return self._tail.behind_bytes

    @property
    def grown_wall_ns(self) -> int:
        """Time of the last write."""
        return self._tail.grown_wall_ns

    @property
    def quiet_s(self) -> float:
        """Time without new data; 0 if it is shorter than a few intervals."""
        quiet_s = time.monotonic() - self._grown_mono_s
        return quiet_s if quiet_s > self._intervals_s(_QUIET_S, _QUIET_INTERVALS) else 0.0

    @property
    def patience_s(self) -> float:
        """Time without new data after which the recording counts as abandoned."""
        return self._intervals_s(_GIVE_UP_S, _GIVE_UP_INTERVALS)

    def _intervals_s(self, least_s: float, intervals: int) -> float:
        head = self.following.head
        return max(least_s, 0.0 if head is None else intervals * head.interval_ns / 1e9)

    def look(self) -> bool:
        """Read new data; returns whether there was any.  ``over``: why no more data will follow."""
        if self._take():
            return True
        with _readable(self.path):
            fate = self._tail.fate()
        if fate is FileFate.GONE and not self._take():
            self.over = self._end_reason()
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
        """Whether the writer of a run in the store has ended; False for other files, where it is unknown."""
        return self._name == LIVE_FILE and not is_live(self._folder)

    def _end_reason(self) -> str:
        try:
            self._folder.status(SEALED_FILE)
        except OSError:
            return "the file was removed"
        return "the recording process died; its data were sealed"


class StoreRuns:
    """The runs of a store, read without its index; raises BadInput if that is not possible."""

    def __init__(self, store: Path) -> None:
        self._path = store / "runs"
        with _readable(self._path):
            if not self._path.is_dir():
                raise BadInput(f"no store at {store}; 'fastenough run' creates one, --store selects another")
            self._runs = Folder.at(self._path)

    def close(self) -> None:
        self._runs.close()

    def find(self, prefix: str) -> str:
        """Directory of the run with this id prefix, or of the newest for ``last``; raises BadInput."""
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
        """Directory of the newest run in progress, None if there is none."""
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
        """Whether a run is being recorded; its writer takes the lock before it writes ``run.json``."""
        if self._runs.status_below(name, SEALED_FILE) is not None:
            return False
        with self._runs.below(name) as folder:
            return _has(folder, RUN_FILE) and is_live(folder)

    def recording(self, name: str) -> tuple[Folder, str]:
        """Directory and file name of the recording of a run, which may be sealed."""
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
    """Directory and file name of the recording at a path, a file or a run directory; raises BadInput."""
    with _readable(path):
        if not path.is_dir():
            if not path.exists():
                raise BadInput(f"no such file: {path}; name a recording or a run of the store (see 'fastenough list')")
            return Folder.at(path.parent), path.name
        folder = Folder.at(path)
        return folder, LIVE_FILE if _has(folder, LIVE_FILE) else SEALED_FILE


def is_path(named: str) -> bool:
    """Whether a name is a path and not a run of the store."""
    with suppress(OSError):
        return os.sep in named or Path(named).exists()
    return False
