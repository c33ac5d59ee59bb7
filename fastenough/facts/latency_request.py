# SPDX-License-Identifier: GPL-2.0-or-later
"""The current latency request to idle states, from /dev/cpu_dma_latency."""

from __future__ import annotations

from fastenough.facts.fact import Absent, Fact, Inputs

_ASK = "od -An -td4 -N4 /dev/cpu_dma_latency"
_NOBODY_US = 2_000_000_000
"""Value of the kernel without a request (pm_qos.h)."""


def _request(inputs: Inputs) -> int:
    """The request in µs; -1 for none."""
    try:
        us = int(inputs.output(_ASK))
    except Absent as reason:
        raise Absent("/dev/cpu_dma_latency cannot be read") from reason
    return -1 if us >= _NOBODY_US else us


FACTS = (Fact("latency_request_us", _request, commands=(_ASK,), volatile=True),)
