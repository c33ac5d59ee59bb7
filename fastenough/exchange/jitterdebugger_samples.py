# SPDX-License-Identifier: GPL-2.0-or-later
"""jitterdebugger's samples, each with its time: samples.raw (28 bytes each), and the CSV that jittersamples makes.

Neither states its unit: µs are assumed (no -N).  Neither has an end mark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from fastenough.exchange.imported import ImportedRun, ImportedSeries, TimedValues
from fastenough.exchange.jitterdebugger import FROM, TO
from fastenough.exchange.source import LineReader, Source

_RECORD = np.dtype([("cpu", "<u4"), ("s", "<i8"), ("ns", "<i8"), ("value", "<u8")])
_LINE = re.compile(r"(\d{1,5});(\d{1,10})\.(\d{9});(\d{1,18})")
_MOST_CPUS = 8192
_MOST_VALUE = 10**13
_MOST_S = 10**9
_LONGEST_S = 400 * 86400
_ROUNDED_NS = 10**6
"""Latencies are whole µs, and a time is read a little after its latency."""
IntArray = NDArray[np.int64]


class _Samples:
    what = "jitterdebugger: samples.raw and its CSV"

    def recognises(self, source: Source) -> bool:
        return bool(_LINE.fullmatch(source.lines[0])) or _is_raw(source.content)

    def read(self, source: Source) -> ImportedRun:
        if _LINE.fullmatch(source.lines[0]):
            cpu, mono_ns, value = _of_text(source)
        else:
            cpu, mono_ns, value = _of_raw(source)
        cpus = np.unique(cpu)
        samples = [TimedValues(mono_ns[cpu == number], value[cpu == number]) for number in cpus]
        if any(np.any(np.diff(sample.mono_ns) < 0) for sample in samples):
            source.refuse("the sample times of a CPU go backwards: file modified")
        if any(np.any(_due_ns(sample) < _due_ns(sample)[0] - _ROUNDED_NS) for sample in samples):
            source.refuse("a latency is longer than the elapsed measurement time: file modified")
        if int(mono_ns.max()) - int(mono_ns.min()) > _LONGEST_S * 10**9:
            source.refuse("its samples are more than a year apart: file modified")
        series = tuple(_series(int(number), sample) for number, sample in zip(cpus, samples, strict=True))
        facts = {
            "unit": "µs, assumed: the file does not say whether -N was given",
            "end": "not marked: a file cut between two samples is not told from a whole one",
        }
        return ImportedRun("jitterdebugger", None, "linux-user", series, facts=facts, samples=tuple(samples))


IMPORTER = _Samples()


def _due_ns(sample: TimedValues) -> IntArray:
    """Due time of each sample, from the first of all."""
    due_ns: IntArray = sample.mono_ns - sample.value * 1000
    return due_ns


def _is_raw(content: bytes) -> bool:
    """Whether the first records are valid: the format has no magic number."""
    if len(content) < _RECORD.itemsize or b"\0" not in content[: _RECORD.itemsize]:
        return False
    first = np.frombuffer(content[: len(content[: 64 * 28]) // 28 * 28], _RECORD)
    return not _fault(first)


def _fault(records: NDArray[np.void]) -> str | None:
    if np.any(records["cpu"] >= _MOST_CPUS):
        return "an impossible CPU number"
    if np.any((records["ns"] < 0) | (records["ns"] >= 10**9) | (records["s"] < 0) | (records["s"] > _MOST_S)):
        return "an invalid time"
    if np.any(records["value"] > _MOST_VALUE):
        return "a latency of more than 100 days"
    return None


def _of_raw(source: Source) -> tuple[IntArray, IntArray, IntArray]:
    size = _RECORD.itemsize
    if len(source.content) % size:
        source.refuse(f"it ends within a sample of {size} bytes: file truncated, or jitterdebugger was killed")
    records = np.frombuffer(source.content, _RECORD)
    fault = _fault(records)
    if fault is not None:
        source.refuse(f"a sample has {fault}")
    return (records["cpu"].astype(np.int64), records["s"] * 10**9 + records["ns"], records["value"].astype(np.int64))


def _of_text(source: Source) -> tuple[IntArray, IntArray, IntArray]:
    source.whole()
    rows = np.array(list(_rows(LineReader(source))), dtype=np.int64)
    return rows[:, 0], rows[:, 1], rows[:, 2]


def _rows(reading: LineReader) -> Iterator[tuple[int, int, int]]:
    last = len(reading.source.lines)
    for line in reading:
        match = _LINE.fullmatch(line)
        if match is not None:
            cpu, seconds, nanoseconds, value = map(int, match.groups())
            if seconds > _MOST_S or value > _MOST_VALUE or cpu >= _MOST_CPUS:
                reading.refuse("an impossible sample")
            yield cpu, seconds * 10**9 + nanoseconds, value
        elif line or reading.number != last:
            reading.refuse(f"not a sample: {line[:60]!r}")


def _series(cpu: int, sample: TimedValues) -> ImportedSeries:
    values, counts = np.unique(sample.value, return_counts=True)
    mean = Decimal(int(sample.value.sum(dtype=np.object_))) / len(sample.value)
    return ImportedSeries(
        "wakeup",
        FROM,
        TO,
        1000,
        len(sample.value),
        int(values[0]),
        int(values[-1]),
        mean,
        overflow=0,
        buckets=tuple((value, value, count) for value, count in zip(values.tolist(), counts.tolist(), strict=True)),
        cpu=cpu,
        clock="monotonic",
    )
