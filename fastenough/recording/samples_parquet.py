# SPDX-License-Identifier: GPL-2.0-or-later
"""Export of a sample file as Parquet: one pass, a few blocks in memory."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from fastenough.files import open_regular
from fastenough.recording import parquet
from fastenough.recording.samples import SAMPLE, read_blocks

SCHEMA = pa.schema(
    [("series", pa.int64()), ("due_ns", pa.int64()), ("latency_ns", pa.int64()), ("lost_before", pa.int64())]
)
"""``lost_before``: samples of the series lost between the sample before it and this one."""
_ROWS_AT_ONCE = 1 << 16


@dataclass
class Exported:
    """Numbers of written and lost samples by series id; not ``complete`` if the file is truncated."""

    written: dict[int, int] = field(default_factory=dict)
    lost: dict[int, int] = field(default_factory=dict)
    complete: bool = False


class _SampleRows:
    def __init__(self) -> None:
        self.blocks: list[list[pa.Array]] = []
        self.count = 0

    def add(self, series: int, samples: bytes, lost_before: int) -> None:
        content = np.frombuffer(samples, dtype=SAMPLE)
        before = np.zeros(content.size, dtype=np.int64)
        before[0] = lost_before
        values = [np.full(content.size, series, dtype=np.int64), content["due_ns"], content["latency_ns"], before]
        self.blocks.append([pa.array(column.astype(np.int64)) for column in values])
        self.count += content.size

    def table(self) -> pa.Table:
        columns = [pa.chunked_array(chunks, pa.int64()) for chunks in zip(*self.blocks, strict=True)]
        return pa.table(columns, schema=SCHEMA)


def export_samples(source: Path, target: BinaryIO) -> Exported:
    """Write all samples of a sample file; raises BadInput for another file, Untrusted or OSError."""
    exported = Exported()
    waiting: dict[int, int] = {}
    rows = _SampleRows()
    with open_regular(source) as stream, parquet.writer(target, SCHEMA) as writer:
        for series, lost, samples in read_blocks(stream, source, exported):
            exported.lost[series] = exported.lost.get(series, 0) + lost
            exported.written[series] = exported.written.get(series, 0) + len(samples) // SAMPLE.itemsize
            waiting[series] = waiting.get(series, 0) + lost
            if samples:
                rows.add(series, samples, waiting.pop(series))
            if rows.count >= _ROWS_AT_ONCE:
                writer.write_table(rows.table())
                rows = _SampleRows()
        if rows.count:
            writer.write_table(rows.table())
        writer.add_key_value_metadata({"fastenough": json.dumps(asdict(exported))})
    return exported
