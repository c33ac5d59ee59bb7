# SPDX-License-Identifier: GPL-2.0-or-later
"""A check: a pure function of a machine's facts that yields one finding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fastenough.audit.facts import Facts, Unknown
from fastenough.audit.finding import Finding, Group, Seen, Severity, unknown


@dataclass(frozen=True)
class Check:
    """``why``: how it delays tasks or hides delays; ``source``: reference; ``elsewhere``: cost of the change in
    throughput, power or security; ``severity``: the highest, unless ``look`` returns another."""

    name: str
    title: str
    group: Group
    severity: Severity
    look: Callable[[Facts], Seen]
    why: str
    source: str
    elsewhere: str

    def __call__(self, facts: Facts) -> Finding:
        """Return the finding; facts that are missing or malformed give UNKNOWN, never FINE."""
        try:
            seen = self.look(facts)
        except Unknown as reason:
            seen = unknown(str(reason))
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            seen = unknown(f"malformed facts: {error!r}"[:200])
        return Finding(
            self.name,
            self.title,
            self.group,
            seen.standing,
            seen.severity or self.severity,
            seen.text,
            self.why,
            self.source,
            self.elsewhere,
            seen.changes,
        )
