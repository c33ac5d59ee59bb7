# SPDX-License-Identifier: GPL-2.0-or-later
"""What a fleet of 100,000 boards needs, from trials of small fleets: ``python -m tests.bench.fleet_size``.

Arguments: pairs BOARDS:INTERVAL_S, at least two; part of ``make bench``.  Each trial is measured once all its boards
publish, for a minute.  CPU time grows with the published intervals, memory of the server with the boards.  Then a
simulation in steps of a second answers what a cut of an hour costs: each board then publishes all its intervals in one
chunk, and the takers store as many chunks a second as their CPUs allow.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sqlalchemy import text

from fastenough.farm.child_process import python_path
from fastenough.farm.trial import leave_network
from fastenough.fleet import tables
from fastenough.fleet.trial import Fleet, FleetTrial
from fastenough.history import History
from tests.support.fleet_shard import ShardBench, board

SIZES = ("500:15", "1500:15", "1500:45")
BIG = 100_000
_BIG_INTERVAL_S = 300.0
_MEASURED_S = 60.0
_FULL = 0.7
"""Share of a CPU that is planned for; the rest is for repetitions and peaks."""
_KEPT_DAYS = 3
"""Most days of single intervals in the database: two full ones, and the present one."""
_MONTH_DAYS = 30
_CUT_S = 3600
_HELD = round(_CUT_S / _BIG_INTERVAL_S)


@dataclass(frozen=True)
class Measured:
    """A trial: CPU seconds per second of each part, memory in MiB, and bytes of a stored interval of one CPU."""

    boards: int
    chunks_s: float
    cpu: dict[str, float]
    memory_mib: dict[str, float]
    archive_bytes: float
    database_bytes: float


def _parts(trial: FleetTrial) -> dict[str, tuple[float, float]]:
    """CPU seconds and memory by kind of part."""
    found: dict[str, tuple[float, float]] = {}
    for name, usage in trial.usage.items():
        kind = name.partition("-")[0]
        cpu_s, memory_mib = found.get(kind, (0.0, 0.0))
        found[kind] = cpu_s + usage.cpu_s, memory_mib + usage.memory_mib
    return found


def _database(url: str) -> tuple[int, int]:
    """Intervals stored, and bytes of all tables with their indexes."""
    history = History.at(url)
    try:
        with history.reading() as connection:
            size = text(
                "SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class WHERE relkind IN ('r', 'p')"
            )
            return tables.stored_intervals(connection), int(connection.execute(size).scalar_one())
    finally:
        history.close()


async def measured(boards: int, interval_s: float) -> Measured:
    """Run a trial, and measure it for a minute once each board has published twice."""
    with tempfile.TemporaryDirectory(prefix="fastenough-fleet-size-") as scratch:
        folder = Path(scratch)
        folder.chmod(0o711)
        warm_s = 10.0 + 2 * interval_s
        trial = FleetTrial(folder, Fleet(boards, interval_s, warm_s + _MEASURED_S + 5.0))
        running = asyncio.ensure_future(trial.run())
        await asyncio.wait({running}, timeout=warm_s)
        before, (stored, size), begin_s = _parts(trial), _database(trial.url), time.monotonic()
        await asyncio.wait({running}, timeout=_MEASURED_S)
        after, (stored_after, size_after) = _parts(trial), _database(trial.url)
        took_s = time.monotonic() - begin_s
        result = await running
        assert result.published == result.stored == result.archived, result
        files = [path.stat().st_size for path in (folder / "archive").rglob("*.parquet")]
    return Measured(
        boards,
        (stored_after - stored) / 2 / took_s,
        {part: (after[part][0] - before[part][0]) / took_s for part in after},
        {part: after[part][1] for part in after},
        sum(files) / result.archived,
        (size_after - size) / max(1, stored_after - stored),
    )


def rates(trials: Sequence[Measured], part: str) -> tuple[float, float]:
    """CPU seconds of a chunk, and of a connected board in a second, by least squares; the server has connections."""
    loads = np.array([[one.chunks_s, one.boards] for one in trials])
    spent = np.array([one.cpu[part] for one in trials])
    per_chunk, per_board = np.linalg.lstsq(loads, spent, rcond=None)[0]
    if part != "server" or per_board < 0 or per_chunk < 0:
        return float((spent @ loads[:, 0]) / (loads[:, 0] @ loads[:, 0])), 0.0
    return float(per_chunk), float(per_board)


def per_board_mib(trials: Sequence[Measured], part: str) -> tuple[float, float]:
    """Memory of a part without boards, and of each board."""
    slope, base = np.polyfit([one.boards for one in trials], [one.memory_mib[part] for one in trials], 1)
    return float(base), max(0.0, float(slope))


def held_ratio(boards: int = 100) -> float:
    """CPU time of a taker for a chunk with the intervals of a cut, relative to a chunk with one interval."""
    spent_s = []
    for count in (1, _HELD):
        with tempfile.TemporaryDirectory(prefix="fastenough-fleet-size-") as scratch:
            bench = ShardBench(Path(scratch))
            bench.store(*(board(number).chunk(0, 1) for number in range(boards)))
            chunks = [board(number).chunk(1, count) for number in range(boards)]
            begin_s = time.process_time()
            bench.store(*chunks)
            spent_s.append(time.process_time() - begin_s)
            bench.history.close()
    return spent_s[1] / spent_s[0]


def caught_up_s(cpus: float, chunk_s: float, ratio: float, boards: int = BIG) -> float:
    """Seconds after a cut until nothing waits, or infinity.

    All boards publish what they hold within a minute after the cut, in one chunk each; then, as usual, one chunk per
    interval.  ``chunk_s``: CPU seconds of takers for a chunk of one interval; ``ratio``: see `held_ratio`.
    """
    waiting_s, usual_s = 0.0, boards / _BIG_INTERVAL_S * chunk_s
    for second in range(24 * 3600):
        waiting_s += usual_s + (boards / 60 * chunk_s * ratio if second < 60 else 0.0)
        waiting_s -= min(waiting_s, cpus)
        if second > 60 and waiting_s <= usual_s:
            return float(second)
    return float("inf")


def cpu_month_s(trials: Sequence[Measured]) -> dict[str, float]:
    """CPU seconds of each part for one board and month."""
    month_s = _MONTH_DAYS * 86400.0
    spent = {part: rates(trials, part) for part in ("server", "database", "taker")}
    return {
        part: per_chunk * month_s / _BIG_INTERVAL_S + per_board * month_s
        for part, (per_chunk, per_board) in spent.items()
    }


def _print_measured(trials: Sequence[Measured]) -> None:
    print("| boards | chunks per s | part | of one CPU | memory |\n|--:|--:|---|--:|--:|")
    for one in trials:
        for part in ("server", "database", "taker", "boards"):
            used = f"{one.cpu[part]:.1%} | {one.memory_mib[part]:.0f} MiB"
            print(f"| {one.boards:,} | {one.chunks_s:.1f} | {part} | {used} |")


def _print_big(trials: Sequence[Measured]) -> None:
    chunks_s = BIG / _BIG_INTERVAL_S
    day = BIG * 2 * 86400 / _BIG_INTERVAL_S
    print(f"\n{BIG:,} boards, {chunks_s:.0f} chunks per s:\n\n| part | CPU | CPUs | memory |\n|---|--:|--:|--:|")
    for part in ("server", "database", "taker"):
        per_chunk, per_board = rates(trials, part)
        cpu = per_chunk * chunks_s + per_board * BIG
        base, each = per_board_mib(trials, part)
        memory = f"{(base + each * BIG) / 1024:.1f} GiB" if part == "server" else f"{base / 1024:.1f} GiB"
        print(f"| {part} | {per_chunk * 1e3:.2f} ms per chunk | {cpu / _FULL:.1f} | {memory} |")
    last = trials[-1]
    print(
        f"\nper interval of a CPU: {last.archive_bytes:.0f} bytes in the archive, {last.database_bytes:.0f} in the "
        f"database; per day {last.archive_bytes * day / 1e9:.1f} GB in the archive, and in the database "
        f"{last.database_bytes * day * _KEPT_DAYS / 1e9:.0f} GB for {_KEPT_DAYS} days"
    )
    spent_s = cpu_month_s(trials)
    archive_mb = last.archive_bytes * day / BIG * _MONTH_DAYS / 1e6
    parts = ", ".join(f"{part} {cpu_s:.0f} s" for part, cpu_s in spent_s.items())
    print(f"per board and month: {sum(spent_s.values()):.0f} CPU s ({parts}), {archive_mb:.1f} MB in the archive")
    chunk_s, ratio = rates(trials, "taker")[0], held_ratio()
    print(f"a chunk of {_HELD} intervals costs a taker {ratio:.1f} times as much as one of a single interval")
    for cpus in (2, 4, 8, 16):
        took_s = caught_up_s(cpus, chunk_s, ratio)
        print(f"- {cpus} CPUs of takers have caught up {took_s:.0f} s after a cut of {_CUT_S // 60} minutes")


def main() -> int:
    os.environ["PYTHONPATH"] = python_path()
    if os.geteuid() == 0:
        leave_network(lambda said: print(said, file=sys.stderr))
    sizes = [(int(boards), float(s)) for boards, _, s in (word.partition(":") for word in sys.argv[1:] or SIZES)]
    trials = [asyncio.run(measured(boards, interval_s)) for boards, interval_s in sizes]
    _print_measured(trials)
    _print_big(trials)
    return 0


if __name__ == "__main__":
    sys.exit(main())
