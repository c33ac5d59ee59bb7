# SPDX-License-Identifier: GPL-2.0-or-later
"""A farm's process that is killed with -9 at random moments, one after the other, and started again each time.

``make bench`` kills it at 50 moments with each database: ``python -m tests.bench.farm_kills``.  One half of the
moments lies within the first seconds after its start, in which it asks the coordinator and boots, the other half within
the first in which it pulls and takes.  Then nothing may be lost or double, on any CPU; no place may be stuck; and a
person's place must be as it was.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, closing, nullcontext
from itertools import pairwise
from pathlib import Path

from fastenough.farm.lab import SimulatedTimes
from fastenough.history import History, catch_up
from fastenough.history.schema import INTERVAL
from fastenough.link.guard import descendants
from fastenough.model import Role
from fastenough.store import Store
from tests.support.farm_lab import Field
from tests.support.history_rows import all_rows
from tests.support.postgresql import running_server
from tests.support.processes import ended, eventually
from tests.support.rings import follows, recordings

POINTS = 50
OWN, RESERVED = ("one", "two", "three"), "reserved"
_PACE = SimulatedTimes(report_s=0.25, cycle_s=5.0, boot_s=0.5)
_TIMES = {"pull": "1s", "boot": "20s", "patience": "600s", "retry": "2s"}
_LONGEST_S = 4.0
Totals = Counter[tuple[str, int]]


def _kill_once(field: Field, chance: random.Random) -> None:
    """Everything that it had started ends with it."""
    field.start()
    assert field.farm is not None
    if chance.random() < 0.5:
        field.become("measuring", *OWN)
    time.sleep(chance.uniform(0.0, _LONGEST_S))
    assert field.farm.poll() is None, (field.folder / "farm.log").read_text()[-3000:]
    tree = descendants(field.farm.pid)
    field.kill()
    assert eventually(lambda: all(map(ended, tree)), 20), "what the farm had started outlives it"


def _recorded(store: Store) -> Totals:
    """How many values each board's recordings in the store have of what is judged, by CPU."""
    found: Totals = Counter()
    for run in store.runs():
        recording = store.load(run.id)
        for series in (one for one in recording.series if one.role is Role.VERDICT):
            found[str(run.board), int(series.cpu or 0)] += sum(
                int(interval.histograms[series.id].count.sum()) for interval in recording.intervals
            )
    return found


def _taken(history: History, runs: set[str]) -> Totals:
    names = [column.name for column in INTERVAL.columns]
    found: Totals = Counter()
    for values in all_rows(history)["interval"]:
        row = dict(zip(names, values, strict=True))
        if row["run"] in runs:
            found[row["board"], row["cpu"]] += row["count"]
    return found


def _nothing_lost(field: Field, database: str) -> Totals:
    """Of what the boards hold, each interval is in the store once; and on every CPU the history has as many values."""
    before = {name: len(field.recorded(name)) for name in OWN}
    assert eventually(lambda: all(len(field.recorded(name)) > before[name] for name in OWN), 60), "they record no more"
    for name in OWN:
        field.require_stored(name)
        whole = [one for one in recordings(field.lab.rings[name]) if one.end is not None]
        assert all(follows(before, after) for before, after in pairwise(whole)), name
    assert field.stop() == 0
    with closing(Store(field.folder / "store")) as store, closing(History.at(database)) as history:
        assert not catch_up(history, store).faults
        runs = {run.id for run in store.runs()}
        taken, recorded = _taken(history, runs), _recorded(store)
    assert taken == recorded != Counter(), (taken, recorded)
    return taken


def killed(folder: Path, database: str, points: int, seed: int) -> Totals:
    """Kill and start again so often; then it must come to itself.  Values by board and CPU."""
    chance = random.Random(seed)
    field = Field(folder, (*OWN, RESERVED), _PACE, _TIMES, database=database)
    try:
        field.client("somebody", "-p", RESERVED, "acquire")
        for _ in range(points):
            _kill_once(field, chance)
        field.start()
        field.become("measuring", *OWN)
        field.become("reserved", RESERVED)
        holders = field.holders()
        assert all("fastenough-farm" in holders[name] for name in OWN), holders
        assert holders[RESERVED].endswith("/somebody"), holders
        assert field.switched(RESERVED) == 0 and not field.recorded(RESERVED)
        return _nothing_lost(field, database or f"sqlite:///{folder}/store/history.sqlite")
    finally:
        field.end()


def main() -> int:
    for name in sys.argv[1:] or ("sqlite", "postgresql"):
        seed, begun_s = int(time.time()), time.monotonic()
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fastenough-farm-kills-")))
            server = stack.enter_context(running_server() if name == "postgresql" else nullcontext())
            totals = killed(folder, server.url if server else "", POINTS, seed)
        print(
            f"{name}: farm killed at {POINTS} random moments (seed {seed}) in {time.monotonic() - begun_s:.0f} s; on "
            f"{len(totals)} CPUs of boards {sum(totals.values()):,} values recorded, and as many in the history of "
            "each; no place stuck, a person's untouched",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
