# SPDX-License-Identifier: GPL-2.0-or-later
"""Recordings come into the history exactly once, whatever happens, and what it says is what they say."""

from __future__ import annotations

import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Unpack

import numpy as np
import pytest

from fastenough.history import (
    OWNER,
    BoardCondition,
    History,
    board_statuses,
    boards_under_rebuild,
    catch_up,
    declare,
    distribution,
    events,
    ingest_run,
    ingest_stream,
    maxima,
    note_refused,
    rebuild,
    refusals,
)
from fastenough.history.ingest import ClockAhead
from fastenough.model import BadInput
from fastenough.recording import read_recording
from fastenough.recording.building import line_bytes
from fastenough.store import Store
from tests.support.farm_data import FarmData
from tests.support.fleet_stores import add_run
from tests.support.history_rows import all_rows
from tests.support.recordings import WALL_NS, Plan, PlanFields, instant, latencies, quiet, write
from tests.support.tools import ROOT

pytestmark = pytest.mark.untimed

SERIES = "timer/wakeup_corrected"
LONG = 2 * WALL_NS // 10**9


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    opened = History.at(f"sqlite:///{tmp_path}/history.sqlite")
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def whole(farm: FarmData, tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
    """Of the whole farm, taken at once; only to be read."""
    opened = fresh(tmp_path_factory.mktemp("whole") / "history.sqlite")
    assert catch_up(opened, farm.store).faults == {}
    yield opened
    opened.close()


def fresh(path: Path) -> History:
    return History.at(f"sqlite:///{path}")


def recorded(tmp_path: Path, plan: Plan) -> bytes:
    return write(tmp_path / f"{plan.run_id}.jsonl", plan).read_bytes()


def long_plan(**more: Unpack[PlanFields]) -> Plan:
    """Two hours of five-minute intervals on two CPUs."""
    return replace(Plan(latencies(3, intervals=24, per_interval=300), interval_ns=300 * 10**9), **more)


def totals(history: History, board: str) -> dict[int, int]:
    return {cpu: held.n for cpu, held in distribution(history, OWNER, board, SERIES, 0, LONG).cpus.items()}


@pytest.mark.slow
def test_totals_are_those_of_the_recordings(farm: FarmData, whole: History) -> None:
    for board in farm.boards:
        said: dict[int, int] = {}
        worst: dict[int, int] = {}
        for run in farm.store.runs(board=board):
            recording = farm.store.load(run.id)
            for series in recording.series:
                assert series.cpu is not None
                total = recording.totals[series.id]
                said[series.cpu] = said.get(series.cpu, 0) + total.total
                worst[series.cpu] = max(worst.get(series.cpu, 0), total.maximum or 0)
        held = distribution(whole, OWNER, board, SERIES, farm.begin_s, farm.end_s)
        assert {cpu: buckets.n for cpu, buckets in held.cpus.items()} == said
        assert {cpu: buckets.max_ns for cpu, buckets in held.cpus.items()} == worst
        shown = maxima(whole, OWNER, board, SERIES, farm.begin_s, farm.end_s)
        assert {cpu: int(values.max()) for cpu, values in shown.values_ns.items()} == worst


def test_what_was_taken_is_not_taken_again(farm: FarmData, whole: History) -> None:
    rows = all_rows(whole)
    assert len(rows["interval"]) > 1000
    assert catch_up(whole, farm.store).intervals == 0
    assert [ingest_run(whole, farm.store, run.id) for run in farm.store.runs()] == [0] * len(farm.store.runs())
    assert all_rows(whole) == rows


def test_a_history_that_is_dropped_and_made_again_has_equal_rows(farm: FarmData, history: History) -> None:
    farm.declare(history)
    catch_up(history, farm.store)
    rows = all_rows(history)
    assert rebuild(history, farm.store).faults == {}
    assert all_rows(history) == rows
    assert all(rows[name] for name in rows if name != "refused")


def test_the_order_in_which_runs_are_read_does_not_matter(farm: FarmData, whole: History, history: History) -> None:
    ids = [run.id for run in farm.store.runs()]
    random.Random(7).shuffle(ids)
    for run_id in ids:
        ingest_run(history, farm.store, run_id)
    assert all_rows(history) == all_rows(whole)


def test_columns_and_text_of_a_sealed_run_are_taken_alike(farm: FarmData, whole: History, history: History) -> None:
    for run in farm.store.runs():
        assert farm.store.folded(run.id) is not None
        with farm.store.opened(run.id) as stream:
            assert ingest_stream(history, run.id, stream) > 0
    assert all_rows(history) == all_rows(whole)


def test_a_recording_that_grows_by_any_bytes(history: History, tmp_path: Path) -> None:
    """Torn lines are left for later; what was read in many pieces is what was read at once."""
    whole = recorded(tmp_path, long_plan(events=[{"kind": "max", "series": 0, "cpu": 0, "value": 30_000}]))
    at_once = fresh(tmp_path / "at-once.sqlite")
    ingest_stream(at_once, "run-1", io.BytesIO(whole))
    cuts = sorted(random.Random(1).sample(range(len(whole)), 12))
    taken = [ingest_stream(history, "run-1", io.BytesIO(whole[:cut])) for cut in [*cuts, len(whole), len(whole)]]
    assert sum(taken) == 24
    assert taken[-1] == 0
    assert all_rows(history) == all_rows(at_once)


def test_a_recording_whose_head_was_completed_meanwhile(history: History, tmp_path: Path) -> None:
    """The bench adds to the head of what it fetched: all offsets move, and no interval comes twice."""
    plan = long_plan()
    before = recorded(tmp_path, plan)
    half = before[: before.index(b'{"type":"interval","seq":12') + 40]
    after = recorded(tmp_path, replace(plan, head={"planned_n": 7_200_000}))
    assert ingest_stream(history, "run-1", io.BytesIO(half)) == 12
    assert ingest_stream(history, "run-1", io.BytesIO(after)) == 12
    assert totals(history, "testboard") == {0: 7200, 1: 7200}


def test_a_recording_that_was_written_anew(history: History, tmp_path: Path) -> None:
    """Its head is as it was, and its lines are longer: what was read of it does not come again."""
    before = recorded(tmp_path, long_plan())
    cut = before.index(b'{"type":"interval","seq":12')
    longer = before.replace(b'"counters":{', b'"counters":   {')
    assert ingest_stream(history, "run-1", io.BytesIO(before[:cut])) == 12
    assert ingest_stream(history, "run-1", io.BytesIO(longer)) == 12
    shorter = fresh(tmp_path / "shorter.sqlite")
    assert ingest_stream(shorter, "run-1", io.BytesIO(longer[: longer.index(b'{"type":"interval","seq":12')])) == 12
    assert ingest_stream(shorter, "run-1", io.BytesIO(before)) == 12
    assert all_rows(shorter) == all_rows(history)


@pytest.mark.parametrize("hostile", ["sum", "cpu"])
def test_numbers_that_no_database_holds_are_refused(history: History, tmp_path: Path, hostile: str) -> None:
    """Nine values of 73 years each, and a millionth CPU: a recording may tell of both."""
    if hostile == "sum":
        content = recorded(tmp_path, long_plan(values=[[np.array([2**61] * 9)], [np.array([5])]]))
    else:
        content = recorded(tmp_path, long_plan()).replace(b'"cpu":1,', b'"cpu":1048575,')
    with pytest.raises(BadInput, match="more or longer values"):
        ingest_stream(history, "run-1", io.BytesIO(content))
    assert all_rows(history)["interval"] == []


def test_a_recording_that_lacks_an_interval_is_refused(history: History, tmp_path: Path) -> None:
    lines = recorded(tmp_path, long_plan()).splitlines(keepends=True)
    with pytest.raises(BadInput, match="interval 5 is out of order"):
        ingest_stream(history, "run-1", io.BytesIO(b"".join(lines[:5] + lines[6:])))
    assert all_rows(history)["interval"] == []


def test_two_intervals_in_one_second_both_count(history: History, tmp_path: Path) -> None:
    """The wall clock was set back by an hour in the middle of a run."""
    text = recorded(tmp_path, long_plan()).decode()
    for seq in range(24, 12, -1):
        was, now = (instant(seq * 300 * 10**9)["wall_ns"] - shift for shift in (0, 3600 * 10**9))
        text = text.replace(f'"wall_ns":{was}', f'"wall_ns":{now}')
    ingest_stream(history, "run-1", io.BytesIO(text.encode()))
    assert totals(history, "testboard") == {0: 7200, 1: 7200}
    assert len(all_rows(history)["interval"]) == 2 * 13


def test_several_short_intervals_become_one_of_five_minutes(history: History, tmp_path: Path) -> None:
    ingest_stream(history, "run-1", io.BytesIO(recorded(tmp_path, long_plan(interval_ns=10**9))))
    rows = all_rows(history)["interval"]
    assert len(rows) == 2
    assert totals(history, "testboard") == {0: 7200, 1: 7200}
    read = read_recording(tmp_path / "run-1.jsonl")
    assert {row[3]: row[-3:-1] for row in rows} == {
        cpu: (total.sum, str(total.sum_sq)) for cpu, number in ((0, 1), (1, 3)) for total in [read.totals[number]]
    }


def test_a_corrected_series_has_the_events_of_the_other(history: History, tmp_path: Path) -> None:
    """The probe tells of each new maximum once, for the series that is not judged."""
    told = [
        {"kind": "max", "series": 0, "cpu": 0, "value": value, "culprit": {"waited_for": "irq/27"}}
        for value in (10_000, 30_000, 20_000)
    ]
    ingest_stream(history, "run-1", io.BytesIO(recorded(tmp_path, long_plan(events=told))))
    found = events(history, OWNER, "testboard", 0, LONG)
    assert [(one.series, one.value_ns, one.culprit) for one in found] == [(SERIES, 30_000, "waited for irq/27")]


def test_a_damaged_run_stops_no_other(tmp_path: Path, history: History) -> None:
    store = Store(tmp_path / "store")
    ids = []
    for seed in range(2):
        writer = store.begin()
        plan = long_plan(run_id=writer.id, values=latencies(seed, intervals=2), begin_ns=seed * 3600 * 10**9)
        for line in recorded(tmp_path, plan).splitlines(keepends=True):
            writer.line(line)
        writer.end()
        ids.append(writer.id)
    sealed = store.path / "runs" / ids[0] / "recording.jsonl.zst"
    sealed.chmod(0o644)
    sealed.write_bytes(sealed.read_bytes()[:-9] + b"123456789")
    caught = catch_up(history, store)
    assert caught.intervals == 2
    assert list(caught.faults) == [ids[0]]
    assert {row[0] for row in all_rows(history)["run"]} == {ids[1]}


def test_runs_of_other_stores_in_a_shared_index_are_left_alone(tmp_path: Path, history: History) -> None:
    """Both by reading new data and by a rebuild of another farm."""
    own, other = (Store(tmp_path / name, f"sqlite:///{tmp_path}/index.sqlite") for name in ("own", "other"))
    runs = [add_run(store, name, None, seed=1, intervals=1) for store, name in ((own, "a"), (other, "b"))]
    assert [run.id for run in own.runs()] == runs
    assert catch_up(history, own).faults == {}
    assert [status.board.name for status in board_statuses(history, OWNER, LONG)] == ["a"]
    declare(history, "a", farm="f1")
    declare(history, "b", farm="f2", public=True)
    assert catch_up(history, other).faults == {}
    rows = all_rows(history)
    assert rebuild(history, own, ["a"], "f1").faults == {}
    assert all_rows(history) == rows


KILLS = int(os.environ.get("FASTENOUGH_KILLS", "3"))
_FOLLOW = """
import sys, time
from pathlib import Path
from fastenough.history import History, catch_up
from fastenough.store import Store
history, store = History.at(sys.argv[1]), Store(Path(sys.argv[2]))
print("ready", flush=True)
while True:
    catch_up(history, store)
"""


def kill_while_taking(url: str, store: Path, moments_s: list[float]) -> None:
    for moment_s in moments_s:
        with subprocess.Popen(
            [sys.executable, "-c", _FOLLOW, url, str(store)], cwd=ROOT, stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            time.sleep(moment_s)
            process.send_signal(signal.SIGKILL)


@pytest.mark.slow
def test_killed_at_any_moment_nothing_is_lost_or_double(farm: FarmData, whole: History, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/killed.sqlite"
    kill_while_taking(url, farm.store.path, np.random.default_rng(5).uniform(0.0, 0.4, KILLS).tolist())
    killed = History.at(url)
    catch_up(killed, farm.store)
    assert all_rows(killed) == all_rows(whole)


def at_times(tmp_path: Path, times_s: list[int]) -> io.BytesIO:
    """Of one CPU, intervals of a second that end at these times."""
    stream = io.BytesIO()
    plan = Plan([[np.full(1000, 5_000 + seq, dtype=np.int64) for seq in range(len(times_s))]])
    for line in recorded(tmp_path, plan).splitlines():
        said = json.loads(line)
        if said["type"] == "head":
            said["begin"]["wall_ns"] = (times_s[0] - 1) * 10**9
        if said["type"] == "interval":
            at_s = times_s[said["seq"]]
            said["begin"]["wall_ns"], said["end"]["wall_ns"] = (at_s - 1) * 10**9, at_s * 10**9
        stream.write(line_bytes(said))
    return stream


def test_times_ahead_of_this_clock_wait_and_silence_nobody(history: History, tmp_path: Path) -> None:
    """A clock 400 days ahead, in a whole recording and in the middle of one; the recording's own clock decides."""
    now_s = WALL_NS // 10**9
    history.wall_s = lambda: now_s
    ahead_s = now_s + 400 * 86400
    with pytest.raises(ClockAhead):
        ingest_stream(history, "run-1", at_times(tmp_path, [ahead_s, ahead_s + 1]))
    assert board_statuses(history, OWNER, now_s) == []
    assert ingest_stream(history, "run-2", at_times(tmp_path, [ahead_s, now_s - 2, ahead_s, now_s])) == 4
    (one,) = board_statuses(history, OWNER, now_s)
    assert (one.seen_s, one.max_ever_ns) == (now_s, 5_003)
    with pytest.raises(ClockAhead):
        ingest_stream(history, "run-3", at_times(tmp_path, [now_s + 1, ahead_s]))
    assert board_statuses(history, OWNER, now_s)[0].seen_s == now_s + 1
    history.wall_s = lambda: ahead_s  # it was this machine's clock that was wrong
    assert ingest_stream(history, "run-3", at_times(tmp_path, [now_s + 1, ahead_s])) == 1


def test_two_hours_ahead_are_taken(history: History, tmp_path: Path) -> None:
    now_s = WALL_NS // 10**9
    history.wall_s = lambda: now_s
    assert ingest_stream(history, "run-1", at_times(tmp_path, [now_s + 7200])) == 1
    with pytest.raises(ClockAhead):
        ingest_stream(history, "run-2", at_times(tmp_path, [now_s + 7201]))


def test_what_is_cut_off_damaged_or_ahead_is_noted_among_its_boards_recordings(tmp_path: Path) -> None:
    store, now_s = Store(tmp_path / "store"), WALL_NS // 10**9
    kept: dict[str, str] = {}
    for kind, outcome, ahead_s in (
        ("cut off", None, 0),
        ("damaged", "completed", 0),
        ("clock", "completed", 400 * 86400),
        ("sound", "completed", 0),
    ):
        writer = store.begin()
        kept[kind] = writer.id
        plan = Plan(quiet(writer.id), run_id=writer.id, begin_ns=0, outcome=outcome)
        lines = write(tmp_path / "made.jsonl", plan)
        for line in lines.read_bytes().splitlines():
            said = json.loads(line)
            for name in {"begin", "end", "at"} & said.keys():
                said[name]["wall_ns"] += ahead_s * 10**9
            writer.line(line_bytes(said))
        writer.end()
    sealed = store.path / "runs" / kept["damaged"] / "recording.jsonl.zst"
    sealed.chmod(0o644)
    sealed.write_bytes(sealed.read_bytes()[:-9] + b"elsewhere")
    history = History.of(store)
    history.wall_s = lambda: now_s + 3600
    assert set(catch_up(history, store).faults) == {kept["damaged"], kept["clock"]}
    (one,) = board_statuses(history, OWNER, now_s + 3600)
    assert {(each.kind, each.name) for each in refusals(history, OWNER, "testboard", 9)} == {
        (kind, kept[kind]) for kind in ("cut off", "damaged", "clock")
    }
    assert (one.refused, one.state) == (3, BoardCondition.REFUSED)
    note_refused(history, "testboard", [("ring-1.jsonl", "refused", "a line has no end")])
    declare(history, "testboard", farm="f")
    first_seen = {(each.name, each.at_s) for each in refusals(history, OWNER, "testboard", 9)}
    history.wall_s = lambda: now_s + 40 * 86400
    rebuild(history, store, ["testboard"], "f")
    assert {(each.name, each.at_s) for each in refusals(history, OWNER, "testboard", 9)} == first_seen
    assert board_statuses(history, OWNER, now_s + 3600)[0].seen_s == one.seen_s
    assert boards_under_rebuild(history) == set()
    history.close()
