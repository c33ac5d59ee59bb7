# SPDX-License-Identifier: GPL-2.0-or-later
"""Sample files: every sample of a run, as written by ``fastenough-probe timer --samples`` (docs/format.md)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from fastenough.files import open_regular
from fastenough.model import BadInput

_HEAD = struct.Struct("<8sII")
_BLOCK = struct.Struct("<IIQ")
SAMPLE = np.dtype([("due_ns", "<i8"), ("latency_ns", "<i8")])
_MAGIC, _VERSION = b"FESAMPLE", 1
_MOST_AT_ONCE = 4096
_MOST_LOST = 1 << 62
"""Of one series in a whole file."""
_END_SERIES = 0xFFFFFFFF


@dataclass(frozen=True)
class Samples:
    """Samples of one series in order of measurement: due times (on its clock), latencies, and number lost."""

    due_ns: NDArray[np.int64]
    latency_ns: NDArray[np.int64]
    lost: int


@dataclass
class SampleFile:
    """Samples by series id; not ``complete`` if the file is truncated: its samples are still valid."""

    series: dict[int, Samples]
    complete: bool


def _blocks(stream: BinaryIO, path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Series, lost and samples of each whole block; the end mark is the last one, if present."""
    while len(head := stream.read(_BLOCK.size)) == _BLOCK.size:
        series, count, lost = _BLOCK.unpack(head)
        if count > _MOST_AT_ONCE or lost > _MOST_LOST:
            raise BadInput(f"{path}: damaged after {stream.tell()} bytes: not a block of samples")
        samples = stream.read(count * SAMPLE.itemsize)
        if len(samples) < count * SAMPLE.itemsize:
            return
        yield series, lost, samples


def _samples(content: bytes, lost: int) -> Samples:
    samples = np.frombuffer(content, dtype=SAMPLE)
    return Samples(samples["due_ns"].astype(np.int64), samples["latency_ns"].astype(np.int64), lost)


class ReadState(Protocol):
    """State of a file that is being read; ``complete`` after the end mark."""

    complete: bool


def read_blocks(stream: BinaryIO, path: Path, progress: ReadState) -> Iterator[tuple[int, int, bytes]]:
    """Series, lost and samples of each block of a file; raises BadInput for another or damaged file."""
    head = stream.read(_HEAD.size)
    if len(head) < _HEAD.size or _HEAD.unpack(head) != (_MAGIC, _VERSION, SAMPLE.itemsize):
        raise BadInput(
            f"{path}: not a sample file of version {_VERSION}; create one with: fastenough-probe timer --samples FILE"
        )
    lost_of: dict[int, int] = {}
    for series, lost, samples in _blocks(stream, path):
        if progress.complete:
            raise BadInput(f"{path}: damaged: there is data after the end mark")
        lost_of[series] = lost_of.get(series, 0) + lost
        if lost_of[series] > _MOST_LOST:
            raise BadInput(f"{path}: damaged: series {series} lost more than {_MOST_LOST} samples")
        progress.complete = series == _END_SERIES
        if not progress.complete:
            yield series, lost, samples


def read_samples(path: Path) -> SampleFile:
    """All samples of a file; raises BadInput for another or damaged file, OSError as ``open`` does."""
    blocks_of: dict[int, list[bytes]] = {}
    lost: dict[int, int] = {}
    file = SampleFile({}, complete=False)
    with open_regular(path) as stream:
        for series, missing, samples in read_blocks(stream, path, file):
            blocks_of.setdefault(series, []).append(samples)
            lost[series] = lost.get(series, 0) + missing
    file.series |= {series: _samples(b"".join(blocks), lost[series]) for series, blocks in blocks_of.items()}
    return file
