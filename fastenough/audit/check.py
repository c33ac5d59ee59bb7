# SPDX-License-Identifier: GPL-2.0-or-later
"""What a check is: one matter, looked at by a pure function of a machine's facts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fastenough.audit.facts import Facts, Unknown
from fastenough.audit.finding import Finding, Group, Seen, Severity, unknown


@dataclass(frozen=True)
class Check:
    """``why``: how the matter delays tasks or hides delays; ``source``: who says so; ``elsewhere``: what the change
    costs in throughput, power or security; ``severity``: at its worst, where ``look`` does not say."""

    name: str
    title: str
    group: Group
    severity: Severity
    look: Callable[[Facts], Seen]
    why: str
    source: str
    elsewhere: str

    def __call__(self, facts: Facts) -> Finding:
        """What a machine does not say, or says in a form that is not understood, is unknown and never fine."""
        try:
            seen = self.look(facts)
        except Unknown as reason:
            seen = unknown(str(reason))
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            seen = unknown(f"not understood: {error!r}"[:200])
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
