# SPDX-License-Identifier: GPL-2.0-or-later
"""cyclictest's JSON (--json), rt-tests 1.10 to 2.10."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from fastenough.exchange.cyclictest import FROM, TO
from fastenough.exchange.found import Found, FoundSeries
from fastenough.exchange.rt_tests import found_in, histogram_of, is_of, mean_of, number, threads_of
from fastenough.exchange.source import Source


class _CyclictestJson:
    what = "cyclictest: JSON"

    def recognises(self, source: Source) -> bool:
        return is_of(source, "cycles")

    def read(self, source: Source) -> Found:
        return found_in(source, "cyclictest", _series(source))


IMPORTER = _CyclictestJson()


def _series(source: Source) -> Iterator[FoundSeries]:
    unit_ns = 1 if source.json.get("resolution_in_ns") == 1 else 1000
    for thread, entry in threads_of(source).items():
        count, low, high = (number(source, entry, name) for name in ("cycles", "min", "max"))
        mean = mean_of(source, entry)
        buckets = histogram_of(source, entry)
        cpu = entry.get("cpu")
        yield FoundSeries(
            "wakeup", FROM, TO, unit_ns, count, low if count else None, high if count else None,
            mean if count else None, Decimal("0.01"),
            overflow=count - sum(n for _, _, n in buckets) if buckets else None,
            overflow_from=buckets[-1][1] + 1 if buckets else None, buckets=buckets,
            cpu=cpu if type(cpu) is int and cpu >= 0 else None, labels={"thread": thread})
