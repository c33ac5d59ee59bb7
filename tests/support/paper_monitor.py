# SPDX-License-Identifier: GPL-2.0-or-later
"""A monitor of paper: it takes what the bench says, and records wake-ups that were made up (run as a program)."""

from __future__ import annotations

import os
import signal
import stat
import sys
import time
from pathlib import Path

from fastenough.recording.building import line_bytes
from tests.support.monitor_recordings import Watched, lines
from tests.support.recordings import WALL_NS

_LONG = 100_000


def install(folder: Path, *, refusing: tuple[int, str] | None = None, dying: bool = False) -> Path:
    """The program in a folder; ``refusing``: status and words with which it ends at once; ``dying``: before its end."""
    path = folder / "fastenough-monitor"
    said = "" if refusing is None else f"echo 'fastenough-monitor: {refusing[1]}' >&2; exit {refusing[0]}\n"
    path.write_text(
        f"#!/bin/sh\n{said}PYTHONPATH={':'.join(filter(None, sys.path))} exec {sys.executable} "
        f'{Path(__file__).resolve()} {"dying" if dying else "living"} "$@"\n'
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def main(dying: bool, words: list[str]) -> None:
    """Ten intervals a second, until the time is over or somebody stops it."""
    asked: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: asked.append(number))
    said = dict(word.removeprefix("--").partition("=")[::2] for word in words)
    assert said["record"] == "-" and ("until-interrupt" in said) != ("duration" in said), words
    intervals = int(said["duration"].removesuffix("ms")) // 100 if "duration" in said else _LONG
    plan = Watched(
        intervals=intervals,
        interval_ns=10**8,
        per_interval=20,
        outcome="completed",
        head={"parameters": {"said": " ".join(words)}, "begin": {"mono_ns": 0, "wall_ns": WALL_NS}},
    )
    for line in lines(plan, lambda: bool(asked)):
        if line["type"] == "end" and dying:
            sys.exit(3)
        if line["type"] == "end" and asked:
            line |= {"outcome": "aborted", "reasons": ["interrupted"]}
        if line["type"] == "interval":
            time.sleep(0.1)
        os.write(1, line_bytes(line))


if __name__ == "__main__":
    main(sys.argv[1] == "dying", sys.argv[2:])
