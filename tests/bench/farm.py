# SPDX-License-Identifier: GPL-2.0-or-later
"""The farm at twenty boards and a thousandth of the time; part of ``make bench``.

Two cycles of twelve hours are 86 s; five minutes are 0.3 s.  Then boards, switches, exporter, coordinator and the farm
itself fail, and it is said how long it took until all boards that are well measured again, and what was lost.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from fastenough.farm.lab import SimulatedTimes
from tests.support.farm_lab import Field
from tests.support.processes import eventually
from tests.support.rings import follows, recordings

BOARDS = tuple(f"board-{number:02}" for number in range(1, 21))
DEAD, HANGS, SWITCH, RESERVED, WELL = *BOARDS[:4], BOARDS[4:]
CYCLE_S, CYCLES = 43.2, 2
TIMES = {"pull": "15s", "boot": "30s", "patience": "30s", "retry": "5s"}
_RECONVERGED_S = 120.0


@contextmanager
def _field(folder: Path) -> Iterator[Field]:
    field = Field(folder, BOARDS, SimulatedTimes(report_s=0.3, cycle_s=CYCLE_S, boot_s=1.0), TIMES)
    try:
        yield field
    finally:
        field.end()


def _whole(field: Field, name: str) -> int:
    """How many cycles of a board have ended; each whole, begun where the one before ended, and in the store."""
    ended = [one for one in recordings(field.lab.rings[name]) if one.end is not None]
    for before, after in pairwise(ended):
        assert follows(before, after), (
            f"{name}: {after.run_id} begins at {after.head.begin}, the one before it ended "
            f"at {before.stopped}; {[event.text for event in after.events]}"
        )
    field.require_stored(name)
    return len(ended)


def _timed(what: str, act: Callable[[], None]) -> None:
    begun_s = time.monotonic()
    act()
    took_s = time.monotonic() - begun_s
    print(f"{what}: {took_s:.0f} s", flush=True)
    assert took_s < _RECONVERGED_S, what


def _fall_ill(field: Field) -> None:
    field.ail(HANGS, "hang")
    field.ail(DEAD, "dead")
    field.ail(SWITCH, "switch")


def _freeze(field: Field, seconds: float) -> None:
    """The exporter says nothing for so long."""
    exporter = field.lab.processes["exporter"]
    os.kill(exporter.pid, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(exporter.pid, signal.SIGCONT)


def _served(field: Field) -> None:
    """An exporter that the coordinator has dropped ends, and is started again, as systemd does."""
    if field.lab.processes["exporter"].poll() is not None:
        print("the coordinator had dropped the exporter", flush=True)
        field.lab.start_exporter()


def _held(field: Field) -> None:
    """All that is up is ours again, and nothing of ours is at the person's place, even where labgrid has forgotten."""

    def held() -> bool:
        _served(field)
        asked_s = time.monotonic()
        holders = field.holders()
        ours = sum("fastenough" in holders[name] for name in WELL)
        print(f"  {ours} of {len(WELL)} held; answered in {time.monotonic() - asked_s:.0f} s", flush=True)
        return ours == len(WELL) and "fastenough" not in holders[RESERVED]

    assert eventually(held, _RECONVERGED_S), (field.states(), (field.folder / "farm.log").read_text()[-3000:])


def _kill_in_mid_boot(field: Field) -> None:
    field.ail(HANGS, "none")
    field.become("booting", HANGS)
    field.kill()
    field.start()
    field.become("measuring", HANGS, *WELL)


def _boot_all(field: Field) -> None:
    field.start()
    field.become("measuring", DEAD, HANGS, SWITCH, *WELL)


def main() -> int:
    folder = Path(tempfile.mkdtemp(prefix="fastenough-bench-farm-"))
    try:
        with _field(folder) as field:
            field.client("somebody", "-p", RESERVED, "acquire")
            _timed("19 boards booted and measuring", lambda: _boot_all(field))
            before = {name: field.switched(name) for name in (*WELL, RESERVED)}
            _fall_ill(field)
            time.sleep(CYCLE_S * CYCLES)
            for seconds in (12, 60):
                _freeze(field, seconds)
                _timed(f"exporter stopped for {seconds} s; all held again after", lambda: _held(field))
            field.restart_coordinator()
            _timed("coordinator and exporter killed; all held again after", lambda: _held(field))
            _timed("farm killed in mid-boot; all measure after", lambda: _kill_in_mid_boot(field))
            switched = {name: field.switched(name) for name in before}
            assert switched == before, f"a board that was well was switched: {before}, then {switched}"
            assert before[RESERVED] == 0
            cycles = {name: _whole(field, name) for name in WELL}
            assert min(cycles.values()) >= CYCLES
            print(
                f"{len(WELL)} boards: {sum(cycles.values())} cycles whole, no interval missing; the person's place "
                "untouched"
            )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
