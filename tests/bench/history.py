# SPDX-License-Identifier: GPL-2.0-or-later
"""How quick the history of a big farm is, and how much room it takes: ``python -m tests.bench.history``.

200 boards of 8 CPUs: a year of hours and 18 months of cycles and months of all of them, made up, and 60 days of
five-minute rows of as many boards as ``--rows-of`` says (the default, 20, is a tenth), in both databases or in that of
``--only``.  Then: a day of recordings
taken, and what a farm of 10,000 boards would ask.  Prints a table in Markdown; the status is 1 where a bar is missed.

``--month BOARDS`` measures instead what is asked about a month of so many boards, of which only the hours are made up.
"""

from __future__ import annotations

import argparse
import io
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import Table, func, insert, select, text

from fastenough.history import (
    OWNER,
    History,
    board_statuses,
    catch_up,
    close_months,
    distribution,
    heat,
    ingest_run,
    ingest_stream,
    maxima,
    requirement_text,
    ridge,
    worst,
)
from fastenough.history.histograms import packed_histograms
from fastenough.history.packed_maxima import DAYS, HOURS, HourMaxima, MaximaRing
from fastenough.history.profiles import display_facts
from fastenough.history.rollups import month_begin_s, next_month_s
from fastenough.history.schema import (
    ALL_CPUS,
    BOARD,
    CYCLE,
    CYCLE_S,
    HOUR,
    HOUR_S,
    INTERVAL,
    METADATA,
    MONTH,
    NOW,
    RUN,
    SERIES,
    STEP_S,
)
from fastenough.model import Requirement
from tests.support.farm_data import make_store
from tests.support.postgresql import running_server
from tests.support.recordings import PROFILE, Plan, latencies, write

SERIES_NAME = "timer/wakeup_corrected"
END_S = 1_790_035_200
CPUS = 8
YEAR_S = 365 * 86400
MONTH_S = 30 * 86400
RIDGE_MONTHS = 18
ROW_DAYS = 60
BIG = 10_000
MONTH_BAR_S = 5.0
"""Of a question about a month of all boards."""
_BLOBS = 997
Rows = Iterable[tuple[Any, ...]]


@dataclass(frozen=True)
class Made:
    """Histograms and hours to choose from: as long as real ones, and made once."""

    histograms: list[bytes]
    counts: list[int]
    worst: list[int]
    hours: list[tuple[bytes, int]]

    @classmethod
    def up(cls, seed: int) -> Made:
        random = np.random.default_rng(seed)
        index = [
            np.cumsum(np.r_[90 + random.integers(0, 12), np.ones(23), random.integers(1, 5, 8)]).astype(np.int64)
            for _ in range(_BLOBS)
        ]
        count = [np.r_[random.poisson(12_500, 24), 1 + random.poisson(2, 8)] for _ in range(_BLOBS)]
        begins = np.cumsum([0, *(one.size for one in index)])
        maxima_ns = random.integers(40_000, 90_000, (_BLOBS, CPUS, 12))
        hours = [HourMaxima(dict(enumerate(each.tolist()))) for each in maxima_ns]
        return cls(
            packed_histograms(np.concatenate(index), np.concatenate(count), begins),
            [int(one.sum()) for one in count],
            random.integers(40_000, 90_000, _BLOBS).tolist(),
            [(hour.data, hour.worst_ns) for hour in hours],
        )


def boards_rows(boards: int) -> Iterator[tuple[Table, Rows]]:
    shown = '{"cpus": 8, "arch": "x86_64", "model": "Example", "kernel": "6.12.0-rt2", "preemption": "preempt-rt"}'
    assert display_facts(PROFILE)["preemption"] == "preempt-rt"
    yield (
        BOARD,
        (
            (
                number,
                f"r{number // 8}s{number % 8}",
                f"r{number // 8}",
                True,
                True,
                100_000,
                "ok",
                "",
                "PASS",
                "",
                "rt",
                shown,
                None,
                "",
                "PASS",
                "",
                None,
                300,
                "",
                "",
                "",
                "",
                "",
                requirement_text(Requirement(100_000)),
                None,
            )
            for number in range(1, boards + 1)
        ),
    )
    ring = np.random.default_rng(1).integers(40_000, 90_000, HOURS)
    newest_s = END_S - STEP_S
    hours, days = (
        MaximaRing.empty(size)
        .laid(np.arange(newest_s // unit - size + 1, newest_s // unit + 1), np.resize(ring, size))
        .data
        for size, unit in ((HOURS, HOUR_S), (DAYS, 86400))
    )
    yield (
        NOW,
        (
            (number, 1, END_S, STEP_S, newest_s, 50_000, 90_000, END_S - 10**6, hours, days)
            for number in range(1, boards + 1)
        ),
    )


def run_rows(boards: int) -> Rows:
    for number in range(1, boards + 1):
        yield number, f"run-{number}", number, END_S - YEAR_S, END_S, "osadl", "rt", None


def hour_rows(made: Made, boards: int, begin_s: int) -> Rows:
    for board in range(1, boards + 1):
        for place, at_s in enumerate(range(begin_s, END_S, HOUR_S)):
            data, worst_ns = made.hours[(place * 7 + board) % _BLOBS]
            yield board, 1, at_s, worst_ns, 10**8, 0, data


def month_tables(boards: int) -> Iterator[tuple[Table, Rows]]:
    """The hours of a month, and what they refer to."""
    yield SERIES, [(1, SERIES_NAME, True, "due", "awake")]
    yield from boards_rows(boards)
    yield RUN, run_rows(boards)
    yield HOUR, hour_rows(Made.up(1), boards, END_S - MONTH_S)


def all_tables(boards: int, rows_of: int) -> Iterator[tuple[Table, Rows]]:
    made = Made.up(1)
    yield SERIES, [(1, SERIES_NAME, True, "due", "awake")]
    yield from boards_rows(boards)
    yield RUN, run_rows(boards)
    each = range(1, boards + 1)
    yield HOUR, hour_rows(made, boards, END_S - YEAR_S)
    cycles = range(END_S - RIDGE_MONTHS * 30 * 86400, END_S, CYCLE_S)
    months = sorted({month_begin_s(at_s) for at_s in cycles})
    for table, windows in ((CYCLE, cycles), (MONTH, months)):
        yield (
            table,
            (
                (board, 1, at_s, cpu, made.counts[which], made.worst[which], made.histograms[which])
                for board in each
                for place, at_s in enumerate(windows)
                for cpu in range(ALL_CPUS, CPUS)
                for which in [(place * 11 + cpu + board) % _BLOBS]
            ),
        )
    yield INTERVAL, own_rows()
    yield (
        INTERVAL,
        (
            (
                board,
                1,
                at_s,
                cpu,
                board,
                1,
                made.counts[which],
                0,
                0,
                1200,
                made.worst[which],
                10**9,
                str(10**15),
                made.histograms[which],
            )
            for board in range(2, rows_of + 1)
            for place, at_s in enumerate(range(END_S - ROW_DAYS * 86400, END_S, STEP_S))
            for cpu in range(CPUS)
            for which in [(place * 11 + cpu + board) % _BLOBS]
        ),
    )


def own_rows() -> Rows:
    """Of the first board, no two alike: nothing is gained by packing them together."""
    random = np.random.default_rng(2)
    for at_s in range(END_S - ROW_DAYS * 86400, END_S, STEP_S):
        index = np.cumsum(
            np.c_[random.integers(90, 102, CPUS), np.ones((CPUS, 23), int), random.integers(1, 5, (CPUS, 8))], axis=1
        )
        count = np.c_[random.poisson(12_500, (CPUS, 24)), 1 + random.poisson(2, (CPUS, 8))]
        blobs = packed_histograms(index.ravel(), count.ravel(), np.arange(CPUS + 1) * 32)
        worst_ns = random.integers(40_000, 90_000, CPUS).tolist()
        sums = random.integers(10**9, 2 * 10**9, CPUS).tolist()
        for cpu, blob in enumerate(blobs):
            yield (
                1,
                1,
                at_s,
                cpu,
                1,
                1,
                int(count[cpu].sum()),
                0,
                0,
                1200 + cpu,
                worst_ns[cpu],
                sums[cpu],
                str(sums[cpu] ** 2),
                blob,
            )


def fill(history: History, tables: Iterable[tuple[Table, Rows]]) -> None:
    """In the quickest way that each database has."""
    for table, rows in tables:
        names = [f'"{column.name}"' for column in table.columns]
        with history.writing() as connection:
            raw = connection.connection.driver_connection
            assert raw is not None
            if connection.dialect.name == "sqlite":
                marks = ", ".join("?" * len(names))
                raw.executemany(f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({marks})", rows)
                continue
            with raw.cursor() as cursor, cursor.copy(f"COPY {table.name} ({', '.join(names)}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
    with history.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        if connection.dialect.name == "postgresql":
            for name in ("board", "series", "run"):
                connection.execute(text(f"SELECT setval(pg_get_serial_sequence('{name}', 'id'), max(id)) FROM {name}"))
            connection.execute(text("VACUUM ANALYZE"))


def sizes(history: History) -> dict[str, tuple[int, int]]:
    """By table, rows and bytes, its indexes included."""
    found = {}
    with history.reading() as connection:
        for name, table in METADATA.tables.items():
            rows = connection.execute(select(func.count()).select_from(table)).scalar_one()
            if connection.dialect.name == "postgresql":
                size = connection.execute(text(f"SELECT pg_total_relation_size('{name}')")).scalar_one()
            else:
                size = connection.execute(
                    text(
                        "SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE name = :name OR name IN "
                        "(SELECT name FROM sqlite_master WHERE tbl_name = :name)"
                    ),
                    {"name": name},
                ).scalar_one()
            found[name] = rows, int(size)
    return found


def seconds(question: Callable[[], Any], times: int = 9) -> float:
    """The least of some: what else this machine does is not the question's."""
    took = []
    for _ in range(times):
        begin_s = time.perf_counter()
        question()
        took.append(time.perf_counter() - begin_s)
    return min(took)


def questions(history: History) -> Iterator[tuple[str, float, float]]:
    """What is asked, how long it takes, and how long it may."""
    name = "r1s1"
    asked: list[tuple[str, Callable[[], Any], float]] = [
        (
            "five-minute maxima of a board's month",
            lambda: maxima(history, OWNER, name, SERIES_NAME, END_S - MONTH_S, END_S),
            0.1,
        ),
        ("worst of 30 hours of all boards", lambda: worst(history, OWNER, END_S - 30 * HOUR_S, END_S), 0.2),
        ("heat map of all boards, 30 days", lambda: worst(history, OWNER, END_S - MONTH_S, END_S, 2 * HOUR_S), 0.5),
        ("heat map of all boards, a year", lambda: worst(history, OWNER, END_S - YEAR_S, END_S, 24 * HOUR_S), 2.0),
        (
            "latency plot of a board's year",
            lambda: distribution(history, OWNER, name, SERIES_NAME, END_S - YEAR_S, END_S),
            1.0,
        ),
        (
            "latency plot of a selected six hours",
            lambda: distribution(history, OWNER, name, SERIES_NAME, END_S - 9 * HOUR_S, END_S - 3 * HOUR_S),
            0.2,
        ),
        ("heat map of a day", lambda: heat(history, OWNER, name, SERIES_NAME, END_S - 86400, END_S), 0.2),
        ("overview of all boards", lambda: board_statuses(history, OWNER, END_S), 0.2),
        (f"ridge of {RIDGE_MONTHS} months", lambda: ridge(history, OWNER, name, SERIES_NAME, RIDGE_MONTHS), 0.5),
    ]
    for what, question, bar_s in asked:
        yield what, seconds(question), bar_s


def month_questions(history: History) -> Iterator[tuple[str, float, float]]:
    """What is asked about a month of all boards, as `questions`."""
    begin_s = END_S - MONTH_S
    asked: list[tuple[str, Callable[[], Any]]] = [
        ("maximum of each board", lambda: worst(history, OWNER, begin_s, END_S, MONTH_S)),
        ("maximum of each board and day", lambda: worst(history, OWNER, begin_s, END_S, 86400)),
    ]
    for what, question in asked:
        yield what, seconds(question, 3), MONTH_BAR_S


def archived(history: History) -> Iterator[str]:
    """A month of one board in Parquet, and a question that goes back to it."""
    assert history.archive is not None
    begin_s = next_month_s(END_S - ROW_DAYS * 86400)
    written = close_months(history, next_month_s(begin_s) + 60 * 86400, ["r0s1"])
    size = (history.archive / f"000001-{begin_s}.parquet").stat().st_size
    took = seconds(lambda: heat(history, OWNER, "r0s1", SERIES_NAME, begin_s + 86400, begin_s + 2 * 86400))
    yield (
        f"- {len(written)} months of a board closed; one of {(next_month_s(begin_s) - begin_s) // 86400} days takes "
        f"{size / 1e6:.2f} MB of Parquet, so a year of 200 boards {size * 12 * 200 / 1e9:.1f} GB; the heat map of a "
        f"day of it takes {took * 1000:.0f} ms"
    )


def spent_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def a_day_taken(history: History, folder: Path, boards: int) -> tuple[float, float]:
    """Seconds, and seconds of CPU, for a day of recordings of 200 boards, from those of some; the first board is taken
    before, since what a process loads and compiles once is not paid for each of 200."""
    farm = make_store(folder, boards, 1, cpus=CPUS)
    for run in farm.store.runs(board=farm.boards[0]):
        ingest_run(history, farm.store, run.id)
    begin_s, cpu_s = time.perf_counter(), spent_s()
    caught = catch_up(history, farm.store)
    assert not caught.faults
    scale = 200 * 288 / caught.intervals
    return (time.perf_counter() - begin_s) * scale, (spent_s() - cpu_s) * scale


def takes(history: History, lines: list[bytes], upto: int, boards: int) -> tuple[float, float]:
    """Boards a second, and in a second of this CPU, of which the intervals up to one are taken."""
    contents = [
        (f"live-{number}", b"".join(lines[: 1 + upto]).replace(b'"testboard"', b'"live %d"' % number))
        for number in range(boards)
    ]
    begin_s, cpu_s = time.perf_counter(), spent_s()
    for run_id, content in contents:
        ingest_stream(history, run_id, io.BytesIO(content))
    return boards / (time.perf_counter() - begin_s), boards / (spent_s() - cpu_s)


def ten_thousand(history: History, folder: Path) -> Iterator[str]:
    """What 10,000 boards ask: 267 rows in a second are 33 boards."""
    plan = Plan(latencies(1, cpus=CPUS, intervals=14, per_interval=2000), interval_ns=STEP_S * 10**9)
    lines = write(folder / "one.jsonl", plan).read_bytes().splitlines(keepends=True)
    for what, upto in (("runs begun", 1), ("intervals, one by one", 2), ("intervals, an hour's twelve at once", 14)):
        rate, of_cpu = takes(history, lines, upto, 60)
        rows = CPUS * (12 if upto == 14 else 1)
        yield (
            f"- {what}: {rate:.0f} boards ({rate * rows:,.0f} rows) a second; {of_cpu:.0f} boards "
            f"({of_cpu * rows:,.0f} rows) in a second of CPU"
        )
    with history.writing() as connection:
        for table in (BOARD, NOW):
            columns = [column.name for column in table.columns]
            table_rows = next(rows for each, rows in boards_rows(BIG) if each is table)
            for_new = [dict(zip(columns, row, strict=True)) for row in table_rows if row[0] > 1000]
            connection.execute(insert(table), for_new)
    took = seconds(lambda: board_statuses(history, OWNER, END_S), 2)
    yield (f"- overview, which alerts are made of as well, of 10,000 boards: {took:.2f} s")


def filled(history: History, tables: Iterable[tuple[Table, Rows]]) -> None:
    """Fill the tables and print their sizes."""
    begin_s = time.perf_counter()
    fill(history, tables)
    print(f"\n### {history.engine.dialect.name}\n\nfilled in {time.perf_counter() - begin_s:.0f} s\n")
    print("| table | rows | MB | bytes a row |\n|---|--:|--:|--:|")
    for name, (rows, size) in sizes(history).items():
        if rows > 1000:
            print(f"| {name} | {rows:,} | {size / 1e6:,.0f} | {size / rows:.0f} |")


def answered(asked: Iterable[tuple[str, float, float]]) -> int:
    """Print how long each question took; return how many bars were missed."""
    print("\n| question | took | bar | |\n|---|--:|--:|---|")
    missed = 0
    for what, took_s, bar_s in asked:
        missed += took_s > bar_s
        print(
            f"| {what} | {took_s * 1000:.0f} ms | {bar_s * 1000:.0f} ms | {'missed' if took_s > bar_s else ''} |",
            flush=True,
        )
    return missed


def month_measured(history: History, boards: int) -> int:
    filled(history, month_tables(boards))
    return answered(month_questions(history))


def measured(history: History, folder: Path, boards: int, rows_of: int) -> int:
    filled(history, all_tables(boards, rows_of))
    missed = answered(questions(history))
    took_s, cpu_s = a_day_taken(history, folder / "store", 4)
    missed += cpu_s > 60
    print(
        f"| a day of 200 boards taken from recordings | {took_s:.0f} s ({cpu_s:.0f} s of CPU) | 60 s | "
        f"{'missed' if cpu_s > 60 else ''} |\n"
    )
    for line in (*archived(history), *ten_thousand(history, folder)):
        print(line, flush=True)
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--boards", type=int, default=200)
    parser.add_argument("--rows-of", type=int, default=20, help="boards that have five-minute rows")
    parser.add_argument("--month", type=int, default=0, metavar="BOARDS", help="only questions about a month of boards")
    parser.add_argument("--only", default="", choices=("sqlite", "postgresql"), help="one of the databases")
    given = parser.parse_args()
    made_up = f"{given.boards} boards of {CPUS} CPUs; {ROW_DAYS} days of rows of {given.rows_of} of them"
    if given.month:
        made_up = f"a month of {given.month} boards of {CPUS} CPUs"
    print(f"{made_up}; {os.cpu_count()} CPUs here, load {os.getloadavg()[0]:.1f}")
    missed = 0
    with tempfile.TemporaryDirectory() as made, running_server() as server:
        folder = Path(made)
        both = f"sqlite:///{folder}/history.sqlite", server.url
        for url in (url for url in both if url.startswith(given.only)):
            here = folder / url.partition(":")[0]
            here.mkdir()
            history = History.at(url, archive=here / "archive")
            if given.month:
                missed += month_measured(history, given.month)
            else:
                missed += measured(history, here, given.boards, given.rows_of)
            history.close()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
