# SPDX-License-Identifier: GPL-2.0-or-later
"""A campaign of very short runs whose bench is killed at random points, one after the other, and goes on each time.

The bench is forked from a process that has loaded everything, so that a point costs a run, not the start of a program.
``make bench`` kills it at 50 points: ``python -m tests.bench.kills``.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fastenough.board.local import LocalBoard
from fastenough.campaign import Campaign, Progress, parse_plan, run_campaign
from fastenough.link.guard import descendants
from fastenough.model import Outcome
from fastenough.store import Store
from fastenough.store.campaign import DONE, planned_runs

ROOT = Path(__file__).resolve().parents[2]
POINTS = 50
_DURATION_S = 0.4
_MOMENTS = ((b"m", 0), (b"m", 1), (b"p", 2))
"""After which a bench is killed: its start, a run begins to be measured, the next profile (so one run is complete)."""
_PLAN = """
name = "killed"
duration = "{duration_s}s"
repeat = {runs}
[[run]]
probe = "timer"
parameters = {{interval = "1ms", report = "20ms", allow-difference = true, affinity = 0}}
"""


@dataclass(frozen=True)
class Killed:
    """What came of it: how many kills hit a run that had begun, and how many runs were kept by then."""

    points: int
    cut: int
    kept: int


def _make(path: Path, probe: str, runs: int, said: int = -1) -> Campaign:
    """Go on with the campaign; of each step of its progress the phase's first letter is written to ``said``."""

    def tell(progress: Progress) -> None:
        if said >= 0:
            os.write(said, progress.phase[:1].encode())

    plan = parse_plan(_PLAN.format(runs=runs, duration_s=_DURATION_S).encode(), "this test")
    return run_campaign(
        plan, Store(path), tell, resume=True, journal=path / "journal", opened=lambda name: LocalBoard(probe=probe)
    )


@contextmanager
def _bench(path: Path, probe: str, runs: int) -> Iterator[tuple[int, int]]:
    """A process that makes the campaign's runs, and what it says of its progress; it is not reaped before the end."""
    listen, said = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(listen)
            _make(path, probe, runs, said)
        finally:
            os._exit(0)
    os.close(said)
    try:
        yield child, listen
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(listen)


def _await(listen: int, phase: bytes, times: int) -> None:
    """Until a phase of the progress has begun so often, or the bench has ended."""
    before = b""
    while times:
        now = os.read(listen, 1)
        times -= now == phase != before
        if not now:
            return
        before = now


def _kill_once(path: Path, probe: str, runs: int, chance: random.Random) -> None:
    (phase, times), delay_s = chance.choice(_MOMENTS), chance.uniform(0.0, 1.5 * _DURATION_S)
    with _bench(path, probe, runs) as (child, listen):
        _await(listen, phase, times)
        time.sleep(delay_s)
        tree = descendants(child)
        os.kill(child, signal.SIGKILL)
        deadline = time.monotonic() + 20
        while any(Path(f"/proc/{pid}/exe").exists() for pid in tree):
            assert time.monotonic() < deadline, "what the bench had started outlives it"
            time.sleep(0.01)


def killed(path: Path, probe: str, points: int, seed: int) -> Killed:
    """Kill, look, go on, ``points`` times; then let it end, and look at the whole."""
    chance, runs = random.Random(seed), 2 * points + 1
    complete: dict[str, str | None] = {}
    for point in range(points):
        _kill_once(path, probe, runs, chance)
        store = Store(path)
        store.settle()
        now = {run.id: run.sha256 for run in store.runs() if run.outcome == Outcome.COMPLETED}
        assert {run.state for run in store.runs()} <= {"ended", "cut-off"}, (point, store.runs())
        assert complete.items() <= now.items(), (point, "a run that was complete is gone, or another")
        complete = now
    cut = sum(run.state == "cut-off" for run in Store(path).runs())
    campaign = _make(path, probe, runs)
    store = Store(path)
    assert {run.campaign for run in store.runs()} == {campaign.id}, "each bench went on with the one campaign"
    assert [run.state for run in planned_runs(store, campaign.id)] == [DONE] * runs
    made = Counter(run.position for run in store.runs() if run.outcome == Outcome.COMPLETED)
    assert set(made.values()) == {1}, "no run that was complete was made again"
    assert complete.keys() <= set(campaign.runs)
    assert store.verify() == {}
    return Killed(points, cut, len(complete))


def main() -> int:
    probe = ROOT / "build" / "target" / "probe" / "fastenough-probe"
    with tempfile.TemporaryDirectory(prefix="fastenough-kills-") as place:
        seed = int(time.time())
        begun_s = time.monotonic()
        seen = killed(Path(place), str(probe), POINTS, seed)
    print(
        f"bench killed at {seen.points} random points (seed {seed}) in {time.monotonic() - begun_s:.0f} s: "
        f"{seen.cut} runs cut and marked, {seen.kept} complete by then and kept, all done in the end"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
