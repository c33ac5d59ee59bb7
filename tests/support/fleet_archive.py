# SPDX-License-Identifier: GPL-2.0-or-later
"""A small archive of a fleet whose truth is known: boards of two types, among them some with planted faults."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from fastenough.fleet.archive import ArchiveRow, FleetArchive, PartPlace
from fastenough.fleet.board_rows import BoardRows, board_groups, rows_of, shard_files
from fastenough.fleet.chunk import shard_of
from fastenough.fleet.workers import BoardJob, event_columns_of
from fastenough.recording.histogram import Histogram, bucket_lowest
from fastenough.recording.timeline import INTERVAL_K

BEGIN_NS = 1_790_000_000 * 10**9
HOUR_NS = 3600 * 10**9
TYPICAL_NS = 10_000.0
T = TypeVar("T")


def machine(number: int) -> str:
    """Machine id of a board."""
    return hashlib.md5(f"archived board {number}".encode(), usedforsecurity=False).hexdigest()


def row(board: str, run: str, place: tuple[int, int], values: np.ndarray, length_ns: int = HOUR_NS) -> ArchiveRow:
    """The row of an interval; ``place``: CPU and number."""
    cpu, number = place
    held = Histogram.from_values(values.astype(np.int64), INTERVAL_K)
    begin_ns = BEGIN_NS + number * length_ns
    return ArchiveRow(
        board,
        run,
        cpu,
        number,
        begin_ns,
        begin_ns + length_ns,
        "timer/wakeup",
        held.total,
        0,
        0,
        held.minimum,
        held.maximum,
        held.sum,
        bucket_lowest(held.index, held.k).tolist(),
        held.count.tolist(),
    )


def latencies(random: np.random.Generator, size: int, factor: float = 1.0) -> np.ndarray:
    """Latencies of about 10 µs, none above 30 µs for a factor of 1."""
    return factor * np.minimum(TYPICAL_NS * random.lognormal(0.0, 0.2, size), 3 * TYPICAL_NS)


def write(folder: Path, rows: Iterable[tuple[str, ArchiveRow]], parts: int = 3) -> Path:
    """An archive of these rows, each with its type of board; intervals are spread over so many files of a shard."""
    archive = FleetArchive(str(folder))
    held: dict[PartPlace, list[tuple[str, ArchiveRow]]] = {}
    for kind, single in rows:
        place = PartPlace(shard_of(single.board), 0, 1 + single.interval % parts)
        held.setdefault(place, []).append((kind, single))
    for place, of_part in held.items():
        archive.write(place, of_part)
    return folder


def by_hand(folder: Path, job: BoardJob[T]) -> list[T]:
    """The results of a job in this process, in the order of boards."""
    groups = [(files, group) for files in shard_files(str(folder)) for group in board_groups(files)]
    boards = sum(len(group) for _, group in groups)
    results = [
        (rows.board, job.of_board(rows, boards))
        for files, group in groups
        for rows in rows_of(files, group, job.columns, event_columns_of(job))
    ]
    return [result for _, result in sorted(results, key=lambda pair: pair[0])]


@dataclass(frozen=True)
class SlowJob:
    """Another job that takes its time; each process that computes it notes its id in ``folder``."""

    job: BoardJob[Any]
    folder: Path

    @property
    def columns(self) -> tuple[str, ...]:
        return self.job.columns

    @property
    def event_columns(self) -> tuple[str, ...]:
        return event_columns_of(self.job)

    def of_board(self, board: BoardRows, boards: int) -> Any:
        (self.folder / str(os.getpid())).touch()
        time.sleep(0.2)
        return self.job.of_board(board, boards)
