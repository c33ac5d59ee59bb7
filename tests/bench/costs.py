# SPDX-License-Identifier: GPL-2.0-or-later
"""What the cost model of a deterministic board counts on the path of a timer wake-up, and how much time it takes.

``python -m tests.bench.costs`` prints the tables of ``docs/virtual-bench.md``.  Under each load a guest boots twice
with the model and once without: the counts, and the recordings of all three, must be the same.
"""

from __future__ import annotations

import resource
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fastenough.analysis.costs import COUNTED, cost_figures
from fastenough.virtual.cost_model import COST_MODELS, build_plugin
from fastenough.virtual.custom_kernels import find_kernel
from fastenough.virtual.deterministic import Background, Command, DeterministicGuest
from fastenough.virtual.probe import PROBE
from tests.support.cache_walk import FAR, NEAR, build_walk, walk_load

CHANGES = (("stock", "x=a"), ("stock", "x=aa"), ("stock", "x=aaa"), ("stock", "psi=0"), ("rt", ""))
"""Kernels, each with an argument; those named x have no meaning."""
TIMER = Command((PROBE, "timer", "--interval=1ms", "--duration=100ms", "--record=-"))
READERS = Background(
    (("sh", "-c", "while :; do cat /proc/stat /proc/self/maps >/dev/null; done"),), ("/var/tmp/readers",), 0.1
)
_BOOT_S = 1800.0


@dataclass(frozen=True)
class Boot:
    """The recording, the costs, and the CPU time of QEMU."""

    recording: bytes
    costs: bytes | None
    cpu_s: float


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def boot(guest: DeterministicGuest, load: Background | None = None) -> Boot:
    """Boot a guest once; what it needs must have been built before, so that its CPU time is QEMU's."""
    run = guest.boot([TIMER], load)
    before_s = _cpu_s()
    results = run.results(_BOOT_S)
    (done,) = results.commands
    assert done.status == 0, done.stderr
    return Boot(done.stdout, results.costs, _cpu_s() - before_s)


def _cells(costs: bytes | None) -> str:
    """Cells of minimum, median and upper quartile of each count."""
    assert costs is not None
    figures = cost_figures([costs])
    return " | ".join(f"{each.minimum:,} / {each.median:,} / {each.upper_quartile:,}" for each in figures)


def print_loads(loads: Mapping[str, Background | None]) -> None:
    """Print the counts under each load; fails if anything differs between the boots."""
    print(f"| load | {' | '.join(COUNTED)} | times the CPU time |\n|---|---|---|---|---|")
    stock = find_kernel("stock")
    plain, counting = DeterministicGuest(stock), DeterministicGuest(stock, cost_model=COST_MODELS["cache"])
    for name, load in loads.items():
        without, once, again = (boot(guest, load) for guest in (plain, counting, counting))
        assert without.recording == once.recording == again.recording, f"{name}: recordings differ"
        assert once.costs == again.costs, f"{name}: counts differ"
        slower = ", ".join(f"{each.cpu_s / without.cpu_s:.1f}" for each in (once, again))
        print(f"| {name} | {_cells(once.costs)} | {slower} |", flush=True)


def print_changes() -> None:
    """Print the counts of changed kernels without load."""
    print(f"\n| kernel | {' | '.join(COUNTED)} |\n|---|---|---|---|")
    for name, argument in CHANGES:
        guest = DeterministicGuest(find_kernel(name), argument, COST_MODELS["cache"])
        print(f"| `{f'{name} {argument}'.strip()}` | {_cells(boot(guest).costs)} |", flush=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        walk = build_walk(Path(folder))
    build_plugin()
    print_loads(
        {
            "none": None,
            f"loop within {NEAR} bytes": walk_load(walk, NEAR),
            f"the same loop within {FAR // 1024} KiB": walk_load(walk, FAR),
            "readers of `/proc`": READERS,
        }
    )
    print_changes()


if __name__ == "__main__":
    main()
