# SPDX-License-Identifier: GPL-2.0-or-later
"""``fastenough monitor --json``: a JSON object per line, for each interval and each wake-up with a cause."""

from __future__ import annotations

import json
import time
from typing import Any, TextIO

from fastenough.cli.output import JSON_VERSION
from fastenough.cli.progress_words import newest_wakeups
from fastenough.jobs.following import Following
from fastenough.jobs.watching import Watch
from fastenough.model import ExitStatus
from fastenough.recording.wakeups import Wakeup

_LOOK_S = 0.25


class JsonLines:
    """Prints what is new in a growing recording; times are ns of CLOCK_MONOTONIC, latencies are ns."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._begun = False
        self._seq = -1
        self._printed_causes = 0

    def show(self, watch: Watch) -> None:
        """Print what is new since the last call."""
        watch.each_interval = self._new
        watch.look()
        self._head(watch.following)
        if not watch.over:
            time.sleep(_LOOK_S)

    def end(self, watch: Watch) -> ExitStatus:
        """Print the outcome."""
        self._new(watch.following)
        end = watch.following.end
        self._say(
            {
                "type": "end",
                "outcome": None if end is None else end.outcome,
                "reasons": [] if end is None else list(end.reasons),
                "counters": {} if end is None else dict(end.counters),
            }
        )
        return ExitStatus.BROKEN if end is None else ExitStatus.DONE

    def _head(self, following: Following) -> None:
        if following.head is not None and not self._begun:
            self._begun = True
            self._say(
                {
                    "type": "begin",
                    "version": JSON_VERSION,
                    "run": following.head.run_id,
                    "parameters": dict(following.head.parameters),
                }
            )

    def _new(self, following: Following) -> None:
        self._head(following)
        events = following.culprits_after(self._printed_causes)
        skipped = following.culprits_seen - self._printed_causes - len(events)
        self._printed_causes = following.culprits_seen
        if skipped:
            self._say({"type": "skipped", "events": skipped})
        for wakeup in reversed(newest_wakeups(following.head, events)):
            self._say(_wakeup(wakeup))
        if following.last is not None and following.last.seq > self._seq:
            self._seq = following.last.seq
            self._say(_interval(following))

    def _say(self, document: dict[str, Any]) -> None:
        self._stream.write(json.dumps(document) + "\n")
        self._stream.flush()


def missing(lines: int) -> str:
    """The line in place of dropped lines."""
    return json.dumps({"type": "missing", "lines": lines}) + "\n"


def _whole(ns: float | None) -> int | None:
    return None if ns is None else round(ns)


def _wakeup(wakeup: Wakeup) -> dict[str, Any]:
    return {
        "type": "wake-up",
        "mono_ns": wakeup.at.mono_ns,
        "wall_ns": wakeup.at.wall_ns,
        "cpu": wakeup.cpu,
        "delay_ns": _whole(wakeup.delay_ns),
        "stations": dict(wakeup.parts),
        "longest": wakeup.longest or None,
        "blamed": wakeup.blamed,
        "culprit": dict(wakeup.culprit),
    }


def _interval(following: Following) -> dict[str, Any]:
    """The newest interval: current value, maximum and its age of each series with samples."""
    last = following.last
    stations = [
        {
            "station": standing.series.name,
            "cpu": standing.series.cpu,
            "n": standing.n,
            "lost": standing.lost,
            "current_ns": _whole(standing.latest_ns),
            "worst_ns": _whole(standing.maximum_ns),
            "age_ns": standing.since_maximum_ns,
        }
        for standing in following.standings()
        if standing.n
    ]
    return {
        "type": "interval",
        "seq": None if last is None else last.seq,
        "end_mono_ns": None if last is None else last.end_mono_ns,
        "stations": stations,
    }
