# SPDX-License-Identifier: GPL-2.0-or-later
"""``break``: the first value above a threshold ends the run."""

from __future__ import annotations

from collections.abc import Mapping

from fastenough.campaign.plan import BREAK
from fastenough.campaign.run_keys.base import RunKey
from fastenough.campaign.toml import Table
from fastenough.implementations import Value
from fastenough.units import parse_duration_ns


class BreakThreshold(RunKey):
    name = "break"

    def parameters(self, table: Table) -> Mapping[str, Value]:
        """Return the threshold in the form of the probe's option."""
        threshold = table.text(self.name, '"100us"')
        try:
            return {BREAK: f"{parse_duration_ns(threshold)}ns"}
        except ValueError as error:
            raise table.fault(f"{self.name}: {error}", self.name) from error


KEY = BreakThreshold()
