# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs over the archive of a fleet: what was planted in it is found, on the boards where it was planted."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as arrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from fastenough.analysis import merged
from fastenough.analysis.board_rates import share_within
from fastenough.analysis.merged import merge_samples
from fastenough.cli.farm_first_change import FindChanges, first_change
from fastenough.cli.farm_judge import ArchivedResult, JudgeBoards, judged_archive
from fastenough.cli.farm_kernels import KernelLevel, MeasureKernels, compared_boards, read_kernels
from fastenough.fleet import board_rows
from fastenough.fleet.archive import INTERVALS, MOST_NAME, ArchiveRow, archived_text, is_one_of_several
from fastenough.fleet.archived_recording import COLUMNS, archived_parts
from fastenough.fleet.board_rows import KEY, BoardRows, ShardFiles, board_groups, rows_of, shard_files
from fastenough.history.intervals import MOST_VALUES
from fastenough.history.schema import CYCLE_S
from fastenough.model import BadInput, FastenoughError, Requirement
from fastenough.recording.building import line_bytes
from fastenough.recording.histogram import Histogram, bucket_lowest
from fastenough.recording.timeline import INTERVAL_K
from tests.support.fleet_archive import BEGIN_NS, HOUR_NS, by_hand, latencies, machine, row, write
from tests.support.fleet_shard import ShardBench, board

LIMIT = Requirement(100_000)


def _hours(number: int, hours: int, size: int = 1000, kind: str = "panel") -> Iterator[tuple[str, ArchiveRow]]:
    random = np.random.default_rng(number)
    for cpu in range(2):
        for hour in range(hours):
            yield kind, row(machine(number), f"run-{number}", (cpu, hour), latencies(random, size))


def _archive(folder: Path, boards: int, hours: int = 40) -> Path:
    return write(folder, (single for number in range(boards) for single in _hours(number, hours)))


# --- rows


def test_each_row_is_read_once_whatever_the_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _archive(tmp_path, 9, 5)
    (spare,) = list(tmp_path.rglob("*.parquet"))[:1]
    (spare.parent / "_closed-0001.parquet.unfinished").write_bytes(b"of a merge")
    (spare.parent / "_closed-0002.parquet").write_bytes(b"hidden")
    expected = sorted((machine(number), cpu, hour) for number in range(9) for cpu in range(2) for hour in range(5))
    for most, groups in ((1, 9), (10**9, len(shard_files(str(tmp_path))))):
        monkeypatch.setattr(board_rows, "_ROWS_AT_ONCE", most)
        of_shards = [(files, group) for files in shard_files(str(tmp_path)) for group in board_groups(files)]
        assert len(of_shards) == groups
        read = [rows for files, group in of_shards for rows in rows_of(files, group, ["count"])]
        assert all(rows.rows.column_names == [*KEY, "count"] for rows in read)
        keys = [
            tuple(entry[name] for name in ("board", "cpu", "interval"))
            for one in read
            for entry in one.rows.to_pylist()
        ]
        assert sorted(keys) == expected
        assert all(set(one.rows.column("board").to_pylist()) == {one.board} for one in read)


def test_a_type_can_be_selected_and_must_exist(tmp_path: Path) -> None:
    write(tmp_path, [*_hours(0, 2), *_hours(1, 2, kind="gate way")])
    for kind, number in (("panel", 0), ("gate way", 1)):
        groups = [group for files in shard_files(str(tmp_path), kind) for group in board_groups(files)]
        assert [board for group in groups for board, _ in group] == [machine(number)]
    with pytest.raises(BadInput, match="gate-way, panel"):
        shard_files(str(tmp_path), "press")
    with pytest.raises(BadInput, match="no file"):
        shard_files(str(tmp_path / "nowhere"))


def test_an_interval_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    write(tmp_path, _hours(0, 4))
    part = min(tmp_path.rglob("*.parquet"))
    part.with_name("0000-000000009999.parquet").write_bytes(part.read_bytes())
    with pytest.raises(FastenoughError, match="twice"):
        by_hand(tmp_path, JudgeBoards(LIMIT))


def test_a_damaged_or_removed_file_is_named(tmp_path: Path) -> None:
    write(tmp_path, _hours(0, 4))
    (files,) = shard_files(str(tmp_path))
    (group,) = board_groups(files)
    part = min(tmp_path.rglob("*.parquet"))
    part.write_bytes(part.read_bytes()[:-9])
    with pytest.raises(FastenoughError, match=str(tmp_path)):
        board_groups(files)
    part.unlink()
    with pytest.raises(FastenoughError, match="again"):
        list(rows_of(files, group, ["count"]))


def _changed(folder: Path, name: str, values: list[Any], kind: arrow.DataType | None = None) -> None:
    """Put other values into a column of the first file of an archive."""
    path = min(folder.rglob("*.parquet"))
    table = parquet.ParquetFile(path).read()
    place = table.schema.get_field_index(name)
    field = arrow.field(name, kind or table.schema.field(name).type)
    many = (values * table.num_rows)[: table.num_rows]
    parquet.write_table(table.set_column(place, field, arrow.array(many, field.type)), path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("count", 1),
        ("count", -1000),
        ("count", 2**62),
        ("max_ns", 2**63 - 1),
        ("max_ns", 5),
        ("max_ns", None),
        ("min_ns", 10**9),
        ("missed", -5),
        ("lost", None),
        ("begin_ns", None),
        ("series", None),
        ("series", ""),
        ("run", "\x1b[31m"),
        ("board", None),
        ("board", "a\nb"),
        ("bucket_ns", None),
        ("bucket_ns", [2**63 - 1]),
        ("bucket_count", []),
        ("bucket_count", [-1000]),
    ],
)
def test_an_interval_that_contradicts_itself_is_refused(tmp_path: Path, name: str, value: Any) -> None:
    """A damaged board was within, or ended the command with a traceback."""
    write(tmp_path, _hours(0, 40))
    _changed(tmp_path, name, [value])
    with pytest.raises(FastenoughError) as refused:
        by_hand(tmp_path, JudgeBoards(LIMIT))
    assert str(refused.value).isprintable()


def test_too_few_values_are_stated_with_the_number_required(tmp_path: Path) -> None:
    """Few values above a limit are no reason against "never"; the number of values is."""
    (judged,) = by_hand(_archive(tmp_path, 1, 20), JudgeBoards(LIMIT))
    assert (judged.result, judged.possibly) == (ArchivedResult.NOT_SHOWN, 0)
    assert re.findall(r"[0-9,]+", judged.reason) == ["0", "20,000", "29,956"]


def test_what_takers_accept_can_be_read(tmp_path: Path) -> None:
    """The greatest number of missed periods, and the longest name of a series, one of two."""
    chunk = board().chunk(0, 1)
    head, line = (json.loads(text) for text in (chunk.head, chunk.lines[0]))
    head["series"][0]["labels"] = {"mode": "x" * 200}
    head["series"].append({**head["series"][0], "id": 2, "name": "other"})
    line["series"].append({**line["series"][0], "id": 2})
    for part in line["series"]:
        part["missed"] = MOST_VALUES - part["count"] - part.get("lost", 0)
    bench = ShardBench(tmp_path)
    taken = bench.store(replace(chunk, head=line_bytes(head), lines=(line_bytes(line),)))
    bench.history.close()
    assert not taken.refused
    (read,) = [read for files in shard_files(str(bench.folder)) for read in _boards_of(files)]
    names = read.rows.column("series").to_pylist()
    assert [(len(name), is_one_of_several(name)) for name in names] == [(MOST_NAME, True), (len("timer/wakeup"), False)]
    assert max(read.numbers("missed")) > 10**12


def _boards_of(files: ShardFiles) -> Iterator[BoardRows]:
    for group in board_groups(files):
        yield from rows_of(files, group, JudgeBoards(LIMIT).columns)


def test_the_number_of_series_stays_at_the_end_of_a_long_name() -> None:
    """In rows of takers of earlier versions: without it, the row would seem to be all of its CPU."""
    name = archived_text(f"{'x' * 200} (1 of 12)")
    assert len(name) == MOST_NAME and name.endswith("x (1 of 12)")
    assert archived_text("a\nb") == "a\ufffdb"


@pytest.mark.parametrize(("name", "kind"), [("count", arrow.float64()), ("count", arrow.string()), ("board", None)])
def test_columns_of_another_kind_are_refused(tmp_path: Path, name: str, kind: arrow.DataType | None) -> None:
    """Not read as other numbers: NaN counted as 0."""
    write(tmp_path, _hours(0, 40))
    _changed(tmp_path, name, [None], kind or arrow.int64())
    with pytest.raises(FastenoughError, match=f"no column {name}"):
        by_hand(tmp_path, JudgeBoards(LIMIT))


# --- recordings


@pytest.mark.check
@given(
    values=st.lists(st.integers(-(10**7), 10**9), min_size=1, max_size=40),
    k=st.integers(0, 10),
    limit_ns=st.integers(1, 10**9),
)
def test_no_value_of_the_archive_is_understated(values: list[int], k: int, limit_ns: int) -> None:
    rows = []
    for number, part in enumerate((values[::2], values[1::2])):
        held = Histogram.from_values(part, k)
        empty = row("b" * 32, "run", (0, number), np.array(part))
        rows.append(replace(empty, bucket_ns=bucket_lowest(held.index, k).tolist(), bucket_count=held.count.tolist()))
    table = INTERVALS.table_of(rows)
    (((recording, series),),) = archived_parts(BoardRows("b" * 32, "panel", table)).values()
    values_of_run = merge_samples([(recording, series)])
    magnitudes = [abs(value) for value in values] if series.two_sided else values
    exceeding = sum(value > limit_ns for value in magnitudes)
    surely, possibly = values_of_run.exceeded(limit_ns)
    assert surely <= exceeding <= possibly
    assert values_of_run.n == len(values)
    assert values_of_run.maximum_ns == max(magnitudes)
    assert recording.totals[0].sum == sum(values)
    assert recording.timeline.courses[0].count.tolist() == [len(values[::2]), len(values[1::2])]


# --- judge


@pytest.mark.check
def test_the_board_with_a_planted_exceedance_is_found(tmp_path: Path) -> None:
    rows = [single for number in range(8) for single in _hours(number, 40)]
    bad = row(machine(3), "run-3", (1, 40), np.array([10_000, 500_000, 10_000]))
    judgment = judged_archive(by_hand(write(tmp_path, [*rows, ("panel", bad)]), JudgeBoards(LIMIT)), LIMIT)
    results = {board.board: board.result for board in judgment.boards}
    assert results == {
        machine(number): ArchivedResult.EXCEEDS if number == 3 else ArchivedResult.WITHIN for number in range(8)
    }
    (planted,) = [board for board in judgment.boards if board.board == machine(3)]
    assert (planted.exceeded, planted.n, planted.maximum_ns) == (1, 80_003, 500_000.0)
    (kind,) = judgment.types
    assert (kind.boards, kind.within, kind.exceeding) == (8, 7, 1)
    assert kind.demonstrated_share == share_within(7, 8, 0.95)


def test_a_higher_limit_makes_the_same_boards_good(tmp_path: Path) -> None:
    _archive(tmp_path, 3)
    standing = {}
    for limit_ns in (12_000, 31_000):
        required = Requirement(limit_ns)
        boards = judged_archive(by_hand(tmp_path, JudgeBoards(required)), required).boards
        standing[limit_ns] = {board.result for board in boards}
    assert standing == {12_000: {ArchivedResult.EXCEEDS}, 31_000: {ArchivedResult.WITHIN}}


def _held_at(single: ArchiveRow, k: int) -> ArchiveRow:
    """The same interval in buckets of another resolution."""
    held = Histogram.from_values(np.repeat(single.bucket_ns, single.bucket_count), k)
    return replace(single, bucket_ns=bucket_lowest(held.index, k).tolist(), bucket_count=held.count.tolist())


@pytest.mark.parametrize("k", [INTERVAL_K, 3, 8])
def test_several_runs_of_a_board_are_judged_together(tmp_path: Path, k: int) -> None:
    """As after each start of its probe; the second run may have another resolution."""
    rows = list(_hours(0, 40))
    rows += [(kind, replace(_held_at(one, k), run="run-later")) for kind, one in _hours(0, 30)]
    bad = row(machine(1), "run-later", (0, 0), np.array([500_000]))
    archive = write(tmp_path, [*rows, *_hours(1, 40), ("panel", bad), *_hours(2, 40)])
    judgment = judged_archive(by_hand(archive, JudgeBoards(LIMIT)), LIMIT)
    boards = {one.board: one for one in judgment.boards}
    assert [boards[machine(number)].result for number in range(3)] == [
        ArchivedResult.WITHIN,
        ArchivedResult.EXCEEDS,
        ArchivedResult.WITHIN,
    ]
    several = boards[machine(0)]
    assert (several.runs, several.n, several.measured_ns) == (2, 140_000, 70 * HOUR_NS)


@pytest.mark.parametrize(("limit_ns", "within"), [(11_000, False), (17_000, True)])
def test_a_finer_run_does_not_make_a_coarser_one_finer(tmp_path: Path, limit_ns: int, within: bool) -> None:
    """Values of 12 µs are in the bucket from 8,192 ns on, with k = 0; those of 9 and 10 µs of the other run are not."""
    coarse = row(machine(0), "coarse", (0, 0), np.full(30_000, 12_000))
    coarse = replace(coarse, bucket_ns=[8_192], bucket_count=[30_000])
    fine = row(machine(0), "fine", (0, 0), np.repeat([9_000, 10_000], 30_000))
    required = Requirement(limit_ns)
    (judged,) = by_hand(write(tmp_path, [("panel", fine), ("panel", coarse)]), JudgeBoards(required))
    assert judged.result is (ArchivedResult.WITHIN if within else ArchivedResult.NOT_SHOWN)


def test_a_board_that_cannot_be_judged_does_not_hide_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, [*_hours(0, 60), *_hours(1, 40)])
    monkeypatch.setattr(merged, "MOST_COUNT", 50_000)
    first, second = sorted(by_hand(tmp_path, JudgeBoards(LIMIT)), key=lambda one: one.board != machine(0))
    assert (first.result, first.p_value, "50000" in first.reason) == (ArchivedResult.NOT_SHOWN, 1.0, True)
    assert second.result is ArchivedResult.WITHIN


@pytest.mark.parametrize(
    ("bounds_s", "measured_s"),
    [
        ([(-1_000_000, 300), (300, 600), (600, 900)], 900),
        ([(0, 300), (300, 10**8), (10**8, 10**8 + 300)], 900),
        ([(0, 300), (300, 600), (9000, 900)], 600),
        ([(9000, 300), (300, 600)], 300),
        ([(0, 300), (300, 600), (600, 700)], 700),
        ([(-1_000_000, 300)], 0),
        ([(0, 300)], 300),
        ([(0, 3601)], 3601),
    ],
)
def test_no_interval_is_longer_than_is_usual_for_its_run(
    tmp_path: Path, bounds_s: list[tuple[int, int]], measured_s: int
) -> None:
    """Archives of earlier takers have both ends by the clock of the board, which may have been set in between."""
    many = np.full(300_000, 10_000)
    rows = []
    for number, bounds in enumerate(bounds_s):
        begin_ns, end_ns = (BEGIN_NS + at_s * 10**9 for at_s in bounds)
        rows.append(("panel", replace(row(machine(0), "run", (0, number), many), begin_ns=begin_ns, end_ns=end_ns)))
    write(tmp_path, rows)
    results = {}
    for return_ns in (5 * 10**9, 30 * 86400 * 10**9):
        (judged,) = by_hand(tmp_path, JudgeBoards(replace(LIMIT, return_time_ns=return_ns)))
        assert judged.measured_ns == measured_s * 10**9
        results[return_ns] = judged.result
    within = ArchivedResult.WITHIN if measured_s else ArchivedResult.NOT_SHOWN
    assert list(results.values()) == [within, ArchivedResult.NOT_SHOWN]


def _hours_without(gone: Callable[[ArchiveRow], bool], hours: int = 60) -> Iterator[tuple[str, ArchiveRow]]:
    return ((kind, one) for kind, one in _hours(0, hours) if not gone(one))


@pytest.mark.parametrize(
    ("gone", "missing"),
    [
        (lambda one: False, 0),
        (lambda one: one.interval in (7, 8, 30), 3),
        (lambda one: one.interval < 5, 5),
        (lambda one: one.interval == 7 and one.cpu == 1, 1),
        (lambda one: one.interval == 59 and one.cpu == 1, 1),
    ],
)
def test_a_board_with_missing_intervals_is_not_within(
    tmp_path: Path, gone: Callable[[ArchiveRow], bool], missing: int
) -> None:
    """Its ring removed them before takers stored them, or their part was removed; another run is complete."""
    other = [(kind, replace(one, run="other")) for kind, one in _hours(0, 20)]
    write(tmp_path, [*_hours_without(gone), *other, *_hours(1, 60)])
    boards = {one.board: one for one in by_hand(tmp_path, JudgeBoards(LIMIT))}
    assert boards[machine(1)].result is ArchivedResult.WITHIN
    assert boards[machine(0)].result is (ArchivedResult.NOT_SHOWN if missing else ArchivedResult.WITHIN)
    assert boards[machine(0)].reason.partition(" ")[0] == (str(missing) if missing else "")


def test_the_series_of_a_run_may_change_with_the_takers(tmp_path: Path) -> None:
    rows = [
        (kind, replace(one, series="timer/later" if one.interval >= 30 else one.series)) for kind, one in _hours(0, 60)
    ]
    (judged,) = by_hand(write(tmp_path, rows), JudgeBoards(LIMIT))
    assert judged.result is ArchivedResult.WITHIN


_OCTOBER = 226
"""Number of the first hour that begins in October."""


@pytest.mark.parametrize(
    ("first", "earlier", "missing"), [(_OCTOBER, None, 0), (_OCTOBER + 1, None, _OCTOBER + 1), (_OCTOBER, 0, _OCTOBER)]
)
def test_a_month_that_was_removed_is_not_missing(tmp_path: Path, first: int, earlier: int | None, missing: int) -> None:
    """Unless its board has an interval of that month, or the first one of the run does not begin the next month."""
    rows = list(_hours_without(lambda one: one.interval < first, first + 60))
    if earlier is not None:
        rows += [(kind, replace(one, run="earlier")) for kind, one in _hours(0, 1)]
    (judged,) = by_hand(write(tmp_path, rows), JudgeBoards(LIMIT))
    assert judged.reason.partition(" ")[0] == (str(missing) if missing else "")


@pytest.mark.parametrize(("lost", "missed"), [(1, 0), (0, 1)])
def test_lost_values_and_missed_periods_are_never_within(tmp_path: Path, lost: int, missed: int) -> None:
    rows = list(_hours(0, 40))
    rows[7] = rows[7][0], replace(rows[7][1], lost=lost, missed=missed)
    (board,) = by_hand(write(tmp_path, rows), JudgeBoards(LIMIT))
    assert board.result is ArchivedResult.NOT_SHOWN
    assert board.reason


def test_too_few_values_are_not_shown_to_be_within(tmp_path: Path) -> None:
    (board,) = by_hand(write(tmp_path, _hours(0, 40, size=50)), JudgeBoards(LIMIT))
    assert (board.result, board.n) == (ArchivedResult.NOT_SHOWN, 4000)


def test_each_series_of_a_board_is_judged_by_itself(tmp_path: Path) -> None:
    """Another board with one series does not suffer from one with two, which cannot be added."""
    other = [
        replace(one, run="run-z", series="gpio/response", begin_ns=one.begin_ns + 99 * HOUR_NS)
        for _, one in _hours(0, 2)
    ]
    write(tmp_path, [*_hours(0, 40), *(("panel", one) for one in other), *_hours(1, 40)])
    boards = {one.board: one for one in judged_archive(by_hand(tmp_path, JudgeBoards(LIMIT)), LIMIT).boards}
    assert boards[machine(1)].result is ArchivedResult.WITHIN
    assert boards[machine(0)].result is ArchivedResult.NOT_SHOWN
    assert "gpio/response" in boards[machine(0)].reason


@pytest.mark.parametrize(
    "series",
    [
        "monitor/expiry-to-return station=expiry-to-return (1 of 9)",
        "spinlock/acquire (1 of 2)",
        "monitor/expiry-to-interrupt",
    ],
)
def test_one_of_several_series_may_show_that_a_board_exceeds_and_never_that_it_is_within(
    tmp_path: Path, series: str
) -> None:
    """The last one is as older takers named it."""
    write(tmp_path, [(kind, replace(one, series=series)) for kind, one in _hours(0, 40)])
    (board,) = judged_archive(by_hand(tmp_path, JudgeBoards(LIMIT)), LIMIT).boards
    assert (board.result, series in board.reason) == (ArchivedResult.NOT_SHOWN, True)
    low = Requirement(12_000)
    (board,) = judged_archive(by_hand(tmp_path, JudgeBoards(low)), low).boards
    assert board.result is ArchivedResult.EXCEEDS


def test_a_rate_is_judged_by_the_disturbances(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    rows = []
    for hour in range(200):
        values = latencies(random, 1000)
        values[: random.poisson(1.5)] = 200_000.0
        rows.append(("panel", row(machine(0), "run", (0, hour), values)))
    exceeding = sum(sum(single.bucket_count[-1:]) for _, single in rows if (single.max_ns or 0) > 100_000)
    write(tmp_path, rows)
    results = {}
    for rate in (1e-4, 1e-2):
        required = Requirement(100_000, rate)
        (board,) = judged_archive(by_hand(tmp_path, JudgeBoards(required)), required).boards
        results[rate] = board.result
        assert board.exceeded == exceeding
    assert results == {1e-4: ArchivedResult.EXCEEDS, 1e-2: ArchivedResult.WITHIN}


# --- first change


def _cycles(number: int, cycles: int, change: int, factor: float) -> Iterator[tuple[str, ArchiveRow]]:
    """One interval for each cycle; from ``change`` on, values are longer by a factor."""
    random = np.random.default_rng((7, number))
    for cycle in range(cycles):
        values = latencies(random, 200, factor if cycle >= change else 1.0)
        yield "panel", row(machine(number), f"run-{number}", (0, cycle), values, CYCLE_S * 10**9)


@pytest.mark.check
def test_the_first_board_that_changed_is_found(tmp_path: Path) -> None:
    planted = {2: 40, 5: 50}
    rows = (single for number in range(8) for single in _cycles(number, 80, planted.get(number, 80), 1.5))
    found = first_change(by_hand(write(tmp_path, rows), FindChanges(1.0)))
    assert found.first is not None
    assert [change.board for change in found.changes] == [machine(2), machine(5)]
    assert found.first == found.changes[0]
    assert (found.boards, found.too_short) == (8, 0)
    for change, cycle in zip(found.changes, planted.values(), strict=True):
        begin_s = BEGIN_NS // 10**9 + cycle * CYCLE_S
        assert abs(change.at_s - begin_s) <= 2 * CYCLE_S
        assert 1.3 < change.now_ns / change.was_ns < 1.7
        assert change.noted_s > change.at_s


def test_boards_without_a_change_show_none_and_short_ones_are_counted(tmp_path: Path) -> None:
    rows = [single for number in range(6) for single in _cycles(number, 60, 60, 1.0)]
    found = first_change(by_hand(write(tmp_path, [*rows, *_cycles(9, 12, 6, 3.0)]), FindChanges(1.0)))
    assert (found.first, found.changes) == (None, ())
    assert (found.boards, found.too_short) == (7, 1)


WHOLE, PART = "monitor/expiry-to-running", "monitor/expiry-to-interrupt"


def _renamed(number: int, cycles: int, update: int, names: tuple[str, str], factor: float) -> list[ArchiveRow]:
    """A board whose takers were updated in a cycle: from then on its rows have another name, and are longer."""
    return [
        replace(single, series=names[single.interval >= update])
        for _, single in _cycles(number, cycles, update, factor)
    ]


@pytest.mark.check
def test_another_series_in_the_archive_is_no_change(tmp_path: Path) -> None:
    """Updated takers store the whole wake-up of a monitor, where earlier ones stored a part of it."""
    rows = [("panel", single) for single in _renamed(1, 80, 40, (PART, f"{WHOLE} (1 of 9)"), 5.0)]
    rows += [("panel", single) for single in _renamed(2, 70, 55, (PART, f"{WHOLE} (1 of 9)"), 5.0)]
    rows += [("panel", replace(single, series=WHOLE)) for _, single in _cycles(3, 80, 40, 1.5)]
    found = first_change(by_hand(write(tmp_path, rows), FindChanges(1.0)))
    (change,) = found.changes
    assert (change.board, change.series) == (machine(3), WHOLE)
    assert (found.boards, found.too_short, found.excluded_intervals) == (3, 0, 70 - 55)


@pytest.mark.check
def test_a_change_within_one_of_several_series_is_found(tmp_path: Path) -> None:
    """The number of series in a name is no part of the series: takers of earlier versions did not state it."""
    names = ("spinlock/acquire", "spinlock/acquire (1 of 2)")
    rows = [("panel", single) for single in _renamed(1, 80, 40, names, 1.5)]
    for _, single in _cycles(2, 80, 50, 1.5):
        rows.append(("panel", replace(single, series=f"{WHOLE} (1 of {9 + (single.interval > 60)})")))
        rows.append(("panel", replace(single, run="other", series=PART, max_ns=10 * (single.max_ns or 0))))
    found = first_change(by_hand(write(tmp_path, rows), FindChanges(1.0)))
    assert [(change.board, change.series) for change in found.changes] == [
        (machine(1), names[0]),
        *((machine(2), series) for series in (PART, WHOLE)),
    ]
    assert (found.boards, found.too_short, found.excluded_intervals) == (2, 0, 0)


# --- kernels


def _with_kernels(number: int, factors: tuple[float, ...], hours: int = 30) -> Iterator[tuple[str, ArchiveRow]]:
    """A board with a level of its own; after each ``hours`` a kernel that multiplies its latencies by a factor."""
    random = np.random.default_rng((8, number))
    own = float(random.lognormal(0.0, 0.5))
    for hour in range(hours * len(factors)):
        values = latencies(random, 300, own * factors[hour // hours])
        yield "panel", row(machine(number), f"run-{number}-{hour // hours}", (0, hour), values)


def _listed(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(["board,kernel,from", *lines]) + "\n")
    return path


def test_a_kernel_is_compared_within_boards_however_they_differ(tmp_path: Path) -> None:
    later = BEGIN_NS // 10**9 + 30 * 3600
    at = f"{np.datetime64(later, 's')}Z"
    write(tmp_path / "archive", (single for number in range(6) for single in _with_kernels(number, (1.0, 1.25))))
    path = _listed(
        tmp_path / "k.csv",
        [f"{machine(number)},{kernel},{begin}" for number in range(6) for kernel, begin in (("6.1", ""), ("6.12", at))],
    )
    boards = by_hand(tmp_path / "archive", MeasureKernels(read_kernels(path)))
    assert {level.hours for board in boards for level in board} == {30}
    found = compared_boards(boards, "6.1", 0.95)
    (difference,) = found.kernels
    assert (found.base, difference.kernel, difference.boards, difference.paired) == ("6.1", "6.12", 6, True)
    assert difference.lower is not None and difference.upper is not None
    assert difference.lower < 1.25 < difference.upper
    assert difference.lower > 1.0 and difference.significant


@pytest.mark.parametrize(("update", "series"), [(45, PART), (15, WHOLE)])
def test_kernels_are_compared_by_one_series(tmp_path: Path, update: int, series: str) -> None:
    """Takers were updated while boards had one of the kernels: later maxima are five times as long."""
    rows = []
    for number in range(6):
        for _, single in _with_kernels(number, (1.0, 1.25)):
            later = single.interval >= update
            name, factor = (f"{WHOLE} (1 of 9)", 5) if later else (PART, 1)
            rows.append(("panel", replace(single, series=name, max_ns=factor * (single.max_ns or 0))))
    spans = {machine(number): ((0, "6.1"), (BEGIN_NS + 30 * HOUR_NS, "6.12")) for number in range(6)}
    boards = by_hand(write(tmp_path, rows), MeasureKernels(spans))
    found = compared_boards(boards, "6.1", 0.95)
    (difference,) = found.kernels
    assert difference.ratio == pytest.approx(1.25, rel=0.1)
    assert (found.series, found.boards, found.unlisted) == (series, {"6.1": 6, "6.12": 6}, 0)
    assert found.excluded_hours == 6 * 15


def test_kernels_of_different_series_are_not_compared(tmp_path: Path) -> None:
    rows = [
        ("panel", replace(single, series=PART if single.interval < 30 else WHOLE))
        for number in range(6)
        for _, single in _with_kernels(number, (1.0, 1.0))
    ]
    spans = {machine(number): ((0, "6.1"), (BEGIN_NS + 30 * HOUR_NS, "6.12")) for number in range(6)}
    found = compared_boards(by_hand(write(tmp_path, rows), MeasureKernels(spans)), None, 0.95)
    (difference,) = found.kernels
    assert (difference.ratio, difference.boards) == (None, 0)
    assert sorted(found.boards.values()) == [0, 6] and found.boards[found.base] == 6
    other = compared_boards(by_hand(tmp_path, MeasureKernels(spans)), difference.kernel, 0.95)
    assert (other.base, other.series != found.series) == (difference.kernel, True)


@pytest.mark.parametrize("base", [None, "6.1", "6.12"])
def test_the_series_by_which_kernels_can_be_compared_is_preferred(base: str | None) -> None:
    """Most boards have another series, but only one of the kernels."""
    many = [(KernelLevel(machine(number), "6.1", PART, 100, 9.0 + number),) for number in range(10)]
    both = [
        tuple(KernelLevel(machine(number), kernel, WHOLE, 10, level) for kernel, level in (("6.1", 9.0), ("6.12", 9.5)))
        for number in range(10, 14)
    ]
    found = compared_boards([*many, *both], base, 0.95)
    (difference,) = found.kernels
    assert (found.series, difference.boards, difference.paired, found.excluded_hours) == (WHOLE, 4, True, 1000)


def test_boards_with_one_kernel_each_are_two_samples(tmp_path: Path) -> None:
    write(tmp_path / "archive", (single for number in range(8) for single in _with_kernels(number, (1.0,))))
    path = _listed(tmp_path / "k.csv", [f"{machine(number)},{'ab'[number % 2]}," for number in range(7)])
    boards = by_hand(tmp_path / "archive", MeasureKernels(read_kernels(path)))
    assert sum(not board for board in boards) == 1
    found = compared_boards(boards, None, 0.99)
    (difference,) = found.kernels
    assert (found.base, difference.boards, difference.paired, difference.significant) == ("a", 7, False, False)
    assert difference.lower is not None and difference.upper is not None
    assert difference.upper / difference.lower > 1.5  # boards differ by half: so few cannot show less


def test_an_hour_within_which_the_kernel_changed_is_excluded(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    rows = [
        ("panel", row(machine(0), "run", (0, part), latencies(random, 100), HOUR_NS // 4)) for part in range(4 * 10)
    ]
    at = f"{np.datetime64(BEGIN_NS // 10**9 // 3600 * 3600 + 5 * 3600 + 1200, 's')}Z"
    path = _listed(tmp_path / "k.csv", [f"{machine(0)},a,", f"{machine(0)},b,{at}"])
    (levels,) = by_hand(write(tmp_path / "archive", rows), MeasureKernels(read_kernels(path)))
    assert sum(level.hours for level in levels) in (8, 9)


def test_the_hour_of_a_change_is_excluded_however_little_of_it_remains(tmp_path: Path) -> None:
    """Also if the kernel changed in its first five minutes, or within an interval."""
    step_ns = HOUR_NS // 12
    first_ns = -(-BEGIN_NS // HOUR_NS) * HOUR_NS
    offset = first_ns - BEGIN_NS
    rows = []
    for number in range(36):
        one = row(machine(0), "run", (0, number), np.full(100, 10_000), step_ns)
        rows.append(("panel", replace(one, begin_ns=one.begin_ns + offset, end_ns=one.end_ns + offset)))
    write(tmp_path, rows)
    for change_ns in (step_ns, step_ns // 2):
        spans = {machine(0): ((0, "old"), (first_ns + HOUR_NS + change_ns, "new"))}
        ((old, new),) = by_hand(tmp_path, MeasureKernels(spans))
        assert (old.hours, new.hours) == (1, 1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "board,kernel\n",
        "board,kernel\nx,\n",
        "kernel\n6.1\n",
        "board,kernel,from\nx,a,y\n",
        "board,kernel,from\nx,a,0001-01-01\n",
        "board,kernel,from\nx,a,9999-12-31\n",
        "board,kernel\nx,\x1b[31m\n",
        "board,kernel\nx,a\nx,b\n",
    ],
)
def test_a_wrong_list_of_kernels_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kernels.csv"
    path.write_text(text)
    with pytest.raises(BadInput, match=str(path)):
        read_kernels(path)
    with pytest.raises(BadInput):
        read_kernels(tmp_path / "missing.csv")


def test_an_unknown_base_is_refused() -> None:
    with pytest.raises(BadInput, match="kernel 6"):
        compared_boards([(KernelLevel(machine(0), "6.1", WHOLE, 1, 9.0),)], "6.9", 0.95)
    with pytest.raises(BadInput, match="listed"):
        compared_boards([()], "6.9", 0.95)


def test_jobs_read_only_columns_of_the_archive() -> None:
    columns = set(ArchiveRow.__dataclass_fields__)
    for job in (JudgeBoards(LIMIT), FindChanges(1.0), MeasureKernels({})):
        assert set(job.columns) <= columns
    assert set(COLUMNS) <= columns
