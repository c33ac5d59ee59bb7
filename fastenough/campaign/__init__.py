# SPDX-License-Identifier: GPL-2.0-or-later
"""Campaigns: a plan expands into runs; each run is measured and stored, and a resumed campaign skips stored runs."""

from __future__ import annotations

from fastenough.campaign.expand import RunSpec, expand, plan_sha256
from fastenough.campaign.plan import Entry, Instrument, Plan, parse_duration_s
from fastenough.campaign.plan_file import parse_plan, read_plan
from fastenough.campaign.progress import Progress
from fastenough.campaign.runner import Campaign, on_board, run_campaign
from fastenough.campaign.stop import StopRequest

__all__ = [
    "Campaign",
    "Entry",
    "Instrument",
    "Plan",
    "Progress",
    "RunSpec",
    "StopRequest",
    "expand",
    "on_board",
    "parse_duration_s",
    "parse_plan",
    "plan_sha256",
    "read_plan",
    "run_campaign",
]
