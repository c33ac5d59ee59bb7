# SPDX-License-Identifier: GPL-2.0-or-later
"""A run without an end of its own: SIGINT completes it where that is the plan, and aborts it otherwise."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from fastenough.model import Outcome
from fastenough.recording import read_recording


@pytest.mark.parametrize(("options", "sent", "status"), [
    (["--until-interrupt"], signal.SIGINT, 0),
    (["--until-interrupt"], signal.SIGTERM, 128 + signal.SIGTERM),
    ([], signal.SIGINT, 128 + signal.SIGINT),
])
def test_sigint_may_be_the_planned_end(tmp_path: Path, probe_binary: str, options: list[str], sent: signal.Signals,
                                       status: int) -> None:
    outcome = Outcome.ABORTED if status else Outcome.COMPLETED
    path = tmp_path / "recording.jsonl"
    with subprocess.Popen([probe_binary, "timer", "-a", "0", "--policy", "other", "--allow-difference", "-i", "5ms",
                           "--record=-", *options], stdout=subprocess.PIPE) as probe:
        assert probe.stdout is not None
        head = probe.stdout.readline()
        probe.send_signal(sent)
        path.write_bytes(head + probe.stdout.read())
    assert probe.returncode == status
    recording = read_recording(path)
    assert recording.end is not None
    assert (recording.outcome, len(recording.end.reasons)) == (outcome, 1 if status else 0)
