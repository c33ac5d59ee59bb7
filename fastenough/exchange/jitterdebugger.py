# SPDX-License-Identifier: GPL-2.0-or-later
"""jitterdebugger's results.json, versions 1 to 3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from fastenough.exchange.imported import ImportedRun, ImportedSeries
from fastenough.exchange.rt_tests import histogram_of, mean_of, number, with_system
from fastenough.exchange.source import Source

FROM = "the instant the sleep was to end, counted from before it"
TO = "the thread reads its clock after waking"


class _Jitterdebugger:
    what = "jitterdebugger: results.json"

    def recognises(self, source: Source) -> bool:
        if not source.text.lstrip().startswith("{") or '"cpu"' not in source.text:
            return False
        cpus = source.json.get("cpu")
        first = next(iter(cpus.values()), None) if isinstance(cpus, dict) else None
        return isinstance(first, dict) and "histogram" in first and "count" in first

    def read(self, source: Source) -> ImportedRun:
        document = source.json
        system = document.get("sysinfo")
        facts = {
            f"sysinfo.{name}": value
            for name, value in (system if isinstance(system, dict) else {}).items()
            if isinstance(value, str | int | float)
        }
        if type(document.get("version")) is int:
            facts["format version"] = document["version"]
        return with_system(
            ImportedRun(
                "jitterdebugger",
                None,
                "linux-user",
                tuple(_series(source, facts.get("sysinfo.resolution_in_ns"))),
                facts=facts,
            )
        )


IMPORTER = _Jitterdebugger()


def _series(source: Source, resolution: object) -> Iterator[ImportedSeries]:
    if resolution not in (None, 1, 1000):
        source.refuse(f"its resolution_in_ns is {resolution!r}, neither 1 nor 1000")
    entries: Mapping[str, Any] = source.json["cpu"]
    for cpu, entry in entries.items():
        if not cpu.isdecimal() or len(cpu) > 6 or not isinstance(entry, dict):
            source.refuse(f"{cpu[:40]!r} is not a CPU")
        count, low, high = (number(source, entry, name) for name in ("count", "min", "max"))
        buckets = histogram_of(source, entry)
        overflow = count - sum(n for _, _, n in buckets)
        yield ImportedSeries(
            "wakeup",
            FROM,
            TO,
            1 if resolution == 1 else 1000,
            count,
            low if count else None,
            high if count else None,
            mean_of(source, entry) if count else None,
            Decimal("0.01"),
            overflow=overflow,
            overflow_from=buckets[-1][1] + 1 if buckets else 0,
            buckets=buckets,
            cpu=int(cpu),
            clock="monotonic",
        )
