# SPDX-License-Identifier: GPL-2.0-or-later
"""Common data of the JSON files of rt-tests: test, version, time, kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from email.utils import parsedate_to_datetime
from itertools import pairwise
from typing import Any

from fastenough.exchange.imported import Bucket, ImportedRun, ImportedSeries, wall_ns
from fastenough.exchange.source import Source
from fastenough.model import Configuration

_FACTS = ("rt_test_version", "start_time", "end_time", "return_code", "resolution_in_ns", "num_threads")
MOST_THREADS = 8192


def threads_of(source: Source) -> dict[int, Mapping[str, Any]]:
    """Threads by number; raises BadInput if their number is not the stated one."""
    threads = source.json.get("thread")
    if not isinstance(threads, dict) or not all(isinstance(thread, dict) for thread in threads.values()):
        source.refuse("it has no threads")
    reported = source.json.get("num_threads")
    if list(threads) != [str(number) for number in range(len(threads))] or len(threads) > MOST_THREADS:
        source.refuse("its threads are not numbered from 0")
    if reported != len(threads):
        source.refuse(f"it reports {reported} threads but contains {len(threads)}: file truncated or modified")
    return {int(number): thread for number, thread in threads.items()}


_FIELDS = (
    ("oslat", {"cpu", "freq", "duration", "min", "max"}),
    ("pairs", {"sender", "receiver"}),
    ("cyclictest", {"cycles", "min", "max", "cpu", "node"}),
    ("signaltest", {"cycles", "min", "max", "cpu"}),
    ("cyclicdeadline", {"cycles", "min", "max"}),
)
"""Fields of a thread by test; the first test whose fields are all present is the one."""
_PAIRS = ("pmqtest", "ptsematest", "sigwaittest", "svsematest")


def test_of(source: Source) -> str:
    """The test of rt-tests that wrote this JSON, empty for none; ``pairs`` for those of pairs of threads.

    Raises BadInput if the test in the command line does not match the fields.
    """
    if not source.text.lstrip().startswith("{") or '"rt_test_version:"' not in source.text:
        return ""
    document = source.json
    if document.get("file_version") != 1:
        source.refuse(f"its file_version is {str(document.get('file_version'))[:40]!r}; only version 1 can be read")
    threads = document.get("thread")
    first = next(iter(threads.values()), None) if isinstance(threads, dict) else None
    fields = set(first) if isinstance(first, dict) else set()
    test = next((name for name, required in _FIELDS if required <= fields), "")
    named = tool_of(source)
    known = {name for name, _ in _FIELDS if name != "pairs"} | set(_PAIRS)
    if test and named in known and named != test and not (test == "pairs" and named in _PAIRS):
        source.refuse(f"its command line names {named}, but its fields are those of {test}: file modified")
    return test


def number(source: Source, entry: Mapping[str, Any], name: str) -> int:
    """An integer; raises BadInput."""
    value = entry.get(name)
    if type(value) is not int:
        source.refuse(f"{name} is not an integer: {str(value)[:40]!r}")
    return value


def mean_of(source: Source, entry: Mapping[str, Any]) -> Decimal:
    value = entry.get("avg")
    if type(value) not in (int, float):
        source.refuse(f"avg is not a number: {str(value)[:40]!r}")
    return Decimal(str(value))


def histogram_of(source: Source, entry: Mapping[str, Any]) -> tuple[Bucket, ...]:
    """Buckets of one unit in ascending order; raises BadInput."""
    held = entry.get("histogram", {})
    if not isinstance(held, dict) or not all(
        edge.isdecimal() and len(edge) < 19 and type(count) is int and count >= 0 for edge, count in held.items()
    ):
        source.refuse("a bucket of its histogram is not an integer")
    buckets = tuple((int(edge), int(edge), count) for edge, count in held.items())
    if any(bucket[0] >= following[0] for bucket, following in pairwise(buckets)):
        source.refuse("the buckets of its histogram do not ascend")
    return tuple(bucket for bucket in buckets if bucket[2])


def imported_run(source: Source, tool: str, series: Iterator[ImportedSeries]) -> ImportedRun:
    """The run in the file."""
    document = source.json
    facts = {
        name.rstrip(":"): value
        for name, value in document.items()
        if name.rstrip(":") in (*_FACTS, "cmdline") and isinstance(value, str | int | float)
    }
    system = document.get("sysinfo")
    facts |= {
        f"sysinfo.{name}": value
        for name, value in (system if isinstance(system, dict) else {}).items()
        if isinstance(value, str | int | float)
    }
    begin_ns, end_ns = (_wall_ns(source, facts.get(name)) for name in ("start_time", "end_time"))
    return with_system(
        ImportedRun(
            tool,
            _text(facts.get("rt_test_version")),
            "linux-user",
            tuple(series),
            facts=facts,
            begin_wall_ns=begin_ns,
            duration_ns=None if begin_ns is None or end_ns is None or end_ns <= begin_ns else end_ns - begin_ns,
        )
    )


def with_system(run: ImportedRun) -> ImportedRun:
    """The run with board and kernel from ``uname``."""
    release, host, version = (_text(run.facts.get(f"sysinfo.{name}")) for name in ("release", "nodename", "version"))
    if release is None:
        return replace(run, board=host)
    return replace(
        run,
        board=host,
        configuration=Configuration(release, release),
        profile={"hostname": host, "kernel": {"release": release, "version": version}},
    )


def tool_of(source: Source) -> str:
    """The test named by the command line."""
    arguments = str(source.json.get("cmdline:", "")).split()
    name = arguments[0].rpartition("/")[2] if arguments else ""
    return name if name.isidentifier() else "rt-tests"


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _wall_ns(source: Source, text: object) -> int | None:
    if not isinstance(text, str):
        return None
    try:
        return wall_ns(parsedate_to_datetime(text))
    except (ValueError, TypeError, OverflowError):
        source.refuse(f"not a time: {text[:60]!r}")
