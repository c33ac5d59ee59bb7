# SPDX-License-Identifier: GPL-2.0-or-later
"""The terms that all other rooms use: series, requirements, machines, verdicts and errors."""

from fastenough.model.machine import Configuration, Identifiers, Machines, identifiers_of, is_same_machine
from fastenough.model.requirement import (
    LEAST_CONFIDENCE,
    LEAST_MISS_RATE,
    RETURN_TIME_NS,
    Requirement,
    require_confidence,
)
from fastenough.model.series import Role, Series, SourceSummary
from fastenough.model.terms import (
    EMULATED,
    IMPORTED,
    RUN_LENGTH,
    VERDICT_EXIT_STATUS,
    BadInput,
    ExitStatus,
    FastenoughError,
    NotApplicable,
    Outcome,
    Unavailable,
    Verdict,
    parameter_name,
)

__all__ = [
    "EMULATED",
    "IMPORTED",
    "LEAST_CONFIDENCE",
    "LEAST_MISS_RATE",
    "RETURN_TIME_NS",
    "RUN_LENGTH",
    "VERDICT_EXIT_STATUS",
    "BadInput",
    "Configuration",
    "ExitStatus",
    "FastenoughError",
    "Identifiers",
    "Machines",
    "NotApplicable",
    "Outcome",
    "Requirement",
    "Role",
    "Series",
    "SourceSummary",
    "Unavailable",
    "Verdict",
    "identifiers_of",
    "is_same_machine",
    "parameter_name",
    "require_confidence",
]
