# SPDX-License-Identifier: GPL-2.0-or-later
"""From recordings to measures and verdicts; pure: accesses neither machine nor files."""

from fastenough import words
from fastenough.analysis.assessment import (
    LIFE_SAFETY,
    Assessment,
    CheckFinding,
    Judgment,
    RequirementResult,
    Supported,
    requirement_name,
)
from fastenough.analysis.compare import Comparison, compare
from fastenough.analysis.judgment import judge
from fastenough.analysis.measures import Bound, Measures, Quantile, highest_frequency_hz, measure
from fastenough.analysis.merged import Merged, MixedRuns, grouped, kinds, load_name, merge_samples

__all__ = [
    "LIFE_SAFETY",
    "Assessment",
    "Bound",
    "CheckFinding",
    "Comparison",
    "Judgment",
    "Measures",
    "Merged",
    "MixedRuns",
    "Quantile",
    "RequirementResult",
    "Supported",
    "compare",
    "grouped",
    "highest_frequency_hz",
    "judge",
    "kinds",
    "load_name",
    "measure",
    "merge_samples",
    "requirement_name",
    "words",
]
