# SPDX-License-Identifier: GPL-2.0-or-later
"""What a pull costs the bench beside 0, 10,000 and 60,000 stored runs; part of ``make bench``.

A growing recording is pulled again and again by one worker, as a farm does it.  Printed are seconds of CPU of the
worker itself; what the board's side does, which lies on the same machine here, is not in it.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import cast

from fastenough.farm import acts
from fastenough.farm.processes import Order, WorkerPool
from fastenough.store import Store
from tests.process.jobs.test_ring_pull import put

SIZES = (0, 10_000, 60_000)
PULLS = 20
MOST_CPU_S = 0.03


def fill(store: Path, runs: int) -> None:
    """Sealed runs that an index must know, as small as they can be."""
    Store(store).close()
    for number in range(runs):
        name = f"20250101T000000Z-{number:08x}"
        (store / "runs" / name).mkdir()
        (store / "runs" / name / "run.json").write_text(
            f'{{"format":"fastenough-run","version":1,"id":"{name}","state":"ended","outcome":"completed",'
            f'"board":"other-{number % 200}"}}\n'
        )


def timed_pull(order: Order) -> dict[str, object]:
    """A pull, and the CPU time of this process for it; not that of the commands that the board runs."""
    before_s = time.process_time()
    answer = acts.pull_ring(cast(acts.BoardOrder, order))
    return {**answer, "cpu_s": time.process_time() - before_s}


async def pulled(folder: Path, pulls: int) -> list[float]:
    """Of each pull but the first, which opens the store."""
    ring = folder / "ring"
    recording = put(ring, 1, begin_ns=0, intervals=pulls + 2)
    lines = recording.read_bytes().splitlines(keepends=True)
    order = {
        "link": "local",
        "board": "board",
        "ring": str(ring),
        "store": str(folder / "store"),
        "simulated": True,
        "load": None,
        "newest": "",
    }
    workers, took_s = WorkerPool(1), []
    for number in range(pulls):
        recording.write_bytes(b"".join(lines[: number + 2]))
        answer = await workers.act("pull", timed_pull, order, 600)
        assert answer.fields.get("grown"), answer.fields
        took_s.append(float(answer.fields["cpu_s"]))
    await workers.end()
    return took_s[1:]


def main(sizes: tuple[int, ...] = SIZES) -> None:
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="fastenough-pull-") as folder:
            fill(Path(folder) / "store", size)
            took_s = sorted(asyncio.run(pulled(Path(folder), PULLS)))
            middle_s = took_s[len(took_s) // 2]
            print(
                f"{size:,} runs stored: {middle_s * 1e3:.1f} ms of CPU a pull, at most {took_s[-1] * 1e3:.1f}",
                flush=True,
            )
            assert middle_s <= MOST_CPU_S, "more than the bar"


if __name__ == "__main__":
    main(tuple(map(int, sys.argv[1:])) or SIZES)
