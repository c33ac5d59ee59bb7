# SPDX-License-Identifier: GPL-2.0-or-later
"""A check: a pure function of a machine's facts that yields one finding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fastenough.audit.facts import Facts, Unknown
from fastenough.audit.finding import CheckOutcome, Finding, Group, Severity, unknown


@dataclass(frozen=True)
class Check:
    """``reason``: how it delays tasks or hides delays; ``source``: reference; ``trade_off``: cost of the change in
    throughput, power or security; ``severity``: the highest, unless ``look`` returns another."""

    name: str
    title: str
    group: Group
    severity: Severity
    look: Callable[[Facts], CheckOutcome]
    reason: str
    source: str
    trade_off: str

    def __call__(self, facts: Facts) -> Finding:
        """Return the finding; facts that are missing or malformed give UNKNOWN, never FINE."""
        try:
            observation = self.look(facts)
        except Unknown as reason:
            observation = unknown(str(reason))
        except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
            observation = unknown(f"malformed facts: {error!r}"[:200])
        return Finding(
            self.name,
            self.title,
            self.group,
            observation.state,
            observation.severity or self.severity,
            observation.text,
            self.reason,
            self.source,
            self.trade_off,
            observation.changes,
        )
