# SPDX-License-Identifier: GPL-2.0-or-later
"""JSON of the tests that count cycles: cyclictest (rt-tests 1.10 to 2.10), signaltest, cyclicdeadline."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from fastenough.exchange import cyclictest
from fastenough.exchange.imported import ImportedRun, ImportedSeries
from fastenough.exchange.rt_tests import histogram_of, imported_run, mean_of, number, test_of, threads_of
from fastenough.exchange.source import Source

EVENTS = {
    "cyclictest": ("wakeup", cyclictest.FROM, cyclictest.TO),
    "signaltest": (
        "signal-round",
        "the thread sends the signal on to the next thread",
        "the signal has gone through all threads and the thread reads its clock",
    ),
    "cyclicdeadline": ("wakeup", "the begin of the deadline task's period", "the task reads its clock"),
}
"""Name of the series and the two events, by test."""


class _Cycles:
    what = "cyclictest, signaltest, cyclicdeadline: JSON"

    def recognises(self, source: Source) -> bool:
        return test_of(source) in EVENTS

    def read(self, source: Source) -> ImportedRun:
        test = test_of(source)
        return imported_run(source, test, _series(source, test))


IMPORTER = _Cycles()


def _series(source: Source, test: str) -> Iterator[ImportedSeries]:
    unit_ns = 1 if source.json.get("resolution_in_ns") == 1 else 1000
    for thread, entry in threads_of(source).items():
        count, low, high = (number(source, entry, name) for name in ("cycles", "min", "max"))
        mean = mean_of(source, entry) if count else None
        buckets = histogram_of(source, entry)
        cpu = entry.get("cpu")
        if test == "cyclicdeadline" and buckets:
            low = min(low, buckets[0][0])  # it takes a minimum of 0 for none yet, and the next value for the minimum
        yield ImportedSeries(
            *EVENTS[test],
            unit_ns,
            count,
            low if count else None,
            high if count else None,
            mean,
            Decimal("0.01"),
            overflow=count - sum(n for _, _, n in buckets) if buckets else None,
            overflow_from=buckets[-1][1] + 1 if buckets else None,
            buckets=buckets,
            cpu=cpu if type(cpu) is int and cpu >= 0 else None,
            labels={"thread": thread},
        )
