# SPDX-License-Identifier: GPL-2.0-or-later
"""The primitives beside other programs that measure the same: ``make bench``, as root.

Both run in turn, round by round, on one CPU, at the same priority and interval; printed is the median over the
rounds of the ratio of both averages within a round, for a busy machine is busy for both.  The peers round to
whole microseconds, so that a ratio means something only to about 10 %.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fastenough.link import find_probe
from fastenough.recording import read_recording

CPU = "0"
PRIORITY = "97"
INTERVAL_US = "500"
LOOPS = "500"
PIPE_BURST = "500"


@dataclass(frozen=True)
class Averages:
    """One run: average and maximum, in ns."""

    mean_ns: float
    max_ns: float


def _ours(*arguments: str) -> Averages:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "r"
        subprocess.run(
            [find_probe(), *arguments, f"-a{CPU}", f"-p{PRIORITY}", "--quiet", f"--record={path}"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        recording = read_recording(path)
        (values,) = recording.totals.values()
        assert values.mean is not None and values.maximum is not None
        return Averages(values.mean, values.maximum)


def _primitive(probe: str) -> Callable[[], Averages]:
    return lambda: _ours(probe, f"-i{INTERVAL_US}us", f"-l{LOOPS}")


def _rt_test(tool: str) -> Callable[[], Averages]:
    """A program of rt-tests: one pair of threads."""

    def run() -> Averages:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "r"
            subprocess.run(
                [tool, f"-a{CPU}", f"-p{PRIORITY}", f"-i{INTERVAL_US}", f"-l{LOOPS}", "-q", f"--json={path}"],
                check=True,
                stdout=subprocess.DEVNULL,
            )
            receiver = json.loads(path.read_text())["thread"]["0"]["receiver"]
            return Averages(receiver["avg"] * 1000, receiver["max"] * 1000)

    return run


def _message_in_bursts() -> Averages:
    return _ours("fifo-message", "-i10ms", "-l10000", f"--burst={PIPE_BURST}")


def _perf_pipe() -> Averages:
    """One of its operations is a message there and one back."""
    done = subprocess.run(
        ["taskset", "-c", CPU, "chrt", "-f", PRIORITY, "perf", "bench", "sched", "pipe", "-T", "-l", "10000"],
        check=True,
        capture_output=True,
        text=True,
    )
    matched = re.search(r"([0-9.]+) usecs/op", done.stdout)
    assert matched, done.stdout
    one_way_ns = float(matched[1]) * 1000 / 2
    return Averages(one_way_ns, float("nan"))


@dataclass(frozen=True)
class Match:
    """Two programs that measure the same, nearly; ``why`` says how nearly."""

    ours: str
    peer: str
    run_ours: Callable[[], Averages]
    run_peer: Callable[[], Averages]
    why: str


MATCHES = (
    Match(
        "fifo-message",
        "perf",
        _message_in_bursts,
        _perf_pipe,
        "perf divides the whole time of a round trip by two and reads no clock in between; its two threads have the "
        "same priority, so that the writer first goes to sleep, and wakes and sleeps lie in each half",
    ),
    Match(
        "mqueue",
        "pmqtest",
        _primitive("mqueue"),
        _rt_test("pmqtest"),
        "pmqtest's threads have the same priority: the receiver runs only when the sender goes to sleep",
    ),
    Match(
        "mutex-contended",
        "ptsematest",
        _primitive("mutex-contended"),
        _rt_test("ptsematest"),
        "ptsematest's threads have the same priority: the same again",
    ),
    Match(
        "semaphore",
        "svsematest",
        _primitive("semaphore"),
        _rt_test("svsematest"),
        "svsematest uses System V semaphores, a system call each for semop() on both sides",
    ),
    Match(
        "signal",
        "sigwaittest",
        _primitive("signal"),
        _rt_test("sigwaittest"),
        "sigwaittest sends with pthread_kill() and waits with sigwait(); here a real-time signal is queued, for "
        "which the kernel allocates an entry, and comes with its value",
    ),
)


def _compare(match: Match, rounds: int) -> str:
    ours, peers, ratios = [], [], []
    for _ in range(rounds):
        ours.append(match.run_ours())
        peers.append(match.run_peer())
        ratios.append(ours[-1].mean_ns / peers[-1].mean_ns)
    mine = statistics.median(one.mean_ns for one in ours)
    theirs = statistics.median(one.mean_ns for one in peers)
    return (
        f"{match.ours:16} {mine / 1000:6.2f} us   {match.peer:12} {theirs / 1000:6.2f} us   ratio "
        f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})\n    {match.why}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=21, help="of each pair (21)")
    rounds = parser.parse_args().rounds
    print(f"averages of {LOOPS} acts on CPU {CPU}, priority {PRIORITY}; medians of {rounds} interleaved rounds")
    for match in MATCHES:
        if shutil.which(match.peer) is None:
            print(f"{match.ours:16} not compared: {match.peer} is not installed")
            continue
        print(_compare(match, rounds), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
