# SPDX-License-Identifier: GPL-2.0-or-later
"""The terms everything else speaks in; no behaviour beyond what the terms mean."""

from fastenough.model.machine import Configuration, Identifiers, Machines, identifiers_of, is_same_machine
from fastenough.model.requirement import RETURN_TIME_NS, Requirement
from fastenough.model.series import Role, Said, Series
from fastenough.model.terms import (
    EMULATED,
    HOW_LONG,
    IMPORTED,
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
    "HOW_LONG",
    "IMPORTED",
    "RETURN_TIME_NS",
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
    "Said",
    "Series",
    "Unavailable",
    "Verdict",
    "identifiers_of",
    "is_same_machine",
    "parameter_name",
]
