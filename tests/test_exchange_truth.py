# SPDX-License-Identifier: GPL-2.0-or-later
"""Values that are known, written as each tool would write them, by a few lines that follow its source: what is
imported may leave out what the tool does not tell, and never understates it."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from cli_calls import ROOT

from fastenough.exchange import Found, FoundSeries, Source, found_in
from fastenough.exchange.recorded import histogram_of

CASES = ROOT / "tests" / "exchange_cases"


def of_text(text: str) -> Found:
    return found_in(Source("file", text.encode()))


def never_understates(series: FoundSeries, values_ns: Sequence[int]) -> bool:
    """Whether each rank of what was imported is no less than that of the values."""
    assert series.count == len(values_ns)
    held = histogram_of(series)
    ranks = np.arange(1, held.total + 1)
    told = held.highest()[np.searchsorted(np.cumsum(held.count), ranks)] * series.unit_ns
    return bool(np.all(told >= np.sort(values_ns)[:held.total]))


def xenomai(values_ns: Sequence[int], cell_ns: int, cells: int = 300) -> str:
    """``latency -h -s -B cell_ns -H cells``."""
    counts = [0] * cells
    for value_ns in values_ns:
        counts[min(abs(value_ns) // cell_ns, cells - 1)] += 1
    rows = "".join(f"HSD|    avg| {cell:3d} -{cell + 1:3d} | {n:8d}\n" for cell, n in enumerate(counts) if n)
    summary = "|".join(f"{ns / 1000:11.3f}" for ns in (
        min(values_ns), sum(values_ns) // len(values_ns), max(values_ns)))
    return ("== Sampling period: 1000 us\n== Test mode: periodic user-mode task\n"
            "RTT|  00:00:01  (periodic user-mode task, 1000 us period, priority 99)\n"
            f"---|--param|----range-|--samples\n{rows}HSH|--param|--samples-|--average--|---stddev--\n"
            f"HSS|    avg| {len(values_ns):9d}|      1.000|      1.000\n"
            f"RTS|{summary}|       0|     0|    00:00:02/00:00:02\n")


@pytest.mark.parametrize("cell_ns", [100, 500, 1000, 2000, 5000, 10_000])
def test_cells_of_xenomai_that_are_wider_than_a_microsecond_are_not_taken_for_one(cell_ns: int) -> None:
    draw = random.Random(cell_ns)
    values_ns = [round(draw.gammavariate(2, 800)) + 200 for _ in range(20_000)] + [12_300]
    series = of_text(xenomai(values_ns, cell_ns)).series[0]
    assert never_understates(series, values_ns)
    assert bool(series.buckets) == (cell_ns == 1000)


def test_the_last_cell_of_xenomai_holds_what_is_greater() -> None:
    values_ns = [1500] * 1000 + [450_000] * 7
    series = of_text(xenomai(values_ns, 1000)).series[0]
    assert (series.overflow, series.overflow_from) == (7, 299_000) and never_understates(series, values_ns)
