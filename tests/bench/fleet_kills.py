# SPDX-License-Identifier: GPL-2.0-or-later
"""The processes of a fleet are killed with -9 at random moments: ``python -m tests.bench.fleet_kills``.

Arguments: number of boards, seconds for which they publish, length of an interval in seconds, number of kills.  Part of
``make bench``.  What the boards must have published is computed from their numbers; it is compared with PostgreSQL and
with the Parquet archive, by queries of this program.  For this the trial itself is stopped before it ends, since its
database goes with it.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import OperationalError

from fastenough.fleet.simulated import CPUS, simulated_boards
from fastenough.link.guard import descendants
from tests.support.cli_calls import ROOT, environment
from tests.support.processes import eventually

DEFAULTS = (300, 150, 5, 50)
_PARTS = {"nats-server": "server", "bin/postgres": "database", "farm take": "taker", "fleet.simulated": "boards"}
_BACKEND = "fastenough postgres [local]"
_KEYS = "count(*), count(DISTINCT f.interval), min(f.interval), max(f.interval)"
Groups = dict[tuple[str, int], tuple[int, int, int, int]]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


@dataclass(frozen=True)
class KillableTrial:
    """A running trial: ``pid`` of its supervisor, and the URL of its database."""

    process: subprocess.Popen[str]
    pid: int
    url: str
    end_s: float

    def victims(self) -> list[tuple[str, int]]:
        """Its processes that may be killed, with the names of their parts; a backend is a child of PostgreSQL."""
        found = []
        for pid in descendants(self.pid):
            command = _command(pid)
            name = next((part for words, part in _PARTS.items() if words in command), "")
            if name or _BACKEND in command:
                found.append((name or "backend", pid))
        return found

    def kill_one(self, chance: random.Random) -> str:
        """Kill one process of a random part."""
        while True:
            victims = self.victims()
            name = chance.choice(sorted({name for name, _ in victims}) or [""])
            pids = [pid for each, pid in victims if each == name]
            try:
                os.kill(chance.choice(pids), signal.SIGKILL)
            except (IndexError, ProcessLookupError):
                time.sleep(0.1)
                continue
            return name


@contextmanager
def running_trial(folder: Path, boards: int, for_s: int, interval_s: int) -> Iterator[KillableTrial]:
    options = f"--fleet={boards}", f"--for={for_s}s", f"--interval={interval_s}s", f"--dir={folder}", "--json"
    with (folder / "progress").open("w") as progress:
        process = subprocess.Popen(
            [sys.executable, "-m", "fastenough", "farm", "try", *options],
            stdout=subprocess.PIPE,
            stderr=progress,
            text=True,
            env=environment(),
            cwd=ROOT,
        )
    try:
        yield _started(process, folder / "progress")
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait()


def _started(process: subprocess.Popen[str], progress: Path) -> KillableTrial:
    """The trial of a command, once its boards run."""

    def boards() -> list[str]:
        return [found for pid in descendants(process.pid) if "fleet.simulated" in (found := _command(pid))]

    assert eventually(lambda: bool(boards()) and "database: postgresql" in progress.read_text(), 240), (
        progress.read_text()
    )
    url = progress.read_text().partition("database: ")[2].split()[0]
    pid = next(
        pid for pid in descendants(process.pid) if (a := _command(pid)) and "fleet.trial" in a and "guard.py" not in a
    )
    return KillableTrial(process, pid, url, float(boards()[0].split()[-1]))


def wanted(boards: int, for_s: float, interval_s: float) -> Groups:
    """By machine and CPU: number of intervals, number of different ones, the first and the last."""
    return {
        (board.machine, cpu): (count, count, 0, count - 1)
        for board in simulated_boards(0, boards, interval_s, 0.0)
        if (count := board.ended(for_s))
        for cpu in range(CPUS)
    }


def in_database(url: str, total: int) -> Groups:
    """What PostgreSQL holds, as soon as it is complete, or after three minutes."""
    engine = create_engine(url)

    def stored() -> bool:
        try:
            with engine.connect() as connection:
                return int(connection.execute(text("SELECT count(*) FROM fleet_interval")).scalar_one()) >= total
        except OperationalError:
            return False

    eventually(stored, 180)
    found = _grouped(engine)
    engine.dispose()
    return found


def _grouped(engine: Engine) -> Groups:
    question = (
        f"SELECT b.name, f.cpu, {_KEYS} FROM fleet_interval f JOIN board b ON b.id = f.board "
        "JOIN run r ON r.id = f.run GROUP BY b.name, r.name, f.cpu"
    )
    with engine.connect() as connection:
        return _once(connection.execute(text(question)).all())


def in_archive(folder: Path) -> Groups:
    """What the archive holds."""
    with duckdb.connect() as duck:
        return _once(
            duck.execute(
                f"SELECT f.board, f.cpu, {_KEYS} FROM read_parquet('{folder}/archive/**/*.parquet', "
                "hive_partitioning = true) AS f GROUP BY f.board, f.run, f.cpu"
            ).fetchall()
        )


def _once(rows: Any) -> Groups:
    """The groups of rows; each board has one run."""
    found: Groups = {}
    for board, cpu, *counts in rows:
        assert (board, cpu) not in found, f"{board} has two runs"
        found[board, cpu] = counts[0], counts[1], counts[2], counts[3]
    return found


def killed(folder: Path, seed: int, boards: int, for_s: int, interval_s: int, kills: int) -> Counter[str]:  # noqa: PLR0917 - sizes
    """Kills by part; raises AssertionError if anything is lost or stored twice."""
    chance, want = random.Random(seed), wanted(boards, for_s, interval_s)
    with running_trial(folder, boards, for_s, interval_s) as trial:
        begin_s, last_s = time.time(), trial.end_s - 3.0
        found: Counter[str] = Counter()
        for moment_s in sorted(chance.uniform(begin_s, last_s) for _ in range(kills)):
            time.sleep(max(0.0, moment_s - time.time()))
            found[trial.kill_one(chance)] += 1
        time.sleep(max(0.0, last_s + 2.0 - time.time()))
        os.kill(trial.pid, signal.SIGSTOP)
        try:
            stored, archived = in_database(trial.url, sum(row[0] for row in want.values())), in_archive(folder)
        finally:
            os.kill(trial.pid, signal.SIGCONT)
        result = json.loads(trial.process.communicate(timeout=600)[0])
    assert stored == want, _difference(stored, want)
    assert archived == want, _difference(archived, want)
    assert result["published"] == result["stored"] == result["archived"] == sum(row[0] for row in want.values()), result
    return found


def _difference(found: Groups, want: Groups) -> list[tuple[Any, ...]]:
    return [(key, found.get(key), want.get(key)) for key in want.keys() | found if found.get(key) != want.get(key)][:5]


def main() -> int:
    given = tuple(map(int, sys.argv[1:]))
    boards, for_s, interval_s, kills = (*given, *DEFAULTS[len(given) :])
    seed = int(time.time())
    with tempfile.TemporaryDirectory(prefix="fastenough-fleet-kills-") as scratch:
        found = killed(Path(scratch), seed, boards, for_s, interval_s, kills)
    of_parts = ", ".join(f"{name} {number}" for name, number in sorted(found.items()))
    total = sum(row[0] for row in wanted(boards, for_s, interval_s).values())
    print(
        f"{kills} kills at random moments (seed {seed}; {of_parts}) of a fleet of {boards:,} boards: each of {total:,} "
        "intervals is once in PostgreSQL and once in the archive"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
