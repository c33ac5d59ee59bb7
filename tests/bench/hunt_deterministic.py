# SPDX-License-Identifier: GPL-2.0-or-later
"""Hunts on a deterministic board find a planted trigger, and repeat to the byte.

The trigger is planted by kernel arguments: each call of ``flock`` prints a kernel message, and the kernel waits 1 ms
with interrupts off before it.  Only the stressor ``flock`` calls it.  ``python -m tests.bench.hunt_deterministic
[TRIALS]``.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from pathlib import Path

import zstandard

from fastenough.board import open_board
from fastenough.campaign import Entry, Plan
from fastenough.cli.hunt import conclusion
from fastenough.hunt.extent import TrialCount
from fastenough.hunt.recipes import description_of
from fastenough.jobs.hunt import BLOCK, Hunt, HuntResult, make_hunt
from fastenough.store import Store

TRIGGER = "flock"
PLANTED = f"tp_printk trace_event=syscalls:sys_enter_{TRIGGER} sysctl.kernel.printk_delay=1"
STRESSORS = ("cpu", "switch", TRIGGER, "pipe", "fork", "getdent")
FIXED = ("none", "cpu")


def hunted(store: Store, arguments: str, trials: int) -> HuntResult:
    """One hunt with the stock kernel and these arguments."""
    entry = Entry("timer", ("none",), 0.25, {"interval": ("1ms",), "report": (BLOCK,)}, warm_up_s=0.3)
    plan = Plan("hunt", (entry,), boards=(f"deterministic:stock {arguments}".strip(),))
    return make_hunt(
        Hunt(plan, TrialCount(trials), STRESSORS, FIXED),
        store,
        lambda progress, ask: (
            print(f"  trial {progress.run}, {ask.phase}", file=sys.stderr) if progress.phase == "profile" else None
        ),
        opened=open_board,
    )


def hash_of(store: Store, run: str) -> str:
    """SHA-256 of a recording without its run id."""
    with store.opened(run) as stream:
        content = zstandard.ZstdDecompressor().stream_reader(stream).read()
    return hashlib.sha256(content.replace(run.encode(), b"")).hexdigest()


def main() -> None:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    with tempfile.TemporaryDirectory() as folder:
        hashes = []
        for name in ("first", "second"):
            store = Store(Path(folder, name))
            made = hunted(store, PLANTED, trials)
            hashes.append([hash_of(store, run) for run in made.runs])
            of_all = hashlib.sha256("".join(hashes[-1]).encode()).hexdigest()
            print(f"{name} hunt, {len(made.runs)} trials, {made.failed} failed, SHA-256 of all {of_all}")
            print(f"  {conclusion(made)}", flush=True)
        found = made.search.result
    assert hashes[0] == hashes[1], "the second hunt differs"
    assert found is not None and TRIGGER in description_of(made.search.space, found.recipe), "trigger not found"
    print("both hunts have the same recordings, and found the trigger")


if __name__ == "__main__":
    main()
