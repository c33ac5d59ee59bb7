# SPDX-License-Identifier: GPL-2.0-or-later
"""Histograms as an HdrHistogram log of version 1.3, each series a line with its V2 compressed histogram, in ns.

Three significant digits: HdrHistogram's buckets are then those of k = 10 (docs/format.md), so that what boards recorded
is exported exactly.  Finer ones are folded at their upper edges: no value is understated.
Source: the encoding as the HdrHistogram project defines it (V2EncodingCookieBase 0x1c849303, ZigZag LEB128).
"""

from __future__ import annotations

import base64
import json
import math
import re
import struct
import zlib
from collections.abc import Iterator, Sequence

import numpy as np

from fastenough.exchange.rows import SeriesTotal, known_duration_ns, run_identity, series_totals
from fastenough.model import BadInput
from fastenough.recording import Recording
from fastenough.recording.histogram import bucket_highest, bucket_index

_K = 10
_DIGITS = 3
_PLAIN, _COMPRESSED = 0x1C849313, 0x1C849314
_HEAD = ">iiiiqqd"
_NS_IN_MS = 1e6
_MOST_NS = 2**62
"""HdrHistogram's values have 63 bits, and the end of the bucket of the greatest value must fit as well."""
_UNTAGGED = re.compile(r"[\s,]+")


def zigzag(value: int) -> bytes:
    """LEB128 of the ZigZag of a 64-bit integer, of which a ninth byte holds 8 bits."""
    rest = ((value << 1) ^ (value >> 63)) & (2**64 - 1)
    encoded = bytearray()
    while rest >= 0x80 and len(encoded) < 8:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


def payload(index: Sequence[int], count: Sequence[int]) -> bytes:
    """Counts from bucket 0 on; a negative number is a run of that many empty buckets."""
    encoded, at = bytearray(), 0
    for place, number in zip(index, count, strict=True):
        if place > at:
            encoded += zigzag(at - place)
        encoded += zigzag(number)
        at = place + 1
    return bytes(encoded)


def compressed(held: SeriesTotal) -> bytes:
    """One series as a V2 compressed histogram."""
    greatest = np.array([math.ceil(high) for _, high, _ in held.buckets_ns()], dtype=np.int64)
    index, place = np.unique(bucket_index(greatest, _K), return_inverse=True)
    count = np.zeros(index.size, dtype=np.int64)
    np.add.at(count, place, held.total.count)
    highest = max(2, int(bucket_highest(index[-1:], _K)[0])) if index.size else 2
    body = payload(index.tolist(), count.tolist())
    plain = struct.pack(_HEAD, _PLAIN, len(body), 0, _DIGITS, 1, highest, 1.0) + body
    packed = zlib.compress(plain)
    return struct.pack(">ii", _COMPRESSED, len(packed)) + packed


def _tag(held: SeriesTotal) -> str:
    """Identity of the run and of the series; with the id, since two series may differ only in their events."""
    series = held.series
    parts = {"id": series.id, "cpu": series.cpu, "bytes": series.bytes, "period_ns": series.period_ns}
    named = [f"{name}={value}" for name, value in parts.items() if value is not None]
    return _UNTAGGED.sub("_", "/".join(filter(None, (held.recording.run_id, series.name, *named, held.labels))))


def _run_comments(recordings: Sequence[Recording]) -> str:
    """A comment for each run, with its identity as one JSON object, and one for unknown times, 0 in its lines."""
    lines = []
    for recording in recordings:
        lines.append(f"#[Run: {json.dumps(run_identity(recording.head))}]\n")
        unknown = {
            "StartTimestamp": not recording.head.begin.wall_ns,
            "Interval_Length": known_duration_ns(recording) is None,
        }
        names = " and ".join(name for name, is_unknown in unknown.items() if is_unknown)
        if names:
            lines.append(f"#[Unknown in this run, 0 in its lines: {names}]\n")
    return "".join(lines)


def _lines(held: SeriesTotal, start_s: float) -> Iterator[str]:
    begin_s = held.recording.head.begin.wall_ns / 1e9
    if held.lost:
        yield f"#[{held.lost} values of the next histogram were lost: the maximum may be among them]\n"
    if held.missed:
        yield f"#[{held.missed} activations of the next histogram were missed: they have no value]\n"
    source = held.series.source_summary
    if source is not None and source.omitted_count_unknown:
        yield "#[The source of the next histogram omits an unknown number of values]\n"
    if held.only_counted:
        yield f"#[{held.only_counted} values of the next were only counted, and stand at the greatest they may be]\n"
    greatest_ms = held.buckets_ns()[-1][1] / _NS_IN_MS if held.total.total else 0.0
    encoded = base64.b64encode(compressed(held)).decode()
    yield (
        f"Tag={_tag(held)},{max(0.0, begin_s - start_s):.3f},{held.recording.duration_ns / 1e9:.3f},"
        f"{greatest_ms:.6f},{encoded}\n"
    )


def export(recordings: Sequence[Recording]) -> bytes:
    """Raises BadInput for negative values and values above 2^62 ns, which HdrHistogram does not support."""
    series = list(series_totals(recordings))
    negative = next((held for held in series if (held.total.minimum or 0) < 0), None)
    if negative is not None:
        raise BadInput(
            f"run {negative.recording.run_id}: {negative.series.name} has negative values, which no "
            "HdrHistogram can hold; export it as csv, json or parquet"
        )
    longest = next((held for held in series if (held.total.maximum or 0) * held.series.unit_ns > _MOST_NS), None)
    if longest is not None:
        raise BadInput(
            f"run {longest.recording.run_id}: {longest.series.name} has values above {_MOST_NS} ns, which no "
            "HdrHistogram can hold; export it as csv, json or parquet"
        )
    begins_ns = [recording.head.begin.wall_ns for recording in recordings if recording.head.begin.wall_ns]
    start_s = min(begins_ns, default=0) / 1e9
    start = f"#[StartTime: {start_s:.3f} (seconds since epoch)]\n" if begins_ns else ""
    head = (
        "#[Histogram log format version 1.3]\n"
        f"{start}{_run_comments(recordings)}"
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n'
    )
    return (head + "".join(line for held in series for line in _lines(held, start_s))).encode()
