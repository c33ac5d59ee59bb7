# SPDX-License-Identifier: GPL-2.0-or-later
"""Recordings made to measure for tests: written with the real writer, read with the real reader."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from fastenough.recording import Histogram, Recording, RecordingWriter, read_recording
from fastenough.recording.building import end_series, interval_series, series_end
from fastenough.recording.head import LimitCount
from fastenough.recording.rises import Rises
from tests.support.order_of_values import Order

K = 10
GRAIN_NS = 50
"""Fewer buckets make a recording that is written, read and judged in a fifth of the time."""
WALL_NS = 1_790_000_000_000_000_000
PROFILE: dict[str, Any] = {
    "hostname": "example",
    "machine": ["0f" * 16],
    "kernel": {"release": "6.1.0-30-rt-amd64", "version": "#1 SMP PREEMPT_RT", "preemption": "preempt-rt"},
    "kernel_config": {"sha256": "a1" * 32, "of_interest": {"CONFIG_PREEMPT_RT": "y"}},
    "cpu": {"model": "Example <CPU> & co", "count": 2, "microcode": "0x2f"},
    "cpu_isolation": {"isolated": "1", "nohz_full": ""},
    "clocksource": "tsc",
    "clock_event_devices": {"clockevent0": "lapic-deadline"},
    "frequency": {"cpus": {"cpu0": {"scaling_governor": "performance"}}, "boost": None, "no_turbo": None},
    "idle": {"driver": "intel_idle", "governor": "menu", "states": {}},
    "cmdline": "root=/dev/sda1 isolcpus=1",
    "hypervisor": None,
    "emulated": False,
    "firmware": {"bios_vendor": "Example", "bios_version": "1.2"},
    "device_tree": None,
    "memory": {"total_bytes": 1 << 33, "swap_bytes": 0, "transparent_huge_pages": "madvise"},
    "packages": {"of_interest": {"stress-ng": "0.15.06", "rt-tests": "2.4"}},
    "modules": ["loop"],
    "tunables": {"sched_rt_runtime_us": 950000, "sched_rt_period_us": 1000000, "timer_migration": 1},
    "cpu_quota": None,
    "real_time_budget": None,
    "cpus_allowed": "0-1",
    "boot_id": "11111111-2222-3333-4444-555555555555",
    "uptime_s": 1234.5,
    "absent": {"device_tree": "the board has no device tree"},
}
COUNTERS = {
    "steal_ns": 0,
    "suspended_ns": 0,
    "smi": 0,
    "clock_step_ns": 0,
    "major_faults": 0,
    "minor_faults": 0,
    "voluntary_switches": 1,
    "involuntary_switches": 0,
    "migrations": 0,
    "throttled": 0,
    "thermal_throttled": 0,
}

WAKEUPS = {"wakeup", "wakeup_corrected"}
"""What the timer probe records."""
SETTINGS: tuple[dict[str, Any], ...] = (
    {"name": "policy", "requested": "fifo", "in_effect": "fifo"},
    {"name": "priority", "requested": 98, "in_effect": 98},
    {"name": "rt_throttling_us", "requested": None, "in_effect": 950000},
)
_OF_STORE = re.compile(r"\d{8}T\d{9}Z-[0-9a-f]{6}")
_TURNS = count(1)
RAN = {"cpu_ns": 400_000_000, "context_switches": 1000, "processes": 4}
"""What a load did in an interval."""


def quiet(run_id: str) -> list[list[NDArray[np.int64]]]:
    """Enough for a PASS at 1 ms and above: 32 s, 32,000 activations on each of two CPUs; of no two runs the same."""
    rest = [np.full(16_000, 5_000 + cpu, dtype=np.int64) for cpu in range(2)]
    own = np.append(rest[0][2:], [4_000 + digit for digit in divmod(zlib.crc32(run_id.encode()) % 900**2, 900)])
    return [[own, rest[0]], [rest[1], rest[1]]]


@dataclass
class Plan:
    """What the recording shall hold; ``values[cpu][interval]`` is an int array of ns.

    With ``rise_k`` it holds the order of its values too, and what is above ``limit_ns``.
    """

    values: Sequence[Sequence[NDArray[np.int64]]]
    run_id: str = "run-1"
    load: str | None = "none"
    period_ns: int = 1_000_000
    marks: tuple[str, ...] = ()
    outcome: str | None = "completed"
    reasons: tuple[str, ...] = ()
    load_proof: dict[str, Any] | None = None
    settings: Sequence[dict[str, Any]] = ()
    counters: dict[str, Any] = field(default_factory=lambda: dict(COUNTERS))
    lost: int = 0
    missed: int = 0
    head: dict[str, Any] = field(default_factory=dict)
    series: dict[str, Any] = field(default_factory=dict)
    first_series: dict[str, Any] = field(default_factory=dict)
    views: tuple[str, ...] = ("wakeup", "wakeup_corrected")
    events: Sequence[dict[str, Any]] = ()
    interval_ns: int | None = None
    end: dict[str, Any] = field(default_factory=dict)
    rise_k: int | None = None
    limit_ns: int = 50_000
    plain_only: int | None = None
    """A value, of CPU 0, of the first view that the others have not."""
    begin_ns: int | None = None
    """None: another time for each run id."""
    missing: int | None = None
    """The interval that tells nothing of the first series."""
    load_use: Sequence[dict[str, Any] | None] = (RAN,)
    """What the load did in each interval, again and again where these are fewer; None: not told."""


class RunFields(TypedDict, total=False):
    """Fields of a `Plan` that say how its run went."""

    load: str | None
    period_ns: int
    marks: tuple[str, ...]
    outcome: str | None
    reasons: tuple[str, ...]
    load_proof: dict[str, Any] | None
    settings: Sequence[dict[str, Any]]
    counters: dict[str, Any]
    lost: int
    missed: int
    head: dict[str, Any]
    series: dict[str, Any]
    first_series: dict[str, Any]
    events: Sequence[dict[str, Any]]
    interval_ns: int | None
    end: dict[str, Any]
    rise_k: int | None
    limit_ns: int
    plain_only: int | None
    missing: int | None
    load_use: Sequence[dict[str, Any] | None]


class PlanFields(RunFields, total=False):
    """All fields of a `Plan`."""

    values: Sequence[Sequence[NDArray[np.int64]]]
    run_id: str
    views: tuple[str, ...]
    begin_ns: int | None


def _configuration(name: str) -> dict[str, Any]:
    return {"name": name, "kernel_release": None, "kernel_config_sha256": None, "command_line": None}


def instant(offset_ns: int) -> dict[str, int]:
    return {"mono_ns": offset_ns, "wall_ns": WALL_NS + offset_ns}


def latencies(
    seed: int,
    *,
    cpus: int = 2,
    intervals: int = 30,
    per_interval: int = 2000,
    scale_us: float = 4.0,
    tail_us: float = 40.0,
) -> list[list[NDArray[np.int64]]]:
    """Wake-up latencies as machines have them: a log-normal body and a rare, heavy tail, in steps of GRAIN_NS."""
    random = np.random.default_rng(seed)
    result = []
    for cpu in range(cpus):
        rows = []
        for _ in range(intervals):
            body = random.lognormal(np.log(scale_us * (1 + 0.1 * cpu)), 0.25, per_interval)
            tail = random.random(per_interval) < 0.002
            body[tail] += random.exponential(tail_us / 6, int(tail.sum()))
            rows.append((body * 1000).astype(np.int64) // GRAIN_NS * GRAIN_NS)
        result.append(rows)
    return result


@cache
def _turn_in_process(run_id: str) -> int:
    return next(_TURNS)


def begin_of(plan: Plan) -> int:
    """When it began: no two runs of a board are made at a time, and they come in the order of their ids.

    A run that a store has named begins ten minutes after the one that this process wrote before it: the end of such a
    name is drawn at random, and a begin derived from it lay ahead of the clock in half of the cases.
    """
    if plan.begin_ns is not None or plan.run_id == "run-1":
        return plan.begin_ns or 0
    if _OF_STORE.fullmatch(plan.run_id):
        return _turn_in_process(plan.run_id) * 600 * 10**9
    number = re.search(r"(\d{1,4})\Z", plan.run_id)
    return ((int(number[1]) + 1) * 3600 if number else int.from_bytes(plan.run_id.encode()[:3].ljust(3)) * 600) * 10**9


def _series(plan: Plan, k: int) -> list[dict[str, Any]]:
    common = {
        "from": "the instant the timer was due",
        "to": "the thread reads its clock after waking",
        "unit": "ns",
        "clock": "CLOCK_MONOTONIC",
        "k": k,
        "period_ns": plan.period_ns,
        "relative": False,
    }
    found: list[dict[str, Any]] = [
        {
            "id": cpu * len(plan.views) + view,
            "name": name,
            "cpu": cpu,
            "corrected": name.endswith("_corrected"),
            "role": "diagnostic" if f"{name}_corrected" in plan.views else "verdict",
            "two_sided": "jitter" in name,
        }
        | common
        | ({} if plan.rise_k is None else {"rise_k": plan.rise_k})
        | plan.series
        for cpu in range(len(plan.values))
        for view, name in enumerate(plan.views)
    ]
    if found:
        found[0] |= plan.first_series
    return [
        {key: value for key, value in series.items() if key != "period_ns" or value is not None} for series in found
    ]


def _head(plan: Plan) -> dict[str, Any]:
    load = {} if plan.load is None else {"load": {"name": plan.load, "commands": []}}
    settings = plan.settings or SETTINGS
    head: dict[str, Any] = (
        {
            "type": "head",
            "format": "fastenough-recording",
            "version": 2,
            "tool": {"name": "test", "version": "0"},
            "run_id": plan.run_id,
            "probe": "timer" if set(plan.views) <= WAKEUPS else "made-up",
            "implementation": "linux-user",
            "parameters": {"mode": "clock_nanosleep", "interval_ns": plan.period_ns},
            "series": _series(plan, K),
            "settings": list(settings),
            "cost": {"clock_read_ns": 25},
            "interval_ns": 10**9,
            "begin": instant(begin_of(plan)),
            "marks": list(plan.marks),
            "profile": PROFILE,
            "profile_sha256": "0" * 64,
            "board": "testboard",
            "configuration": "stock",
        }
        | load
        | plan.head
    )
    return head | {"configuration": _configuration(head["configuration"])}


def _use(plan: Plan, seq: int) -> dict[str, Any]:
    use = plan.load_use[seq % len(plan.load_use)]
    return {} if plan.load in (None, "none") or use is None else {"load": use}


def _after(plan: Plan) -> list[dict[str, Any]]:
    """All settings as they were before."""
    return [
        {name: value for name, value in setting.items() if name not in ("requested", "reason")}
        for setting in plan.settings or SETTINGS
    ]


def _proof(plan: Plan) -> dict[str, Any]:
    if plan.load_proof is not None:
        return {"load": plan.load_proof}
    if plan.load in (None, "none"):
        return {}
    used = [plan.load_use[seq % len(plan.load_use)] or {} for seq in range(len(plan.values[0]) if plan.values else 0)]
    return {
        "load": {
            "name": plan.load,
            "ran": True,
            "cpu_time_s": sum(use.get("cpu_ns") or 0 for use in used) / 1e9,
            "processes": 4,
            "reasons": [],
        }
    }


class _Ordered:
    """What is known of the order of each series' values, where the plan wants it."""

    def __init__(self, plan: Plan, ids: Iterable[int]) -> None:
        self._k = plan.rise_k
        self._orders = (
            {}
            if plan.rise_k is None
            else {
                identity: Order(plan.rise_k, plan.limit_ns, "jitter" in plan.views[identity % len(plan.views)])
                for identity in ids
            }
        )
        self._parts: dict[int, list[tuple[Rises, LimitCount]]] = {identity: [] for identity in self._orders}

    def interval(self, identity: int, values: NDArray[np.int64]) -> dict[str, Any]:
        if identity not in self._orders:
            return {}
        rises, limit = self._orders[identity].interval(values)
        self._parts[identity].append((rises, limit))
        return {"rises": rises, "limit": limit}

    def total(self, identity: int) -> dict[str, Any]:
        parts = self._parts.get(identity)
        if self._k is None or not parts:
            return {}
        limit = parts[0][1]
        for _, more in parts[1:]:
            limit = limit.plus(more)
        return {"rises": Rises.merged((rises for rises, _ in parts), self._k), "limit": limit}


def _values(plan: Plan, identity: int, seq: int) -> NDArray[np.int64]:
    values = plan.values[identity // len(plan.views)][seq]
    return values if plan.plain_only is None or identity or seq else np.append(values, plan.plain_only)


def write(path: Path, plan: Plan) -> Path:
    """Write the planned recording; with ``outcome`` None it ends without an end line."""
    cpus, views = len(plan.values), len(plan.views)
    intervals = len(plan.values[0]) if cpus else 0
    totals: dict[int, list[Histogram]] = {identity: [] for identity in range(cpus * views)}
    ordered = _Ordered(plan, totals)
    now = begin_of(plan)
    with path.open("wb") as stream:
        writer = RecordingWriter(stream)
        writer.line(_head(plan))
        for seq in range(intervals):
            entries = []
            for identity, held in totals.items():
                if not identity and seq == plan.missing:
                    continue
                values = _values(plan, identity, seq)
                held.append(Histogram.from_values(values, K))
                first = seq == 0
                entries.append(
                    interval_series(
                        identity, held[-1], plan.lost * first, plan.missed * first, **ordered.interval(identity, values)
                    )
                )
            length = plan.interval_ns or len(plan.values[0][seq]) * plan.period_ns
            counters = {name: value if seq == 0 or value is None else 0 for name, value in plan.counters.items()}
            writer.line(
                {
                    "type": "interval",
                    "seq": seq,
                    "begin": instant(now),
                    "end": instant(now + length),
                    "series": entries,
                    "counters": counters,
                }
                | _use(plan, seq)
            )
            now += length
        for event in plan.events:
            writer.line({"type": "event", "at": instant(now)} | event)
        if plan.outcome is not None:
            ends = [
                end_series(
                    identity,
                    series_end(
                        Histogram.merged(held, K),
                        plan.lost if intervals else 0,
                        plan.missed if intervals else 0,
                        **ordered.total(identity),
                    ),
                )
                for identity, held in totals.items()
            ]
            writer.line(
                {
                    "type": "end",
                    "outcome": plan.outcome,
                    "reasons": list(plan.reasons),
                    "at": instant(now),
                    "series": ends,
                    "counters": plan.counters,
                    "events_dropped": 0,
                    "settings": _after(plan),
                }
                | _proof(plan)
                | plan.end
            )
    return path


def recording(folder: Path, plan: Plan) -> Recording:
    """Write, then read."""
    return read_recording(write(folder / f"{plan.run_id}.jsonl", plan))
