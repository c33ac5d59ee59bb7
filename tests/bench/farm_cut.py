# SPDX-License-Identifier: GPL-2.0-or-later
"""The network to a board is cut for an hour; part of ``make bench``: ``python -m tests.bench.farm_cut``.

Two boards, of which one is behind a network of its own and reached by ssh.  Behind the cut it records on, interval by
interval; the farm says what it cannot reach, switches nothing and loses nothing of the other.  At the end what the
boards recorded, what lies in the store and what stands in the history must be the same, each interval once.  Another
length of the cut may be given in seconds.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from contextlib import closing
from itertools import pairwise
from pathlib import Path

from fastenough.farm.lab import SimulatedTimes
from fastenough.link.ssh import CONFIG_SETTING
from fastenough.store import Store
from tests.process.farm.test_farm_faults import same_anew
from tests.support.farm_lab import Field
from tests.support.namespaces import Network, network
from tests.support.processes import eventually
from tests.support.rings import follows, recordings
from tests.support.ssh_boards import ssh_server

NEAR, FAR = "near", "far"
PACE = SimulatedTimes(report_s=3.0, cycle_s=90.0)
TIMES = {"pull": "15s", "boot": "30s", "patience": "2h", "retry": "5s"}
_BACK_S = 180.0


def _whole(field: Field, name: str) -> int:
    """How many intervals of a board have come, each once; each recording begins where the one before it ended."""
    field.require_stored(name, _BACK_S)
    ended = [one for one in recordings(field.lab.rings[name]) if one.end is not None]
    assert all(follows(before, after) for before, after in pairwise(ended)), name
    return sum(field.recorded(name).values())


def _stored(field: Field, name: str) -> int:
    with closing(Store(field.folder / "store")) as store:
        return sum(len(store.load(run.id).intervals) for run in store.runs(board=name))


def _cut(field: Field, net: Network, away_s: float) -> None:
    """Cut, wait, and join again; what came of it is printed."""
    before = _stored(field, FAR)
    net.cut()
    ends_s = time.monotonic() + away_s
    assert eventually(lambda: field.states()[FAR].reason != "", 120), "its state does not say that it cannot be reached"
    print(f"cut; {FAR}: {field.states()[FAR].reason}", flush=True)
    time.sleep(max(0.0, ends_s - time.monotonic()))
    assert _stored(field, FAR) - before <= PACE.cycle_s / PACE.report_s, "something came through the cut"
    field.require_stored(NEAR, _BACK_S)
    net.join()
    begun_s = time.monotonic()
    field.require_stored(FAR, _BACK_S)
    assert eventually(lambda: field.states()[FAR].reason == "", 60), field.states()
    print(f"cut for {away_s:g} s; all has come {time.monotonic() - begun_s:.0f} s after it was joined", flush=True)


def _go_through(field: Field, net: Network, config: Path, away_s: float) -> None:
    field.reach(FAR, "ssh://board")
    field.start(**{CONFIG_SETTING: str(config)})
    field.become("measuring", NEAR, FAR)
    switched = [field.switched(name) for name in field.names]
    _cut(field, net, away_s)
    assert [field.switched(name) for name in field.names] == switched, "a board was switched"
    for name in field.names:
        print(
            f"{name}: {_whole(field, name)} intervals in whole recordings, each of them in the store once, no gap, "
            "not switched",
            flush=True,
        )
    assert field.stop() == 0
    same_anew(field)
    print("the history is the one made of the store anew", flush=True)


def main() -> int:
    away_s = float(sys.argv[1]) if len(sys.argv) > 1 else 3600.0
    folder = Path(tempfile.mkdtemp(prefix="fastenough-bench-cut-"))
    try:
        with network(80) as net, ssh_server(address=net.address, prefix=net.prefix) as server:
            field = Field(folder, (NEAR, FAR), PACE, TIMES)
            try:
                _go_through(field, net, server.config, away_s)
            finally:
                field.end()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
