# SPDX-License-Identifier: GPL-2.0-or-later
"""Recordings as the monitor makes them, with a truth that is known: which station is long, and who is to blame."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastenough.recording import Histogram, Recording, read_recording
from fastenough.recording.building import end_series, interval_series, line_bytes, series_end
from tests.support.recordings import COUNTERS, PROFILE, instant

PARTS = ("expiry-to-interrupt", "interrupt-to-runnable", "runnable-to-running", "running-to-return")
SUMS = ("expiry-to-running", "expiry-to-return")
NOISES = ("noise-interrupt", "noise-softirq", "noise-thread")
TYPICAL_NS = {
    "expiry-to-interrupt": 1800,
    "interrupt-to-runnable": 900,
    "runnable-to-running": 2600,
    "running-to-return": 700,
}
CULPRIT: dict[str, Any] = {
    "task": "robot",
    "task_pid": 4711,
    "task_policy": "fifo",
    "task_priority": 80,
    "waited_for": "kworker/0:1",
    "waited_for_pid": 17,
    "waited_for_policy": "other",
    "waited_for_priority": 0,
    "last_vector": 236,
    "frequency_khz": 2_400_000,
}
K = 10
MONITORS_COUNTERS = {"monitor_unmatched": 0, "monitor_dropped": 0, "monitor_suppressed": 0}


@dataclass
class Watched:
    """What a monitor saw.  ``long``: by station how much longer than usual one wake-up of each interval is, on the last
    CPU; ``culprit`` is told of it."""

    run_id: str = "watched-1"
    load: str = "none"
    cpus: int = 2
    intervals: int = 6
    interval_ns: int = 10**9
    per_interval: int = 400
    long: Mapping[str, int] = field(default_factory=lambda: {"runnable-to-running": 150_000})
    culprit: Mapping[str, Any] = field(default_factory=lambda: dict(CULPRIT))
    head: Mapping[str, Any] = field(default_factory=dict)
    outcome: str = "completed"
    begin_ns: int = 0
    seed: int = 1


def _series(plan: Watched) -> list[dict[str, Any]]:
    common = {
        "unit": "ns",
        "clock": "monotonic",
        "k": K,
        "role": "diagnostic",
        "two_sided": False,
        "corrected": False,
        "relative": False,
    }
    names = [(cpu, name) for cpu in range(plan.cpus) for name in (*PARTS, *SUMS, *NOISES)]
    return [
        {
            "id": number,
            "name": name,
            "cpu": cpu,
            "from": name.partition("-to-")[0],
            "to": name.partition("-to-")[2] or "the end of the disturbance",
            "labels": {"station": name},
        }
        | common
        for number, (cpu, name) in enumerate(names)
    ]


def _head(plan: Watched) -> dict[str, Any]:
    return {
        "type": "head",
        "format": "fastenough-recording",
        "version": 2,
        "tool": {"name": "fastenough-monitor", "version": "0"},
        "run_id": plan.run_id,
        "probe": "monitor",
        "implementation": "linux-user",
        "parameters": {"policy": "real-time", "report_ns": plan.interval_ns},
        "series": _series(plan),
        "settings": [],
        "cost": {"wakeup_ns": 700},
        "interval_ns": plan.interval_ns,
        "begin": instant(plan.begin_ns),
        "marks": [],
        "profile": PROFILE,
        "profile_sha256": "0" * 64,
        "board": "testboard",
        "load": {"name": plan.load, "commands": []},
        "configuration": {"name": "stock", "kernel_release": None, "kernel_config_sha256": None, "command_line": None},
        **plan.head,
    }


def _values(plan: Watched, random: np.random.Generator, cpu: int) -> dict[str, NDArray[np.int64]]:
    """One interval of one CPU by series; the last CPU's last wake-up is the long one."""
    values = {
        name: random.lognormal(np.log(typical), 0.3, plan.per_interval).astype(np.int64)
        for name, typical in TYPICAL_NS.items()
    }
    if cpu == plan.cpus - 1 and plan.per_interval:
        for name, longer_ns in plan.long.items():
            values[name][-1] += int(longer_ns * random.uniform(0.8, 1.2))
    values["expiry-to-running"] = sum((values[name] for name in PARTS[:3]), np.zeros(plan.per_interval, np.int64))
    values["expiry-to-return"] = values["expiry-to-running"] + values[PARTS[3]]
    return values | {
        name: random.lognormal(np.log(2000 * (place + 1)), 0.5, 10 * (4 - place)).astype(np.int64)
        for place, name in enumerate(NOISES)
    }


def lines(plan: Watched, stopped: Callable[[], bool] = lambda: False) -> Iterator[dict[str, Any]]:
    """The recording's lines, one after the other; of no more intervals once it is stopped."""
    random, head = np.random.default_rng(plan.seed), _head(plan)
    held: dict[int, list[Histogram]] = {series["id"]: [] for series in head["series"]}
    worst_ns, done = 0, 0
    yield head
    for seq in range(plan.intervals):
        if stopped():
            break
        by_cpu = [_values(plan, random, cpu) for cpu in range(plan.cpus)]
        for series in head["series"]:
            held[series["id"]].append(Histogram.from_values(by_cpu[series["cpu"]][series["name"]], K))
        begin, end = (instant(plan.begin_ns + (seq + more) * plan.interval_ns) for more in (0, 1))
        if plan.per_interval:
            total_ns = int(by_cpu[-1]["expiry-to-return"][-1])
            yield from _events(plan, head, by_cpu[-1], end, "max" if total_ns > worst_ns else "threshold")
            worst_ns = max(worst_ns, total_ns)
        done = seq + 1
        yield {
            "type": "interval",
            "seq": seq,
            "begin": begin,
            "end": end,
            "counters": MONITORS_COUNTERS,
            "series": [interval_series(number, each[-1]) for number, each in held.items()],
        }
    ends = [end_series(number, series_end(Histogram.merged(each, K))) for number, each in held.items()]
    yield {
        "type": "end",
        "outcome": plan.outcome,
        "reasons": [],
        "series": ends,
        "events_dropped": 0,
        "at": instant(plan.begin_ns + done * plan.interval_ns),
        "settings": [],
        "counters": COUNTERS | MONITORS_COUNTERS,
        "load": {"name": plan.load, "ran": True, "reasons": []},
    }


def _events(
    plan: Watched, head: Mapping[str, Any], values: Mapping[str, NDArray[np.int64]], at: Mapping[str, int], kind: str
) -> Iterator[dict[str, Any]]:
    """Two of the series tell of the long wake-up, as each does whose maximum it is."""
    stations = {f"{name.replace('-', '_')}_ns": int(values[name][-1]) for name in (*PARTS, *SUMS)}
    for name in ("runnable-to-running", "expiry-to-return"):
        (number,) = (
            series["id"] for series in head["series"] if (series["name"], series["cpu"]) == (name, plan.cpus - 1)
        )
        yield {
            "type": "event",
            "kind": kind,
            "at": at,
            "series": number,
            "cpu": plan.cpus - 1,
            "value": int(values[name][-1]),
            "culprit": dict(plan.culprit) | stations,
        }


def write(path: Path, plan: Watched) -> Path:
    path.write_bytes(b"".join(map(line_bytes, lines(plan))))
    return path


def watched(folder: Path, plan: Watched) -> Recording:
    """Write, then read."""
    return read_recording(write(folder / f"{plan.run_id}.jsonl", plan))
