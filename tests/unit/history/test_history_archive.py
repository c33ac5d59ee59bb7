# SPDX-License-Identifier: GPL-2.0-or-later
"""Old months go into Parquet, answers stay as they were, and rows around what matters stay for ever."""

from __future__ import annotations

import io
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from sqlalchemy import func, select

from fastenough.farm.history_update import HistoryOrder, update_history
from fastenough.history import (
    OWNER,
    History,
    HistoryFollower,
    close_months,
    distribution,
    events,
    heat,
    ingest,
    ingest_stream,
    maxima,
    ridge,
)
from fastenough.history.boards import BoardDeclaration
from fastenough.history.rollups import month_begin_s, next_month_s
from fastenough.history.schema import HOUR_S, INTERVAL, STEP_S
from fastenough.model import BadInput, FastenoughError
from fastenough.store import Store
from tests.support.history_rows import all_rows
from tests.support.recordings import PROFILE, WALL_NS, Plan, instant, latencies, write
from tests.support.tools import ROOT

pytestmark = pytest.mark.check

SERIES = "timer/wakeup_corrected"
BEGIN_S = WALL_NS // 10**9
HOURS = 14
NOW_S = next_month_s(BEGIN_S) + 60 * 86400
_MAXIMUM_AT_S = BEGIN_S + 7 * HOUR_S


def recorded(tmp_path: Path, run_id: str, seed: int, **more: Any) -> bytes:
    """Fourteen hours of five-minute intervals; in the eighth hour a new maximum of 1 ms."""
    values = latencies(seed, intervals=12 * HOURS, per_interval=60, tail_us=10.0)
    values[0][0][0] = 200_000
    values[0][7 * 12 + 3][0] = 1_000_000
    told = [
        {"kind": "max", "series": 0, "cpu": 0, "value": value, "at": instant(at_s * 10**9)}
        for value, at_s in ((200_000, 10), (1_000_000, 7 * HOUR_S + 910))
    ]
    plan = Plan(values, run_id=run_id, interval_ns=300 * 10**9, events=told)
    return write(tmp_path / f"{run_id}.jsonl", replace(plan, **more)).read_bytes()


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    opened = History.at(f"sqlite:///{tmp_path}/history.sqlite", archive=tmp_path / "archive")
    ingest_stream(opened, "run-1", io.BytesIO(recorded(tmp_path, "run-1", 1)))
    yield opened
    opened.close()


def answers(history: History) -> list[Any]:
    """Of the whole time, and of ranges that begin and end within cycles."""
    spans = [(BEGIN_S - 86400, BEGIN_S + 2 * 86400), (BEGIN_S + HOUR_S, BEGIN_S + 5 * HOUR_S)]
    held = [distribution(history, OWNER, "testboard", SERIES, *span) for span in spans]
    seen = [heat(history, OWNER, "testboard", SERIES, *span) for span in spans]
    return [
        *(
            {cpu: (one.lower_ns.tolist(), one.count.tolist(), one.max_ns) for cpu, one in each.cpus.items()}
            for each in held
        ),
        *((one.lower_ns.tolist(), one.count.tolist()) for one in seen),
        maxima(history, OWNER, "testboard", SERIES, *spans[0]).worst_ns.tolist(),
        [row.buckets.n for row in ridge(history, OWNER, "testboard", SERIES, 18).rows],
    ]


def rows_left(history: History) -> list[int]:
    with history.reading() as connection:
        return list(connection.execute(select(INTERVAL.c.begin_s).distinct().order_by(INTERVAL.c.begin_s)).scalars())


def test_nothing_is_closed_before_its_time(history: History) -> None:
    before = all_rows(history)
    assert close_months(history, NOW_S - 1) == []
    assert all_rows(history) == before


def test_answers_are_the_same_out_of_the_archive(history: History, tmp_path: Path) -> None:
    before = answers(history)
    rows = len(all_rows(history)["interval"])
    written = close_months(history, NOW_S)
    assert written == [f"000001-{month_begin_s(BEGIN_S)}.parquet"]
    assert answers(history) == before
    assert len(all_rows(history)["interval"]) < rows / 2
    table = pyarrow.parquet.read_table(tmp_path / "archive" / written[0])
    assert table.num_rows == rows
    assert set(table["run"].to_pylist()) == {"run-1"}


def test_the_path_of_an_archive_is_no_pattern(tmp_path: Path) -> None:
    """Not even where what it would match as a pattern is there as well."""
    for folder in ("month[s]", "m*"):
        history = History.at(f"sqlite:///{tmp_path}/{len(folder)}.sqlite", archive=tmp_path / folder)
        with closing(history):
            ingest_stream(history, "run-1", io.BytesIO(recorded(tmp_path, "run-1", 1)))
            before = answers(history)
            assert close_months(history, BEGIN_S + 120 * 86400)
            assert answers(history) == before


def test_rows_around_a_new_maximum_stay(history: History) -> None:
    close_months(history, NOW_S)
    hour_s = (_MAXIMUM_AT_S + 900) // HOUR_S * HOUR_S
    left = rows_left(history)
    assert left == [at_s for at_s in range(hour_s - HOUR_S, hour_s + 2 * HOUR_S, 300)]


def test_events_stay_for_a_year_and_those_around_a_new_maximum_longer(history: History) -> None:
    """Pages list those of a year: the greatest of a board's first hour is no new maximum."""
    year_s = next_month_s(BEGIN_S) + 365 * 86400
    for now_s, expected in (
        (NOW_S, [1_000_000, 200_000]),
        (year_s - 1, [1_000_000, 200_000]),
        (year_s, [1_000_000]),
        (year_s + 10 * 365 * 86400, [1_000_000]),
    ):
        close_months(history, now_s)
        assert [event.value_ns for event in events(history, OWNER, "testboard", BEGIN_S, NOW_S)] == expected


def test_only_the_named_boards_lose_old_events(history: History) -> None:
    before = all_rows(history)["event"]
    close_months(history, BEGIN_S + 500 * 86400, ["of another rack"])
    assert all_rows(history)["event"] == before


def test_rows_around_a_change_stay(history: History, tmp_path: Path) -> None:
    """Another run begins six hours after the first, with another command line."""
    other = recorded(tmp_path, "run-2", 2, begin_ns=0, head={"profile": PROFILE | {"cmdline": "quiet"}})
    at_s = BEGIN_S + 20 * HOUR_S
    later = re.sub(rb'"wall_ns":(\d+)', lambda found: b'"wall_ns":%d' % (int(found[1]) + 20 * HOUR_S * 10**9), other)
    ingest_stream(history, "run-2", io.BytesIO(later))
    close_months(history, NOW_S)
    left = [begin_s for begin_s in rows_left(history) if begin_s > BEGIN_S + HOURS * HOUR_S]
    assert left == [begin_s for begin_s in range(at_s // 300 * 300, at_s + HOUR_S, 300) if begin_s >= at_s - HOUR_S]


def test_what_was_closed_is_not_written_again(history: History, tmp_path: Path) -> None:
    (name,) = close_months(history, NOW_S)
    before = (tmp_path / "archive" / name).stat()
    assert close_months(history, NOW_S) == []
    assert (tmp_path / "archive" / name).stat() == before


def test_what_comes_after_its_month_was_closed_joins_it(history: History, tmp_path: Path) -> None:
    close_months(history, NOW_S)
    ingest_stream(history, "run-2", io.BytesIO(recorded(tmp_path, "run-2", 2)))
    before = answers(history)
    (name,) = close_months(history, NOW_S)
    assert answers(history) == before
    table = pyarrow.parquet.read_table(tmp_path / "archive" / name)
    assert {run: table["run"].to_pylist().count(run) for run in ("run-1", "run-2")} == {
        "run-1": 2 * 12 * HOURS,
        "run-2": 2 * 12 * HOURS,
    }


def hour_of_minutes(tmp_path: Path) -> tuple[bytes, bytes]:
    """A recording of sixty intervals of a minute, and what a pull after 33 of them receives: the last five minutes of
    it are incomplete."""
    plan = Plan(latencies(3, intervals=60, per_interval=60), run_id="run-1", interval_ns=60 * 10**9, begin_ns=0)
    lines = write(tmp_path / "minutes.jsonl", plan).read_bytes().splitlines(keepends=True)
    ends = [number for number, line in enumerate(lines, 1) if line.startswith(b'{"type":"interval"')]
    return b"".join(lines), b"".join(lines[: ends[32]])


def _archived(history: History, name: str) -> list[dict[str, Any]]:
    assert history.archive is not None
    rows: list[dict[str, Any]] = pyarrow.parquet.read_table(history.archive / name).to_pylist()
    return rows


def begun_and_closed(history: History, tmp_path: Path) -> bytes:
    """Close the month of a recording whose rest follows; returns the whole recording."""
    recording, begun = hour_of_minutes(tmp_path)
    ingest_stream(history, "run-1", io.BytesIO(begun))
    (name,) = close_months(history, NOW_S)
    assert rows_left(history) == []
    assert max(_archived(history, name), key=lambda row: int(row["begin_s"]))["intervals"] < 5
    return recording


def require_as_at_once(history: History, recording: bytes, tmp_path: Path) -> None:
    """Answers and the next file are those of a history that took the whole recording before the month was closed."""
    with closing(History.at(f"sqlite:///{tmp_path}/at-once.sqlite", archive=tmp_path / "at-once")) as other:
        ingest_stream(other, "run-1", io.BytesIO(recording))
        expected = answers(other)
        assert answers(history) == expected
        close_months(history, NOW_S)
        assert answers(history) == expected
        (name,) = close_months(other, NOW_S)
        assert _archived(history, name) == _archived(other, name)
        assert rows_left(history) == []


@pytest.fixture
def empty_history(tmp_path: Path) -> Iterator[History]:
    with closing(History.at(f"sqlite:///{tmp_path}/empty.sqlite", archive=tmp_path / "archive")) as opened:
        yield opened


def test_the_rest_of_five_minutes_is_added_to_their_archived_row(empty_history: History, tmp_path: Path) -> None:
    recording = begun_and_closed(empty_history, tmp_path)
    ingest_stream(empty_history, "run-1", io.BytesIO(recording))
    require_as_at_once(empty_history, recording, tmp_path)


def test_the_rest_of_five_minutes_is_added_once_if_its_transaction_fails(
    empty_history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the archived row was restored, and after the rest was added to it."""
    recording = begun_and_closed(empty_history, tmp_path)
    rows = all_rows(empty_history)
    for step in ("write_parts", "mark_outdated"):
        with monkeypatch.context() as patched, pytest.raises(ZeroDivisionError):
            patched.setattr(ingest, step, lambda *_: 1 // 0)
            ingest_stream(empty_history, "run-1", io.BytesIO(recording))
        assert all_rows(empty_history) == rows
    for _ in range(2):
        ingest_stream(empty_history, "run-1", io.BytesIO(recording))
    require_as_at_once(empty_history, recording, tmp_path)


@pytest.mark.parametrize("moment", ["write_table", "put"])
def test_killed_while_it_closes_a_month_again(empty_history: History, tmp_path: Path, moment: str) -> None:
    require_rest_after_kill(empty_history, tmp_path, moment)


def test_the_rest_of_five_minutes_waits_for_a_missing_or_damaged_file(empty_history: History, tmp_path: Path) -> None:
    """Without it, the values in it would be lost."""
    recording = begun_and_closed(empty_history, tmp_path)
    (file,) = (tmp_path / "archive").iterdir()
    rows, content = all_rows(empty_history), file.read_bytes()
    file.unlink()
    with pytest.raises(BadInput, match=rf"run-1: .* file {file.name} is not in {tmp_path}/archive; restore the file"):
        ingest_stream(empty_history, "run-1", io.BytesIO(recording))
    file.write_bytes(content[:1000])
    with pytest.raises(BadInput, match="run-1: cannot read a closed month of the history"):
        ingest_stream(empty_history, "run-1", io.BytesIO(recording))
    assert all_rows(empty_history) == rows
    file.write_bytes(content)
    ingest_stream(empty_history, "run-1", io.BytesIO(recording))
    require_as_at_once(empty_history, recording, tmp_path)


def test_where_a_file_cannot_be_written_a_month_stays_as_it_was_until_it_can(history: History) -> None:
    """As on a full disk; here no file may grow beyond what a process may write."""
    before, rows = answers(history), all_rows(history)
    assert history.archive is not None
    free = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, free[1]))
    try:
        with pytest.raises(FastenoughError, match=r"cannot write closed months to .*: File too large; their rows"):
            close_months(history, NOW_S)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, free)
    assert list(history.archive.iterdir()) == [], "half a file is left"
    assert (answers(history), all_rows(history)) == (before, rows)
    assert len(close_months(history, NOW_S)) == 1
    assert answers(history) == before


_CLOSE = """
import os, sys
from pathlib import Path
import pyarrow.parquet
from fastenough.history import History, archive

def killed(*given, **named):
    if sys.argv[3] == "write_table":
        given[1].write(b"half of it")
        given[1].flush()
    os.kill(os.getpid(), 9)

setattr(pyarrow.parquet if sys.argv[3] == "write_table" else archive, sys.argv[3], killed)
archive.close_months(History.at(sys.argv[1], Path(sys.argv[2])), int(sys.argv[4]))
"""


def require_rest_after_kill(history: History, folder: Path, moment: str) -> None:
    """The rest of five minutes is stored, also if a process is killed at a moment while it closes their month again."""
    recording = begun_and_closed(history, folder)
    ingest_stream(history, "run-1", io.BytesIO(recording))
    rows = all_rows(history)
    kill_while_closing(history, moment)
    assert all_rows(history) == rows
    require_as_at_once(history, recording, folder)


def kill_while_closing(history: History, moment: str) -> None:
    """In the middle of the file (write_table), or between the file and the rows (put)."""
    url = history.engine.url.render_as_string(hide_password=False)
    killed = subprocess.run(
        [sys.executable, "-c", _CLOSE, url, str(history.archive), moment, str(NOW_S)],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    assert killed.returncode == -9, killed.stderr


@pytest.mark.parametrize("moment", ["write_table", "put"])
def test_killed_while_it_closes_a_month(history: History, tmp_path: Path, moment: str) -> None:
    before, rows = answers(history), all_rows(history)
    kill_while_closing(history, moment)
    assert answers(history) == before
    assert all_rows(history) == rows
    (name,) = close_months(history, NOW_S)
    assert answers(history) == before
    assert pyarrow.parquet.read_table(tmp_path / "archive" / name).num_rows == len(rows["interval"])


def test_a_month_of_another_farms_store_is_said_and_read_where_its_file_is_copied(
    history: History, tmp_path: Path
) -> None:
    """Two farms share a database; whoever has the other's store, or none, lacks the ends of ranges and is told."""
    before = answers(history)
    (name,) = close_months(history, NOW_S)
    span = BEGIN_S + HOUR_S, BEGIN_S + 5 * HOUR_S
    for archive in (None, tmp_path / "other"):
        other = History(history.engine, archive)
        for question in (distribution, heat):
            (missing,) = question(other, OWNER, "testboard", SERIES, *span).missing
            assert not missing.in_fleet_archive
            assert abs(missing.begin_s - span[0]) < STEP_S and abs(missing.end_s - span[1]) < STEP_S
            later = question(other, OWNER, "testboard", SERIES, NOW_S, NOW_S + 5 * HOUR_S)
            assert later.missing == (), "of another month"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / name).write_bytes((tmp_path / "archive" / name).read_bytes())
    assert answers(other) == before
    assert distribution(other, OWNER, "testboard", SERIES, *span).missing == ()


def test_a_closed_month_that_was_cut_is_one_line_and_no_number(history: History, tmp_path: Path) -> None:
    (name,) = close_months(history, NOW_S)
    with (tmp_path / "archive" / name).open("r+b") as file:
        file.truncate(1000)
    with pytest.raises(FastenoughError, match="cannot read a closed month of the history") as said:
        heat(history, OWNER, "testboard", SERIES, BEGIN_S, BEGIN_S + 5 * HOUR_S)
    assert "\n" not in str(said.value)


def test_without_an_archive_nothing_is_closed(tmp_path: Path) -> None:
    opened = History.at(f"sqlite:///{tmp_path}/history.sqlite")
    ingest_stream(opened, "run-1", io.BytesIO(recorded(tmp_path, "run-1", 1)))
    with opened.reading() as connection:
        before = connection.execute(select(func.count()).select_from(INTERVAL)).scalar()
    assert close_months(opened, NOW_S) == []
    assert len(all_rows(opened)["interval"]) == before


def test_a_laptops_website_closes_months_once_a_day(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    history = History.of(store)
    now_s = float(NOW_S - 60 * 86400)
    follow = HistoryFollower(history, store, lambda: now_s)
    assert follow().intervals == 0
    with store.spool("testboard", "ring", lambda: None) as spool:
        store.adopt(spool, recorded(tmp_path, "run-1", 1).splitlines(keepends=True), "run-1")
    assert follow().intervals == 12 * HOURS
    rows = len(all_rows(history)["interval"])
    now_s += 60 * 86400 - 1
    follow()
    assert len(all_rows(history)["interval"]) == rows and not any((store.path / "history-archive").glob("*"))
    now_s += 86400
    follow()
    assert len(all_rows(history)["interval"]) < rows / 2 and any((store.path / "history-archive").glob("*.parquet"))


def test_a_farm_closes_months_of_its_store(tmp_path: Path) -> None:
    """What it takes into the history long after, it closes as well; who opens that history of the store reads both."""
    store = Store(tmp_path / "store")
    with store.spool("testboard", "ring", lambda: None) as spool:
        long_ago = re.sub(
            rb'"wall_ns":(\d+)',
            lambda found: b'"wall_ns":%d' % (int(found[1]) - 10**17),
            recorded(tmp_path, "run-1", 1),
        )
        store.adopt(spool, long_ago.splitlines(keepends=True), "run-1")
    order: HistoryOrder = {
        "farm": "farm",
        "coordinator": "",
        "state": str(store.path),
        "store": str(store.path),
        "database": f"sqlite:///{store.path}/history.sqlite",
        "boards": [],
        "stored": [],
        "under_way": [],
        "judge": {},
        "all": True,
        "close": [],
        "refused": {},
        "interrupted": [],
        "newest_run": None,
        "id": "farm",
        "names": ["testboard"],
    }
    said: BoardDeclaration = {
        "name": "testboard",
        "rack": "",
        "public": True,
        "limit_ns": None,
        "state": "ok",
        "reason": "",
    }
    assert update_history({**order, "boards": [said]})["damaged"] == []
    span = BEGIN_S - 10**8 - 86400, BEGIN_S - 10**8 + 86400
    whole = distribution(History.of(store), OWNER, "testboard", SERIES, *span)
    rows = len(all_rows(History.of(store))["interval"])
    update_history({**order, "close": ["of another rack"]})
    assert len(all_rows(History.of(store))["interval"]) == rows, "its files would lie in another store"
    update_history({**order, "close": ["testboard"]})
    opened = History.of(store)
    assert len(all_rows(opened)["interval"]) < rows
    again = distribution(opened, OWNER, "testboard", SERIES, *span)
    assert {cpu: one.count.tolist() for cpu, one in again.cpus.items()} == {
        cpu: one.count.tolist() for cpu, one in whole.cpus.items()
    }
