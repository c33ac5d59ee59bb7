# SPDX-License-Identifier: GPL-2.0-or-later
"""rteval's summary.xml: histograms of cyclictest, or of rtla timerlat, for each core.

rteval's histograms end at 3,500 µs.  If cyclictest measured a longer latency it omits all numbers; of timerlat it
drops the longer ones silently, and adds the samples of interrupt, thread and user space into one histogram.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from xml.etree import ElementTree

from fastenough.exchange import cyclictest
from fastenough.exchange.imported import Bucket, ImportedRun, ImportedSeries, wall_ns
from fastenough.exchange.rt_tests import MOST_THREADS
from fastenough.exchange.source import LineReader, Source
from fastenough.model import Configuration, Role
from fastenough.recording.head import RecordedSetting

_ROOT = re.compile(r"\s*(?:<\?xml[^>]*\?>\s*)?<rteval[\s>]")
_DECLARED = re.compile(r"<!(?:DOCTYPE|ENTITY)", re.IGNORECASE)
_BUCKETS = re.compile(r"(?:^|\s)-(?:h|E)\s*(\d{1,7})(?:\s|$)")
_INTERVAL = re.compile(r"(?:^|\s)-(?:i|p)(\d{1,9})(?:\s|$)")
_MEASURED = {
    "cyclictest": ("wakeup", cyclictest.FROM, cyclictest.TO),
    "timerlat": ("irq-thread-user", "the instant the timer was due", "its interrupt, its thread or user space runs"),
}
_CAVEATS = {
    "cyclictest": "rteval omits all numbers if a latency exceeds its histogram",
    "timerlat": "rteval adds the samples of interrupt, thread and user space into one histogram and silently drops "
    "those beyond it: no latency of a task follows from it",
}


class _Rteval:
    what = "rteval: summary.xml"

    def recognises(self, source: Source) -> bool:
        return bool(_ROOT.match(source.text))

    def read(self, source: Source) -> ImportedRun:
        root = _parsed(source)
        parts = [part for name in _MEASURED for part in root.iter(name)]
        if len(parts) != 1:
            source.refuse(f"it contains {len(parts)} measurements of cyclictest and timerlat; only one can be imported")
        part = parts[0]
        line = part.get("command_line", "")
        series = tuple(_series(source, part, line))
        settings = tuple(
            RecordedSetting("priority", None, int(core.get("priority", "")), thread=core.get("id"))
            for core in part.findall("core")
            if core.get("priority", "").isdecimal()
        )
        node, release = _text_at(root, "uname/node"), _text_at(root, "uname/kernel")
        facts = {
            "measured by": part.tag,
            "command line": line,
            "caveat": _CAVEATS[part.tag],
            "loads": _text_at(root, "loads/command_line") or "",
            "cpu": _text_at(root, "CPUtopology") or "",
            "date": _text_at(root, "run_info/date") or "",
            "time": _text_at(root, "run_info/time") or "",
        }
        return ImportedRun(
            "rteval",
            root.get("version"),
            "linux-user" if part.tag == "cyclictest" else "linux-kernel",
            series,
            probe=f"rteval-{part.tag}",
            settings=settings,
            facts={name: value for name, value in facts.items() if value},
            begin_wall_ns=_begin_ns(root),
            duration_ns=_duration_ns(source, root),
            board=node,
            configuration=None if release is None else Configuration(release, release),
            profile=None if release is None else {"hostname": node, "kernel": {"release": release}},
        )


IMPORTER = _Rteval()


def _parsed(source: Source) -> ElementTree.Element:
    if _DECLARED.search(source.text):
        source.refuse("it declares a document type or entities, which rteval never writes")
    try:
        return ElementTree.fromstring(source.content)
    except (ElementTree.ParseError, ValueError, LookupError, RecursionError) as error:
        source.refuse(f"its XML is truncated or damaged: {str(error)[:80]}")


def _text_at(root: ElementTree.Element, path: str) -> str | None:
    """The text of the first element at the end of this path, wherever the path begins."""
    element = root.find(f".//{path}")
    return element.text.strip() if element is not None and element.text and element.text.strip() else None


def _begin_ns(root: ElementTree.Element) -> int | None:
    """The begin; rteval itself writes the local time without its zone, so that the begin is unknown."""
    date, time = _text_at(root, "run_info/date"), _text_at(root, "run_info/time")
    try:
        return wall_ns(datetime.fromisoformat(f"{date}T{time}"))
    except (ValueError, OverflowError, OSError):
        return None


def _duration_ns(source: Source, root: ElementTree.Element) -> int | None:
    run = root.find("run_info")
    if run is None:
        return None
    reading, total = LineReader(source), 0
    for name, seconds in (("days", 86400), ("hours", 3600), ("minutes", 60), ("seconds", 1)):
        total += reading.count(run.get(name, "0"), name) * seconds
    return total * 10**9 or None


def _series(source: Source, part: ElementTree.Element, command_line: str) -> Iterator[ImportedSeries]:
    cores = part.findall("core")
    if not cores:
        source.refuse(
            "it contains no core: rteval omits all numbers if a latency exceeds its histogram"
            if part.tag == "cyclictest"
            else "it contains no core: rteval omits all numbers if a threshold stops timerlat"
        )
    if len(cores) > MOST_THREADS:
        source.refuse(f"it contains more than {MOST_THREADS} cores")
    series = [_of_core(source, part.tag, core, command_line) for core in cores]
    _check_system(source, part, series)
    yield from series


def _of_core(source: Source, measured: str, core: ElementTree.Element, command_line: str) -> ImportedSeries:
    """If the maximum is beyond the histogram, at least one value is; their number is unknown."""
    reading = LineReader(source)
    cpu, statistics = reading.count(core.get("id", ""), "the id of a core"), _statistics(core)
    samples = reading.count(statistics.get("samples", ""), "samples")
    buckets = tuple(_buckets(reading, core))
    low, high = (reading.count(statistics.get(name, ""), name) if samples else None for name in ("minimum", "maximum"))
    if sum(count for _, _, count in buckets) != samples:
        source.refuse(f"core {cpu}: its histogram does not add up to its {samples} samples: file truncated or modified")
    buckets_option = _BUCKETS.search(command_line)
    end = max(int(buckets_option[1]) if buckets_option else 0, buckets[-1][1] + 1 if buckets else 0)
    beyond = high is not None and bool(buckets) and high > buckets[-1][1]
    interval = _INTERVAL.search(command_line)
    return ImportedSeries(
        *_MEASURED[measured],
        1000,
        None if beyond else samples,
        low,
        high,
        _mean(source, statistics) if samples and not beyond else None,
        Decimal("0.001"),
        overflow=int(beyond),
        overflow_from=min(end, high or 0) if beyond else end,
        buckets=buckets,
        cpu=cpu,
        period_ns=int(interval[1]) * 1000 or None if interval else None,
        role=Role.VERDICT if measured == "cyclictest" else Role.DIAGNOSTIC,
    )


def _statistics(core: ElementTree.Element) -> Mapping[str, str]:
    held = core.find("statistics")
    return (
        {}
        if held is None
        else {value.tag: (value.text or "").strip() for value in held if value.get("unit") in (None, "us")}
    )


def _buckets(reading: LineReader, core: ElementTree.Element) -> Iterator[Bucket]:
    last = -1
    for bucket in core.iterfind("histogram/bucket"):
        edge, count = (reading.count(bucket.get(name, ""), name) for name in ("index", "value"))
        if edge <= last:
            reading.source.refuse("the buckets of its histogram do not ascend")
        last = edge
        yield edge, edge, count


def _mean(source: Source, statistics: Mapping[str, str]) -> Decimal:
    try:
        mean = Decimal(statistics.get("mean", ""))
    except InvalidOperation:
        mean = Decimal("NaN")
    if not mean.is_finite() or not 0 <= mean < 10**15:
        source.refuse(f"mean is not a number: {statistics.get('mean', '')[:40]!r}")
    return mean


def _check_system(source: Source, part: ElementTree.Element, cores: list[ImportedSeries]) -> None:
    """Raises BadInput unless the summary of all cores is their sum."""
    system = part.find("system")
    samples = "" if system is None else _statistics(system).get("samples", "")
    if samples.isdecimal() and len(samples) < 19 and int(samples) != sum(core.placed for core in cores):
        source.refuse("the samples of the system do not match those of its cores: file truncated or modified")
