# SPDX-License-Identifier: GPL-2.0-or-later
"""Was the machine under the load that is stated, all the time?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastenough import words
from fastenough.analysis.assessment import Finding
from fastenough.analysis.merged import load_name
from fastenough.loads import LOADS
from fastenough.loads.load import Expectation
from fastenough.loads.stretches import STRETCH_S
from fastenough.model import Verdict
from fastenough.recording import Recording
from fastenough.recording.head import LoadProof
from fastenough.recording.timeline import Known

IDLE_SHARE = 0.1
"""Of the intervals, in so many a load that is there may do nothing: one that waits for a disk does."""


def load_ran(recording: Recording) -> Iterator[Finding]:
    name, stated = load_name(recording), recording.head.load
    proof = recording.end.load if recording.end else None
    if name is None:
        yield Finding(
            Verdict.INCONCLUSIVE,
            "the recording does not state under which load it was taken",
            "measure with fastenough run or assess, which state and prove the load",
        )
    elif stated is not None and stated.read_back:
        yield from _load_read_back(proof, name)
    elif name == "none":
        if (proof is not None and proof.ran is False) or (stated is not None and stated.commands):
            yield Finding(Verdict.BROKEN, "a load ran, though the recording states none", "run it again")
    elif proof is None or proof.name != name:
        yield Finding(Verdict.BROKEN, f"there is no proof that the load {name} ran", "run it again")
    elif proof.ran is not True:
        why = "; ".join(proof.reasons) or "no reason is recorded"
        yield Finding(Verdict.BROKEN, f"the load {name} did not run: {why}", "fix that and run it again")
    elif proof.stated:
        yield Finding(
            Verdict.INCONCLUSIVE,
            f"that the load {name} ran was stated by a person and not proven",
            "measure with a plan (fastenough run --plan), which runs and proves the load",
        )
    else:
        yield from _load_ran_all_the_time(recording, name)
        yield from _did_enough(recording, proof)


def _load_read_back(proof: LoadProof | None, name: str) -> Iterator[Finding]:
    """Nobody started it, so nobody has failed to: what is not shown is not known."""
    if proof is None or proof.name != name or proof.ran is not True:
        why = "; ".join(proof.reasons) if proof else "the recording does not tell"
        yield Finding(
            Verdict.INCONCLUSIVE,
            f"that the board had the load {name} all the time is not shown: {why}",
            "find out what else ran there, or state the load that it has",
        )


def _load_ran_all_the_time(recording: Recording, name: str) -> Iterator[Finding]:
    """A load that ran for a while has consumed enough for a proof; each interval tells whether it went on."""
    seen, intervals = recording.aggregate.load, recording.aggregate.intervals
    settle = "fix what ends or stops it and run it again"
    if seen.gone or seen.idle > IDLE_SHARE * intervals:
        yield Finding(
            Verdict.BROKEN,
            f"the load {name} did not run all the time: it did nothing in "
            f"{seen.gone + seen.idle} of {words.counted(intervals, 'interval')}",
            settle,
        )
    elif seen.idle:
        yield Finding(
            Verdict.INCONCLUSIVE,
            f"the load {name} may not have run all the time: it did nothing in "
            f"{seen.idle} of {words.counted(intervals, 'interval')}",
            settle,
        )
    elif not seen.ran:
        yield Finding(
            Verdict.INCONCLUSIVE,
            f"whether the load {name} ran all the time is not recorded: it is told of "
            f"0 of {words.counted(intervals, 'interval')}",
            "measure with this version, on a bench that has time to look at the load in each interval",
        )
    elif intervals - seen.ran > IDLE_SHARE * intervals:
        yield Finding(
            Verdict.INCONCLUSIVE,
            f"whether the load {name} ran all the time is not known: the bench was "
            f"busy and looked at it in {seen.ran} of {words.counted(intervals, 'interval')} only",
            "run it again while the bench has less else to do",
        )


def _did_enough(recording: Recording, proof: LoadProof) -> Iterator[Finding]:
    """A load of this version is held against what is expected of it, whatever the recording concludes itself."""
    known = LOADS.get(proof.name or "")
    expects = None if known is None else known.expects
    cpus = _cpus(recording)
    use = _use_over_time(recording)
    reason = None if expects is None else _below(proof, expects, cpus) or _weak_for_long(use, expects, cpus)
    reason = reason or _not_in_intervals(recording, use, proof, cpus)
    if reason is not None:
        yield Finding(
            Verdict.BROKEN,
            f"the load {proof.name} did not do enough: {reason}",
            "leave it enough CPU time and disk, and run it again",
        )


_SUM_AT_LEAST = 0.5
_NOT_IN_SUM_S = 2.0
"""CPU time for each CPU that may lie behind the last look at the load."""
_OF_EXPECTED = 0.5
"""Intervals and the bench's own stretches do not begin together: so much of what is expected in a stretch is enough."""


def _cpus(recording: Recording) -> int:
    cpu = (recording.head.profile or {}).get("cpu")
    count = cpu.get("count") if isinstance(cpu, dict) else None
    return count if type(count) is int and count > 0 else 1


def _not_in_intervals(recording: Recording, use: _Use, proof: LoadProof, cpus: int) -> str | None:
    """That the intervals hold much less CPU time than the proof, where they tell of nearly all the time."""
    total_s, whole_s = float(use.cpu_ns.sum()) / 1e9, proof.cpu_time_s or 0.0
    if use.length_ns.sum() < (1 - IDLE_SHARE) * recording.duration_ns or total_s >= _SUM_AT_LEAST * (
        whole_s - _NOT_IN_SUM_S * cpus
    ):
        return None
    return f"{words.duration(total_s * 1e9)} of CPU time in its intervals, but {words.duration(whole_s * 1e9)} in all"


def _below(proof: LoadProof, expects: Expectation, cpus: int) -> str | None:
    """What the proof itself lacks of what is expected; figures that it does not hold are not known."""
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
            f"{seen:g} {what}, at least {least:g} expected"
            for what, seen, least in bars
            if seen is not None and seen < least
        ),
        None,
    )


@dataclass(frozen=True, eq=False)
class _Use:
    """CPU time and length of each interval of which the load's use is known; what came before it included."""

    cpu_ns: NDArray[np.float64]
    length_ns: NDArray[np.float64]


def _use_over_time(recording: Recording) -> _Use:
    timeline = recording.timeline
    values = timeline.load.get("cpu_ns") or _of_intervals(recording)
    known = values[1]
    ends = np.cumsum(timeline.end_mono_ns - timeline.begin_mono_ns)[known]
    return _Use(values[0][known].astype(np.float64), np.diff(ends, prepend=0).astype(np.float64))


def _of_intervals(recording: Recording) -> Known:
    """The same of a recording that was read from its text."""
    uses = [None if interval.load is None else interval.load.cpu_ns for interval in recording.intervals]
    return np.array([use or 0 for use in uses], dtype=np.int64), np.array([use is not None for use in uses], dtype=bool)


def _weak_for_long(use: _Use, expects: Expectation, cpus: int) -> str | None:
    """Two stretches of time in succession with too little CPU time are too many: a load that waits for a disk may do
    nothing for a while."""
    if not expects.cpu_share or not use.length_ns.size:
        return None
    stretch = (np.cumsum(use.length_ns) - 1) // (STRETCH_S * 1e9)
    begins = np.flatnonzero(np.diff(stretch, prepend=-1))
    cpu_ns, length_ns = (np.add.reduceat(each, begins) for each in (use.cpu_ns, use.length_ns))
    weak = cpu_ns < _OF_EXPECTED * expects.cpu_share * cpus * length_ns
    if not (weak[1:] & weak[:-1]).any() and not weak.all():
        return None
    used, long = (words.duration(float(each[weak].sum())) for each in (cpu_ns, length_ns))
    return f"{used} of CPU time in {long}, at least {words.percent(expects.cpu_share)} of each CPU expected"
