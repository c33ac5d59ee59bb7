# SPDX-License-Identifier: GPL-2.0-or-later
"""How far it reaches: ``make bench``.  Many runs merged and drawn, a long one shown, thousands listed.

The recordings are made up, and sealed as those of real runs are.  Every figure is of a process of its own; time is that
of the CPU, so that what else the machine does is not counted (all of this is single-threaded), and beside it what a
clock showed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fastenough.analysis import judge
from fastenough.recording import Histogram
from fastenough.recording.histogram import bucket_index, bucket_lowest
from fastenough.report.context import make_context
from fastenough.report.sections.latency_plot import latency_pictures
from fastenough.store import Store
from fastenough.store.directory import RUN_FILE
from tests.support.recordings import PROFILE

K = 10
CPUS = 8
RUNS = 200
PER_CPU = 100_000_000
LISTED = 10_000
DAY_S = 86_400
DISTINCT = 20_000
"""Interval entries of the long run that differ: the others are these again, in another order."""
WALL_NS = 1_790_000_000 * 10**9
ROOT = Path(__file__).resolve().parents[2]
MIB = 1 << 20


@dataclass(frozen=True)
class Bar:
    """What a figure may be at most."""

    what: str
    seconds: float
    mib: int | None = None


MERGED = Bar(f"{RUNS} runs of {CPUS} CPUs x {PER_CPU:,} samples merged and drawn, imports excluded", 5, 500)
SHOWN = Bar("fastenough show of 24 hours in one-second intervals on 8 CPUs, imports included", 2)
LISTS = Bar(f"fastenough list of {LISTED:,} runs, imports included", 1)


def _raw(line: dict[str, Any]) -> bytes:
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def _instant(ns: int) -> dict[str, int]:
    return {"mono_ns": ns, "wall_ns": WALL_NS + ns}


def _head(run_id: str, begin_ns: int) -> bytes:
    series = [
        {
            "id": cpu,
            "name": "wakeup",
            "unit": "ns",
            "clock": "CLOCK_MONOTONIC",
            "from": "due",
            "to": "awake",
            "k": K,
            "cpu": cpu,
            "period_ns": 1_000_000,
        }
        for cpu in range(CPUS)
    ]
    return _raw(
        {
            "type": "head",
            "format": "fastenough-recording",
            "version": 1,
            "tool": {"name": "bench", "version": "0"},
            "run_id": run_id,
            "probe": "timer",
            "implementation": "linux-user",
            "parameters": {},
            "series": series,
            "settings": [],
            "cost": {},
            "interval_ns": 10**9,
            "begin": _instant(begin_ns),
            "marks": [],
            "load": {"name": "none"},
            "board": "bench",
            "configuration": "made up",
            "profile": PROFILE,
        }
    )


def _entry(values: Histogram) -> dict[str, Any]:
    """An interval's entry but for its id."""
    return {
        "count": values.total,
        "lost": 0,
        "missed": 0,
        "min": values.minimum,
        "max": values.maximum,
        "sum": values.sum,
        "sum_sq": str(values.sum_sq),
        "buckets": [[int(i), int(n)] for i, n in zip(values.index, values.count, strict=True)],
    }


def _counted(index: np.ndarray[Any, Any], count: np.ndarray[Any, Any]) -> Histogram:
    """A histogram of values that lie at the lower edges of their buckets."""
    low = bucket_lowest(index, K)
    return Histogram(
        K, index, count, int(low[0]), int(low[-1]), int((low * count).sum()), int((low * low * count).sum())
    )


def _end(totals: list[Histogram], at_ns: int) -> bytes:
    series = [
        {
            "id": cpu,
            "taken": total.total,
            "stored": total.total,
            "lost": 0,
            "missed": 0,
            "min": total.minimum,
            "max": total.maximum,
            "sum": total.sum,
            "sum_sq": str(total.sum_sq),
        }
        for cpu, total in enumerate(totals)
    ]
    return _raw(
        {
            "type": "end",
            "outcome": "completed",
            "reasons": [],
            "at": _instant(at_ns),
            "series": series,
            "counters": {},
            "events_dropped": 0,
            "load": {"name": "none", "ran": True, "reasons": []},
        }
    )


def _keep(
    store: Store, intervals: Iterator[tuple[bytes, int]], totals: Callable[[], list[Histogram]], begin_ns: int
) -> str:
    """A run of these intervals: the text of their series, and how long each lasts."""
    writer = store.begin({"campaign": "scale"})
    writer.line(_head(writer.id, begin_ns))
    now = begin_ns
    for seq, (series, length_ns) in enumerate(intervals):
        bounds = _raw(
            {
                "type": "interval",
                "seq": seq,
                "begin": _instant(now),
                "end": _instant(now + length_ns),
                "counters": {"steal_ns": 0},
            }
        )
        writer.line(bounds[:-2] + b',"series":[' + series + b"]}\n")
        now += length_ns
    writer.line(_end(totals(), now))
    writer.end()
    return writer.id


def _great_run(store: Store, random: np.random.Generator, number: int) -> str:
    """100 million samples on each CPU, in two intervals."""
    body = bucket_index((random.lognormal(1.5, 0.6, 200_000) * 1000).astype(np.int64), K)
    index, count = np.unique(body, return_counts=True)
    parts = []
    for _ in range(2):
        some = [random.poisson(count * (PER_CPU / 2 / body.size)) for _ in range(CPUS)]
        parts.append([_counted(index[n > 0], n[n > 0]) for n in some])

    def text() -> Iterator[tuple[bytes, int]]:
        for part in parts:
            yield b",".join(_raw({"id": cpu} | _entry(values))[:-1] for cpu, values in enumerate(part)), 50_000 * 10**9

    return _keep(
        store, text(), lambda: [Histogram.merged(of_cpu, K) for of_cpu in zip(*parts, strict=True)], number * 10**15
    )


def _long_run(store: Store, seconds: int) -> str:
    """One-second intervals on every CPU, of 1,000 samples each."""
    random = np.random.default_rng(2)
    kept = []
    for _ in range(min(DISTINCT, seconds * CPUS)):
        values = (random.lognormal(1.5, 0.05, 1000) * 1000).astype(np.int64) // 32 * 32
        kept.append(_counted(*np.unique(bucket_index(values, K), return_counts=True)))
    entries = [json.dumps(_entry(values), separators=(",", ":")).encode()[1:] for values in kept]
    order = random.integers(0, len(kept), (seconds, CPUS))

    def text() -> Iterator[tuple[bytes, int]]:
        for row in order:
            yield b",".join(b'{"id":%d,' % cpu + entries[which] for cpu, which in enumerate(row)), 10**9

    return _keep(store, text(), lambda: [_repeated(kept, order[:, cpu]) for cpu in range(CPUS)], 0)


def _repeated(kept: list[Histogram], which: np.ndarray[Any, Any]) -> Histogram:
    times = np.bincount(which, minlength=len(kept))
    return Histogram.merged(
        (
            Histogram(
                K,
                values.index,
                values.count * n,
                values.minimum,
                values.maximum,
                values.sum * int(n),
                values.sum_sq * int(n),
            )
            for values, n in zip(kept, times, strict=True)
            if n
        ),
        K,
    )


def _listed(store: Store, count: int) -> None:
    """Copies of one run under other ids, of which the index knows."""
    source = store.path / "runs" / _long_run(store, 3)
    summary = json.loads((source / RUN_FILE).read_text())
    content = {file.name: file.read_bytes() for file in source.iterdir()}
    for number in range(count - 1):
        name = f"20250101T000000000Z-{number:06x}"
        (store.path / "runs" / name).mkdir()
        for file, whole in content.items():
            new = json.dumps(summary | {"id": name}).encode() if file == RUN_FILE else whole
            (store.path / "runs" / name / file).write_bytes(new)
    Store(store.path).close()


def _merge(path: Path) -> None:
    """In a process of its own: all runs of a store merged, and the latency plot written."""
    begin_s = time.perf_counter(), time.process_time()
    store = Store(path)
    recordings = [store.load(run.id) for run in store.runs()]
    context = make_context(recordings, judge([]))
    [entry] = context.entries
    [picture, *_] = latency_pictures(context, entry, "latency")
    (path / "latency.svg").write_text(picture.svg)
    n = entry.kind.all_cpus.n
    assert n > 0.999 * PER_CPU * CPUS * len(recordings), n
    _tell(time.perf_counter() - begin_s[0], time.process_time() - begin_s[1], resource.RUSAGE_SELF)


def _tell(clock_s: float, cpu_s: float, whose: int) -> None:
    print(json.dumps([clock_s, cpu_s, resource.getrusage(whose).ru_maxrss / 1024]))


def _command(arguments: list[str]) -> None:
    """In a process of its own: one command, as a person calls it, into a pipe."""
    begin_s = time.perf_counter()
    subprocess.run([sys.executable, "-m", "fastenough", *arguments], check=True, stdout=subprocess.PIPE)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    _tell(time.perf_counter() - begin_s, used.ru_utime + used.ru_stime, resource.RUSAGE_CHILDREN)


def _measured(bar: Bar, times: int, *arguments: str) -> bool:
    """Print the least of so many; whether it is within the bar."""
    told = []
    for _ in range(times):
        done = subprocess.run(
            [sys.executable, "-m", "tests.bench.scale", *arguments],
            check=True,
            text=True,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
        told.append(json.loads(done.stdout))
    clock_s, cpu_s, mib = min(told, key=lambda each: each[1])
    within = cpu_s < bar.seconds and (bar.mib is None or mib < bar.mib)
    print(
        f"{bar.what}: {cpu_s:.2f} s of CPU ({clock_s:.2f} s by the clock), peak {mib:.0f} MiB; at most "
        f"{bar.seconds:g} s{f' and {bar.mib} MiB' if bar.mib else ''}: {'yes' if within else 'NO'}",
        flush=True,
    )
    return within


def _all(runs: int, listed: int, seconds: int, times: int) -> bool:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        random = np.random.default_rng(1)
        great, long, many = (Store(folder / name) for name in ("great", "long", "many"))
        for number in range(runs):
            _great_run(great, random, number)
        within = [_measured(MERGED, times, "--merge", str(great.path))]
        begin_s = time.process_time()
        run = _long_run(long, seconds)
        size = sum(file.stat().st_size for file in (long.path / "runs" / run).iterdir())
        print(
            f"  (writing and sealing the long run took {time.process_time() - begin_s:.0f} s; it lies in "
            f"{size / MIB:.0f} MiB)",
            flush=True,
        )
        within.append(_measured(SHOWN, times, "--command", "show", "last", "--store", str(long.path)))
        _listed(many, listed)
        within.append(_measured(LISTS, times, "--command", "list", "--store", str(many.path)))
    return all(within)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--listed", type=int, default=LISTED)
    parser.add_argument("--seconds", type=int, default=DAY_S)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--merge", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.merge is not None:
        _merge(asked.merge)
    elif asked.command is not None:
        _command(asked.command)
    else:
        return 0 if _all(asked.runs, asked.listed, asked.seconds, asked.times) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
