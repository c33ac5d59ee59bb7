# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough farm kernels``: compare kernels over the boards of an archive."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from fastenough import words
from fastenough.analysis.between_boards import LEAST_BOARDS_COMPARED, BoardDifference, difference_over_boards
from fastenough.analysis.clusters import holm
from fastenough.cli.archive_options import ArchiveOptions, archive_options
from fastenough.cli.commands import Command
from fastenough.cli.options import FRACTION, json_option
from fastenough.cli.output import print_json, print_table, say, say_list
from fastenough.fleet.board_rows import BoardRows, IntArray, sums_and_maxima
from fastenough.model import BadInput, require_confidence
from fastenough.units import parse_instant_s

_NUMBERS = ("begin_ns", "end_ns", "count", "max_ns")
_HOUR_NS = 3600 * 10**9
_MOST_UNEQUAL = 1.25
"""Greatest factor by which the number of values of a compared hour may differ from the usual one."""
Spans = tuple[tuple[int, str], ...]
"""Kernels of a board: time of installation (ns), ascending, and kernel."""


@dataclass(frozen=True)
class KernelLevel:
    """Mean logarithm of the hourly maxima (ns) of a board with a kernel, by one series; number of these hours."""

    board: str
    kernel: str
    series: str
    hours: int
    level: float


@dataclass(frozen=True)
class KernelDifference:
    """A kernel compared with the base.  ``ratio``: of the hourly maxima, with its confidence interval.

    ``significant``: when all kernels are tested together (Holm).  ``paired``: boards were compared with themselves.
    ``board_geometric_sd``: geometric standard deviation from board to board, a factor.  With too few boards, all but
    ``kernel`` and ``boards`` are None.
    """

    kernel: str
    boards: int
    paired: bool | None
    ratio: float | None
    lower: float | None
    upper: float | None
    p_value: float | None
    significant: bool | None
    board_geometric_sd: float | None


@dataclass(frozen=True)
class KernelComparison:
    """Each kernel against ``base``; ``boards``: number with each kernel; ``unlisted``: number without any.

    ``series``: the series that is compared; ``excluded_hours``: hours with values of other series, added over boards.
    """

    base: str
    series: str
    confidence: float
    boards: Mapping[str, int]
    unlisted: int
    excluded_hours: int
    kernels: tuple[KernelDifference, ...]


@dataclass(frozen=True)
class MeasureKernels:
    """The job: levels of a board with each kernel and series.  ``spans``: the kernels of each board."""

    spans: Mapping[str, Spans]

    @property
    def columns(self) -> tuple[str, ...]:
        return *_NUMBERS, "series"

    def of_board(self, board: BoardRows, boards: int) -> tuple[KernelLevel, ...]:
        """Its levels; hours within which the kernel changed, or with an unusual number of values, are left out."""
        spans = self.spans.get(board.board, ())
        begin_ns, end_ns, count, maximum = map(board.numbers, _NUMBERS)
        if not spans or not count.any():
            return ()
        begins = np.array([begin for begin, _ in spans], dtype=np.int64)
        kernel, last = (np.searchsorted(begins, at_ns, side="right") - 1 for at_ns in (begin_ns, end_ns - 1))
        keys = np.stack([begin_ns // _HOUR_NS, kernel])
        mixed = {*keys[0, last > kernel].tolist(), *_repeated(np.unique(keys, axis=1)[0])}
        return tuple(
            KernelLevel(board.board, spans[number][1], series, hours, level)
            for series, rows in board.by_series().items()
            if (listed := rows & (count > 0) & (kernel >= 0)).any()
            for number, hours, level in _levels(keys[:, listed], count[listed], maximum[listed], mixed)
        )


def _levels(
    keys: IntArray, count: IntArray, maximum: IntArray, mixed: Collection[int]
) -> Iterator[tuple[int, int, float]]:
    """Numbers of the kernels of a series, with their hours and levels; ``keys``: hour and kernel of each row."""
    hours, counts, maxima = sums_and_maxima(keys, count, maximum)
    usual = float(np.median(counts))
    like = (counts * _MOST_UNEQUAL >= usual) & (counts <= usual * _MOST_UNEQUAL) & (maxima > 0)
    like &= ~np.isin(hours[0], list(mixed))
    for kernel in np.unique(hours[1, like]).tolist():
        of_kernel = like & (hours[1] == kernel)
        yield kernel, int(of_kernel.sum()), float(np.log(maxima[of_kernel]).mean())


def _repeated(ascending: NDArray[np.int64]) -> list[int]:
    return [int(value) for value in ascending[1:][ascending[1:] == ascending[:-1]]]


def read_kernels(path: Path) -> dict[str, Spans]:
    """The kernels of each board from a CSV file with the columns board, kernel and, optionally, from (ISO 8601).

    Raises BadInput with the line.
    """
    spans: dict[str, list[tuple[int, str]]] = {}
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            for number, line in enumerate(csv.DictReader(stream), 2):
                board, kernel = (line.get(name) or "" for name in ("board", "kernel"))
                if not board or not kernel:
                    raise BadInput(
                        f"{path}, line {number}: has no board or no kernel; write the columns board, kernel and, "
                        "optionally, from"
                    )
                if not kernel.isprintable():
                    raise BadInput(f"{path}, line {number}: kernel has a character that cannot be printed")
                at_ns = _instant_ns(line.get("from") or "", path, number)
                if any(at_ns == other_ns and kernel != other for other_ns, other in spans.get(board, ())):
                    raise BadInput(f"{path}, line {number}: this board has another kernel from the same time on")
                spans.setdefault(board, []).append((at_ns, kernel))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"{path}: {error}; name a CSV file with the columns board, kernel, from") from None
    if not spans:
        raise BadInput(f"{path}: lists no board; write the columns board, kernel and, optionally, from")
    return {board: tuple(sorted(of_board)) for board, of_board in spans.items()}


def _instant_ns(text: str, path: Path, number: int) -> int:
    if not text:
        return 0
    try:
        return parse_instant_s(text) * 10**9
    except ValueError as error:
        raise BadInput(f"{path}, line {number}: from = {error}") from None


def compared_series(levels: Sequence[KernelLevel], base: str | None) -> str:
    """The series by which most kernels can be compared; empty without levels.

    Of several, the one with the most pairs of board and kernel, then with the most hours.  If series have values with
    the kernel ``base``, it is one of these.
    """
    boards: dict[str, dict[str, set[str]]] = {}
    hours: Counter[str] = Counter()
    for level in levels:
        boards.setdefault(level.series, {}).setdefault(level.kernel, set()).add(level.board)
        hours[level.series] += level.hours

    def rank(series: str) -> tuple[bool, int, int, int, str]:
        counts = [len(of_kernel) for of_kernel in boards[series].values()]
        comparable = sum(count >= LEAST_BOARDS_COMPARED for count in counts)
        return base in boards[series], comparable, sum(counts), hours[series], series

    return max(boards, key=rank, default="")


def _compared_kernels(
    by_kernel: Mapping[str, Mapping[str, float]], base: str, confidence: float
) -> tuple[KernelDifference, ...]:
    """Each kernel but the base, against it.  ``by_kernel``: the level of each board with each kernel."""
    others = [kernel for kernel in sorted(by_kernel) if kernel != base]
    found = [difference_over_boards(by_kernel[base], by_kernel[kernel], confidence) for kernel in others]
    tested = iter(holm([one.p_value for one in found if one is not None], 1.0 - confidence))
    return tuple(
        _unknown(kernel, len(by_kernel[kernel])) if one is None else _difference(kernel, one, significant=next(tested))
        for kernel, one in zip(others, found, strict=True)
    )


def _levels_by_kernel(levels: Sequence[KernelLevel], series: str) -> dict[str, dict[str, float]]:
    """By kernel, the level of each board by this series, however often the board had this kernel."""
    sums: dict[tuple[str, str], tuple[int, float]] = {}
    for level in (level for level in levels if level.series == series):
        hours, total = sums.get((level.kernel, level.board), (0, 0.0))
        sums[level.kernel, level.board] = hours + level.hours, total + level.hours * level.level
    by_kernel: dict[str, dict[str, float]] = {level.kernel: {} for level in sorted(levels, key=lambda one: one.kernel)}
    for (kernel, board), (hours, total) in sums.items():
        by_kernel[kernel][board] = total / hours
    return by_kernel


def compared_boards(boards: Sequence[tuple[KernelLevel, ...]], base: str | None, confidence: float) -> KernelComparison:
    """Compare the kernels of all boards with ``base``, by default the kernel of most boards.  Raises BadInput."""
    levels = [level for of_board in boards for level in of_board]
    series = compared_series(levels, base)
    by_kernel = _levels_by_kernel(levels, series)
    if not by_kernel:
        raise BadInput("no board has values with a listed kernel; check the boards and times in the file of --kernels")
    if base is None:
        base = max(by_kernel, key=lambda kernel: (len(by_kernel[kernel]), kernel))
    if base not in by_kernel:
        raise BadInput(f"no board has values with the kernel {base}; kernels with values: {', '.join(by_kernel)}")
    return KernelComparison(
        base,
        series,
        confidence,
        {kernel: len(of_kernel) for kernel, of_kernel in by_kernel.items()},
        sum(not of_board for of_board in boards),
        sum(level.hours for level in levels if level.series != series),
        _compared_kernels(by_kernel, base, confidence),
    )


def _unknown(kernel: str, boards: int) -> KernelDifference:
    return KernelDifference(kernel, boards, None, None, None, None, None, None, None)


def _difference(kernel: str, of_boards: BoardDifference, *, significant: bool) -> KernelDifference:
    ratio, lower, upper, geometric_sd = map(
        math.exp, (of_boards.difference, of_boards.lower, of_boards.upper, of_boards.board_sd)
    )
    return KernelDifference(
        kernel, of_boards.boards, of_boards.paired, ratio, lower, upper, of_boards.p_value, significant, geometric_sd
    )


def _rows(comparison: KernelComparison) -> Iterator[tuple[str, ...]]:
    for kernel in comparison.kernels:
        if kernel.ratio is None or kernel.lower is None or kernel.upper is None or kernel.board_geometric_sd is None:
            yield kernel.kernel, "too few boards", f"{kernel.boards:,}", "–", "–", "–"
            continue
        result = "may be equal" if not kernel.significant else "longer" if kernel.ratio > 1 else "shorter"
        same = "the same" if kernel.paired else "others"
        yield (
            kernel.kernel,
            result,
            f"{kernel.boards:,} ({same})",
            f"{kernel.ratio:.3f}",
            f"{kernel.lower:.3f} to {kernel.upper:.3f}",
            f"{kernel.board_geometric_sd:.3f}",
        )


def _print(comparison: KernelComparison) -> None:
    say(
        f"Hourly maxima of {comparison.series} with each kernel, as a multiple of those with {comparison.base}; each "
        "board counts once"
    )
    sure = words.percent(comparison.confidence)
    print_table(
        "", ("kernel", "result", "boards", "ratio", f"{sure} interval", "between boards"), _rows(comparison), texts=2
    )
    caveats = ["A board had its kernels one after the other: the ratio includes its other changes at the same time."]
    if any(kernel.paired is False for kernel in comparison.kernels):
        caveats.append("Kernels on different boards (others): these boards may differ in more than the kernel.")
    if comparison.unlisted:
        caveats.append(
            f"{words.counted(comparison.unlisted, 'board')} not listed, or without values with a listed kernel."
        )
    if comparison.excluded_hours:
        caveats.append(
            f"Excluded: values of other series ({words.counted(comparison.excluded_hours, 'hour')}, added over boards)."
        )
    if any(kernel.ratio is None for kernel in comparison.kernels):
        caveats.append(f"A comparison requires {LEAST_BOARDS_COMPARED} boards with both kernels, or as many with each.")
    say_list("Caveats", caveats)


@click.command("kernels", cls=Command, example="fastenough farm kernels --archive archive --kernels kernels.csv")
@click.option(
    "--kernels",
    "path",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="CSV file with the columns board, kernel and, optionally, from: the time of its installation.",
)
@click.option("--base", metavar="KERNEL", help="Kernel to compare with  [default: that of most boards]")
@click.option(
    "--confidence", type=FRACTION, default="95%", show_default=True, help="Confidence level of each interval."
)
@archive_options
@json_option
def command(*, path: Path, base: str | None, confidence: float, of_archive: ArchiveOptions, as_json: bool) -> None:
    """Compare kernels over the boards of an archive.

    The ratio of the hourly maxima is estimated with the variation between boards: each board counts once, however long
    it was measured.  Boards that had both kernels are compared with themselves.  The archive does not contain kernels,
    so a file lists them.

    Compares one series of the archive: the one by which most kernels can be compared.
    """
    require_confidence(confidence, "--confidence")
    boards = of_archive.compute(MeasureKernels(read_kernels(path)))
    comparison = compared_boards(boards, base, confidence)
    if as_json:
        print_json(comparison)
    else:
        _print(comparison)
