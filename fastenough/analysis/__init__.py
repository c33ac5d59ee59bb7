# SPDX-License-Identifier: GPL-2.0-or-later
"""Recordings in, measures and verdicts out (SPEC section 9); pure: touches neither machine nor file."""

from fastenough import words
from fastenough.analysis.compare import Comparison, compare
from fastenough.analysis.measures import Bound, Measures, Quantile, highest_frequency_hz, measure
from fastenough.analysis.pool import MixedRuns, Pool, grouped, kinds, load_name, pool
from fastenough.analysis.verdict import LIFE_SAFETY, Assessment, Judgment, Supported, judge

__all__ = [
    "LIFE_SAFETY", "Assessment", "Bound", "Comparison", "Judgment", "Measures", "MixedRuns", "Pool", "Quantile",
    "Supported", "compare", "grouped", "highest_frequency_hz", "judge", "kinds", "load_name", "measure", "pool",
    "words",
]
