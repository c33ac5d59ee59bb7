# SPDX-License-Identifier: GPL-2.0-or-later
"""A drop-in for the service of the real-time task: its rights, its priority, its CPUs."""

from __future__ import annotations

from collections.abc import Sequence

from fastenough.audit.emit.lines import Line, of_form, text_of
from fastenough.audit.finding import Form

_RIGHTS = (
    "[Service]",
    "# A real-time policy, and memory that is not swapped out (fastenough has measured with both).",
    "CPUSchedulingPolicy=fifo",
    "CPUSchedulingPriority=80",
    "LimitRTPRIO=99",
    "LimitMEMLOCK=infinity",
    "",
)


def _cpus(lines: Sequence[Line]) -> list[str]:
    for line in of_form(lines, Form.BOOT):
        name, _, value = line.change.text.partition("=")
        if name == "isolcpus":
            return line.written(f"CPUAffinity={value}")
    return []


def _text(lines: Sequence[Line]) -> str | None:
    return text_of(
        "To /etc/systemd/system/SERVICE.service.d/fastenough.conf, then systemctl daemon-reload",
        [*_RIGHTS, *_cpus(lines)],
    )


EMITTER = ("fastenough-service.conf", _text)
