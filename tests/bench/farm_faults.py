# SPDX-License-Identifier: GPL-2.0-or-later
"""What its surroundings do to a farm; part of ``make bench``: ``python -m tests.bench.farm_faults``.

Four boards, of which one is behind a network of its own, PostgreSQL, and a store on a small disk of its own.  The
database is away for two minutes, the network for two, which at this pace is the time of twenty hours; the bench's clock
is an hour ahead, then an hour behind; then the disk is full for a minute.  At the end each interval that the boards
recorded must be in the store and in the history once, and no board was switched.  Needs root for disk and network;
without, they are left out and said.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from fastenough.farm.lab import SimulatedTimes
from fastenough.history import History, catch_up
from fastenough.history.schema import INTERVAL
from fastenough.link.ssh import CONFIG_SETTING
from fastenough.store import Store
from tests.support.farm_lab import Field
from tests.support.history_rows import all_rows
from tests.support.namespaces import Network, network
from tests.support.postgresql import Server, running_server
from tests.support.processes import eventually
from tests.support.set_clock import SetClock
from tests.support.ssh_boards import ssh_server

BOARDS = tuple(f"board-{number}" for number in range(1, 5))
TIMES = {"pull": "5s", "boot": "30s", "patience": "600s", "retry": "5s"}
FAR = BOARDS[-1]
_AWAY_S, _FULL_S, _SET_S = 120.0, 60.0, 20.0
_BACK_S = 120.0
_TAKEN_S = 15.0
"""Some rounds of what has come into the history."""


@contextmanager
def _small_disk(folder: Path) -> Iterator[bool]:
    """Whether the folder is a disk of its own, of 64 MB."""
    folder.mkdir()
    mounted = (
        os.geteuid() == 0
        and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", folder], check=False).returncode == 0
    )
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "-l", folder], check=True)


def _says(field: Field, *words: str) -> bool:
    """Whether the farm's newest status has one of these words."""
    said = subprocess.run(
        [sys.executable, "-m", "fastenough", "farm", "status", field.file], capture_output=True, text=True, check=False
    ).stdout
    return any(word in said for word in words)


def _database_away(field: Field, server: Server) -> None:
    server.stop()
    time.sleep(_AWAY_S)
    before = len(Store(field.folder / "store").runs())
    assert eventually(lambda: len(Store(field.folder / "store").runs()) > before, 90), "no pull while it was away"
    assert eventually(lambda: _says(field, "history:"), 90), "the status does not say that the history is away"
    server.start()
    print(f"database away for {_AWAY_S:g} s: pulled meanwhile, and said so", flush=True)


def _network_away(field: Field, net: Network) -> None:
    """The other boards lose nothing meanwhile; what the far one recorded comes when it can be reached again."""
    net.cut()
    time.sleep(_AWAY_S)
    assert field.states()[FAR].reason, "its state does not say that it cannot be reached"
    for name in BOARDS[:-1]:
        field.require_stored(name, _BACK_S)
    net.join()
    begun_s = time.monotonic()
    field.require_stored(FAR, _BACK_S)
    print(
        f"network to {FAR} away for {_AWAY_S:g} s: all it had recorded has come {time.monotonic() - begun_s:.0f} s "
        "after it was back",
        flush=True,
    )


def _clock_set(field: Field, clock: SetClock) -> None:
    for ahead_s in (3600, -3600, 0):
        clock.put(ahead_s)
        time.sleep(_SET_S)
        for name in BOARDS:
            field.require_stored(name, _BACK_S)
    print("the bench's clock an hour ahead, an hour behind, and right again: pulled all the time", flush=True)


def _disk_full(field: Field) -> None:
    filler = field.folder / "store" / "filler"
    try:
        with filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
    except OSError:
        pass
    assert eventually(lambda: _says(field, "No space left", "no space left"), 120), field.states()
    time.sleep(_FULL_S)
    filler.unlink()
    field.become("measuring", *BOARDS)
    print(f"disk full for {_FULL_S:g} s: said so, and went on", flush=True)


def _end(field: Field) -> None:
    begun_s = time.monotonic()
    assert field.stop(within_s=_BACK_S) == 0
    print(f"  ended in order in {time.monotonic() - begun_s:.0f} s", flush=True)


def _intervals(history: History, runs: set[str]) -> Counter[str]:
    """How often which five minutes stand there, of these runs."""
    place = next(at for at, column in enumerate(INTERVAL.columns) if column.name == "run")
    return Counter(repr(row) for row in all_rows(history)["interval"] if row[place] in runs)


def _compare(field: Field, database: str) -> None:
    """What lies in the store, against what the boards hold, and the farm's history against one made anew."""
    for name in BOARDS:
        field.require_stored(name, _BACK_S)
    time.sleep(_TAKEN_S)
    _end(field)
    store = Store(field.folder / "store")
    runs = {run.id for run in store.runs()}
    with closing(History.at(database)) as kept, closing(History.at(f"sqlite:///{field.folder}/anew.sqlite")) as anew:
        late = catch_up(kept, store)
        assert not late.faults and not catch_up(anew, store).faults
        mine, theirs = _intervals(anew, runs), _intervals(kept, runs)
        assert mine == theirs, (list((mine - theirs).items())[:2], list((theirs - mine).items())[:2])
    print(
        f"{len(runs)} runs, {sum(mine.values())} rows: nothing lost, nothing double; {late.intervals} intervals had "
        "come after the farm last looked"
    )


@contextmanager
def _far_board() -> Iterator[tuple[Network | None, dict[str, str]]]:
    """A network with a board in it, None where there can be none, and what the farm needs in its environment."""
    with ExitStack() as stack:
        try:
            net = stack.enter_context(network(79))
        except pytest.skip.Exception as reason:
            print(f"network cut: left out, {reason}")
            yield None, {}
            return
        server = stack.enter_context(ssh_server(address=net.address, prefix=net.prefix))
        yield net, {CONFIG_SETTING: str(server.config)}


def _go_through(field: Field, server: Server, net: Network | None, clock: SetClock, small: bool) -> None:
    _database_away(field, server)
    if net:
        _network_away(field, net)
    _clock_set(field, clock)
    if small:
        _disk_full(field)
    else:
        print("disk full: left out, needs root")
    _compare(field, server.url)


def main() -> int:
    folder = Path(tempfile.mkdtemp(prefix="fastenough-bench-faults-"))
    pace = SimulatedTimes(report_s=0.5, cycle_s=15.0, boot_s=0.5)
    try:
        with running_server() as server, _small_disk(folder / "store") as small, _far_board() as (net, known):
            clock = SetClock(folder / "clock")
            field = Field(folder, BOARDS, pace, TIMES, database=server.url)
            try:
                if net:
                    field.reach(FAR, "ssh://board")
                before = {name: field.switched(name) for name in BOARDS}
                field.start(**known, **clock.environment)
                field.become("measuring", *BOARDS)
                booted = {name: field.switched(name) for name in BOARDS}
                _go_through(field, server, net, clock, small)
                assert {name: field.switched(name) for name in BOARDS} == booted != before, "a board was switched"
            finally:
                field.end()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
