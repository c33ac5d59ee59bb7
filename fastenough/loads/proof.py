# SPDX-License-Identifier: GPL-2.0-or-later
"""Proof that a load ran: resources its processes used, read from /proc, over the whole run and in each stretch."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, field

from fastenough.link import Link, read_matching
from fastenough.loads.load import Expectation, Load
from fastenough.recording.head import LoadProof, LoadUse

_FIRST_IN_NAMESPACE = re.compile(r"^NSpid:(\t\d+)+\t1$", re.MULTILINE)
_ENDED = ("Z", "X")
"""States of a process that has ended (proc(5))."""
_START = 19
"""Number of the start time among the fields behind the name."""
_TICKS_PER_S = 100
"""USER_HZ: what /proc counts CPU time in, on every architecture of this field."""


@dataclass(frozen=True)
class Use:
    """Resources used by a process and its reaped children (context switches: without children)."""

    cpu_ticks: int = 0
    voluntary: int = 0
    involuntary: int = 0
    bytes_read: int = 0
    bytes_written: int = 0


@dataclass(frozen=True)
class UsageSample:
    """One reading of the process trees: use by (pid, start time).  ``others`` are the guards, the first processes of
    their PID namespaces, and ended processes for which no parent has waited yet.  ``counted``: the load's own counter,
    None if there is none or it cannot be read."""

    mono_s: float
    others: Set[int]
    uses: dict[tuple[int, int], Use] = field(default_factory=dict)
    counted: int | None = None

    def workers(self) -> int:
        """Number of live processes of the load's commands."""
        return sum(1 for pid, _ in self.uses if pid not in self.others)


def parse_stat(text: str) -> tuple[str, int, int, int] | None:
    """State, parent, start time and CPU ticks (own and waited-for children's) out of /proc/PID/stat (proc(5)).

    None for an incomplete line, such as the last one of a truncated answer.
    """
    fields = text.rpartition(")")[2].split()
    if len(fields) <= _START + 1:  # without a further field, the start time may be truncated
        return None
    try:
        return fields[0], int(fields[1]), int(fields[_START]), sum(map(int, fields[11:15]))
    except ValueError:
        return None


def parse_numbers(text: str) -> dict[str, int]:
    """The ``name: number`` lines of /proc/PID/status and /proc/PID/io."""
    pairs = (line.partition(":") for line in text.splitlines())
    return {name: int(value) for name, _, value in pairs if value.strip().isdigit()}


def look(link: Link, roots: Iterable[int], mono_s: float, *, with_bytes: bool = True) -> UsageSample:
    """Read every process at and below the roots; reading their bytes takes one more file for each.

    The file of a process that ends meanwhile is empty: it no longer counts.
    """
    stats = {
        int(path.split("/")[2]): stat
        for path, content in read_matching(link, ["/proc/[0-9]*/stat"]).items()
        if (stat := parse_stat(content.decode(errors="replace"))) is not None
    }
    tree = set(roots) & set(stats)
    grown = bool(tree)
    while grown:
        more = {pid for pid, (_, parent, _, _) in stats.items() if parent in tree} - tree
        tree |= more
        grown = bool(more)
    guards = set(roots)
    others = guards | {pid for pid in tree if stats[pid][0] in _ENDED}
    sample = UsageSample(mono_s, others)
    names = ("status", "io") if with_bytes else ("status",)
    files = read_matching(link, [f"/proc/{pid}/{name}" for pid in sorted(tree) for name in names])
    for pid in tree:
        if any(f"/proc/{pid}/{name}" not in files for name in names):
            continue
        _, parent, start_ticks, cpu_ticks = stats[pid]
        text = files[f"/proc/{pid}/status"].decode(errors="replace")
        status = parse_numbers(text)
        moved = parse_numbers(files.get(f"/proc/{pid}/io", b"").decode(errors="replace"))
        if _FIRST_IN_NAMESPACE.search(text) and parent in guards:
            others.add(pid)
        sample.uses[(pid, start_ticks)] = Use(
            cpu_ticks,
            status.get("voluntary_ctxt_switches", 0),
            status.get("nonvoluntary_ctxt_switches", 0),
            moved.get("rchar", 0),
            moved.get("wchar", 0),
        )
    return sample


_Counter = Callable[[Use], int]


def _grown(before: UsageSample, after: UsageSample, counter: _Counter) -> int:
    """Difference of the sums, for values that a reaped process adds to its parent."""
    return max(0, sum(map(counter, after.uses.values())) - sum(map(counter, before.uses.values())))


def _switched(before: UsageSample, after: UsageSample, counter: _Counter) -> int:
    """Lower bound for values that end with their process: only live processes count."""
    return sum(max(0, counter(use) - counter(before.uses.get(key, Use()))) for key, use in after.uses.items())


def prove(name: str, expects: Expectation, cpus: int, before: UsageSample, after: UsageSample) -> LoadProof:
    """Resources used between two samples, and whether they reach the expectation."""
    window_s = after.mono_s - before.mono_s
    cpu_time_s = _grown(before, after, lambda use: use.cpu_ticks) / _TICKS_PER_S
    voluntary = _switched(before, after, lambda use: use.voluntary)
    involuntary = _switched(before, after, lambda use: use.involuntary)
    bytes_read = _grown(before, after, lambda use: use.bytes_read)
    bytes_written = _grown(before, after, lambda use: use.bytes_written)
    counted = None if None in (before.counted, after.counted) else (after.counted or 0) - (before.counted or 0)
    bars = [
        ("CPU seconds", cpu_time_s, expects.cpu_share * cpus * window_s),
        ("context switches", voluntary + involuntary, expects.switches_per_s * window_s),
        ("bytes read", bytes_read, expects.bytes_read_per_s * window_s),
        ("bytes written", bytes_written, expects.bytes_written_per_s * window_s),
        ("counts of its own counter", counted or 0, expects.counted_per_s * window_s),
        ("processes", after.workers(), expects.processes_on(cpus)),
    ]
    reasons = tuple(
        f"load {name} too weak: {got:g} {what}, expected at least {least:g}" for what, got, least in bars if got < least
    )
    return LoadProof(
        name,
        not reasons,
        reasons,
        window_s=round(window_s, 3),
        cpu_time_s=cpu_time_s,
        voluntary_switches=voluntary,
        involuntary_switches=involuntary,
        bytes_read=bytes_read,
        bytes_written=bytes_written,
        counted=counted,
        processes=after.workers(),
    )


def used(before: UsageSample, after: UsageSample) -> LoadUse:
    """Resources used between two samples, for one interval."""
    return LoadUse(
        _grown(before, after, lambda use: use.cpu_ticks) * (1_000_000_000 // _TICKS_PER_S),
        _switched(before, after, lambda use: use.voluntary + use.involuntary),
        after.workers(),
        max(0, round((after.mono_s - before.mono_s) * 1e9)),
    )


STRETCH_S = 5.0
"""Length of a stretch, after which a load is compared with its expectation: one that waits for a disk does nothing
for a while."""


class Stretches:
    """Compares each stretch of a run with the expectation of a load; two weak ones in a row are a fault."""

    def __init__(self, load: Load, cpus: int, begin: UsageSample) -> None:
        self._load, self._cpus = load, cpus
        self._begin_s, self._last = begin.mono_s, begin
        self._weak = False
        self._reason = ""

    def due(self, mono_s: float) -> bool:
        """Whether a sample at that time ends a stretch."""
        return mono_s - self._last.mono_s >= STRETCH_S

    def take(self, sample: UsageSample) -> None:
        """Judge the stretch that this sample ends."""
        reasons = prove(self._load.name, self._load.expects, self._cpus, self._last, sample).reasons
        if self._weak and reasons and not self._reason:
            length_s, since_s = sample.mono_s - self._last.mono_s, sample.mono_s - self._begin_s
            self._reason = f"{reasons[0]}, in the {length_s:.0f} s before {since_s:.0f} s"
        self._weak = bool(reasons)
        self._last = sample

    def reasons(self) -> tuple[str, ...]:
        """Why the load did not run all the time; empty if it did."""
        return (self._reason,) if self._reason else ()
