# SPDX-License-Identifier: GPL-2.0-or-later
"""A locked stack cannot grow where no more may be locked, and each locked page costs time at the start."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from fastenough.model import ExitStatus
from tests.support.privileges import needs_root
from tests.support.tools import require

pytestmark = pytest.mark.untimed

LOCKED_MOST = 3 * 1024 * 1024
"""More than the program takes, less than the series of this act ask for."""
TIMER_LOCKED_MOST_KIB = 4096
TRIES = 12
"""How much of the stack is there from the begin is drawn at each start."""


def test_a_run_that_may_lock_little_memory_comes_to_its_end(probe_binary: str, tmp_path: Path) -> None:
    require("prlimit")
    require("setpriv")
    without = ["setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock"] if os.geteuid() == 0 else []
    for number in range(TRIES):
        done = subprocess.run(
            [
                "prlimit",
                f"--memlock={LOCKED_MOST}:{LOCKED_MOST}",
                *without,
                probe_binary,
                "fifo",
                "--by=block",
                "--largest=16384",
                "-l1",
                "--policy=other",
                "--allow-difference",
                "--quiet",
                f"--record={tmp_path / str(number)}",
            ],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == ExitStatus.DONE, done.stderr
        assert "memory cannot be locked" in done.stdout


@needs_root("as much locked memory as is asked for")
def test_a_run_locks_only_what_it_uses(probe_binary: str) -> None:
    """The buffers of probes that do not run are not brought into memory: that was most of what a start took."""
    with subprocess.Popen([probe_binary, "timer", "-a0", "-D1s", "--quiet"], stdout=subprocess.DEVNULL) as run:
        locked_kib = 0
        while run.poll() is None:
            found = re.search(r"VmLck:\s+(\d+) kB", Path(f"/proc/{run.pid}/status").read_text())
            locked_kib = max(locked_kib, int(found[1]) if found else 0)
            time.sleep(0.05)
    assert run.returncode == ExitStatus.DONE
    assert 0 < locked_kib <= TIMER_LOCKED_MOST_KIB
