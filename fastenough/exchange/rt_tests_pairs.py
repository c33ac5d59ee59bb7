# SPDX-License-Identifier: GPL-2.0-or-later
"""pmqtest, ptsematest, svsematest, sigwaittest: JSON of rt-tests of pairs of threads, one waking the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from fastenough.exchange.imported import ImportedRun, ImportedSeries
from fastenough.exchange.rt_tests import imported_run, mean_of, number, test_of, threads_of, tool_of
from fastenough.exchange.source import Source

FROM = "the sender wakes the receiver"
TO = "the receiver reads its clock"


class _Pairs:
    what = "pmqtest, ptsematest, svsematest, sigwaittest: JSON"

    def recognises(self, source: Source) -> bool:
        return test_of(source) == "pairs"

    def read(self, source: Source) -> ImportedRun:
        return imported_run(source, tool_of(source), _series(source))


IMPORTER = _Pairs()


def _series(source: Source) -> Iterator[ImportedSeries]:
    for pair, entry in threads_of(source).items():
        sender, receiver = (_part(source, entry, name) for name in ("sender", "receiver"))
        count, interval_us = number(source, sender, "samples"), number(source, sender, "interval")
        low, high = (number(source, receiver, name) for name in ("min", "max"))
        mean = mean_of(source, receiver)
        cpu = receiver.get("cpu")
        yield ImportedSeries(
            "handover",
            FROM,
            TO,
            1000,
            count,
            low if count else None,
            high if count else None,
            mean if count else None,
            Decimal("0.01"),
            cpu=cpu if type(cpu) is int and cpu >= 0 else None,
            period_ns=max(0, interval_us) * 1000 or None,
            labels={"pair": pair},
        )


def _part(source: Source, entry: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = entry.get(name)
    if not isinstance(part, dict):
        source.refuse(f"a pair has no {name}")
    return part
