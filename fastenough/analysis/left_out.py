# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs that answer the same question as those judged, and were not judged with them.

Whoever may choose which runs are judged can choose the best.  Runs of the same key (board, configuration, load, probe,
parameters, settings, everything that merging requires) are one body of evidence: a PASS without some of them is refused
unless the selection is stated in the headline.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from fastenough import words
from fastenough.analysis.assessment import Assessment
from fastenough.analysis.differences import differing_keys, run_values
from fastenough.analysis.evidence import merged_per_cpu
from fastenough.analysis.merged import MixedRuns
from fastenough.model import Requirement, Verdict
from fastenough.recording import Recording

_MOST_NAMED = 5


class Selection(StrEnum):
    """How the runs that are judged were selected."""

    CAMPAIGN = "all runs of one campaign, or of the store"
    CHOSEN = "named one by one"
    ONLY_THESE = "only these, as stated"


@dataclass(frozen=True)
class LeftOut:
    """A run that answers the same question and is not judged: its n, exceedances and maximum.

    ``exceeds``: more of its activations are above the limit than the requirement allows.
    """

    run_id: str
    n: int
    exceeded: int
    maximum_ns: float
    exceeds: bool
    limit_ns: int

    @property
    def text(self) -> str:
        above = words.number(self.exceeded) if self.exceeded else "none"
        return (
            f"run {self.run_id} ({above} of {words.counted(self.n, 'activation')} above "
            f"{words.latency(self.limit_ns)}, maximum {words.latency(self.maximum_ns)})"
        )


def left_out(judged: Sequence[Recording], others: Iterable[Recording], assessment: Assessment) -> list[LeftOut]:
    """Those of ``others`` that answer a question which ``judged`` were judged by, the greatest maximum first."""
    ids = {recording.run_id for recording in judged}
    asked = [
        (run_values(recording), required)
        for recording in judged
        if (required := assessment.requirement_of(recording.run_id)) is not None
    ]
    found = []
    for other in others:
        if other.run_id in ids or other.damage is not None:
            continue
        values = run_values(other)
        required = next((required for keys, required in asked if not differing_keys(keys, values)), None)
        result = None if required is None else _result(other, required)
        if result is not None:
            found.append(result)
    return sorted(found, key=lambda one: one.maximum_ns, reverse=True)


def _result(recording: Recording, required: Requirement) -> LeftOut | None:
    """None where the run holds no latency."""
    try:
        merged = [values for values in merged_per_cpu([recording]) if values.judged]
    except MixedRuns:
        return None
    if not merged:
        return None
    n, exceeded = (
        sum(numbers)
        for numbers in zip(*((values.judged, values.exceeded(required.limit_ns)[1]) for values in merged), strict=True)
    )
    exceeds = any(values.exceeded(required.limit_ns)[1] > required.miss_rate * values.judged for values in merged)
    return LeftOut(
        recording.run_id, n, exceeded, max(values.maximum_ns or 0.0 for values in merged), exceeds, required.limit_ns
    )


def judged_without(assessment: Assessment, others: Sequence[LeftOut], selection: Selection) -> Assessment:
    """The assessment, with the runs left out named.

    A PASS is refused where runs were chosen one by one, or where a run left out exceeds what is allowed, unless it was
    stated that only these are to be judged, which the headline then says.
    """
    if not others:
        return assessment
    worse = sum(one.exceeds for one in others)
    named = "; ".join(one.text for one in others[:_MOST_NAMED])
    more = f"; and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
    text = (
        f"{words.counted(len(others), 'run')} of the store {'answers' if len(others) == 1 else 'answer'} the same "
        f"question and {'was' if len(others) == 1 else 'were'} left out: {named}{more}"
    )
    if selection is Selection.ONLY_THESE:
        exceed = f", {worse:,} of them above what is allowed" if worse else ""
        return replace(
            assessment,
            cautions=(*assessment.cautions, text),
            headline=(
                f"{assessment.headline} (only these runs: {words.counted(len(others), 'other run')} of the same "
                f"question left out{exceed})"
            ),
        )
    if assessment.verdict is not Verdict.PASS or not (worse or selection is Selection.CHOSEN):
        return replace(assessment, cautions=(*assessment.cautions, text))
    ids = " ".join(one.run_id for one in others)
    return replace(
        assessment,
        verdict=Verdict.INCONCLUSIVE,
        headline=f"Not decided: {words.counted(len(others), 'run')} of the "
        f"same question left out, {worse:,} of them above what is allowed",
        reasons=(text, *assessment.reasons),
        settle=(
            f"judge them together: fastenough report with these runs and {ids}; or state that only these are "
            "judged (--only-these), which the headline then says",
            *assessment.settle,
        ),
    )
