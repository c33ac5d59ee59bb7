# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks that the stated load ran throughout the run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastenough import words
from fastenough.analysis.assessment import CheckFinding
from fastenough.analysis.merged import load_name
from fastenough.loads import LOADS
from fastenough.loads.load import Expectation
from fastenough.loads.proof import STRETCH_S
from fastenough.model import Verdict
from fastenough.recording import Recording
from fastenough.recording.head import LoadProof
from fastenough.recording.timeline import KnownValues

IDLE_SHARE = 0.1
"""Share of the intervals in which a load may be idle, as one that waits for a disk is."""


def load_ran(recording: Recording) -> Iterator[CheckFinding]:
    name, stated = load_name(recording), recording.head.load
    proof = recording.end.load if recording.end else None
    if name is None:
        yield CheckFinding(
            Verdict.INCONCLUSIVE,
            "the recording does not state its load",
            "measure with fastenough run or assess, which start and verify the load",
        )
    elif stated is not None and stated.read_back:
        yield from _load_read_back(proof, name)
    elif name == "none":
        if (proof is not None and proof.ran is False) or (stated is not None and stated.commands):
            yield CheckFinding(Verdict.BROKEN, "a load ran, but the recording states none", "run it again")
    elif proof is None or proof.name != name:
        yield CheckFinding(Verdict.BROKEN, f"no proof that load {name} ran", "run it again")
    elif proof.ran is not True:
        reasons = "; ".join(proof.reasons) or "no reason is recorded"
        yield CheckFinding(
            Verdict.BROKEN, f"load {name} did not run as required: {reasons}", "fix the cause, then rerun"
        )
    elif proof.stated:
        yield CheckFinding(
            Verdict.INCONCLUSIVE,
            f"load {name} was stated by the user and not verified",
            "measure with a plan (fastenough run --plan), which starts and verifies the load",
        )
    else:
        yield from _load_ran_all_the_time(recording, name)
        yield from _did_enough(recording, proof)


def _load_read_back(proof: LoadProof | None, name: str) -> Iterator[CheckFinding]:
    """Check of a load that was read back, not started: missing proof is INCONCLUSIVE, not BROKEN."""
    if proof is None or proof.name != name or proof.ran is not True:
        reasons = "; ".join(proof.reasons) if proof else "not recorded"
        yield CheckFinding(
            Verdict.INCONCLUSIVE,
            f"no proof that the board had load {name} throughout the run: {reasons}",
            "find out what else ran on the board, or state its actual load",
        )


def _load_ran_all_the_time(recording: Recording, name: str) -> Iterator[CheckFinding]:
    """The proof sums over the run; each interval shows whether the load went on."""
    load, intervals = recording.aggregate.load, recording.aggregate.intervals
    settle = "find out what stops it, then rerun"
    if load.gone or load.idle > IDLE_SHARE * intervals:
        yield CheckFinding(
            Verdict.BROKEN,
            f"load {name} did not run throughout: it was idle in "
            f"{load.gone + load.idle} of {words.counted(intervals, 'interval')}",
            settle,
        )
    elif load.idle:
        yield CheckFinding(
            Verdict.INCONCLUSIVE,
            f"load {name} may not have run throughout: it was idle in "
            f"{load.idle} of {words.counted(intervals, 'interval')}",
            settle,
        )
    elif not load.ran:
        yield CheckFinding(
            Verdict.INCONCLUSIVE,
            f"no proof that load {name} ran throughout: its use is recorded in 0 of "
            f"{words.counted(intervals, 'interval')}",
            "measure with this version, on a bench that has time to look at the load in each interval",
        )
    elif intervals - load.ran > IDLE_SHARE * intervals:
        yield CheckFinding(
            Verdict.INCONCLUSIVE,
            f"no proof that load {name} ran throughout: the bench was busy and checked it in only {load.ran} of "
            f"{words.counted(intervals, 'interval')}",
            "rerun while the bench is less busy",
        )


def _did_enough(recording: Recording, proof: LoadProof) -> Iterator[CheckFinding]:
    """A load of this version is checked again, whatever the recording states."""
    load = LOADS.get(proof.name or "")
    expects = None if load is None else load.expects
    cpus = _cpus(recording)
    use = _use_over_time(recording)
    reason = None if expects is None else _below(proof, expects, cpus) or _weak_for_long(use, expects, cpus)
    reason = reason or _not_in_intervals(recording, use, proof, cpus)
    if reason is not None:
        yield CheckFinding(
            Verdict.BROKEN,
            f"load {proof.name} was starved: {reason}",
            "leave it enough CPU time and disk bandwidth, then rerun",
        )


_SUM_AT_LEAST = 0.5
_NOT_IN_SUM_S = 2.0
"""CPU time per CPU that may follow the last check of the load."""
_OF_EXPECTED = 0.5
"""Share of the expected use that is enough in a stretch: intervals and the bench's stretches do not begin together."""


def _cpus(recording: Recording) -> int:
    cpu = (recording.head.profile or {}).get("cpu")
    count = cpu.get("count") if isinstance(cpu, dict) else None
    return count if type(count) is int and count > 0 else 1


def _not_in_intervals(recording: Recording, use: _Use, proof: LoadProof, cpus: int) -> str | None:
    """The clause that the intervals, if they cover nearly all the run, hold much less CPU time than the proof."""
    total_s, proof_s = float(use.cpu_ns.sum()) / 1e9, proof.cpu_time_s or 0.0
    if use.length_ns.sum() < (1 - IDLE_SHARE) * recording.duration_ns or total_s >= _SUM_AT_LEAST * (
        proof_s - _NOT_IN_SUM_S * cpus
    ):
        return None
    return f"{words.duration(total_s * 1e9)} of CPU time in its intervals, but {words.duration(proof_s * 1e9)} in total"


def _below(proof: LoadProof, expects: Expectation, cpus: int) -> str | None:
    """The first figure of the proof below the expected one; figures that it lacks are unknown."""
    window_s = proof.window_s or 0.0
    switches = (
        None
        if None in (proof.voluntary_switches, proof.involuntary_switches)
        else (proof.voluntary_switches or 0) + (proof.involuntary_switches or 0)
    )
    bars = (
        ("s of CPU time", proof.cpu_time_s, expects.cpu_share * cpus * window_s),
        ("context switches", switches, expects.switches_per_s * window_s),
        ("bytes read", proof.bytes_read, expects.bytes_read_per_s * window_s),
        ("bytes written", proof.bytes_written, expects.bytes_written_per_s * window_s),
    )
    return next(
        (
            f"{value:g} {unit}, expected {least:g} or more"
            for unit, value, least in bars
            if value is not None and value < least
        ),
        None,
    )


@dataclass(frozen=True, eq=False)
class _Use:
    """CPU time and length of each interval with a known use of the load, including the time before it."""

    cpu_ns: NDArray[np.float64]
    length_ns: NDArray[np.float64]


def _use_over_time(recording: Recording) -> _Use:
    timeline = recording.timeline
    values = timeline.load.get("cpu_ns") or _cpu_time_of_intervals(recording)
    is_known = values[1]
    ends = np.cumsum(timeline.end_mono_ns - timeline.begin_mono_ns)[is_known]
    return _Use(values[0][is_known].astype(np.float64), np.diff(ends, prepend=0).astype(np.float64))


def _cpu_time_of_intervals(recording: Recording) -> KnownValues:
    """CPU time of the load per interval, of a recording that was read from its text."""
    uses = [None if interval.load is None else interval.load.cpu_ns for interval in recording.intervals]
    return np.array([use or 0 for use in uses], dtype=np.int64), np.array([use is not None for use in uses], dtype=bool)


def _weak_for_long(use: _Use, expects: Expectation, cpus: int) -> str | None:
    """The clause that two successive stretches had too little CPU time; one may, as a load may wait for a disk."""
    if not expects.cpu_share or not use.length_ns.size:
        return None
    stretch = (np.cumsum(use.length_ns) - 1) // (STRETCH_S * 1e9)
    begins = np.flatnonzero(np.diff(stretch, prepend=-1))
    cpu_ns, length_ns = (np.add.reduceat(values, begins) for values in (use.cpu_ns, use.length_ns))
    weak = cpu_ns < _OF_EXPECTED * expects.cpu_share * cpus * length_ns
    if not (weak[1:] & weak[:-1]).any() and not weak.all():
        return None
    used, long = (words.duration(float(values[weak].sum())) for values in (cpu_ns, length_ns))
    return f"{used} of CPU time in {long}, expected {words.percent(expects.cpu_share)} of each CPU or more"
