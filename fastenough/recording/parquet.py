# SPDX-License-Identifier: GPL-2.0-or-later
"""Untrusted Parquet files: read only with the expected schema and sizes."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from fastenough.model import BadInput

_MOST_METADATA = 64 << 20
_ROW_BYTES = 64
"""Maximum expanded size of a value."""


@contextmanager
def _bad_input(name: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, ValueError, KeyError, TypeError, OSError, MemoryError, RecursionError) as error:
        raise BadInput(f"{name}: not valid columns: {str(error)[:200]}") from error


def writer(stream: BinaryIO, schema: pa.Schema) -> pq.ParquetWriter:
    """A writer with a checksum for each page, to be closed by the caller."""
    return pq.ParquetWriter(stream, schema, compression="zstd", write_page_checksum=True, version="2.6")


def file_bytes(table: pa.Table) -> bytes:
    """A table as a file."""
    stream = io.BytesIO()
    with writer(stream, table.schema) as target:
        target.write_table(table)
    return stream.getvalue()


def open_file(content: bytes, name: str, schema: pa.Schema, most_values: int) -> pq.ParquetFile:
    """A file of this schema with at most ``most_values`` values in each column; raises BadInput."""
    with _bad_input(name):
        file = pq.ParquetFile(
            pa.BufferReader(content),
            page_checksum_verification=True,
            thrift_string_size_limit=_MOST_METADATA,
            thrift_container_size_limit=1 << 20,
        )
        if not file.schema_arrow.remove_metadata().equals(schema.remove_metadata()):
            raise ValueError("it has other columns")
        groups = [file.metadata.row_group(group) for group in range(file.num_row_groups)]
        for place in range(file.metadata.num_columns):
            parts = [group.column(place) for group in groups]
            if sum(part.num_values for part in parts) > most_values:
                raise ValueError(f"it declares more values than the {most_values} that its recording can hold")
            if sum(part.total_uncompressed_size for part in parts) > _MOST_METADATA + _ROW_BYTES * most_values:
                raise ValueError("it expands to more data than its recording can hold")
        return file


def table(file: pq.ParquetFile, name: str) -> pa.Table:
    """All rows; raises BadInput."""
    with _bad_input(name):
        return file.read(use_threads=False)


def groups(file: pq.ParquetFile, name: str) -> Iterator[pa.Table]:
    """The row groups one by one; raises BadInput."""
    for group in range(file.num_row_groups):
        with _bad_input(name):
            rows = file.read_row_group(group, use_threads=False)
        yield rows
