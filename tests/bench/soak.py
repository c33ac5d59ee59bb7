# SPDX-License-Identifier: GPL-2.0-or-later
"""Months in half an hour: a service writes its ring at 50 times the farm's rate of intervals, and nothing may grow.

``make bench`` runs probe and monitor for 30 minutes each: an interval every 6 s, a recording every 14.4 minutes.
Memory, open files and disk are looked at all the while; at the end every period of the probe must be one value of the
ring, and each recording begin where the one before ended.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from fastenough.recording import Recording, read_recording

ROOT = Path(__file__).resolve().parents[2]
PROBE = ROOT / "build" / "target" / "probe" / "fastenough-probe"
MONITOR = ROOT / "build" / "target" / "monitor" / "fastenough-monitor"
FASTER = 50
"""Than the farm: five minutes are six seconds, twelve hours are 864 s."""
PERIOD_NS = 1_000_000
TASK = (
    "timer",
    f"--interval={PERIOD_NS}ns",
    "--policy=other",
    "--allow-difference",
    "--affinity=0",
    "--default-system",
    "--quiet",
)
MOST_GROWTH_KIB = 64
"""Of memory, over the second half: all histograms are there from the begin."""


@dataclass(frozen=True)
class Pace:
    """How long the service runs, and of what lengths its intervals and recordings are, and what is kept of them."""

    duration_s: float
    interval_s: float
    cycle_s: float
    keep_s: float

    def options(self, ring: Path) -> list[str]:
        return [
            f"--ring={ring}",
            f"--report={self.interval_s * 1000:.0f}ms",
            f"--ring-cycle={self.cycle_s * 1000:.0f}ms",
            f"--ring-keep={self.keep_s * 1000:.0f}ms",
            "--ring-mib=64",
            "--interval-k=4",
            "--until-interrupt",
        ]


HALF_AN_HOUR = Pace(1800, 300 / FASTER, 43200 / FASTER, 3 * 43200 / FASTER)


@dataclass(frozen=True)
class Look:
    """At a service that runs: resident memory, open files, and what its ring takes on disk."""

    rss_kib: int
    descriptors: int
    disk_bytes: int


def look(pid: int, ring: Path) -> Look:
    status = Path(f"/proc/{pid}/status").read_text()
    (rss,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:"))
    sizes = []
    for path in ring.iterdir():
        try:
            sizes.append(path.stat().st_blocks * 512)
        except FileNotFoundError:
            continue
    return Look(int(rss), len(list(Path(f"/proc/{pid}/fd").iterdir())), sum(sizes))


@contextmanager
def service(argv: Sequence[str | Path]) -> Iterator[subprocess.Popen[bytes]]:
    """A program that writes a ring; it is ended in order, as systemd does."""
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    try:
        yield process
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()


def watched(argv: Sequence[str | Path], ring: Path, pace: Pace) -> list[Look]:
    """A service for as long as its pace says, looked at a hundred times."""
    looks = []
    with service(argv) as process:
        end = time.monotonic() + pace.duration_s
        while not any(ring.glob("*.jsonl")):
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.05)
        while time.monotonic() < end:
            assert process.poll() is None, "the service has ended"
            looks.append(look(process.pid, ring))
            time.sleep(pace.duration_s / 100)
    return looks


def require_flat(looks: Sequence[Look]) -> None:
    """Raises AssertionError where memory or open files grew over the second half."""
    half = len(looks) // 2
    early, late = looks[half // 2 : half], looks[half:]
    assert max(each.rss_kib for each in late) <= max(each.rss_kib for each in early) + MOST_GROWTH_KIB
    most = max(each.descriptors for each in early) + 1  # where one file ends and another begins
    assert max(each.descriptors for each in late) <= most


def ring_of(ring: Path, pace: Pace) -> list[Recording]:
    """Its recordings, oldest first: each sound, and beginning where the one before ended; raises AssertionError."""
    paths = sorted(ring.glob("*.jsonl"))
    serials = [int(path.name[:10]) for path in paths]
    assert serials == list(range(serials[0], serials[0] + len(serials)))
    found = [read_recording(path) for path in paths]
    for one, other in pairwise(found):
        assert one.end is not None and other.head.begin == one.stopped
        assert not [event.text for event in other.events if event.kind == "note"]
    lasting_s = (found[-1].stopped.mono_ns - found[0].head.begin.mono_ns) / 1e9
    assert lasting_s <= pace.keep_s + 2 * pace.cycle_s + 5
    return found


def _periods_before(recording: Recording, series: int) -> int:
    """Upper limit of its values that were due before it began, from the maximum of its first interval."""
    histograms = (interval.histograms.get(series) for interval in recording.intervals)
    first = next((one for one in histograms if one is not None and one.total), None)
    return 0 if first is None else max(0, first.maximum or 0) // PERIOD_NS


def require_conserved(found: Sequence[Recording], name: str) -> int:
    """Every period of the recordings but for the first and the last is one value; raises AssertionError.

    The last one ends with periods that no later recording has.  How many values they are.
    """
    assert len(found) > 2
    (series,) = found[-1].named(name)
    count = sum(each.totals[series.id].total + each.lost(series.id) for each in found[1:-1])
    due = (found[-1].head.begin.mono_ns - found[1].head.begin.mono_ns) // PERIOD_NS
    early, late = (_periods_before(found[number], series.id) for number in (1, -1))
    assert -3 - late <= count - due <= 3 + early, f"{count} values in {due} periods, {early} and {late} late"
    return count


def told(looks: Sequence[Look]) -> str:
    rss, files = [each.rss_kib for each in looks], [each.descriptors for each in looks]
    disk_bytes = max(each.disk_bytes for each in looks)
    return (
        f"memory {rss[len(rss) // 4]} KiB after a quarter, {rss[-1]} at the end; open files {min(files)} to "
        f"{max(files)}; disk at most {disk_bytes / 1e6:.1f} MB"
    )


def soak_probe(pace: Pace, folder: Path) -> str:
    """The probe as a service."""
    looks = watched([PROBE, *TASK, *pace.options(folder / "probe")], folder / "probe", pace)
    require_flat(looks)
    found = ring_of(folder / "probe", pace)
    count = require_conserved(found, "wakeup_corrected")
    return f"probe: {len(found)} recordings, {count} values, none lost; {told(looks)}"


def thread_of(task: subprocess.Popen[bytes]) -> int:
    """The one that is woken every period; the first thread of a probe reports and is woken by timers of its own."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        others = [int(each.name) for each in Path(f"/proc/{task.pid}/task").iterdir() if each.name != str(task.pid)]
        if others:
            return others[0]
        time.sleep(0.01)
    raise AssertionError("the task has no thread that measures")


def soak_monitor(pace: Pace, folder: Path) -> str:
    """The monitor, watching a task that is woken once a period, or less often where it is late."""
    with service([PROBE, *TASK, "--until-interrupt"]) as task:
        argv: list[str | Path] = [
            MONITOR,
            f"--pid={thread_of(task)}",
            "--policy=any",
            "--k=10",
            "--quiet",
            *pace.options(folder / "monitor"),
        ]
        looks = watched(argv, folder / "monitor", pace)
    require_flat(looks)
    found = ring_of(folder / "monitor", pace)
    due = (found[-1].stopped.mono_ns - found[0].head.begin.mono_ns) // PERIOD_NS
    seen = sum(each.totals[series.id].total for each in found for series in each.named("expiry-to-running"))
    unseen = sum(
        each.end.counters[f"monitor_{why}"] or 0
        for each in found
        if each.end is not None
        for why in ("unmatched", "dropped", "suppressed")
    )
    assert 0.5 * due <= seen <= due + 3, f"{seen} wake-ups in {due} periods, {unseen} not seen"
    return f"monitor: {len(found)} recordings, {seen} wake-ups of {due} periods, {unseen} not seen; {told(looks)}"


def main() -> int:
    pace = HALF_AN_HOUR if len(sys.argv) < 2 else Pace(float(sys.argv[1]), 0.1, 2.0, 12.0)
    with tempfile.TemporaryDirectory() as folder:
        print(soak_probe(pace, Path(folder)), flush=True)
        if MONITOR.exists():
            print(soak_monitor(pace, Path(folder)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
