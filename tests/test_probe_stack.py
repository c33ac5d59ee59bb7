# SPDX-License-Identifier: GPL-2.0-or-later
"""Where no more memory may be locked, a locked stack cannot grow: the run must not need that."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tools import require

from fastenough.model import ExitStatus
from fastenough.recording import read_recording

LOCKED_MOST = 8 * 1024 * 1024
"""Less than the series of this act ask for; the ordinary user's limit of Debian."""
TRIES = 12
"""How much of the stack is there from the begin is drawn at each start."""


def test_a_run_that_may_lock_little_memory_comes_to_its_end(probe_binary: str, tmp_path: Path) -> None:
    """A busy machine may leave so short a run no time for an act: it then ends as failed, but it does end."""
    require("prlimit")
    require("setpriv")
    without = ["setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock"] if os.geteuid() == 0 else []
    for number in range(TRIES):
        record = tmp_path / str(number)
        done = subprocess.run(
            ["prlimit", f"--memlock={LOCKED_MOST}:{LOCKED_MOST}", *without, probe_binary, "fifo", "--by=block",
             "--largest=16384", "-D20ms", "--policy=other", "--allow-difference", "--quiet",
             f"--record={record}"], capture_output=True, text=True, timeout=60, check=False)
        acts = sum(total.total for total in read_recording(record).totals.values())
        assert done.returncode == (ExitStatus.DONE if acts else ExitStatus.BROKEN), done.stderr
        assert "memory cannot be locked" in done.stdout
