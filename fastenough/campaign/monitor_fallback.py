# SPDX-License-Identifier: GPL-2.0-or-later
"""What stands in for the monitor on a kernel that does not tell its types: histograms that the kernel keeps itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from fastenough.board import Booted
from fastenough.campaign.tracing import in_kernel, traced
from fastenough.implementations import Act
from fastenough.model import NotApplicable
from fastenough.recording.building import line_bytes
from fastenough.recording.wakeups import MONITOR
from fastenough.settings import Settings

_KNOWN = ("report", "affinity", "comm")
"""What it can be asked; it knows no culprits, and a task by nothing but its name."""
_ALWAYS = ("policy", "real-time")
_BY = {"by": "kernel histograms"}


@contextmanager
def by_histograms(booted: Booted, act: Act) -> Iterator[Act]:
    """While inside, the kernel counts; gives the act that reads it.

    Raises NotApplicable for what histograms cannot tell, and where the kernel keeps none.
    """
    lacking = "this kernel has no BTF type information (boot one with CONFIG_DEBUG_INFO_BTF=y, such as Debian's)"
    said = {name: value for name, value in act.parameters.items() if (name, value) != _ALWAYS}
    unknown = next((name for name in said if name not in _KNOWN), None)
    if unknown is not None:
        raise NotApplicable(f"{lacking}, and the fallback, kernel histograms, does not support --{unknown}")
    own = replace(act, probe="wakeups", parameters=said)
    with Settings(booted.link) as settings:
        try:
            own = traced(own, settings.apply_all(in_kernel(own, booted.link)), print)
        except NotApplicable as why:
            raise NotApplicable(f"{lacking}, and the fallback, kernel histograms, is not available: {why}") from why
        yield own


def as_monitor(raw: bytes) -> bytes:
    """A line of that act's recording, as one of the monitor's: its head says by what it was measured."""
    if b'"type":"head"' not in raw[:64]:
        return raw
    head = json.loads(raw)
    return line_bytes(head | {"probe": MONITOR, "parameters": head["parameters"] | _BY})
