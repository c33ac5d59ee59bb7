# SPDX-License-Identifier: GPL-2.0-or-later
"""The files of a run: none is left behind by a run that never began, none is written by two."""

from __future__ import annotations

import os
import resource
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.untimed

SHORT = ["--policy", "other", "--allow-difference", "-l", "3"]


def _no_file_may_grow() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def test_a_refused_run_leaves_no_samples(probe_binary: str, tmp_path: Path) -> None:
    """Or the same command, corrected, would be refused because of them."""
    taken, samples = tmp_path / "r", tmp_path / "s"
    taken.write_text("mine")
    done = subprocess.run(
        [probe_binary, "timer", *SHORT, "--record", str(taken), "--samples", str(samples)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert not samples.exists()


def test_samples_that_may_not_grow_fail_the_run(probe_binary: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [probe_binary, "timer", *SHORT, "--samples", str(tmp_path / "s")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=_no_file_may_grow,
    )
    assert (done.returncode, "File too large" in done.stderr) == (4, True)


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_recording_is_not_written_over(probe_binary: str, tmp_path: Path, stream: str) -> None:
    """The summary and messages go to a place of their own in the same file: to its beginning, where the head stands."""
    path = tmp_path / "r"
    with path.open("wb") as file, Path(os.devnull).open("wb") as nowhere:
        done = subprocess.run(
            [probe_binary, "timer", "-q", *SHORT, "--record", str(path)],
            timeout=60,
            check=False,
            stdout=file if stream == "stdout" else nowhere,
            stderr=file if stream == "stderr" else nowhere,
        )
    assert done.returncode == 2


def test_a_device_may_take_both(probe_binary: str) -> None:
    subprocess.run(
        [probe_binary, "timer", "-q", *SHORT, "--record", os.devnull], stdout=subprocess.DEVNULL, timeout=60, check=True
    )
