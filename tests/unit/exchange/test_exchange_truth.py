# SPDX-License-Identifier: GPL-2.0-or-later
"""Values that are known, written as each tool would write them, by a few lines that follow its source: what is
imported may leave out what the tool does not tell, and never understates it."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from fastenough.exchange import ImportedRun, ImportedSeries, Source, read_import, recording_lines
from fastenough.exchange.import_lines import histogram_of
from fastenough.model import BadInput
from tests.support.cli_calls import ROOT

CASES = ROOT / "tests/cases/exchange"


def of_text(text: str) -> ImportedRun:
    return read_import(Source("file", text.encode()))


def never_understates(series: ImportedSeries, values_ns: Sequence[int]) -> bool:
    """Whether each rank of what was imported is no less than that of the values."""
    assert series.count == len(values_ns)
    held = histogram_of(series)
    ranks = np.arange(1, held.total + 1)
    told = held.highest()[np.searchsorted(np.cumsum(held.count), ranks)] * series.unit_ns
    return bool(np.all(told >= np.sort(values_ns)[: held.total]))


def xenomai(values_ns: Sequence[int], cell_ns: int, cells: int = 300) -> str:
    """``latency -h -s -B cell_ns -H cells``."""
    counts = [0] * cells
    for value_ns in values_ns:
        counts[min(abs(value_ns) // cell_ns, cells - 1)] += 1
    rows = "".join(f"HSD|    avg| {cell:3d} -{cell + 1:3d} | {n:8d}\n" for cell, n in enumerate(counts) if n)
    summary = "|".join(
        f"{ns / 1000:11.3f}" for ns in (min(values_ns), sum(values_ns) // len(values_ns), max(values_ns))
    )
    return (
        "== Sampling period: 1000 us\n== Test mode: periodic user-mode task\n"
        "RTT|  00:00:01  (periodic user-mode task, 1000 us period, priority 99)\n"
        f"---|--param|----range-|--samples\n{rows}HSH|--param|--samples-|--average--|---stddev--\n"
        f"HSS|    avg| {len(values_ns):9d}|      1.000|      1.000\n"
        f"RTS|{summary}|       0|     0|    00:00:02/00:00:02\n"
    )


@pytest.mark.parametrize("cell_ns", [100, 500, 1000, 2000, 5000, 10_000])
def test_cells_of_xenomai_that_are_wider_than_a_microsecond_are_not_taken_for_one(cell_ns: int) -> None:
    draw = random.Random(cell_ns)
    values_ns = [round(draw.gammavariate(2, 800)) + 200 for _ in range(20_000)] + [12_300]
    series = of_text(xenomai(values_ns, cell_ns)).series[0]
    assert never_understates(series, values_ns)
    assert bool(series.buckets) == (cell_ns == 1000)


def gnuplot(values_ns: Sequence[int], cell_ns: int, cells: int) -> str:
    """The file of ``latency -g FILE -B cell_ns -H cells``, whose edges have the six digits of %g."""
    counts = np.bincount([min(value_ns // cell_ns, cells - 1) for value_ns in values_ns])
    first, last = int(np.flatnonzero(counts)[0]), len(counts)
    summary = "|".join(
        f"{ns / 1000:11.3f}" for ns in (min(values_ns), sum(values_ns) // len(values_ns), max(values_ns))
    )
    rows = [(first, 1), *((cell + 0.5, counts[cell] + 1) for cell in range(first, last)), (last, 1)]
    return (
        "# 00:00:04 (periodic user-mode task, 500 us period, priority 99)\n"
        f"# ----lat min|----lat avg|----lat max|-overrun|---msw|\n# {summary}|       0|     0|\n"
        + "".join(f"{at * cell_ns / 1000:g} {n}\n" for at, n in rows)
    )


@pytest.mark.check
@pytest.mark.parametrize(("cell_ns", "cells"), [(1000, 300), (50, 30_000), (33, 100_000), (500, 5000)])
def test_cells_of_xenomais_file_are_told_however_many_digits_their_edges_want(cell_ns: int, cells: int) -> None:
    draw = random.Random(cell_ns)
    values_ns = [round(draw.gammavariate(2, 2000)) + 900 for _ in range(300)] + [1_499_991, 1_499_991]
    series = of_text(gnuplot(values_ns, cell_ns, cells)).series[0]
    beyond = sum(value_ns >= cells * cell_ns for value_ns in values_ns)
    filled = {value_ns // cell_ns for value_ns in values_ns if value_ns < cells * cell_ns}
    assert never_understates(series, values_ns)
    assert (series.overflow, len(series.buckets)) == (beyond, len(filled))


def test_the_last_cell_of_xenomai_holds_what_is_greater() -> None:
    values_ns = [1500] * 1000 + [450_000] * 7
    series = of_text(xenomai(values_ns, 1000)).series[0]
    assert (series.overflow, series.overflow_from) == (7, 299_000) and never_understates(series, values_ns)


def oslat(cores: Sequence[Sequence[int]], buckets: int = 32, *, omit: bool = False, frequency: str = "Counter") -> str:
    """``oslat --bucket-size buckets``, of gaps that it has rounded up to whole us; ``omit``: ``-z``."""
    counts = [np.bincount(np.minimum(gaps, buckets), minlength=buckets + 1)[1:].tolist() for gaps in cores]
    overflow_us = sum(gap - buckets for gap in cores[0] if gap > buckets)  # the first core's, for every core
    mean = [
        (sum(edge * n for edge, n in enumerate(each, start=1)) + overflow_us) / len(gaps)
        for each, gaps in zip(counts, cores, strict=True)
    ]
    rows, left_out = [], False
    for edge in range(1, buckets + 1):
        of_edge = [each[edge - 1] for each in counts]
        if omit and edge < buckets and not any(of_edge):
            left_out = True
            continue
        rows += ["    ..."] * left_out
        left_out = False
        rows.append(
            f"{f'{edge:03d} (us)':>12}:\t {' '.join(map(str, of_edge))}" + " (including overflows)" * (edge == buckets)
        )
    said: list[tuple[str, Sequence[object]]] = [
        ("Minimum", [min(gaps) for gaps in cores]),
        ("Average", [f"{each:.3f}" for each in mean]),
        ("Maximum", [max(gaps) for gaps in cores]),
        ("Max-Min", [max(gaps) - min(gaps) for gaps in cores]),
    ]
    rows += [f"{name:>12}:\t {' '.join(map(str, values))} (us)" for name, values in said]
    core = " ".join(str(number) for number in range(len(cores)))
    return (
        "oslat V 2.40\nTotal runtime: \t\t1 seconds\n\nTest starts...\nTest completed.\n\n"
        f"{'Core':>12}:\t {core}\n{frequency + ' Freq':>12}:\t {' '.join(['2100'] * len(cores))} (Mhz)\n"
        + "\n".join(rows)
        + f"\n    Duration:\t {' '.join(['1.002'] * len(cores))} (sec)\n\n"
    )


_QUIET, _FEW, _MANY = [1] * 9990 + [3] * 10, [1] * 9990 + [500] * 10, [1] * 10_000 + [50_446] * 20


@pytest.mark.parametrize("cores", [(_MANY, _QUIET), (_QUIET, _MANY), (_FEW, _MANY), (_MANY, _FEW), (_QUIET, _QUIET)])
def test_a_mean_of_oslat_that_holds_another_cores_overflow_is_not_told(cores: tuple[list[int], ...]) -> None:
    found = of_text(oslat(cores)).series
    for series, gaps in zip(found, cores, strict=True):
        assert series.maximum == max(gaps) and never_understates(series, [gap * 1000 for gap in gaps])
        assert series.mean is None or abs(float(series.mean) - sum(gaps) / len(gaps)) <= 0.001
    assert found[0].mean is not None
    assert (found[1].mean is None) == (max(map(max, cores)) > 32)


@pytest.mark.parametrize(("omit", "frequency"), [(True, "Counter"), (False, "CPU"), (True, "CPU")])
def test_all_forms_of_oslats_text_are_read(omit: bool, frequency: str) -> None:
    cores = (_MANY, _QUIET)
    assert of_text(oslat(cores, omit=omit, frequency=frequency)).series == of_text(oslat(cores)).series


def test_a_maximum_of_oslat_beyond_buckets_whose_last_is_empty_is_refused() -> None:
    changed = (
        oslat((_QUIET, _QUIET))
        .replace("Maximum:\t 3 3", "Maximum:\t 900 3")
        .replace("Max-Min:\t 2 2", "Max-Min:\t 899 2")
    )
    with pytest.raises(BadInput, match="the last is empty"):
        of_text(changed)


def test_system_management_interrupts_that_hwlatdetect_counted_are_no_reason_to_refuse() -> None:
    text = (CASES / "hwlatdetect-2.4.txt").read_text()
    end = "Samples exceeding threshold: 3\n"
    found = of_text(text.replace(end, f"{end}5 SMIs occured on cpu 0\n4 SMIs occured on cpu 1\nSMIs during run: 9\n"))
    assert found.facts["SMIs during run"] == "9" and found.series[0].count == 3


def after_s(found: ImportedRun) -> list[float]:
    """When each event came, as reports say it."""
    head, *rest = recording_lines(found, Source("file", b"-"), "run")
    begin_ns: int = head["begin"]["mono_ns"]
    return [(line["at"]["mono_ns"] - begin_ns) / 1e9 for line in rest if line["type"] == "event"]


def test_gaps_of_hwlatdetect_are_told_with_the_times_between_them() -> None:
    found = of_text((CASES / "hwlatdetect-2.4.txt").read_text())
    assert [round(each, 3) for each in after_s(found)] == [0.0, 10.126, 20.341]


def spikes(said: int, *at_us: int) -> str:
    """``cyclictest --spike=100``: it lists no more than ``--spike-nodes``, and counts all."""
    listed = "".join(f"T: 0 Spike:     123: TS: {us:12d}\n" for us in at_us)
    return (
        f"T: 0 (26467) P: 5 I:500 C:    100 Min:      5 Act:    7 Avg:    9 Max:     130\n\n{listed}spikes = {said}\n\n"
    )


def test_spikes_are_told_with_the_times_between_them_though_not_all_are_listed() -> None:
    found = of_text(spikes(5000, 4_000_000_000, 4_000_250_000))
    assert after_s(found) == [0.0, 0.25] and "5000" in found.facts["spikes"]
    with pytest.raises(BadInput, match="lists 2 spikes but reports 1"):
        of_text(spikes(1, 4_000_000_000, 4_000_250_000))


def test_a_row_that_a_kernels_histogram_could_never_reach_is_refused_at_once() -> None:
    text = (CASES / "osadl-latency-hist.txt").read_text()
    for bound in (10**11, 10**18):
        with pytest.raises(BadInput, match="do not reach"):
            of_text(text.replace("equal than ", f"equal than {bound}"))


def rtla(cpus: Sequence[Sequence[int]], entries: int, width: int, *, summary: bool) -> str:
    """``rtla timerlat hist -E entries -b width``, without ``summary`` with ``--no-summary``; values in us."""
    counts = [
        np.bincount([min(value // width, entries) for value in values], minlength=entries + 1).tolist()
        for values in cpus
    ]
    rows = [(str(place * width), [each[place] for each in counts]) for place in range(entries)]
    rows = [row for row in rows if any(row[1])] + [("over:", [each[entries] for each in counts])]
    if summary:
        rows += [
            ("count:", [len(values) for values in cpus]),
            ("min:", [min(values) for values in cpus]),
            ("avg:", [sum(values) // len(values) for values in cpus]),
            ("max:", [max(values) for values in cpus]),
        ]
    names = "".join(f"   Thr-{cpu:03d}" for cpu in range(len(cpus)))
    return (
        "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:00:10\n"
        f"Index{names}\n" + "".join(f"{name:8}{''.join(f'{n:>10}' for n in each)}\n" for name, each in rows)
    )


def test_a_histogram_of_one_thread_of_which_nothing_is_left_is_read_with_its_column_of_all() -> None:
    """``cyclictest -t1 -H20``, of which rt-tests 2.10 leaves out empty rows."""
    series = of_text(
        "# Histogram\n# Min Latencies: 00038\n# Avg Latencies: 00043\n# Max Latencies: 00049 00049\n"
        "# Histogram Overflows: 00002 00002\n# Histogram Overflow at cycle number:\n"
        "# Thread 0: 00000 00001\n\n"
    ).series
    assert [(one.count, one.minimum, one.maximum, one.overflow) for one in series] == [(2, 38, 49, 2)]


@pytest.mark.parametrize("seed", range(12))
def test_buckets_of_rtla_of_any_width_are_never_understated(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(20):
        cpus = [
            [int(draw.lognormvariate(draw.uniform(0, 5), draw.random())) for _ in range(draw.choice((1, 3, 90)))]
            for _ in range(draw.choice((1, 3)))
        ]
        entries, width = draw.choice((4, 64, 256)), draw.choice((1, 2, 5, 1000))
        found = of_text(rtla(cpus, entries, width, summary=True)).series
        assert [series.overflow for series in found] == [
            sum(value >= entries * width for value in values) for values in cpus
        ]
        assert all(
            never_understates(series, [value * 1000 for value in values])
            for series, values in zip(found, cpus, strict=True)
        )
        try:
            found = of_text(rtla(cpus, entries, width, summary=False)).series
        except BadInput as error:
            assert "run rtla without --no-summary" in str(error)
            continue
        assert all(
            never_understates(series, [value * 1000 for value in values])
            for series, values in zip(found, cpus, strict=True)
        )


def histogram_below_lines(*lines: str) -> str:
    """``cyclictest -h`` without -q: the last screen, then the histogram of two threads."""
    return "".join(f"{line}\n" for line in lines) + (
        "# Histogram\n002100 000050\t000000\n002600 000049\t000001\n004000 000001\t000000\n"
        "# Total: 000000100 000000001\n# Min Latencies: 02100 02600\n# Avg Latencies: 02364 02600\n"
        "# Max Latencies: 04000 02600\n# Histogram Overflows: 00000 00000\n"
        "# Histogram Overflow at cycle number:\n# Thread 0:\n# Thread 1:\n"
    )


_NS_LINES = (
    "T: 0 (26467) P:80 I:1000 C:     99 Min:   2100 Act:    2500 Avg:    2600 Max:    4000",
    "T: 1 (26468) P:80 I:1500 C:      0 Min:1000000 Act:       0 Avg:       0 Max:       0",
)


def test_the_lines_above_a_histogram_of_cyclictest_give_its_unit() -> None:
    with_lines, alone = (of_text(histogram_below_lines(*lines)).series for lines in (_NS_LINES, ()))
    assert [(series.unit_ns, series.in_ns(series.maximum)) for series in with_lines] == [(1, 4000), (1, 2600)]
    assert [(series.unit_ns, series.in_ns(series.maximum)) for series in alone] == [(1000, 4e6), (1000, 2.6e6)]
    narrow = [line.replace("Act:   ", "Act:").replace("Avg:   ", "Avg:") for line in _NS_LINES]
    assert [series.unit_ns for series in of_text(histogram_below_lines(*narrow)).series] == [1000, 1000]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("C:     99", "C:    101"),
        ("Max:    4000", "Max:    4001"),
        ("Min:   2100", "Min:   2099"),
        ("C:      0", "C:      1"),
        ("T: 1", "T: 2"),
    ],
)
def test_a_line_that_contradicts_the_histogram_below_it_is_refused(old: str, new: str) -> None:
    text = histogram_below_lines(*_NS_LINES)
    assert text.count(old) == 1
    with pytest.raises(BadInput):
        of_text(text.replace(old, new))


def test_lines_of_other_threads_than_those_of_the_histogram_are_refused() -> None:
    with pytest.raises(BadInput, match="same threads"):
        of_text(histogram_below_lines(_NS_LINES[0]))
