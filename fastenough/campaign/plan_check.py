# SPDX-License-Identifier: GPL-2.0-or-later
"""Check a plan before any board is booted: what its implementations would refuse, and missing files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from fastenough.campaign.acts import board_value_lists, check_cpus
from fastenough.campaign.expand import combinations
from fastenough.campaign.plan import DEFAULT_BOARD, Entry, Plan
from fastenough.implementations import Implementation, Value, find_implementation
from fastenough.implementations.catalogue import (
    CONFLICTING_PARAMETERS,
    ProbeEntry,
    check_conflicts,
    local_catalogue,
)
from fastenough.link import LocalLink
from fastenough.model import BadInput, NotApplicable


def check_plan(plan: Plan) -> None:
    """Refuse what an implementation would refuse, before anything is done; a remote board checks by its own probe."""
    try:
        known = local_catalogue()
    except NotApplicable:
        if "local" in plan.boards:
            raise
        known = {}
    _check_files(plan)
    if DEFAULT_BOARD in (plan.boards or (DEFAULT_BOARD,)):
        check_cpus(plan, LocalLink())
    for entry in plan.entries:
        parameters = board_value_lists(entry.probe, entry.parameters, plan.instrument is not None)
        for implementation in map(find_implementation, entry.implementations):
            _check_entry(entry, implementation, parameters, known)


def _check_files(plan: Plan) -> None:
    """Raises BadInput if a file of the plan's instrument is missing."""
    instrument = plan.instrument
    files = {"self-test": instrument.self_test, "calibration": instrument.calibration} if instrument else {}
    for key, path in files.items():
        if path and not Path(path).is_file():
            raise plan.fault(f"{key}: no such file: {path}", key)


def _check_entry(
    entry: Entry,
    implementation: Implementation,
    parameters: Mapping[str, tuple[Value, ...]],
    known: Mapping[str, ProbeEntry],
) -> None:
    """Check each parameter by itself, so that an error names its place in the plan."""
    checks: list[tuple[tuple[str, ...], dict[str, tuple[Value, ...]]]] = [(("probe",), {})]
    checks += [(("parameters", name), {name: parameter}) for name, parameter in parameters.items()]
    for key, values in checks:
        try:
            implementation.check(entry.probe, values, known)
        except BadInput as error:
            raise entry.fault(str(error), *key) from error
    conflicting = {name: values for name, values in parameters.items() if name in CONFLICTING_PARAMETERS}
    for combination in combinations(replace(entry, parameters=conflicting)):
        try:
            check_conflicts(combination)
        except BadInput as error:
            raise entry.fault(str(error), "parameters") from error
