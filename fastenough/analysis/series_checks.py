# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks that each series that was measured as a latency is judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from fastenough import words
from fastenough.analysis.assessment import CheckFinding
from fastenough.analysis.merged import judged_series, variant
from fastenough.model import IMPORTED, Outcome, Role, Series, Verdict
from fastenough.recording import Recording
from fastenough.recording.wakeups import is_monitor

_GRID = ("wakeup", "wakeup_corrected")
_WAKE = ("wake",)
LATENCIES: Mapping[str, tuple[str, ...]] = {
    "timer": _GRID,
    "jitter": _GRID,
    "periodic": (*_GRID, "period-jitter"),
    "response": ("response_kernel", "response_core", "answer", "latency-falling", "latency-rising"),
    "spin": ("gap",),
    "switch": ("switch",),
    "mutex": ("lock-unlock",),
    "mutex-contended": ("handover",),
    "mutex-pi": ("handover",),
    "inversion": ("recovery",),
    "spinlock": ("acquire", "handover"),
    "semaphore": _WAKE,
    "condvar": _WAKE,
    "futex": _WAKE,
    "eventfd": _WAKE,
    "signal": _WAKE,
    "barrier": _WAKE,
    "mqueue": ("message",),
    "fifo-message": ("message",),
}
"""By probe, the latency series that it and the instrument record.  A probe that is not listed declares the role of its
series itself."""


def series_complete(recording: Recording) -> Iterator[CheckFinding]:
    """Each interval holds each series."""
    if recording.outcome is not Outcome.COMPLETED or IMPORTED in recording.head.marks:
        return
    for series in recording.series:
        absent = len(recording.timeline) - recording.timeline.courses[series.id].at.size
        if absent:
            yield CheckFinding(
                Verdict.BROKEN,
                f"{_name(series)} is missing from {words.counted(absent, 'interval')} of "
                f"{words.number(len(recording.timeline))}",
                "run it again",
            )
            return


def series_as_measured(recording: Recording) -> Iterator[CheckFinding]:
    """No latency series has another role, and each CPU has a judged series."""
    if is_monitor(recording.head) or IMPORTED in recording.head.marks:
        return
    judged = judged_series(recording)
    hidden = next(filter(None, (_hidden(recording, series, judged) for series in recording.series)), None)
    if hidden is not None:
        yield CheckFinding(Verdict.BROKEN, hidden, "measure with an unmodified probe of this version")
    elif judged:
        yield from _cpus_judged(recording, judged)


def _hidden(recording: Recording, series: Series, judged: list[Series]) -> str | None:
    """Why a series that is not judged should be; None if it need not be."""
    latencies = LATENCIES.get(recording.head.probe)
    if latencies is None or series in judged or _explains(recording, series, judged):
        return None
    role = f"refused: {series.refused}" if series.refused is not None else f"for {series.role}"
    if series.name not in latencies:
        return f"the probe {recording.head.probe} does not record {_name(series)}, declared as {role}"
    return f"{_name(series)} is a latency of the probe {recording.head.probe}, but declared as {role}"


def _explains(recording: Recording, series: Series, judged: list[Series]) -> bool:
    """Whether it is the plain series of a judged one, or one that is slow by design."""
    if recording.head.probe == "inversion" and series.labels.get("inheritance") == "no":
        return series.role is Role.DIAGNOSTIC
    if series.corrected or series.refused is not None:
        return False
    mine = variant(series)
    plain = Counter(variant(other) for other in recording.series if not other.corrected)
    return plain[mine] == sum(other.corrected and variant(other) == mine for other in judged)


def _cpus_judged(recording: Recording, judged: list[Series]) -> Iterator[CheckFinding]:
    measured = {series.cpu for series in recording.series if recording.totals[series.id].total}
    unjudged = sorted(cpu for cpu in measured - {series.cpu for series in judged} if cpu is not None)
    if unjudged and None not in {series.cpu for series in judged}:
        yield CheckFinding(
            Verdict.INCONCLUSIVE,
            f"{words.cpus(unjudged)}: values were recorded, but no limit applies to their series",
            "measure a latency on each of these CPUs",
        )


def _name(series: Series) -> str:
    return series.name if series.cpu is None else f"{series.name} on CPU {series.cpu}"
