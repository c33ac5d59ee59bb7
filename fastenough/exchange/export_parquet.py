# SPDX-License-Identifier: GPL-2.0-or-later
"""Histograms as Parquet: the rows of the CSV, typed."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from fastenough.exchange.rows import COLUMNS, OMITTED_COLUMNS, rows
from fastenough.recording import Recording, parquet

_TYPES = {
    **dict.fromkeys(("id", "cpu", "bytes", "period_ns", *OMITTED_COLUMNS, "count"), pa.int64()),
    "corrected": pa.bool_(),
    "least_ns": pa.float64(),
    "greatest_ns": pa.float64(),
}
SCHEMA = pa.schema([(name, _TYPES.get(name, pa.string())) for name in COLUMNS])


def export(recordings: Sequence[Recording]) -> bytes:
    columns: list[list[object]] = [[] for _ in COLUMNS]
    for row in rows(recordings):
        for column, value in zip(columns, row, strict=True):
            column.append(value)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return parquet.file_bytes(pa.table(arrays, schema=SCHEMA))
