# SPDX-License-Identifier: GPL-2.0-or-later
"""The ranking of causes over all boards: what was planted on which board is counted there, and nowhere else."""

from __future__ import annotations

import io
import itertools
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

from fastenough.cli.farm_causes import CauseRanking, FindCauses, RankedCause, print_ranking, ranked_causes
from fastenough.fleet.archive import EVENTS, MOST_NAME, EventRow, FleetArchive
from fastenough.fleet.chunk import shard_of
from fastenough.fleet.simulated import simulated_boards
from fastenough.fleet.workers import Workers, over_boards
from fastenough.model import BadInput, FastenoughError
from fastenough.recording.culprits import general_cause
from tests.support.fleet_archive import BEGIN_NS, HOUR_NS, by_hand, machine, row, write
from tests.support.fleet_shard import BEGIN_S, ShardBench, board
from tests.support.recorded_causes import CULPRITS, CausedRun, event, write_events

LIMIT_NS = 100_000
Planted = dict[int, list[tuple[str | None, int]]]
"""By board, cause and latency (ns) of each event."""


def _planted(folder: Path, planted: Planted, kinds: Sequence[str] = ("panel",)) -> Path:
    """An archive with these events; each board has one recording, and an event in each hour of it."""
    rows, events = [], []
    for number, of_board in planted.items():
        kind = kinds[number % len(kinds)]
        rows += [(kind, row(machine(number), "run", (0, hour), np.array([9_000]))) for hour in range(24)]
        events += [
            (kind, replace(event(machine(number), cause, latency_ns, ("run", 0, hour % 24)), number=hour, mono_ns=hour))
            for hour, (cause, latency_ns) in enumerate(of_board)
        ]
    return write_events(folder, rows, events)


def _ranking(folder: Path, limit_ns: int | None = LIMIT_NS, since_s: int | None = None) -> CauseRanking:
    return ranked_causes(by_hand(folder, FindCauses(limit_ns, since_s)), limit_ns, since_s)


def _counts(causes: Sequence[RankedCause]) -> list[tuple[str | None, int, int]]:
    return [(found.cause, found.boards, found.events) for found in causes]


def test_planted_causes_are_counted_on_their_boards(tmp_path: Path) -> None:
    """One board with three thousand events does not come before a cause on three boards; the unknown one is last."""
    planted: Planted = {
        0: [("task a", 200_000)] * 3000,
        1: [("interrupt eth0", 150_000), (None, 900_000)],
        2: [("interrupt eth0", 120_000), ("interrupt eth0", 130_000), (None, 110_000)],
        3: [("interrupt eth0", 101_000), (None, 110_000), ("idle state C6", 100_000)],
        4: [(None, 110_000)],
        5: [],
    }
    total = _ranking(_planted(tmp_path, planted)).total
    assert _counts(total.causes) == [("interrupt eth0", 3, 4), ("task a", 1, 3000), (None, 4, 4)]
    assert (total.boards, total.events, total.unnamed) == (6, 3008, 1)
    first, second, unknown = total.causes
    assert (first.latency_ns, first.board) == (150_000, machine(1))
    assert first.at_s == (BEGIN_NS + HOUR_NS // 2) // 10**9
    assert (unknown.latency_ns, unknown.board) == (900_000, machine(1))
    assert [found.board_share for found in total.causes] == [3 / 6, 1 / 6, 4 / 6]
    assert second.event_share == 3000 / 3008
    assert sum(found.event_share for found in total.causes) == pytest.approx(1.0)


def test_kernel_workers_of_all_cpus_are_one_cause(tmp_path: Path) -> None:
    """Their numbers differ between boards, and between CPUs of one board; named work queues are causes of their own."""
    planted: Planted = {
        0: [("task kworker/0:1", 200_000), ("task kworker/1:0", 150_000), (None, 110_000)],
        1: [("task kworker/3:2", 300_000), ("task kworker/u8:1-events", 120_000)],
        2: [("task kworker/u16:0+events", 110_000), ("task irq/23-eth0", 190_000), ("task irq/45-eth0", 130_000)],
        3: [("task irq/23-mmc0", 105_000), ("idle state C6", 150_000)],
    }
    total = _ranking(_planted(tmp_path, planted)).total
    assert _counts(total.causes) == [
        ("task kworker/*", 2, 3),
        ("task kworker/u*-events", 2, 2),
        ("task irq/*-eth0", 1, 2),
        ("idle state C6", 1, 1),
        ("task irq/*-mmc0", 1, 1),
        (None, 1, 1),
    ]
    assert (total.causes[0].latency_ns, total.causes[0].board) == (300_000, machine(1))


def test_without_a_limit_each_recording_and_cpu_has_one_maximum(tmp_path: Path) -> None:
    """A recording begins with new maxima of every value that it measures."""
    rows = [("panel", row(machine(0), run, (cpu, 0), np.array([9]))) for run in "ab" for cpu in range(2)]
    events = []
    for run, cpu in itertools.product("ab", range(2)):
        cause = "task late" if (run, cpu) == ("b", 1) else "task usual"
        for number, latency_ns in enumerate((1_000, 5_000, 80_000, 70_000)):
            found = event(machine(0), cause if latency_ns == 80_000 else "task early", latency_ns, (run, cpu, 0))
            events.append(("panel", replace(found, number=number, mono_ns=number)))
    total = _ranking(write_events(tmp_path, rows, events), None).total
    assert _counts(total.causes) == [("task late", 1, 1), ("task usual", 1, 3)]


def test_types_are_ranked_by_themselves(tmp_path: Path) -> None:
    planted: Planted = {number: [(f"task {number % 2}", 200_000 + number)] for number in range(7)}
    ranking = _ranking(_planted(tmp_path, planted, ("gate", "panel")))
    assert [(of_type.type, of_type.boards, _counts(of_type.causes)) for of_type in ranking.types] == [
        ("gate", 4, [("task 0", 4, 4)]),
        ("panel", 3, [("task 1", 3, 3)]),
    ]
    assert _counts(ranking.total.causes) == [("task 0", 4, 4), ("task 1", 3, 3)]
    assert [of_type.causes[0].board for of_type in ranking.types] == [machine(6), machine(5)]
    assert all(of_type.causes[0].event_share == 1.0 for of_type in ranking.types)


def test_ties_are_in_one_order_whatever_the_order_of_boards(tmp_path: Path) -> None:
    """Causes by their greatest latency, then by name; of equal latencies the first in time, then the first board."""
    causes = ["task c", "task a", "task b", None]
    planted: Planted = {number: [(cause, 300_000) for cause in causes] for number in range(5)}
    planted[2].append(("task b", 300_001))
    results = by_hand(_planted(tmp_path, planted), FindCauses(LIMIT_NS))
    expected = ranked_causes(results, LIMIT_NS, None)
    assert [found.cause for found in expected.total.causes] == ["task b", "task a", "task c", None]
    assert {found.board for found in expected.total.causes[1:]} == {min(map(machine, range(5)))}
    single: Planted = {number: [(f"task {letter}", 300_000)] for number, letter in enumerate("dbeac")}
    others = by_hand(_planted(tmp_path / "single", single), FindCauses(LIMIT_NS))
    for seed in range(5):
        for shuffled in (results, others):
            random.Random(seed).shuffle(shuffled)
        assert ranked_causes(results, LIMIT_NS, None) == expected
        assert [found.cause for found in ranked_causes(others, LIMIT_NS, None).total.causes] == [
            f"task {letter}" for letter in "abcde"
        ]


@pytest.mark.parametrize(("hours", "boards", "counts"), [(0, 2, 6), (2, 2, 4), (3, 2, 3), (23, 1, 1), (99, 0, 0)])
def test_since_leaves_earlier_events_and_boards_out(tmp_path: Path, hours: int, boards: int, counts: int) -> None:
    """One board ended after four hours and had an event in three of them; the other one has three later ones."""
    rows = [("panel", row(machine(0), "run", (0, hour), np.array([9]))) for hour in range(4)]
    rows += [("panel", row(machine(1), "run", (0, hour), np.array([9]))) for hour in range(24)]
    at = [(0, hour) for hour in range(3)] + [(1, hour) for hour in (10, 20, 23)]
    events = [("panel", event(machine(number), "task a", 200_000, ("run", 0, hour))) for number, hour in at]
    since_s = BEGIN_NS // 10**9 + hours * 3600
    total = _ranking(write_events(tmp_path, rows, events), LIMIT_NS, since_s).total
    late = sum(BEGIN_NS + hour * HOUR_NS + HOUR_NS // 2 >= since_s * 10**9 for _, hour in at)
    assert (total.boards, total.events) == (boards, counts) == (boards, late)


def test_the_maximum_of_a_recording_is_that_since_the_time_in_question(tmp_path: Path) -> None:
    """The recording with the longest latency of all was omitted if that latency was earlier."""
    planted: Planted = {0: [("task a", 900_000), ("task b", 200_000), ("task c", 300_000)]}
    _planted(tmp_path, planted)
    for hours, maximum, above in ((0, "task a", "acb"), (1, "task c", "cb"), (2, "task c", "c"), (3, None, "")):
        since_s = BEGIN_NS // 10**9 + hours * 3600
        assert _counts(_ranking(tmp_path, None, since_s).total.causes) == ([(maximum, 1, 1)] if maximum else [])
        found = [cause.cause for cause in _ranking(tmp_path, LIMIT_NS, since_s).total.causes]
        assert found == [f"task {letter}" for letter in above]


def test_a_wakeup_with_events_in_two_intervals_is_one(tmp_path: Path) -> None:
    """Another task at the same instant on this CPU is another wake-up."""
    rows = [("panel", row(machine(0), "run", (0, hour), np.array([9]))) for hour in range(2)]
    one = event(machine(0), "task a", 200_000)
    events: list[EventRow] = [
        one,
        replace(one, interval=1, latency_ns=250_000, cause="task b"),
        replace(one, number=1, task="valve", cause="task c"),
    ]
    total = _ranking(write_events(tmp_path, rows, [("panel", found) for found in events])).total
    assert _counts(total.causes) == [("task b", 1, 1), ("task c", 1, 1)]


@pytest.mark.parametrize(
    ("threshold_ns", "limit_ns", "partial"),
    [(50_000, LIMIT_NS, 0), (LIMIT_NS, LIMIT_NS, 0), (LIMIT_NS + 1, LIMIT_NS, 1), (None, LIMIT_NS, 1), (None, None, 0)],
)
def test_boards_whose_exceedances_are_not_all_recorded_are_counted(
    tmp_path: Path, threshold_ns: int | None, limit_ns: int | None, partial: int
) -> None:
    rows = [("panel", row(machine(number), "run", (0, 0), np.array([9]))) for number in range(2)]
    events = [event(machine(0), "task a", 200_000), event(machine(1), "task a", 200_000)]
    events[1] = replace(events[1], threshold_ns=threshold_ns)
    total = _ranking(write_events(tmp_path, rows, [("panel", found) for found in events]), limit_ns).total
    assert (total.partial, total.boards, total.events) == (partial, 2, 2)


@pytest.mark.parametrize(("hours", "partial"), [(0, 1), (3, 1), (4, 0)])
def test_the_threshold_of_a_recording_is_known_from_its_earlier_events(
    tmp_path: Path, hours: int, partial: int
) -> None:
    """Its only event is in its first hour, a new maximum; it ends after four hours."""
    rows = [("panel", row(machine(0), "run", (0, hour), np.array([9]))) for hour in range(4)]
    found = replace(event(machine(0), "task a", 200_000), threshold_ns=None)
    total = _ranking(write_events(tmp_path, rows, [("panel", found)]), LIMIT_NS, BEGIN_NS // 10**9 + hours * 3600).total
    assert (total.partial, total.events, total.recordings) == (partial, int(hours == 0), partial)


def test_recordings_without_events_are_counted(tmp_path: Path) -> None:
    """Takers of earlier versions stored no events."""
    rows = [("panel", row(machine(0), run, (0, 0), np.array([9]))) for run in "abc"]
    write_events(tmp_path, rows, [("panel", event(machine(0), None, 200_000, ("b", 0, 0)))])
    total = _ranking(tmp_path).total
    assert (total.recordings, total.recorded, total.unnamed) == (3, 1, 1)


def test_an_archive_without_events_is_refused_in_one_line(tmp_path: Path) -> None:
    write(tmp_path, [("panel", row(machine(0), "run", (0, 0), np.array([9])))])
    with pytest.raises(BadInput, match="no causes") as refused:
        over_boards(str(tmp_path), FindCauses(), Workers(processes=1))
    assert "\n" not in str(refused.value)
    planted: Planted = {0: [("task a", 200_000)], 1: []}
    _planted(tmp_path / "two", planted, ("gate", "panel"))
    with pytest.raises(BadInput, match="no causes of the type panel"):
        over_boards(str(tmp_path / "two"), FindCauses(), Workers(processes=1), "panel")


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"latency_ns": -1}, "negative latency_ns"),
        ({"cause": ""}, "invalid cause"),
        ({"run": "\x1b"}, "invalid run"),
        ({"at_ns": None}, "no at_ns"),
        ({"threshold_ns": -5}, "negative threshold_ns"),
    ],
)
def test_a_damaged_event_is_refused(tmp_path: Path, change: dict[str, object], what: str) -> None:
    planted: Planted = {0: [("task a", 200_000)]}
    _planted(tmp_path, planted)
    (path,) = tmp_path.rglob(f"*{EVENTS.suffix}")
    wrong = EVENTS.table_of([replace(event(machine(0), "task a", 1), **change)])  # type: ignore[arg-type]
    FleetArchive(str(tmp_path)).put(str(path.relative_to(tmp_path)), [_file_of(wrong)])
    with pytest.raises(FastenoughError, match=what):
        by_hand(tmp_path, FindCauses())


@pytest.mark.check
@pytest.mark.parametrize(
    ("task", "replaced"),
    [
        ("Web\tContent", "Web\ufffdContent"),
        ("no\u00a0break", "no\ufffdbreak"),
        ("zero\u200bwidth", "zero\ufffdwidth"),
        ("x" * 201, "x" * MOST_NAME),
    ],
)
def test_a_name_that_cannot_be_printed_hides_no_cause(tmp_path: Path, task: str, replaced: str) -> None:
    """Any process can take such a name, and takers of earlier versions stored it; it disabled the command."""
    planted: Planted = {0: [(f"task {task}", 200_000)], 1: [("task b", 300_000)]}
    older = _ranking(_planted(tmp_path / "older", planted)).total
    cause = f"task {replaced}"[:MOST_NAME]
    assert _counts(older.causes) == [("task b", 1, 1), (cause, 1, 1)]
    names = (("task", task), ("waited_for", task))
    runs = (CausedRun(0, "interrupt eth0"), CausedRun(1, "task kworker/0:1", extra=names))
    bench = ShardBench(tmp_path)
    bench.store(*(run.chunk(0, 4) for run in runs))
    bench.history.close()
    found = {cause.cause: cause.events for cause in _ranking(bench.folder, 1).total.causes}
    assert found == {"interrupt eth0": len(runs[0].latencies_ns), cause: len(runs[1].latencies_ns)}
    events = [
        found for path in bench.folder.rglob(f"*{EVENTS.suffix}") for found in parquet.read_table(path).to_pylist()
    ]
    assert {(found["task"], found["cause"]) for found in events if found["run"] == runs[1].run} == {(replaced, cause)}


def _file_of(table: object) -> bytes:
    held = io.BytesIO()
    parquet.write_table(table, held)
    return held.getvalue()


def test_a_repeated_file_and_another_version_are_refused(tmp_path: Path) -> None:
    planted: Planted = {0: [("task a", 200_000)]}
    _planted(tmp_path, planted)
    (path,) = tmp_path.rglob(f"*{EVENTS.suffix}")
    whole = path.read_bytes()
    copy = path.with_name(f"0000-000000000009{EVENTS.suffix}")
    copy.write_bytes(whole)
    with pytest.raises(FastenoughError, match=r"one of the events of .* twice"):
        by_hand(tmp_path, FindCauses())
    copy.unlink()
    other = EVENTS.table_of([event(machine(0), "task a", 1)]).replace_schema_metadata({EVENTS.version_key: "2"})
    path.write_bytes(_file_of(other))
    with pytest.raises(FastenoughError, match="events have version 2, expected 1"):
        by_hand(tmp_path, FindCauses())


@pytest.mark.check
def test_published_recordings_are_ranked_each_wakeup_once(tmp_path: Path) -> None:
    """From chunks, of which some come twice, to the ranking."""
    runs = [CausedRun(number, cause, late=late) for number, cause in enumerate(CULPRITS) for late in range(2)]
    runs.append(CausedRun(0, "interrupt eth0", late=5))
    bench = ShardBench(tmp_path)
    for first, count in ((0, 2), (1, 2), (0, 4)):
        bench.store(*(run.chunk(first, count) for run in runs))
    bench.history.close()
    total = _ranking(bench.folder, 1).total
    boards: dict[str | None, set[str]] = {}
    events: dict[str | None, list[int]] = {}
    for run in runs:
        boards.setdefault(run.cause, set()).add(run.machine)
        events.setdefault(run.cause, []).extend(run.latencies_ns)
    assert {found.cause: (found.boards, found.events, found.latency_ns) for found in total.causes} == {
        general_cause(cause) if cause else None: (len(boards[cause]), len(events[cause]), max(events[cause]))
        for cause in boards
    }
    assert (total.boards, total.recordings, total.recorded, total.partial) == (len(CULPRITS), 9, 9, len(CULPRITS))
    assert total.causes[0].cause == "interrupt eth0" and total.causes[-1].cause is None
    maxima = _ranking(bench.folder, None).total
    assert maxima.events == len(runs)


def test_the_printed_tables_have_the_ranking(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All boards, then each type; causes in their order, the unknown one last."""
    planted: Planted = {
        number: [("interrupt eth0", 150_000 + number), *([(None, 900_000)] if number < 2 else [])]
        for number in range(5)
    }
    planted[4] += [("task a", 120_000)]
    print_ranking(_ranking(_planted(tmp_path, planted, ("gate", "panel"))))
    lines = capsys.readouterr().out.splitlines()
    tables = [[cell for cell in line.split("  ") if cell.strip()] for line in lines]
    rows = [[cell.strip() for cell in cells] for cells in tables if len(cells) == 8 and cells[0] != "cause"]
    assert [row[:5] for row in rows[:3]] == [
        ["interrupt eth0", "5", "100.0 %", "5", "62.5 %"],
        ["task a", "1", "20.0 %", "1", "12.5 %"],
        ["unknown", "2", "40.0 %", "2", "25.0 %"],
    ]
    assert [row[0] for row in rows[3:]] == ["interrupt eth0", "task a", "unknown", "interrupt eth0", "unknown"]
    assert rows[0][6] == machine(4)


def test_the_boards_of_a_trial_have_the_causes_of_their_numbers(tmp_path: Path) -> None:
    """A board has one cause, and an event in every eighth interval; some intervals are published twice."""
    bench = ShardBench(tmp_path)
    shard = shard_of(board().machine)
    boards = [one for one in simulated_boards(0, 300, 60.0, BEGIN_S) if shard_of(one.machine) == shard]
    bench.store(*(one.chunk(0, 9) for one in boards), *(one.chunk(5, 12) for one in boards))
    bench.history.close()
    causes = ("task kworker/*", "interrupt eth0", "idle state C6", None)
    planted = Counter(causes[one.number % 4] for one in boards)
    total = _ranking(bench.folder, 1).total
    assert {found.cause: (found.boards, found.events) for found in total.causes} == {
        cause: (number, 3 * number) for cause, number in planted.items()
    }
    assert total.boards == len(boards)
