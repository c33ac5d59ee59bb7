# SPDX-License-Identifier: GPL-2.0-or-later
"""What the monitor costs beside other tracers of the same events: ``make bench``, as root.

Two threads of one CPU wake each other in turn: a round is two wake-ups, two switches and four system calls, and its
time is that of the CPU, without what others do there.  A repetition times such rounds without a tracer and with each
of them, one after the other, beginning with another one each time: what the machine does meanwhile happens to all of
them alike.  A tracer's cost is the median over all repetitions of how much longer a round took than without one in the
same repetition.  Ratios of costs come with a one-sided 95 % upper bound: repetitions drawn anew, all tracers of one
together (scipy.stats.bootstrap).

ftrace is a ring buffer of its own (an instance) that nobody reads, which is less than any program does that uses it;
and the same, read into files, as trace-cmd does it, which not every machine lets run.  perf records into files, as
people use it.  All are told the events that the monitor's stations are made of, and no interrupts, which the monitor
follows besides; perf sched record has events of its own, without the return to user space.  What a tracer's own
programs take is no part of a round: it is the CPU time of all processes that are started, by how much more that is for
ten times as many rounds.

The kernel's own statistics (run time of each BPF program) are on while somebody holds them open, so that nothing is
left switched on, however this program ends.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import io
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from fastenough.link import MONITOR, LocalLink, find_probe, find_program

BLOCKS, ROUNDS = 300, 100
"""Of one timing: the quickest tenth of blocks of rounds, in which no neighbour disturbs the pair."""
REPETITIONS = 30
LONGER, WHOLE = 10, 5
"""So many times the rounds, and so many repetitions: what grows with the rounds is no part of a tracer's start."""
MOST_OF = {"ftrace": 1 / 3, "ftrace, read": 1 / 3, "trace-cmd": 1 / 3, "perf record": 1 / 5, "perf sched record": 1 / 5}
MOST_NS = {"fifo": 700.0, "other": 300.0}
"""A round may take so much longer: of real-time threads, which the monitor traces, and of others, which it does not."""
EVENTS = (
    "timer:hrtimer_expire_entry",
    "timer:hrtimer_expire_exit",
    "sched:sched_waking",
    "sched:sched_switch",
    "raw_syscalls:sys_exit",
)
"""What the monitor's stations are made of, for tracers that are told."""
FTRACE = """
[ -d /sys/kernel/tracing/events ] || mount -t tracefs nodev /sys/kernel/tracing
own=/sys/kernel/tracing/instances/fastenough-bench-$$
events=$1 into=$2 readers=; shift 2
mkdir "$own"
trap 'for event in $events; do echo 0 >"$own/events/$event/enable"; done
    [ -z "$readers" ] || { kill $readers || :; wait $readers || :; }
    rmdir "$own"' EXIT
for cpu in ${into:+"$own"/per_cpu/*}; do cat "$cpu/trace_pipe_raw" >"$into.${cpu##*/}" & readers="$readers $!"; done
for event in $events; do echo 1 >"$own/events/$event/enable"; done
"$@"
"""
_CONFIDENCE = 0.95
_BPF_ENABLE_STATS = 32
_SYS_BPF = {"x86_64": 321, "aarch64": 280}
_LEAST_COST_NS = 1.0
"""A cost below is none: a ratio to it says nothing."""
_LONGEST_S = 120.0


@dataclass
class Contender:
    """A tracer: the command that another one runs under, or the monitor beside it; and ns of a round by repetition."""

    name: str
    before: tuple[str, ...] = ()
    monitor: str = ""
    ns: list[float] = field(default_factory=list)

    def run(self, command: Sequence[str], place: Path) -> subprocess.CompletedProcess[str]:
        beside = monitoring(self.monitor, place) if self.monitor else contextlib.nullcontext()
        with beside:
            return subprocess.run(
                [*self.before, *command],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=_LONGEST_S,
            )

    def applies(self, place: Path) -> bool:
        """Whether it runs here; else says why not."""
        if self.before and shutil.which(self.before[0]) is None:
            print(f"{self.name}: not-applicable: {self.before[0]} is not installed")
            return False
        done = self.run(["true"], place)
        if done.returncode:
            print(f"{self.name}: not-applicable: {' '.join(done.stderr.split())[-200:]}")
        return not done.returncode

    def time(self, pingpong: Sequence[str], place: Path) -> float:
        """ns a round, once more."""
        done = self.run(pingpong, place)
        figures = [line for line in done.stdout.splitlines() if line.replace(".", "", 1).isdigit()]
        if done.returncode or not figures:
            sys.exit(f"bench: {self.name} ended with status {done.returncode}: {done.stderr.strip()[-300:]}")
        self.ns.append(float(figures[-1]))
        return self.ns[-1]


@contextlib.contextmanager
def monitoring(program: str, place: Path) -> Iterator[None]:
    """The monitor, once it is attached: its head is written behind that."""
    recording = place / "recording"
    recording.unlink(missing_ok=True)
    process = subprocess.Popen(
        [program, "--quiet", "--until-interrupt", "--record", str(recording)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    try:
        while not recording.is_file() or not recording.stat().st_size:
            if process.poll() is not None:
                sys.exit(f"bench: the monitor ended with status {process.returncode}")
            time.sleep(0.02)
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(_LONGEST_S)


def contenders(monitor: str, place: Path) -> list[Contender]:
    """Nothing at all, the monitor, and all others that run here."""
    told = [word for event in EVENTS for word in ("-e", event)]
    names = " ".join(event.replace(":", "/") for event in EVENTS)
    others = (
        Contender("ftrace", ("unshare", "-m", "sh", "-euc", FTRACE, "ftrace", names, "")),
        Contender("ftrace, read", ("unshare", "-m", "sh", "-euc", FTRACE, "ftrace", names, str(place / "raw"))),
        Contender("trace-cmd", ("trace-cmd", "record", "-q", "-o", str(place / "trace"), *told)),
        Contender("perf record", ("perf", "record", "-a", "-m", "16M", *told, "-o", str(place / "perf"), "--")),
        Contender("perf sched record", ("perf", "sched", "record", "-m", "16M", "-o", str(place / "perf"), "--")),
    )
    return [
        Contender("nothing"),
        Contender("monitor", monitor=monitor),
        *(other for other in others if other.applies(place)),
    ]


def cost_ns(tracer: NDArray[np.float64], nothing: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
    """How much longer a round takes with it."""
    return np.asarray(np.median(tracer - nothing, axis=axis))


def upper_ratio(ours: Sequence[float], theirs: Sequence[float], nothing: Sequence[float]) -> float:
    """Upper 95 % bound of the ratio of two costs."""

    def ratio(
        one: NDArray[np.float64], other: NDArray[np.float64], none: NDArray[np.float64], axis: int = -1
    ) -> NDArray[np.float64]:
        return cost_ns(one, none, axis) / np.maximum(cost_ns(other, none, axis), _LEAST_COST_NS)

    drawn = stats.bootstrap(
        (ours, theirs, nothing),
        ratio,
        paired=True,
        vectorized=True,
        alternative="less",
        confidence_level=_CONFIDENCE,
        method="percentile",
        rng=1,
    )
    return float(drawn.confidence_interval.high)


def repeat(running: list[Contender], pingpong: Sequence[str], repetitions: int, place: Path) -> None:
    """All of them again and again, each time another one first."""
    for repetition in range(repetitions):
        first = repetition % len(running)
        for contender in running[first:] + running[:first]:
            contender.time(pingpong, place)


def _cpu_ns() -> float:
    """CPU time of all processes that were started here and have ended, with theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1e9


def whole_ns(contender: Contender, pingpong: str, cpu: str, policy: str, place: Path) -> float:
    """CPU time a round of all that runs for it, the tracer's own programs with it: what more rounds take more."""

    def used(blocks: int) -> float:
        before = _cpu_ns()
        contender.run([pingpong, cpu, str(blocks), str(ROUNDS), policy], place)
        return _cpu_ns() - before

    few, many = BLOCKS, LONGER * BLOCKS
    return float(np.median([used(many) - used(few) for _ in range(WHOLE)])) / ((many - few) * ROUNDS)


def _print_whole(running: list[Contender], pingpong: str, cpu: str, policy: str, place: Path) -> None:
    nothing, *tracers = [(one.name, whole_ns(one, pingpong, cpu, policy, place)) for one in running]
    print("    with the CPU time of the tracers' own programs:")
    for name, ns in tracers:
        print(f"    {name:20}{ns - nothing[1]:+9.0f} ns a round")


def _said(good: bool) -> str:
    return "ok" if good else "MISSED"


def _print_costs(running: list[Contender], most_ns: float) -> None:
    nothing, monitor, *others = running
    off = np.array(nothing.ns)
    print(f"    {nothing.name:20}{np.median(off):9.0f} ns a round")
    for contender in running[1:]:
        costs = np.array(contender.ns) - off
        low, high = np.quantile(costs, [0.25, 0.75])
        print(f"    {contender.name:20}{np.median(costs):+9.0f} ns a round   (middle half {low:+.0f} to {high:+.0f})")
    cost = float(cost_ns(np.array(monitor.ns), off))
    print(f"    the monitor, at most {most_ns:.0f} ns: {_said(cost <= most_ns)}")
    for other in others:
        bound, most = upper_ratio(monitor.ns, other.ns, nothing.ns), MOST_OF[other.name]
        print(
            f"    monitor / {other.name}: below {bound:.3f} with {_CONFIDENCE:.0%}; at most {most:.3f}: "
            f"{_said(bound <= most)}"
        )


@contextlib.contextmanager
def bpf_statistics() -> Iterator[None]:
    """The kernel counts and times the runs of BPF programs as long as this holds."""
    attributes = ctypes.create_string_buffer(bytes(8), 8)
    held = ctypes.CDLL(None, use_errno=True).syscall(_SYS_BPF[os.uname().machine], _BPF_ENABLE_STATS, attributes, 8)
    if held < 0:
        sys.exit(f"bench: the kernel gives no statistics of BPF programs: {os.strerror(ctypes.get_errno())}")
    try:
        yield
    finally:
        os.close(held)


def programs() -> dict[int, tuple[str, int, int]]:
    """All BPF programs of this machine by number: name, time in ns, and runs."""
    listed = subprocess.run(
        [shutil.which("bpftool") or "/usr/sbin/bpftool", "--json", "prog", "show"], check=True, capture_output=True
    ).stdout
    return {
        one["id"]: (one.get("name", "?"), one.get("run_time_ns", 0), one.get("run_cnt", 0))
        for one in json.loads(listed)
    }


def _print_statistics(monitor: str, pingpong: Sequence[str], rounds: int, place: Path) -> None:
    """Of all programs that came with the monitor."""
    before = programs()
    with bpf_statistics(), monitoring(monitor, place):
        begun = {number: one for number, one in programs().items() if number not in before}
        Contender("nothing").time(pingpong, place)
        ended = programs()
    print("\nThe kernel's own statistics (with what they cost themselves: two readings of a clock for each run)")
    total_ns = 0.0
    for number, (name, ns_before, runs_before) in sorted(begun.items()):
        _, ns, runs = ended[number]
        total_ns += ns - ns_before
        if runs - runs_before > rounds / 10:
            print(
                f"    {name:20}{(runs - runs_before) / rounds:7.2f} runs a round"
                f"{(ns - ns_before) / (runs - runs_before):9.0f} ns each"
            )
    print(f"    {'all':20}{total_ns / rounds:9.0f} ns a round")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=REPETITIONS, help=f"({REPETITIONS}, about ten minutes)")
    return parser.parse_args()


def main() -> None:
    assert isinstance(sys.stdout, io.TextIOWrapper)
    sys.stdout.reconfigure(line_buffering=True)
    chosen = _options()
    if os.geteuid() != 0:
        sys.exit("bench: tracing needs root; run it as root")
    cpu = str(max(os.sched_getaffinity(0)))
    monitor = find_program(MONITOR, LocalLink())
    program = str(Path(find_probe()).parent / "bench-pingpong")
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        for policy, most_ns in MOST_NS.items():
            running = contenders(monitor, place)
            print(f"\nPing-pong of two {policy} threads on one CPU, {chosen.repetitions} repetitions")
            repeat(running, [program, cpu, str(BLOCKS), str(ROUNDS), policy], chosen.repetitions, place)
            _print_costs(running, most_ns)
            _print_whole(running, program, cpu, policy, place)
        _print_statistics(monitor, [program, cpu, str(BLOCKS), str(ROUNDS), "fifo"], BLOCKS * ROUNDS, place)


if __name__ == "__main__":
    main()
