# SPDX-License-Identifier: GPL-2.0-or-later
"""A run without an end of its own: SIGINT completes it where that is the plan, and aborts it otherwise."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import IO

import pytest

from fastenough.model import Outcome
from fastenough.recording import read_recording


def _until_an_act(stream: IO[bytes]) -> list[bytes]:
    """The lines up to the first interval that holds an act: a run without any is a failed one, however it ended."""
    lines: list[bytes] = []
    for line in stream:
        lines.append(line)
        told = json.loads(line)
        if told["type"] == "interval" and any(series["count"] for series in told["series"]):
            break
    return lines


@pytest.mark.parametrize(
    ("options", "sent", "status"),
    [
        (["--until-interrupt"], signal.SIGINT, 0),
        (["--until-interrupt"], signal.SIGTERM, 128 + signal.SIGTERM),
        ([], signal.SIGINT, 128 + signal.SIGINT),
    ],
)
def test_sigint_may_be_the_planned_end(
    tmp_path: Path, probe_binary: str, options: list[str], sent: signal.Signals, status: int
) -> None:
    outcome = Outcome.ABORTED if status else Outcome.COMPLETED
    path = tmp_path / "recording.jsonl"
    with subprocess.Popen(
        [
            probe_binary,
            "timer",
            "-a",
            "0",
            "--policy",
            "other",
            "--allow-difference",
            "-i",
            "5ms",
            "--report=20ms",
            "--record=-",
            *options,
        ],
        stdout=subprocess.PIPE,
    ) as probe:
        assert probe.stdout is not None
        lines = _until_an_act(probe.stdout)
        probe.send_signal(sent)
        path.write_bytes(b"".join(lines) + probe.stdout.read())
    assert probe.returncode == status
    recording = read_recording(path)
    assert recording.end is not None
    assert (recording.outcome, len(recording.end.reasons)) == (outcome, 1 if status else 0)
