# SPDX-License-Identifier: GPL-2.0-or-later
"""The tables of the sources as they are printed there, and recordings of which the same numbers follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fastenough.recording import Recording
from tests.support.recordings import Plan, recording

_OWN = (
    "linux-chrt-user linux-chrt-user xeno-user linux-kernel linux-kernel xeno-kernel",
    "linux-chrt-user linux-chrt-user linux-chrt-user linux-kernel linux-kernel linux-kernel",
)
_CONFIG = "stock rt xeno stock rt xeno"
_PERCENTILES = {
    4: (
        _OWN[0],
        "1840823 1849438 1926157 1259410 1924955 1943258",
        "67 99 26 7 28 9",
        "307 157 59 16 43 18",
        "17227 796 90 597 336 37",
    ),
    6: (
        _OWN[0],
        "1018391 1018387 1018318 1018255 1018249 1018449",
        "-2 -1 -1 0 0 -1",
        "69 47 34 17 24 23",
        "1205 158 57 504 98 41",
    ),
    8: (
        _OWN[1],
        "1840823 1849438 1842548 1259410 1924955 1939653",
        "67 99 84 7 28 11",
        "307 157 259 16 43 26",
        "17227 796 23645 597 336 537",
    ),
    9: (
        _OWN[1],
        "1018391 1018387 1018450 1018255 1018249 1018307",
        "-2 -1 -2 0 0 0",
        "69 47 87 17 24 28",
        "1205 158 923 504 98 743",
    ),
}
"""Experiment, # samples, Median, 95 %, 100 %, in µs, column by column."""
_FREQUENCIES = {
    5: ("1.63 3.18 8.47 31.25 11.63 27.78", "0.03 0.63 5.56 0.84 1.49 13.51"),
    7: ("7.25 10.64 14.71 29.41 20.83 21.74", "0.41 3.16 8.77 0.99 5.10 12.20"),
}
"""95 % and 100 % in kHz."""
ENEA = {
    "LLD debug": ("12 10 19 10 11 10", "24 17 32 18 30 25", "382 33 90 39 388 230"),
    "LLD release": ("4 4 5 4 4 4", "7 5 6 4 7 6", "67 32 18 25 126 56"),
    "LLD rt-optimized": ("3 3 4 3 3 3", "6 3 5 3 6 4", "31 16 19 20 45 44"),
    "PREEMPT_RT rt-optimized": ("3 3 3 3 3 3", "6 3 7 3 7 4", "16 12 19 13 27 18"),
}
"""Tables A.2 to A.5: Min, Average and Max in µs, column by column."""
LOADS = ("none", "cpu", "io", "vm", "hdd", "full")
RTLINUX = {
    "switch": (7744, 8194, 10304),
    "mutex": (2048, 2997, 8256),
    "mutex-contended": (10976, 12110, 15680),
    "semaphore": (9056, 10097, 13952),
    "inversion": (1632, 1902, 20096),
}
"""Table 4 of the RTLinux case study: min, avg and max in ns."""

Row = tuple[str, str]
"""Configuration and implementation, as they are called here."""


def _rows(experiments: str) -> list[Row]:
    here = {"linux-chrt-user": "linux-user", "xeno-user": "xenomai-user", "xeno-kernel": "xenomai-kernel"}
    return [
        (kernel.replace("xeno", "xenomai"), here.get(one, one))
        for kernel, one in zip(_CONFIG.split(), experiments.split(), strict=True)
    ]


def percentiles(number: int) -> list[tuple[Row, list[int]]]:
    """A row of table 4, 6, 8 or 9 each: n, then median, 95 % and 100 % in µs."""
    experiments, *told = _PERCENTILES[number]
    columns = zip(*(map(int, line.split()) for line in told), strict=True)
    return [(row, list(numbers)) for row, numbers in zip(_rows(experiments), columns, strict=True)]


def frequencies(number: int) -> list[tuple[Row, list[str]]]:
    """A row of table 5 or 7 each: 95 % and 100 % in kHz, as printed."""
    columns = zip(*(line.split() for line in _FREQUENCIES[number]), strict=True)
    return [(row, list(numbers)) for row, numbers in zip(_rows(_OWN[0]), columns, strict=True)]


def values_us(n: int, median: int, p95: int, most: int, *, jitter: bool) -> NDArray[np.int64]:
    """So many values with exactly these percentiles; of a jitter the greatest is on the early side."""
    values = np.full(n, most)
    values[: ceil(0.95 * n)] = p95
    values[: ceil(0.5 * n)] = median
    if jitter:
        values[ceil(0.95 * n) :] = p95 + 1
        values[-1] = -most
    return values


def beagleboard(folder: Path, probe: str) -> list[Recording]:
    """Runs of which tables 4, 5 and 8 (response), or 6, 7 and 9 (periodic) follow, as an instrument records them."""
    numbers: Mapping[str, Sequence[int]] = {"response": (4, 8), "periodic": (6, 9)}
    cells = {row: told for number in numbers[probe] for row, told in percentiles(number)}
    jitter = probe == "periodic"
    series = {"unit": "ticks", "tick_ps": 1_000_000} | (
        {"period_ns": 7_071_000} if jitter else {"labels": {"edge": "falling"}}
    )
    return [
        recording(
            folder,
            Plan(
                [[values_us(*told, jitter=jitter)]],
                run_id=f"{probe}-{configuration}-{implementation}",
                series=series,
                views=("period-jitter" if jitter else "latency-falling",),
                load="heavy",
                period_ns=3_900,
                head={
                    "probe": probe,
                    "implementation": implementation,
                    "configuration": configuration,
                    "instrument": {"name": "fastenough gauge"},
                },
            ),
        )
        for (configuration, implementation), told in cells.items()
    ]


def p2041(folder: Path) -> list[Recording]:
    """Runs of cyclictest's numbers: the average as near to the printed one as the maximum lets it be."""
    runs = []
    for kernel, told in ENEA.items():
        for load, least, mean, most in zip(LOADS, *(map(int, line.split()) for line in told), strict=True):
            values = np.concatenate([[least, most], np.full(10_000, mean)]) * 1000
            runs.append(
                recording(
                    folder,
                    Plan(
                        [[values]],
                        run_id=f"{kernel.replace(' ', '-')}-{load}",
                        load=load,
                        views=("wakeup_corrected",),
                        head={"configuration": kernel},
                    ),
                )
            )
    return runs


def rtlinux(folder: Path) -> list[Recording]:
    """Runs of table 4's primitives, to the nanosecond."""
    runs = []
    for probe, (least, mean, most) in RTLINUX.items():
        off = 2 * mean - least - most
        values = np.concatenate([[least, most], np.full(abs(off), mean + np.sign(off))])
        runs.append(
            recording(folder, Plan([[values]], run_id=probe, views=(probe,), head={"probe": probe, "parameters": {}}))
        )
    return runs
