# SPDX-License-Identifier: GPL-2.0-or-later
"""What measuring costs, beside a bare loop and the peers: ``make bench``, as root.

Every figure is a ratio within one run of this program.  A program and the bare loop run side by side, each on
a CPU of its own, and then again with the CPUs swapped: the machine may be busy and its clock speed may change,
but it does so for both.  The median over all rounds is printed, and how far the rounds lie apart: the first
line, the bare loop against itself, shows how much of that is the machine.  CPU time is that of whole processes,
start-up included.  The last column needs no second process and is therefore steadier: what a process took beyond
its measuring thread, whose own loop costs what the bare one does.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import os
import pty
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from fastenough.link import find_probe
from fastenough.recording import read_recording

PRIORITY = "98"
SETTLE_S = 0.3
WATCH_S = 0.25
TARGETS = {  # interval in us: how much more than the bare loop the probe may cost
    1000: 1.03,
    200: 1.03,
    100: 1.02,
}
SAMPLES_MOST = 1.10
"""The same where every sample is kept."""
SECONDS = {1000: 20.0, 200: 8.0, 100: 6.0}
"""How long each process runs at each interval: starting one costs 2 ms of CPU time more than starting a bare loop."""
LIVE_MOST = 1.05
RESIDENT_MOST_KIB = 8 * 1024
KEPT_SHARE = 0.97


@dataclass(frozen=True)
class Cost:
    """What one process took."""

    cpu_s: float
    beyond: float  # CPU time of all threads but the measuring one, as a share of that one's
    major_faults: int
    resident_kib: int
    output: str


@dataclass
class Contender:
    """A program, and how to have it take a number of samples at an interval (us) on a CPU."""

    name: str
    arguments: Callable[[str, int, int], list[str]]
    on_terminal: bool = False
    ratios: dict[int, list[float]] = field(default_factory=dict)
    cost_us: dict[int, list[float]] = field(default_factory=dict)
    beyond: dict[int, list[float]] = field(default_factory=dict)


def _drain(descriptor: int, into: list[bytes]) -> None:
    with contextlib.suppress(OSError):  # a terminal whose other end closed reads as an error
        while block := os.read(descriptor, 65536):
            into.append(block)


@contextlib.contextmanager
def _output(on_terminal: bool) -> Iterator[tuple[int, Callable[[], str]]]:
    """Where a program writes to, and what it has written once it is over."""
    ours, theirs = pty.openpty() if on_terminal else os.pipe()
    blocks: list[bytes] = []
    reader = threading.Thread(target=_drain, args=(ours, blocks))
    reader.start()

    def text() -> str:
        os.close(theirs)
        reader.join()
        return b"".join(blocks).decode(errors="replace")

    yield theirs, text
    os.close(ours)


def _resident_kib(pid: int) -> int:
    """The most memory a running process ever held, of its own program alone."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) if found else 0


def _thread_times_ns(pid: int) -> list[int]:
    """CPU time of each thread of a running process."""
    return [int(path.read_text().split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat")]


def _beyond(pid: int) -> float:
    """Watches a process until it ends: what its other threads took beside the busiest one."""
    share, most_ns = 0.0, 0
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        with contextlib.suppress(OSError, IndexError):  # a thread may end while its file is read
            times_ns = _thread_times_ns(pid)
            if sum(times_ns) > most_ns:  # else the measuring thread has ended already
                most_ns = sum(times_ns)
                share = (most_ns - max(times_ns)) / max(times_ns)
        time.sleep(WATCH_S)
    return share


def _run(arguments: list[str], on_terminal: bool = False) -> Cost:
    with _output(on_terminal) as (descriptor, text), Path(os.devnull).open("rb") as nothing:
        pid = os.posix_spawnp(
            arguments[0],
            arguments,
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, nothing.fileno(), 0), (os.POSIX_SPAWN_DUP2, descriptor, 1)],
        )
        time.sleep(SETTLE_S)
        resident = _resident_kib(pid)
        beyond = _beyond(pid)
        _, status, usage = os.wait4(pid, 0)
        output = text()
    if status:
        sys.exit(f"bench: {' '.join(arguments)} ended with status {os.waitstatus_to_exitcode(status)}")
    return Cost(usage.ru_utime + usage.ru_stime, beyond, usage.ru_majflt, resident, output)


def _contenders(probe: str, bare: str, recording: Path) -> list[Contender]:
    def fastenough(cpu: str, us: int, samples: int) -> list[str]:
        recording.unlink(missing_ok=True)
        return [
            probe,
            "timer",
            "-a",
            cpu,
            "-p",
            PRIORITY,
            "-i",
            f"{us}us",
            "-l",
            str(samples),
            "--record",
            str(recording),
        ]

    def with_samples(cpu: str, us: int, samples: int) -> list[str]:
        kept = recording.with_name("samples")
        kept.unlink(missing_ok=True)
        return [*fastenough(cpu, us, samples), "--quiet", "--samples", str(kept)]

    def cyclictest(cpu: str, us: int, samples: int) -> list[str]:
        return ["cyclictest", "-m", "-t", "1", "-a", cpu, "-p", PRIORITY, "-i", str(us), "-l", str(samples)]

    def jitterdebugger(cpu: str, us: int, samples: int) -> list[str]:
        return ["jitterdebugger", "-a", cpu, "-p", PRIORITY, "-i", str(us), "-l", str(samples)]

    contenders = [
        Contender("bare loop", lambda cpu, us, samples: [bare, cpu, str(us), str(samples)]),
        Contender("fastenough-probe", lambda cpu, us, samples: [*fastenough(cpu, us, samples), "--quiet"]),
        Contender("fastenough-probe, live", fastenough, on_terminal=True),
        Contender("fastenough-probe, samples", with_samples),
        Contender("cyclictest", lambda cpu, us, samples: [*cyclictest(cpu, us, samples), "-q"]),
        Contender("cyclictest, live", cyclictest, on_terminal=True),
        Contender("jitterdebugger", jitterdebugger),
    ]
    peers = [contender.arguments("0", 1000, 1)[0] for contender in contenders[4:]]
    missing = {peer for peer in peers if shutil.which(peer) is None}
    if missing:
        sys.exit(f"bench: {', '.join(sorted(missing))} is missing; install setup/debian-test.txt")
    return contenders


def _pair(contender: Contender, bare: Contender, cpus: tuple[str, str], us: int, samples: int) -> tuple[Cost, Cost]:
    """What both took, side by side."""
    with ThreadPoolExecutor(2) as both:
        ours = both.submit(_run, contender.arguments(cpus[0], us, samples), contender.on_terminal)
        floor = both.submit(_run, bare.arguments(cpus[1], us, samples), False)
        return ours.result(), floor.result()


def _round(contenders: list[Contender], cpus: tuple[str, str], us: int, seconds: float) -> None:
    bare, samples = contenders[0], int(seconds * 1e6 / us)
    for contender in contenders:
        here, floor_there = _pair(contender, bare, cpus, us, samples)
        there, floor_here = _pair(contender, bare, (cpus[1], cpus[0]), us, samples)
        contender.cost_us.setdefault(us, []).extend(cost.cpu_s / samples * 1e6 for cost in (here, there))
        contender.beyond.setdefault(us, []).extend((here.beyond, there.beyond))
        contender.ratios.setdefault(us, []).append(
            math.sqrt(here.cpu_s / floor_there.cpu_s * there.cpu_s / floor_here.cpu_s)
        )


def _said(good: bool) -> str:
    return "ok" if good else "MISSED"


def _print_costs(contenders: list[Contender], us: int) -> None:
    print(
        f"\nEvery {us} us: CPU time per sample of the whole process,"
        " its ratio to the bare loop (median; all rounds), its ratio to its measuring thread"
    )
    for contender in contenders:
        ratios = contender.ratios[us]
        cost, ratio = statistics.median(contender.cost_us[us]), statistics.median(ratios)
        target = {"fastenough-probe": TARGETS[us], "fastenough-probe, samples": SAMPLES_MOST}.get(contender.name)
        beyond = statistics.median(contender.beyond[us])
        held = ", ".join(_said(one <= target) for one in (ratio, 1 + beyond)) if target else ""
        verdict = f"  at most {target}: {held}" if target else ""
        rounds = " ".join(f"{one:.3f}" for one in sorted(ratios))
        print(f"    {contender.name:24}{cost:8.2f} us {ratio:7.3f}  ({rounds})  {1 + beyond:.3f}{verdict}")
    quiet, live = (1 + statistics.median(contender.beyond[us]) for contender in contenders[1:3])
    added = live / quiet
    print(f"    the live view adds {added - 1:.1%}, at most {LIVE_MOST - 1:.0%}: {_said(added <= LIVE_MOST)}")


def _calls(arguments: list[str], directory: Path) -> int:
    """How many system calls a run makes, all threads together."""
    counted = directory / "calls"
    subprocess.run(
        ["strace", "-f", "-c", "-U", "calls", "-o", str(counted), *arguments],
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    return sum(int(line) for line in counted.read_text().split() if line.isdigit()) // 2  # each call, and the total


def _print_calls(contenders: list[Contender], cpu: str, directory: Path) -> None:
    """From runs of two lengths, so that start-up does not count."""
    print("\nSystem calls per sample (the difference between runs of 1000 and 3000 samples)")
    for contender in contenders:
        if not contender.on_terminal:
            few, many = (_calls(contender.arguments(cpu, 1000, samples), directory) for samples in (1000, 3000))
            print(f"    {contender.name:24}{(many - few) / 2000:8.3f}")


def _print_memory(contenders: list[Contender], cpu: str) -> None:
    print("\nMemory and faults, one CPU measured for 2 s")
    for contender in contenders:
        cost = _run(contender.arguments(cpu, 1000, 2000), contender.on_terminal)
        verdict = ""
        if contender.name == "fastenough-probe":
            verdict = f"  at most {RESIDENT_MOST_KIB} KiB and no major fault: " + _said(
                cost.resident_kib <= RESIDENT_MOST_KIB and cost.major_faults == 0
            )
        print(f"    {contender.name:24}{cost.resident_kib:8} KiB, {cost.major_faults} major faults{verdict}")


def _kept_share(contender: Contender, cpu: str, us: int, seconds: float, recording: Path) -> float:
    """Which share of the samples it should have taken in a time it did take."""
    if contender.name == "bare loop":
        begin_s = time.monotonic()
        subprocess.run(contender.arguments(cpu, us, int(seconds * 1e6 / us)), check=True, stdout=subprocess.DEVNULL)
        return seconds / (time.monotonic() - begin_s)
    arguments = contender.arguments(cpu, us, 0)
    limit = arguments.index("-l")
    arguments[limit : limit + 2] = ["-D", f"{seconds:.0f}s"]
    output = _run(arguments).output
    if contender.name == "fastenough-probe":
        run = read_recording(recording)
        (wakeup,) = run.named("wakeup")
        taken = run.totals[wakeup.id].total
    else:
        taken = int(re.findall(r"C:\s*(\d+)", output)[-1])
    return taken / (seconds * 1e6 / us)


def _print_shortest(contenders: list[Contender], cpu: str, seconds: float, recording: Path) -> None:
    print(f"\nShare of the samples taken at short intervals (kept: {KEPT_SHARE:.0%})")
    for us in (50, 30, 20, 15, 10, 7, 5):
        shares = {
            contender.name: _kept_share(contender, cpu, us, seconds, recording)
            for contender in contenders
            if contender.name in ("bare loop", "fastenough-probe", "cyclictest", "jitterdebugger")
        }
        print(f"    {us:3} us  " + "  ".join(f"{name} {share:.1%}" for name, share in shares.items()))


def main() -> None:
    assert isinstance(sys.stdout, io.TextIOWrapper)
    sys.stdout.reconfigure(line_buffering=True)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2, help="how often each pair runs (2, about 17 minutes)")
    chosen = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("bench: real-time priorities need root; run it as root")
    cpus = [str(cpu) for cpu in sorted(os.sched_getaffinity(0))]
    if len(cpus) < 2:
        sys.exit("bench: needs two CPUs, one for each of a pair")
    probe = find_probe()
    bare = str(Path(probe).parent / "bench-bare")
    if not Path(bare).is_file():
        sys.exit(f"bench: {bare} is not there; build it: meson setup build && ninja -C build")
    with tempfile.TemporaryDirectory() as name:
        recording = Path(name) / "recording"
        contenders = _contenders(probe, bare, recording)
        for us, seconds in SECONDS.items():
            for _ in range(chosen.rounds):
                _round(contenders, (cpus[0], cpus[-1]), us, seconds)
            _print_costs(contenders, us)
        _print_calls(contenders, cpus[-1], Path(name))
        _print_memory(contenders, cpus[-1])
        _print_shortest(contenders, cpus[-1], 3, recording)


if __name__ == "__main__":
    main()
