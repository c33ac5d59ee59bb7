# SPDX-License-Identifier: GPL-2.0-or-later
"""Where no more memory may be locked, a locked stack cannot grow: the run must not need that."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tools import require

from fastenough.model import ExitStatus

LOCKED_MOST = 8 * 1024 * 1024
"""Less than the series of this act ask for; the ordinary user's limit of Debian."""
TRIES = 12
"""How much of the stack is there from the begin is drawn at each start."""


def test_a_run_that_may_lock_little_memory_comes_to_its_end(probe_binary: str, tmp_path: Path) -> None:
    require("prlimit")
    require("setpriv")
    without = ["setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock"] if os.geteuid() == 0 else []
    for number in range(TRIES):
        done = subprocess.run(
            ["prlimit", f"--memlock={LOCKED_MOST}:{LOCKED_MOST}", *without, probe_binary, "fifo", "--by=block",
             "--largest=16384", "-D20ms", "--policy=other", "--allow-difference", "--quiet",
             f"--record={tmp_path / str(number)}"], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == ExitStatus.DONE, done.stderr
        assert "memory cannot be locked" in done.stdout
