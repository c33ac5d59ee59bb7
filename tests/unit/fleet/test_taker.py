# SPDX-License-Identifier: GPL-2.0-or-later
"""What a taker stores: each interval once, in the database and in the archive, whatever comes twice or fails."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import zstandard
from pyarrow import parquet
from sqlalchemy import event, func, select

from fastenough.fleet import stream, tables, taker
from fastenough.fleet.archive import FleetArchive, Partition
from fastenough.fleet.chunk import SHARDS, Chunk, Stored, stated_size, unpacked
from fastenough.fleet.simulated import CPUS, SimulatedBoard
from fastenough.fleet.stream import ChunkStream, Message, StreamState
from fastenough.fleet.taker import Shard, Taker
from fastenough.history import (
    OWNER,
    BoardCondition,
    BoardFilter,
    BoardOrder,
    GroupKind,
    Viewer,
    bands,
    board_of,
    board_page,
    board_totals,
    changes,
)
from fastenough.history.rollups import DAY_S
from fastenough.history.schema import ALL_CPUS, HOUR, MONTH
from fastenough.model import BadInput, FastenoughError, Unavailable
from tests.support.fleet_shard import BEGIN_S, STREAM, ShardBench, board, fail_after_the_part, intervals
from tests.support.postgresql import running_server


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[ShardBench]:
    one = ShardBench(tmp_path)
    yield one
    one.history.close()


def test_intervals_are_stored_once_whatever_comes_again(bench: ShardBench) -> None:
    bench.store(board().chunk(0, 2), board().chunk(2, 1))
    bench.store(board().chunk(1, 3), board().chunk(0, 4))
    assert bench.stored() == intervals(4)
    with bench.history.reading() as connection:
        assert connection.execute(select(func.sum(HOUR.c.count))).scalar() == 4 * CPUS * 200


@pytest.mark.parametrize(("first", "oldest"), [(2, 1), (4, 2)], ids=["whole", "in part"])
def test_a_gap_that_the_board_can_fill_is_not_stored(bench: ShardBench, first: int, oldest: int) -> None:
    bench.store(board().chunk(0, 1))
    later = replace(board().chunk(first, 1), oldest=oldest)
    assert dict(bench.store(later).answers) == {board().machine: Stored(board().run, 1)}
    assert bench.stored() == intervals(1)


def test_each_run_of_a_board_is_answered(bench: ShardBench) -> None:
    later = replace(board(), begin_s=BEGIN_S + 1000)
    answers = bench.store(board().chunk(0, 2), later.chunk(0, 1)).answers
    assert answers == (
        (board().machine, Stored(board().run, 2)),
        (board().machine, Stored(later.run, 1)),
    )


def test_what_the_board_overwrote_is_lost_and_counted(bench: ShardBench) -> None:
    bench.store(board().chunk(0, 1))
    bench.store(replace(board().chunk(3, 1), oldest=3))
    assert [number for _, cpu, number in bench.stored() if cpu == 0] == [0, 3]
    with bench.history.reading() as connection:
        assert connection.execute(select(tables.MACHINE.c.lost)).scalar() == 2


def test_a_chunk_without_intervals_says_what_is_lost(bench: ShardBench) -> None:
    bench.store(board().chunk(0, 1))
    removed = replace(board().chunk(4, 0), oldest=4)
    for _ in range(2):
        assert dict(bench.store(removed).answers) == {board().machine: Stored(board().run, 4)}
    assert bench.stored() == intervals(1)
    with bench.history.reading() as connection:
        assert connection.execute(select(tables.MACHINE.c.lost)).scalar() == 3


def _with_kernel(chunk: Chunk, kernel: str, head_ahead_s: int = 0) -> Chunk:
    """The same chunk with a kernel in its profile, and its run begun this much later by the head alone."""
    head = json.loads(chunk.head)
    head["profile"] = {"kernel": {"release": kernel}}
    head["begin"]["wall_ns"] += head_ahead_s * 10**9
    return replace(chunk, head=json.dumps(head).encode() + b"\n")


def test_a_run_without_a_known_time_changes_nothing_of_its_board(bench: ShardBench) -> None:
    """Its board began it with a clock ten years ahead, and removed its intervals before they could be stored."""
    ten_years_s = 10 * 365 * 86400
    removed = _with_kernel(replace(board().chunk(4, 0), oldest=4), "6.1.0", ten_years_s)
    later = replace(board(), begin_s=BEGIN_S + 1000)
    for _ in range(2):
        assert dict(bench.store(removed).answers) == {board().machine: Stored(board().run, 4)}
    bench.store(_with_kernel(later.chunk(0, 2), "6.12.0"))
    assert board_of(bench.history, OWNER, board().machine).kernel == "6.12.0"
    assert changes(bench.history, OWNER, board().machine, 0, 2**40) == []


def test_a_run_whose_head_is_ahead_begins_with_its_first_interval(bench: ShardBench) -> None:
    """The clock was set after its first intervals, which are lost and counted once."""
    ten_years_s = 10 * 365 * 86400
    for chunk in (replace(board().chunk(4, 0), oldest=4), board().chunk(4, 2), board().chunk(5, 2)):
        bench.store(_with_kernel(chunk, "6.1.0", ten_years_s))
    assert bench.stored() == [row for row in intervals(7) if row[2] >= 4]
    (run,) = bands(bench.history, OWNER, board().machine, 0, 2**40)
    assert run.begin_s == int(BEGIN_S) + 4 * 60
    with bench.history.reading() as connection:
        assert connection.execute(select(tables.MACHINE.c.lost)).scalar() == 4


def _ahead(chunk: Chunk, *numbers: int) -> Chunk:
    """The same chunk with these intervals ten years ahead."""
    lines = []
    for line in chunk.lines:
        part = json.loads(line)
        if part["type"] == "interval" and part["seq"] in numbers:
            for edge in ("begin", "end"):
                part[edge]["wall_ns"] += 10 * 365 * 86400 * 10**9
        lines.append(json.dumps(part).encode() + b"\n")
    return replace(chunk, lines=tuple(lines), oldest=0)


@pytest.mark.parametrize("edge", ["begin", "end"])
def test_an_interval_before_1970_is_skipped_and_lost(bench: ShardBench, edge: str) -> None:
    """One board would make the archive of all unreadable for jobs; a refusal would keep its later intervals back."""
    chunk = board().chunk(0, 3)
    lines = [json.loads(line) for line in chunk.lines]
    (early,) = (line for line in lines if line["type"] == "interval" and line["seq"] == 1)
    early[edge]["wall_ns"] = -1
    taken = bench.store(replace(chunk, lines=tuple(json.dumps(line).encode() + b"\n" for line in lines)))
    assert (dict(taken.answers), taken.refused) == ({board().machine: Stored(board().run, 3)}, ())
    assert bench.stored() == [row for row in intervals(3) if row[2] != 1]
    assert _lost(bench) == 1


@pytest.mark.parametrize("begin_s", [30, int(BEGIN_S) + 3600])
def test_an_interval_within_which_the_clock_was_set_is_as_long_as_measured(bench: ShardBench, begin_s: int) -> None:
    """A board without a clock begins in 1970; one whose clock is late is set forward, one whose clock is early back."""
    chunk = board().chunk(0, 3)
    lines = [json.loads(line) for line in chunk.lines]
    (first,) = (line for line in lines if line["type"] == "interval" and line["seq"] == 0)
    first["begin"]["wall_ns"] = begin_s * 10**9
    bench.store(replace(chunk, lines=tuple(json.dumps(line).encode() + b"\n" for line in lines)))
    assert bench.stored() == intervals(3)
    rows = [row for path in bench.folder.rglob("*.parquet") for row in parquet.read_table(path).to_pylist()]
    begin_ns = int(BEGIN_S) * 10**9
    bounds = {(row["interval"], row["begin_ns"] - begin_ns, row["end_ns"] - begin_ns) for row in rows}
    assert bounds == {(number, number * 60 * 10**9, (number + 1) * 60 * 10**9) for number in range(3)}
    assert {partition.month for partition in bench.archive.partitions()} == {"2026-11"}
    with bench.history.reading() as connection:
        assert min(connection.execute(select(tables.INTERVAL.c.begin_s)).scalars()) == int(BEGIN_S)


def test_an_interval_that_is_longer_than_the_time_since_1970_is_skipped(bench: ShardBench) -> None:
    chunk = board().chunk(0, 2)
    lines = [json.loads(line) for line in chunk.lines]
    (first,) = (line for line in lines if line["type"] == "interval" and line["seq"] == 0)
    first["begin"]["wall_ns"], first["end"]["wall_ns"] = 1, 59 * 10**9
    bench.store(replace(chunk, lines=tuple(json.dumps(line).encode() + b"\n" for line in lines)))
    assert bench.stored() == [row for row in intervals(2) if row[2] == 1]
    assert _lost(bench) == 1


def test_intervals_before_the_clock_of_the_board_was_set_are_skipped(bench: ShardBench) -> None:
    taken = bench.store(_ahead(board().chunk(0, 5), 0, 2))
    assert (dict(taken.answers), taken.refused) == ({board().machine: Stored(board().run, 5)}, ())
    assert bench.stored() == [row for row in intervals(5) if row[2] not in (0, 2)]
    with bench.history.reading() as connection:
        assert connection.execute(select(tables.MACHINE.c.lost)).scalar() == 2


def test_intervals_that_may_still_be_right_wait_on_the_board(bench: ShardBench) -> None:
    """Until a later one shows that the clock was wrong; a chunk of nothing else is refused."""
    assert dict(bench.store(_ahead(board().chunk(0, 5), 2, 3, 4)).answers) == {board().machine: Stored(board().run, 2)}
    alone = bench.store(_ahead(board().chunk(2, 2), 2, 3))
    assert alone.answers == () and len(alone.refused) == 1
    assert bench.stored() == intervals(2)
    assert dict(bench.store(_ahead(board().chunk(2, 4), 2, 3)).answers) == {board().machine: Stored(board().run, 6)}
    assert bench.stored() == [row for row in intervals(6) if row[2] not in (2, 3)]


def test_chunks_before_the_clock_of_the_board_was_set_are_skipped(bench: ShardBench) -> None:
    """More than a chunk was recorded ahead, so no single chunk shows that the clock was set."""
    bench.store(board().chunk(0, 1))
    for number in (1, 3):
        early = bench.store(_ahead(board().chunk(number, 2), number, number + 1))
        assert early.answers == () and len(early.refused) == 1
    later = bench.store(replace(board().chunk(5, 2), oldest=0))
    assert (dict(later.answers), later.refused) == ({board().machine: Stored(board().run, 7)}, ())
    assert bench.stored() == [row for row in intervals(7) if row[2] not in range(1, 5)]
    with bench.history.reading() as connection:
        assert connection.execute(select(tables.MACHINE.c.lost)).scalar() == 4


def test_a_chunk_that_is_missing_behind_one_ahead_is_published_again(bench: ShardBench) -> None:
    bench.store(_ahead(board().chunk(0, 2), 0, 1))
    assert dict(bench.store(replace(board().chunk(3, 2), oldest=0)).answers) == {
        board().machine: Stored(board().run, 0)
    }
    assert bench.stored() == []


def test_a_restarted_taker_knows_which_intervals_it_refused(bench: ShardBench) -> None:
    bench.store(board().chunk(0, 1))
    bench.store(_ahead(board().chunk(1, 2), 1, 2))
    bench.shard = Shard(bench.history, bench.archive, bench.shard.number)
    later = bench.store(replace(board().chunk(3, 2), oldest=0))
    assert dict(later.answers) == {board().machine: Stored(board().run, 5)}
    assert bench.stored() == [row for row in intervals(5) if row[2] not in (1, 2)]


def _lost(bench: ShardBench) -> int | None:
    with bench.history.reading() as connection:
        return connection.execute(select(tables.MACHINE.c.lost)).scalar()


@pytest.mark.parametrize("head_ahead_s", [0, 10 * 365 * 86400], ids=["dated", "undated"])
def test_intervals_ahead_of_the_clock_that_their_board_has_now_are_skipped(
    bench: ShardBench, head_ahead_s: int
) -> None:
    """A recording of an earlier boot, in which the clock was never set; later boots wait until all of it is stored."""
    now_ns = int(bench.history.wall_s() * 1e9)
    for first in (0, 2, 0, 2):
        early = _with_kernel(_ahead(board().chunk(first, 2), first, first + 1), "6.1.0", head_ahead_s)
        taken = bench.store(replace(early, now_ns=now_ns))
        assert taken.refused == ()
        assert dict(taken.answers)[board().machine].next >= first + 2
    assert (bench.stored(), _lost(bench)) == ([], 4)
    bench.store(_with_kernel(replace(board().chunk(4, 2), oldest=0, now_ns=now_ns), "6.1.0", head_ahead_s))
    assert (bench.stored(), _lost(bench)) == ([row for row in intervals(6) if row[2] >= 4], 4)


@pytest.mark.parametrize("off_s", [-3 * 3600, 3 * 3600, 10 * 365 * 86400])
def test_intervals_ahead_wait_while_the_board_and_this_machine_disagree(bench: ShardBench, off_s: int) -> None:
    now_ns = int((bench.history.wall_s() + off_s) * 1e9)
    taken = bench.store(replace(_ahead(board().chunk(0, 2), 0, 1), now_ns=now_ns))
    assert taken.answers == () and len(taken.refused) == 1


def test_a_missing_chunk_before_skipped_ones_is_published_again(bench: ShardBench) -> None:
    now_ns = int(bench.history.wall_s() * 1e9)
    gap = replace(_ahead(board().chunk(2, 2), 2, 3), now_ns=now_ns)
    assert dict(bench.store(gap).answers) == {board().machine: Stored(board().run, 0)}
    assert _lost(bench) == 0


def test_stored_intervals_before_those_ahead_are_answered_and_noted(bench: ShardBench) -> None:
    chunk = _ahead(board().chunk(0, 4), 2, 3)
    assert bench.store(chunk).refused == ()
    again = bench.store(chunk)
    assert (dict(again.answers), len(again.refused)) == ({board().machine: Stored(board().run, 2)}, 1)


@pytest.mark.check
@pytest.mark.parametrize(
    ("state", "oldest"),
    [
        (STREAM, 1),
        (STREAM, 2),
        (StreamState("tomorrow", 0), None),
        (StreamState("today", 0), None),
        (StreamState("today", 1), None),
    ],
)
def test_a_failed_transaction_leaves_nothing_behind(
    bench: ShardBench, monkeypatch: pytest.MonkeyPatch, state: StreamState, oldest: int | None
) -> None:
    """Its messages are in the stream, or were lost with it or at its end; then the boards publish them again."""
    bench.store(board().chunk(0, 1))
    fail_after_the_part(bench, monkeypatch, board().chunk(1, 2))
    assert len(list(bench.folder.rglob("*.parquet"))) == 2
    bench.start(state, oldest)
    assert bench.stored() == intervals(1)
    bench.store(board().chunk(1, 1))
    bench.store(board().chunk(2, 1))
    assert bench.stored() == intervals(3)


def test_two_takers_of_one_shard_do_not_store_twice(bench: ShardBench) -> None:
    before = bench.position
    bench.store(board().chunk(0, 1))
    bench.position = before
    with pytest.raises(FastenoughError):
        bench.store(board().chunk(0, 1))
    assert bench.stored() == intervals(1)


def test_a_stream_that_begins_anew_replaces_no_part(bench: ShardBench) -> None:
    bench.store(board().chunk(0, 1))
    bench.start(StreamState("tomorrow", 0), None)
    bench.store(board().chunk(1, 1))
    assert bench.stored() == intervals(2)


def test_a_stream_that_lost_its_end_is_read_from_there(bench: ShardBench) -> None:
    bench.store(board().chunk(0, 1), board().chunk(1, 1))
    bench.start(StreamState("today", 1))
    assert bench.position.sequence == 1
    bench.store(board().chunk(2, 1))
    assert bench.stored() == intervals(3)


def _contents(bench: ShardBench) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in bench.folder.rglob("*.*")}


@pytest.mark.parametrize("merged", [False, True])
def test_an_archive_of_another_database_is_refused(tmp_path: Path, bench: ShardBench, merged: bool) -> None:
    """As if the command was started in another directory, with its default database."""
    bench.store(board().chunk(0, 1))
    if merged:
        (part,) = bench.folder.rglob("*.parquet")
        part.rename(part.with_name("closed-0001.parquet"))
    before = _contents(bench)
    other = Shard(tables.opened(f"sqlite:///{tmp_path}/other.sqlite"), bench.archive, bench.shard.number)
    for _ in range(2):
        with pytest.raises(BadInput):
            other.position(STREAM, 1)
    assert _contents(bench) == before
    bench.start()
    assert bench.stored() == intervals(1)


def _set_back(bench: ShardBench, position: tables.ShardPosition) -> None:
    """As if the database was restored from a backup."""
    with bench.history.writing() as connection:
        tables.put_position(connection, bench.shard.number, position)


@pytest.mark.check
@pytest.mark.parametrize(
    ("parts", "state", "oldest"),
    [
        (1, STREAM, 3),
        (1, STREAM, None),
        (2, STREAM, 4),
        (2, STREAM, None),
        (2, StreamState("tomorrow", 0), None),
        (2, StreamState("today", 1), 1),
    ],
)
def test_parts_after_a_backup_of_the_database_are_refused(
    bench: ShardBench, parts: int, state: StreamState, oldest: int | None
) -> None:
    """Takers have reported them as stored, and the stream no longer has them."""
    bench.store(board().chunk(0, 1))
    backup = bench.position
    for number in range(1, 1 + parts):
        bench.store(board().chunk(number, 1))
    before = _contents(bench)
    assert len(before) == 1 + parts
    _set_back(bench, backup)
    for _ in range(2):
        with pytest.raises(FastenoughError) as refused:
            bench.start(state, oldest)
        assert not isinstance(refused.value, BadInput), "the other shards go on"
    assert _contents(bench) == before


def test_parts_whose_messages_the_stream_still_has_are_written_again(bench: ShardBench) -> None:
    """As after a failover to a database that lacks the last transactions."""
    bench.store(board().chunk(0, 1))
    backup = bench.position
    for number in (1, 2):
        bench.store(board().chunk(number, 1))
    before = _contents(bench)
    _set_back(bench, backup)
    bench.start(STREAM, 1)
    (kept,) = _contents(bench).items()
    assert kept in before.items() and len(before) == 3


def test_a_part_of_a_later_epoch_is_refused(bench: ShardBench) -> None:
    bench.store(board().chunk(0, 1))
    backup = bench.position
    bench.start(StreamState("tomorrow", 0), None)
    bench.store(board().chunk(1, 1))
    before = _contents(bench)
    _set_back(bench, backup)
    for state in (STREAM, StreamState("tomorrow", 9)):
        with pytest.raises(FastenoughError):
            bench.start(state)
    assert _contents(bench) == before


class _Stream(ChunkStream):
    """One of another server, without messages."""

    def __init__(self) -> None:
        pass

    async def state(self) -> StreamState:
        return STREAM

    async def read(self, shard: int, after: int, most: int) -> list[Message]:
        return []


def test_a_taker_ends_if_the_archive_is_of_another_database(tmp_path: Path, bench: ShardBench) -> None:
    bench.store(board().chunk(0, 1))
    history = tables.opened(f"sqlite:///{tmp_path}/other.sqlite")
    shards = [Shard(history, bench.archive, number) for number in range(SHARDS)]
    printed: list[str] = []
    with pytest.raises(BadInput):
        asyncio.run(asyncio.wait_for(Taker(_Stream(), shards, 0.1, printed.append).run(), 60))
    assert printed == []
    assert bench.stored() == intervals(1)


class _LockedShard(Shard):
    """One whose partitions cannot be dropped; it counts the attempts, and sees the summaries refreshed."""

    attempts, refreshed = 0, False

    def drop_old_days(self) -> None:
        self.attempts += 1
        raise Unavailable("out of shared memory")

    def refresh_summaries(self) -> None:
        self.refreshed = True


class _IdleStream(_Stream):
    """One that forgets nothing."""

    async def forget(self, shard: int, up_to: int) -> None:
        pass


def test_other_work_continues_if_old_days_cannot_be_dropped(bench: ShardBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each failure restarts the shard."""
    monkeypatch.setattr(taker, "_FORGET_S", 0.0)
    monkeypatch.setattr(taker, "_AGAIN_S", 0.0)
    shard, printed = _LockedShard(bench.history, bench.archive, 0), list[str]()

    async def run() -> None:
        task = asyncio.create_task(Taker(_IdleStream(), [shard], 0.01, printed.append).run())
        while len(printed) < 2 and not shard.refreshed:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(asyncio.wait_for(run(), 60))
    assert (shard.attempts, shard.refreshed, len(printed)) == (1, True, 1)


@pytest.mark.slow
def test_two_takers_that_start_at_once_remove_no_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither has a position yet; the second one looks into the archive when the first one has stored something."""
    reached, go = threading.Event(), threading.Event()
    listed = FleetArchive._partitions_of

    def waiting(self: FleetArchive, shard: int) -> list[Partition]:
        if threading.current_thread() is late:
            reached.set()
            go.wait(2)
        return listed(self, shard)

    with running_server() as server:
        bench = ShardBench(tmp_path, database=server.url)
        with bench.history.writing() as connection:
            connection.execute(tables.SHARD.delete())
        monkeypatch.setattr(FleetArchive, "_partitions_of", waiting)
        late = threading.Thread(
            target=lambda: Shard(bench.history, bench.archive, bench.shard.number).position(STREAM, 1)
        )
        late.start()
        assert reached.wait(60)
        bench.start()
        bench.store(board().chunk(0, 1))
        go.set()
        late.join()
        assert bench.stored() == intervals(1)
        bench.history.close()


def test_two_boards_with_one_machine_id_are_quarantined(bench: ShardBench) -> None:
    def of_boot(boot: str, first: int) -> Chunk:
        chunk = board().chunk(first, 1)
        head = chunk.head.replace(board().machine[:8].encode() + b"-0000", boot.encode() + b"-0000")
        return replace(
            chunk, run=f"{chunk.run}-{boot}", head=head.replace(chunk.run.encode(), f"{chunk.run}-{boot}".encode())
        )

    assert not bench.store(of_boot("aaaaaaaa", 0), of_boot("bbbbbbbb", 0)).refused
    refused = bench.store(of_boot("aaaaaaaa", 1), of_boot("bbbbbbbb", 1)).refused
    assert [one.machine for one in refused] == 2 * [board().machine]
    assert len(bench.stored()) == 2 * CPUS


def test_a_late_report_of_lost_intervals_is_no_second_board(bench: ShardBench) -> None:
    """Nothing of its boot was stored before; the other boot continues."""
    lost = replace(board(), begin_s=BEGIN_S - 1000).chunk(4, 0, 4)
    lost = replace(lost, head=lost.head.replace(board().machine[:8].encode() + b"-0000", b"aaaaaaaa-0000"))
    bench.store(board().chunk(0, 1))
    assert not bench.store(lost, board().chunk(1, 1)).refused
    assert bench.stored() == intervals(2)
    assert _lost(bench) == 4


@pytest.mark.check
def test_days_that_are_over_leave_the_database_but_not_the_archive(bench: ShardBench) -> None:
    bench.store(board().chunk(0, 1))
    for days, left in ((tables.KEPT_DAYS, CPUS), (tables.KEPT_DAYS + 1, 0)):
        bench.history.wall_s = partial(float, BEGIN_S + days * DAY_S)
        bench.shard.drop_old_days()
        with bench.history.reading() as connection:
            assert connection.execute(select(func.count()).select_from(tables.INTERVAL)).scalar() == left
    assert bench.archive.count() == CPUS


def test_only_the_archive_and_the_sums_have_intervals_of_days_that_are_over(bench: ShardBench) -> None:
    """Else a board with old times would make a partition of each day, which stops all takers meanwhile."""
    days = tables.KEPT_DAYS + 2
    daily = SimulatedBoard(0, float(DAY_S), BEGIN_S // DAY_S * DAY_S - days * DAY_S, 0.0)
    bench.store(daily.chunk(0, days))
    with bench.history.reading() as connection:
        stored = set(connection.execute(select(tables.INTERVAL.c.interval)).scalars())
        assert connection.execute(select(func.sum(HOUR.c.count))).scalar() == days * CPUS * 200
    assert stored == set(range(days - tables.KEPT_DAYS, days))
    assert bench.archive.count() == days * CPUS


def test_a_transaction_is_limited_by_the_months_of_its_contents(bench: ShardBench) -> None:
    """Each one is a file; the next transaction begins with what was left."""
    monthly = _monthly(60)
    assert bench.store(*(monthly.chunk(first, 20) for first in (0, 20, 40))).position.sequence == 1
    assert bench.store(*(monthly.chunk(first, 20) for first in (20, 40))).position.sequence == 2
    assert bench.archive.count() == 40 * CPUS


def _monthly(months: int) -> SimulatedBoard:
    """A board whose last interval before `BEGIN_S` is the last of so many; each is in another month."""
    return SimulatedBoard(0, _MONTH_S, BEGIN_S - months * _MONTH_S, 0.0)


def _with_events(board: SimulatedBoard, times: Iterable[tuple[float, float]]) -> Chunk:
    """The first interval of a board, after events at these times (CLOCK_MONOTONIC, wall clock)."""
    chunk = board.chunk(0, 1)
    events = [
        b'{"type":"event","kind":"note","at":{"mono_ns":%d,"wall_ns":%d}}\n' % (mono_s * 1e9, wall_s * 1e9)
        for mono_s, wall_s in times
    ]
    return replace(chunk, lines=(*events, *chunk.lines))


_MONTH_S = 31.0 * DAY_S
_LONG = SimulatedBoard(0, 33 * _MONTH_S, BEGIN_S - 33 * _MONTH_S, 0.0)
_LONG_EVENT = b'{"type":"event","kind":"note","at":{"mono_ns":1,"wall_ns":1}%s}\n' % (900 * b" ")
_SHORT_EVENT = b'{"type":"event","kind":"note","at":{"mono_ns":1,"wall_ns":1}}\n'


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"no zstd",
        zstandard.compress(b"[]\n"),
        zstandard.compress(b"{}\n"),
        zstandard.compress(bytes(17 << 20)),
        zstandard.compress(board().chunk(0, 1).packed()),
        board(1).chunk(0, 1).packed(),
        replace(board().chunk(0, 1), run="../run").packed(),
        replace(board().chunk(0, 1), type="a\0b").packed(),
        replace(board().chunk(0, 1), type="\ud800").packed(),
        replace(board().chunk(0, 1), first=-1).packed(),
        replace(board().chunk(0, 1), lines=(b'{"type":"interval"',)).packed(),
        replace(board().chunk(0, 1), first=1).packed(),
        replace(board().chunk(0, 1), head=board(1).head()).packed(),
        replace(board().chunk(0, 1), lines=(b"[1]\n",)).packed(),
        _monthly(33).chunk(0, 33).packed(),
        _with_events(board(), ((0, number * _MONTH_S) for number in range(33))).packed(),
        _with_events(_LONG, ((_LONG.begin_s + number * _MONTH_S, 0) for number in range(33))).packed(),
        replace(board().chunk(0, 1), lines=(20_000 * _SHORT_EVENT, *board().chunk(0, 1).lines)).packed(),
        replace(board().chunk(0, 1), lines=(1200 * _LONG_EVENT, *board().chunk(0, 1).lines)).packed(),
        replace(board().chunk(0, 1), head=board().head()[:-2] + b" " * (1 << 20) + b"}\n").packed(),
        replace(board().chunk(0, 1), lines=(20_000 * b"\r", *board().chunk(0, 1).lines)).packed(),
    ],
    ids=lambda payload: f"{len(payload)} bytes",
)
def test_what_is_no_chunk_of_this_machine_is_refused(bench: ShardBench, payload: bytes) -> None:
    taken = bench.shard.store(bench.position, [Message(1, board().machine, payload)])
    assert [one.machine for one in taken.refused] == [board().machine]
    assert not taken.answers
    assert not bench.stored()


@pytest.mark.parametrize(
    ("pattern", "wrong"),
    [(rb'"lost":0', b'"lost":2199023255552'), (rb'"cpu":1', b'"cpu":40000'), (rb',{"id":1,.*?}(?=])', b"")],
    ids=["values", "cpu", "series"],
)
def test_a_chunk_that_cannot_be_stored_stops_no_other(bench: ShardBench, pattern: bytes, wrong: bytes) -> None:
    """Of the right form, but with numbers that no board measures, or without a series of its head."""
    bad, good = board(1).chunk(0, 1), board().chunk(0, 1)
    head = re.sub(pattern, wrong, bad.head) if b"cpu" in pattern else bad.head
    bad = replace(bad, head=head, lines=tuple(re.sub(pattern, wrong, line) for line in bad.lines))
    taken = [bench.store(good, bad)]
    while taken[-1].position.sequence < 2:
        taken.append(bench.store(bad))
    assert [one.machine for part in taken for one in part.refused] == [bad.machine]
    assert {machine for part in taken for machine, _ in part.answers} == {good.machine}
    assert bench.stored() == intervals(1)


def test_as_many_lines_as_a_publisher_sends_are_stored(bench: ShardBench) -> None:
    """1 MiB of the shortest events."""
    chunk = board().chunk(0, 1)
    assert not bench.store(replace(chunk, lines=((1 << 20) // 100 * _SHORT_EVENT, *chunk.lines))).refused
    assert bench.stored() == intervals(1)


def test_a_transaction_is_limited_by_the_length_of_its_contents(
    bench: ShardBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each message is short, but its text has 400 KiB; the next transaction begins with what was left."""
    monkeypatch.setattr(stream, "_MOST_BYTES", 1 << 20)
    chunks = [board().chunk(number, 1) for number in range(5)]
    long = [replace(chunk, lines=((400 << 10) * b" " + chunk.lines[0],)) for chunk in chunks]
    assert bench.store(*long).position.sequence == 3
    assert bench.store(*long[3:]).position.sequence == 5
    assert bench.stored() == intervals(5)


@pytest.mark.parametrize(
    ("payload", "size"),
    [
        (b"", 0),
        (b"no zstd", 7),
        (zstandard.compress(bytes(5 << 20)), 5 << 20),
        (zstandard.ZstdCompressor(write_content_size=False).compress(b"x"), 16 << 20),
    ],
    ids=["empty", "damaged", "stated", "not stated"],
)
def test_the_size_of_a_message_is_what_it_takes_unpacked(payload: bytes, size: int) -> None:
    assert stated_size(payload) == size


def test_a_stated_size_above_the_limit_is_not_allocated() -> None:
    """The frame's header alone: 2^50 bytes that never come."""
    stated = bytes.fromhex("28b52ffde0") + (1 << 50).to_bytes(8, "little") + bytes.fromhex("010000")
    assert zstandard.frame_content_size(stated) == 1 << 50
    with pytest.raises(BadInput, match="states more than"):
        unpacked(stated, board().machine)


def test_a_chunk_survives_its_way() -> None:
    chunk = board().chunk(3, 2)
    assert unpacked(chunk.packed(), chunk.machine) == chunk
    with pytest.raises(BadInput):
        unpacked(chunk.packed(), board(1).machine)


def test_boards_that_publish_are_on_the_pages(bench: ShardBench) -> None:
    """With their type, and silent once they publish nothing for three intervals."""
    one = board()
    bench.history.wall_s = lambda: one.begin_s + 130
    bench.store(one.chunk(0, 2))
    wanted = BoardFilter(group=(GroupKind.TYPE, one.chunk(0, 1).type))
    for late_s, state in ((60, BoardCondition.OK), (3600, BoardCondition.SILENT)):
        now_s = int(BEGIN_S) + 120 + late_s
        (found,) = board_page(bench.history, OWNER, wanted, BoardOrder(), (0, 9), now_s)
        assert (found.board.name, found.state) == (one.machine, state)
        assert board_totals(bench.history, OWNER, wanted, now_s, 900).conditions == {state: 1}


@pytest.mark.parametrize(("site", "sees"), [("graz", 1), ("linz", 0)])
def test_boards_belong_to_the_site_of_their_taker(tmp_path: Path, site: str, sees: int) -> None:
    bench = ShardBench(tmp_path, site="graz")
    one = board()
    bench.history.wall_s = lambda: one.begin_s + 130
    bench.store(one.chunk(0, 2))
    viewer = Viewer(sites=frozenset({site}))
    page = board_page(bench.history, viewer, BoardFilter(), BoardOrder(), (0, 9), int(BEGIN_S) + 130)
    assert [found.board.name for found in page] == [one.machine] * sees


def test_more_boards_in_one_transaction_need_no_more_statements(bench: ShardBench) -> None:
    """A statement for each chunk would leave takers behind where each one waits for a busy database."""
    boards = [board(number) for number in range(12)]
    bench.store(*(one.chunk(0, 1) for one in boards))
    counts: list[int] = []

    def count(*_: object) -> None:
        counts[-1] += 1

    event.listen(bench.history.engine, "before_cursor_execute", count)
    for those in (boards[:2], boards[2:]):
        counts.append(0)
        bench.store(*(one.chunk(1, 1) for one in those))
    assert counts[0] == counts[1] > 0
    with bench.history.reading() as connection:
        assert connection.execute(select(func.sum(HOUR.c.count))).scalar() == 12 * 2 * CPUS * 200


def test_two_runs_of_a_board_in_one_transaction_are_added(bench: ShardBench) -> None:
    """Both begin within the same five minutes."""
    later = replace(board(), begin_s=BEGIN_S + 60.0)
    bench.store(board().chunk(0, 1), later.chunk(0, 1), board().chunk(1, 1))
    with bench.history.reading() as connection:
        assert connection.execute(select(func.sum(HOUR.c.count))).scalar() == 3 * CPUS * 200
        assert connection.execute(select(func.sum(MONTH.c.count)).where(MONTH.c.cpu == ALL_CPUS)).scalar() == 1200
