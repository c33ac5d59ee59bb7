# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether what keeps CPUs free of the kernel's work names the same CPUs everywhere."""

from __future__ import annotations

import re

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts, Unknown, as_cpus
from fastenough.audit.finding import Group, Seen, Severity, boot, costs, fine
from fastenough.facts.cpu import list_form

_LIST = re.compile(r"\d[\d,-]*")
_TOGETHER = ("isolcpus", "nohz_full", "rcu_nocbs")


def _named(facts: Facts, argument: str) -> set[int] | None:
    """The online CPUs that an argument names, None where it is not given; raises Unknown for a form not known here."""
    value = facts.arguments.get(argument)
    if value is None:
        return None
    numbers = re.sub(r"^(?:[a-z_]+,)+", "", value)
    if numbers in ("all", ""):
        return set(facts.online)
    numbers = numbers.replace("N", str(max(facts.online)))
    if not _LIST.fullmatch(numbers):
        raise Unknown(f"{argument}={value} is not understood here")
    return as_cpus(numbers) & facts.online


def _agreement(facts: Facts) -> Seen:
    named = {name: cpus for name in _TOGETHER if (cpus := _named(facts, name)) is not None}
    if len(named) < 2:
        return fine("at most one of isolcpus, nohz_full and rcu_nocbs is given")
    if len({frozenset(cpus) for cpus in named.values()}) == 1:
        return fine(f"{', '.join(named)} name the same CPUs")
    wanted = named.get("isolcpus") or set.union(*named.values())
    said = "; ".join(f"{name}={list_form(cpus) or 'none'}" for name, cpus in named.items())
    return costs(
        f"they do not name the same CPUs: {said}",
        *(boot(f"{name}={list_form(wanted)}") for name, cpus in named.items() if cpus != wanted),
    )


CHECKS = (
    Check(
        "isolation-agreement",
        "agreement of isolated CPUs",
        Group.CPUS,
        Severity.MEDIUM,
        _agreement,
        why="A CPU that is isolated in one respect only still has the other disturbance: its tick, its RCU "
        "callbacks, or ordinary tasks.",
        source="kernel: Documentation/admin-guide/kernel-parameters.txt; Documentation/timers/no_hz.rst",
        elsewhere="none beyond those of each argument",
    ),
)
