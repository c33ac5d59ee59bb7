# SPDX-License-Identifier: GPL-2.0-or-later
"""Totals of a recording as a table with a row for each series, with its head and end as metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from typing import Any, TypedDict

import fastjsonschema
import numpy as np
import pyarrow as pa

from fastenough.model import BadInput, Series
from fastenough.recording import parquet
from fastenough.recording.aggregate import Aggregate, CounterSum, LoadSum
from fastenough.recording.head import LimitCount
from fastenough.recording.histogram import Histogram, bucket_index
from fastenough.recording.lines import parse_line
from fastenough.recording.rises import Rises

VERSION = 2
_KEY = b"fastenough"
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("cpu", pa.int64()),
        ("unit", pa.string()),
        ("k", pa.int64()),
        ("stored", pa.int64()),
        ("lost", pa.int64()),
        ("missed", pa.int64()),
        ("min", pa.int64()),
        ("max", pa.int64()),
        ("sum", pa.decimal128(38, 0)),
        ("sum_sq", pa.string()),
        ("bucket", pa.list_(pa.int32())),
        ("bucket_count", pa.list_(pa.int64())),
    ]
)
_INTEGER = {"type": "integer"}
_INTEGERS = {"type": "object", "additionalProperties": _INTEGER}
_BY_NAME = {"type": "object", "additionalProperties": _INTEGERS}
_SUMS = {
    "type": "object",
    "properties": {
        "intervals": _INTEGER,
        "begin_mono_ns": _INTEGER,
        "end_mono_ns": _INTEGER,
        "counters": _BY_NAME,
        "events": _INTEGERS,
        "covered_ns": _INTEGERS,
        "load": _INTEGERS,
        "order": {"type": "object", "properties": {"limits": _BY_NAME, "order_unknown": _INTEGERS}},
    },
}
"""Schema of the metadata without head and end: a file edited by hand may contain anything."""


@cache
def _sums_check() -> Any:
    return fastjsonschema.compile(_SUMS)


def file_bytes(
    sha256: str, head: Mapping[str, Any], end: Mapping[str, Any] | None, series: tuple[Series, ...], added: Aggregate
) -> bytes:
    """The content of the file; ``sha256``: hash of the recording; ``head`` and ``end``: its lines."""
    totals = [added.totals[declared.id] for declared in series]
    values: dict[str, Sequence[object]] = {
        "id": [declared.id for declared in series],
        "name": [declared.name for declared in series],
        "cpu": [declared.cpu for declared in series],
        "unit": [declared.unit for declared in series],
        "k": [declared.k for declared in series],
        "stored": [total.total for total in totals],
        "lost": [added.lost[declared.id] for declared in series],
        "missed": [added.missed[declared.id] for declared in series],
        "min": [total.minimum for total in totals],
        "max": [total.maximum for total in totals],
        "sum": [total.sum for total in totals],
        "sum_sq": [str(total.sum_sq) for total in totals],
        "bucket": [total.index for total in totals],
        "bucket_count": [total.count for total in totals],
    }
    metadata = {
        "version": VERSION,
        "recording_sha256": sha256,
        "head": head,
        "end": end,
        "intervals": added.intervals,
        "begin_mono_ns": added.begin_mono_ns,
        "end_mono_ns": added.end_mono_ns,
        "counters": {name: asdict(counter) for name, counter in added.counters.items()},
        "events": added.events,
        "order": _order_entry(added),
        "covered_ns": added.covered_ns,
        "load": asdict(added.load),
        "wide": {number: total.wide for number, total in added.totals.items() if total.wide},
    }
    schema = SCHEMA.with_metadata({_KEY: json.dumps(metadata)})
    return parquet.file_bytes(pa.table([pa.array(values[field.name], field.type) for field in SCHEMA], schema=schema))


def read(content: bytes, name: str, sha256: str, most_values: int) -> tuple[dict[str, Any], Aggregate]:
    """The metadata of the file, and the sums; raises BadInput, also for another recording."""
    file = parquet.open_file(content, name, SCHEMA, most_values)
    try:
        metadata = parse_line((file.schema_arrow.metadata or {})[_KEY])
        if metadata["version"] != VERSION or metadata["recording_sha256"] != sha256:
            raise ValueError("it has another version or belongs to another recording")
        _sums_check()(metadata)
        rows = parquet.table(file, name)
        totals = _histograms(rows, metadata.get("wide", {}))
        by_id = {
            column: dict(zip(rows["id"].to_pylist(), rows[column].to_pylist(), strict=True))
            for column in ("lost", "missed")
        }
        if len(by_id["lost"]) != rows.num_rows:
            raise ValueError("it contains a series twice")
        return metadata, Aggregate(
            totals,
            by_id["lost"],
            by_id["missed"],
            metadata["intervals"],
            metadata["begin_mono_ns"],
            metadata["end_mono_ns"],
            {counter: CounterSum(**values) for counter, values in metadata["counters"].items()},
            metadata["events"],
            **_order_of(metadata["order"]),
            covered_ns={int(number): ns for number, ns in metadata["covered_ns"].items()},
            load=LoadSum(**metadata["load"]),
        )
    except (
        pa.ArrowException,
        fastjsonschema.JsonSchemaException,
        AttributeError,
        KeyError,
        TypeError,
        ValueError,
        IndexError,
        OverflowError,
    ) as error:
        raise BadInput(f"{name}: not valid columns: {str(error)[:200]}") from error


class _Order(TypedDict):
    """Rises and gaps in the order of values, by series id."""

    rises: dict[int, Rises]
    limits: dict[int, LimitCount]
    order_unknown: dict[int, int]


def _order_entry(added: Aggregate) -> dict[str, Mapping[int, object]]:
    """Rises and gaps in the order of values as JSON."""
    return {
        "rises": {number: [rises.k, rises.entries()] for number, rises in added.rises.items()},
        "limits": {number: asdict(count) for number, count in added.limits.items()},
        "order_unknown": added.order_unknown,
    }


def _order_of(order: Mapping[str, Any]) -> _Order:
    return {
        "rises": {int(number): Rises.of(entries, k) for number, (k, entries) in order["rises"].items()},
        "limits": {int(number): LimitCount(**count) for number, count in order["limits"].items()},
        "order_unknown": {int(number): gaps for number, gaps in order["order_unknown"].items()},
    }


def _histograms(rows: pa.Table, wide: Mapping[str, Any]) -> dict[int, Histogram]:
    """Histograms by series id; raises ValueError if buckets, count and extremes contradict each other."""
    scalars = rows.select(["id", "k", "stored", "min", "max", "sum", "sum_sq"]).to_pylist()
    lists = [rows[name].combine_chunks() for name in ("bucket", "bucket_count")]
    lists = [part.chunk(0) if isinstance(part, pa.ChunkedArray) else part for part in lists]
    totals = {}
    for place, row in enumerate(scalars):
        index, count = (np.array(part[place].values.to_numpy(), dtype=np.int64) for part in lists)  # copies
        total = Histogram(
            row["k"],
            index,
            count,
            row["min"],
            row["max"],
            int(row["sum"]),
            int(row["sum_sq"]),
            tuple((int(bucket), int(least)) for bucket, least in wide.get(str(row["id"]), ())),
        )
        if not {bucket for bucket, _ in total.wide} <= set(index.tolist()):
            raise ValueError("a wide bucket is missing")
        if index.size != count.size or np.any(np.diff(index) <= 0) or np.any(count < 1) or total.total != row["stored"]:
            raise ValueError("its buckets and counts contradict each other")
        if index.size and tuple(bucket_index([row["min"], row["max"]], row["k"])) != (index[0], index[-1]):
            raise ValueError("the minimum or maximum lies outside its bucket")
        totals[row["id"]] = total
    return totals
