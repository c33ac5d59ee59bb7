# SPDX-License-Identifier: GPL-2.0-or-later
"""Rings of recordings for tests: the real probe writes them, and what they hold is added up."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from fastenough.recording import Recording, read_recording

FAST = (
    "--interval=1ms",
    "--report=20ms",
    "--ring-cycle=200ms",
    "--interval-k=4",
    "--policy=other",
    "--allow-difference",
    "--affinity=0",
    "--default-system",
    "--quiet",
    "--until-interrupt",
)
"""An ordinary thread, an interval every 20 ms, and ten of them in a recording."""


def start(
    probe: str, ring: Path, *options: str, act: str = "timer", before: Sequence[str] = ()
) -> subprocess.Popen[str]:
    """A service's stand-in, which writes into a ring until it is ended; ``before`` is put in front of it."""
    return subprocess.Popen(
        [*before, probe, act, *FAST, f"--ring={ring}", *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def files(ring: Path) -> list[Path]:
    """Of the recordings, oldest first."""
    return sorted(ring.glob("*.jsonl"))


def recordings(ring: Path) -> list[Recording]:
    return [read_recording(path) for path in files(ring)]


def notes(recording: Recording, word: str) -> list[str]:
    """What a recording says of what was before it, and of what made room."""
    texts = [event.text or "" for event in recording.events if event.kind == "note"]
    return [text for text in texts if text.startswith(word)]


def follows(before: Recording, after: Recording) -> bool:
    """Whether a recording begins in the instant in which the one before it ended."""
    return after.head.begin == before.stopped
