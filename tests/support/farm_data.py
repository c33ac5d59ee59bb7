# SPDX-License-Identifier: GPL-2.0-or-later
"""The store of a farm made to measure: sealed recordings as boards write them, days of five-minute intervals.

``make_store(path, boards=6, days=2, seed=1)``.  Boards are called r1s1, r1s2 … (rack 1, slot 1); each measures in
cycles of 12 hours, 8 of them without a load and 4 with the load `osadl`.  Of the boards:

- the second boots another kernel, with another command line, for its newest cycle (``changed``);
- the third has one latency of 5 ms in its newest cycle with a load, with its culprit (``injected``);
- the fourth has not been heard of for the last 4 hours (``silent``);
- the last one is not public (``private``).

Of the third and the last there is a conclusion from all of its runs.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastenough.history import History, declare
from fastenough.jobs.job_store import store_conclusion
from fastenough.recording.building import end_series, interval_series, line_bytes, series_end
from fastenough.recording.histogram import Histogram, bucket_highest, bucket_lowest, bucket_of
from fastenough.report.document import Column, Folded, Preformatted, ReportTable, Section, Text
from fastenough.store import Store
from tests.support.recordings import COUNTERS, PROFILE, SETTINGS

END_S = 1_789_992_000
"""When everything ends, unless said otherwise: at the end of a cycle."""
STEP_S = 300
CYCLE_S = 12 * 3600
PHASES = (("none", 8 * 3600), ("osadl", 4 * 3600))
INJECTED_NS = 5_000_000
LIMIT_NS = 100_000
K = 4
_PERIOD_NS = 200_000
_SILENT_S = 4 * 3600


@dataclass(frozen=True)
class Injected:
    """One latency that was made on purpose, in the interval that begins at ``begin_s``."""

    board: str
    run: str
    cpu: int
    begin_s: int
    at_s: int
    value_ns: int = INJECTED_NS


@dataclass(frozen=True)
class FarmData:
    """A store, and what is to be found in it.  ``boards``: all names, also that of the private one."""

    store: Store
    boards: tuple[str, ...]
    cpus: int
    begin_s: int
    end_s: int
    changed: str
    changed_s: int
    injected: Injected
    silent: str
    private: str

    def declare(self, history: History) -> None:
        """What a farm's own file would say of its boards: rack, limit, and which are public."""
        for name in self.boards:
            declare(history, name, rack=name.partition("s")[0], limit_ns=LIMIT_NS, public=name != self.private)


@dataclass(frozen=True)
class _Run:
    board: int
    name: str
    id: str
    load: str
    begin_s: int
    end_s: int
    profile: dict[str, Any]
    injected: Injected | None
    begins: bool
    """It is the first of its board, which begins with a greater latency than any that comes by chance."""


def make_store(
    path: Path, boards: int = 6, days: int = 2, seed: int = 1, *, cpus: int = 2, end_s: int = END_S
) -> FarmData:
    """Write it; ``boards`` at least 4, ``end_s`` the end of a cycle (a multiple of 12 hours)."""
    names = tuple(f"r{1 + number // 8}s{1 + number % 8}" for number in range(boards))
    last_s = end_s - CYCLE_S
    loaded_s = last_s + PHASES[0][1]
    at_s = loaded_s + 3600
    injected = Injected(names[2], _run_id(names[2], loaded_s, "osadl"), cpus - 1, at_s, at_s + 17)
    data = FarmData(
        Store(path), names, cpus, end_s - days * 86400, end_s, names[1], last_s, injected, names[3], names[-1]
    )
    for number in range(boards):
        with data.store.spool(names[number], "ring", lambda: None) as spool:
            for run in _runs(data, number):
                data.store.adopt(spool, _lines(run, cpus, seed), run.id)
    for name in (injected.board, data.private):
        store_conclusion(data.store, [run.id for run in data.store.runs(board=name)], told(name))
    return data


def told(name: str) -> Section:
    """What a hunt might say."""
    table = ReportTable(
        "hunt-phases",
        "What the trials were made for",
        (Column("phase", numeric=False), Column("trials")),
        [("fixed loads", 14)],
    )
    return Section(
        "hunt",
        "The hunt",
        f"Worse than load full on {name}: vm & fork.",
        [table, Folded("The fixed loads", [Text("As a load file:"), Preformatted('name = "hunt-1"')])],
    )


def _run_id(name: str, begin_s: int, load: str) -> str:
    return f"{datetime.fromtimestamp(begin_s, UTC):%Y%m%dT%H%M%S}000Z-{name}-{load}"


def _runs(data: FarmData, board: int) -> Iterator[_Run]:
    name = data.boards[board]
    end_s = data.end_s - (_SILENT_S if name == data.silent else 0)
    begin_s = data.begin_s
    while begin_s < end_s:
        for load, length_s in PHASES:
            until_s = min(begin_s + length_s, end_s)
            run_id = _run_id(name, begin_s, load)
            changed = name == data.changed and begin_s >= data.changed_s
            if begin_s < until_s:
                yield _Run(
                    board,
                    name,
                    run_id,
                    load,
                    begin_s,
                    until_s,
                    profile_of(board, data.cpus, changed=changed),
                    data.injected if data.injected.run == run_id else None,
                    begin_s == data.begin_s,
                )
            begin_s += length_s


def profile_of(board: int, cpus: int, *, changed: bool) -> dict[str, Any]:
    profile = copy.deepcopy(PROFILE)
    release = "6.12.0-rt3" if changed else "6.12.0-rt2"
    profile["hostname"] = f"board-{board}"
    profile["kernel"] |= {"release": release}
    profile["cpu"] |= {
        "count": cpus,
        "model": f"Example {board % 3} & co",
        "architecture": ("x86_64", "aarch64")[board % 2],
    }
    profile["cmdline"] = "root=/dev/sda1" if changed else "root=/dev/sda1 isolcpus=1"
    profile["boot_id"] = f"{board:08d}-0000"
    return profile


def _head(run: _Run, cpus: int) -> dict[str, Any]:
    series = [
        {
            "id": cpu,
            "name": "wakeup_corrected",
            "cpu": cpu,
            "role": "verdict",
            "corrected": True,
            "two_sided": False,
            "relative": False,
            "from": "the instant the timer was due",
            "to": "the thread reads its clock after waking",
            "unit": "ns",
            "clock": "CLOCK_MONOTONIC",
            "k": K,
            "period_ns": _PERIOD_NS,
        }
        for cpu in range(cpus)
    ]
    configuration = {
        "name": run.profile["kernel"]["release"],
        "kernel_release": run.profile["kernel"]["release"],
        "kernel_config_sha256": None,
        "command_line": run.profile["cmdline"],
    }
    return {
        "type": "head",
        "format": "fastenough-recording",
        "version": 2,
        "tool": {"name": "test", "version": "0"},
        "run_id": run.id,
        "board": run.name,
        "configuration": configuration,
        "probe": "timer",
        "implementation": "linux-user",
        "parameters": {"method": "clock_nanosleep", "interval_ns": _PERIOD_NS},
        "series": series,
        "settings": list(SETTINGS),
        "cost": {"clock_read_ns": 25},
        "interval_ns": STEP_S * 10**9,
        "begin": _instant(run, run.begin_s),
        "marks": [],
        "profile": run.profile,
        "profile_sha256": "0" * 64,
        "load": {"name": run.load, "commands": []},
    }


def _instant(run: _Run, at_s: int) -> dict[str, int]:
    return {"mono_ns": (at_s - run.begin_s) * 10**9, "wall_ns": at_s * 10**9}


def _lines(run: _Run, cpus: int, seed: int) -> Iterator[bytes]:
    random = np.random.default_rng([seed, run.board, run.begin_s])
    totals: list[list[Histogram]] = [[] for _ in range(cpus)]
    yield line_bytes(_head(run, cpus))
    greatest = 0
    for seq, begin_s in enumerate(range(run.begin_s, run.end_s, STEP_S)):
        held = [_latencies(random, run, begin_s, cpu) for cpu in range(cpus)]
        for total, histogram in zip(totals, held, strict=True):
            total.append(histogram)
        yield line_bytes(
            {
                "type": "interval",
                "seq": seq,
                "begin": _instant(run, begin_s),
                "end": _instant(run, begin_s + STEP_S),
                "counters": COUNTERS if seq == 0 else {},
                "series": [interval_series(cpu, histogram) for cpu, histogram in enumerate(held)],
            }
            | ({} if run.load == "none" else {"load": {"cpu_ns": 10**11, "context_switches": 10**6, "processes": 4}})
        )
        most, cpu = max((one.maximum or 0, cpu) for cpu, one in enumerate(held))
        if most > greatest:
            greatest = most
            yield line_bytes(_event(run, begin_s + 17, cpu, most))
    ends = [end_series(cpu, series_end(Histogram.merged(total, K))) for cpu, total in enumerate(totals)]
    proof = {} if run.load == "none" else {"load": {"name": run.load, "ran": True, "reasons": []}}
    yield line_bytes(
        {
            "type": "end",
            "outcome": "completed",
            "reasons": [],
            "at": _instant(run, run.end_s),
            "series": ends,
            "counters": COUNTERS,
            "events_dropped": 0,
            "settings": [{"name": each["name"], "in_effect": each["in_effect"]} for each in SETTINGS],
        }
        | proof
    )


def _event(run: _Run, at_s: int, cpu: int, value_ns: int) -> dict[str, Any]:
    culprit = {
        "task": "fastenough-prob",
        "task_pid": 1234,
        "waited_for": "irq/27-i915",
        "waited_for_pid": 321,
        "waited_for_policy": "fifo",
        "waited_for_priority": 50,
    }
    return {
        "type": "event",
        "kind": "max",
        "at": _instant(run, at_s),
        "series": cpu,
        "cpu": cpu,
        "value": value_ns,
        "culprit": culprit,
    }


def _with_one_more(count: NDArray[np.int64]) -> NDArray[np.int64]:
    """One of those in the first bucket is taken from it: every due period is told of once."""
    return np.asarray(np.append(count, 1) - np.eye(1, count.size + 1, dtype=np.int64)[0])


def _latencies(random: np.random.Generator, run: _Run, begin_s: int, cpu: int) -> Histogram:
    """300 s of wake-ups at 5 kHz, none missing: a body of 20 buckets and a thin tail, all at the lower edges but
    for the maximum."""
    base_ns = 3_000 + 400 * (run.board % 5) + 300 * cpu
    body = bucket_of(base_ns, K) + np.arange(20)
    shape = np.exp(-0.5 * ((np.arange(20) - 6) / (3.0 if run.load == "none" else 4.5)) ** 2)
    tail = body[-1] + np.cumsum(1 + random.integers(0, 4, 5))
    index = np.concatenate((body, tail))
    count = np.concatenate(
        (
            random.poisson(shape / shape.sum() * STEP_S * 10**9 / _PERIOD_NS),
            random.poisson(2.0 if run.load == "none" else 6.0, 5),
        )
    )
    count[6] += STEP_S * 10**9 // _PERIOD_NS - count.sum()
    index, count = index[count > 0], count[count > 0]
    if run.begins and begin_s == run.begin_s:
        index, count = np.append(index, index[-1] + 8), _with_one_more(count)
    lowest = bucket_lowest(index, K)
    most = int(random.integers(lowest[-1], bucket_highest(index[-1:], K)[0], endpoint=True))
    injected = run.injected
    if injected is not None and (injected.begin_s, injected.cpu) == (begin_s, cpu):
        most = injected.value_ns
        index, count = np.append(index, bucket_of(most, K)), _with_one_more(count)
        lowest = np.append(lowest, most)
    exact = [(int(value), int(n)) for value, n in zip(lowest, count, strict=True)]
    exact = [*exact[:-1], (exact[-1][0], exact[-1][1] - 1), (most, 1)]
    return Histogram(
        K,
        index,
        count,
        int(lowest[0]),
        most,
        sum(value * n for value, n in exact),
        sum(value * value * n for value, n in exact),
    )
