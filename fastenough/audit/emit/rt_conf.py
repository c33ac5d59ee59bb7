# SPDX-License-Identifier: GPL-2.0-or-later
"""A configuration for rt-conf of Ubuntu: the arguments, interrupts and governors that it knows."""

from __future__ import annotations

from collections.abc import Sequence

from fastenough.audit.emit.lines import Line, of_form, setting_of, text_of
from fastenough.audit.finding import Form

_KNOWN = ("isolcpus", "nohz", "nohz_full", "kthread_cpus", "irqaffinity")


def _arguments(lines: Sequence[Line]) -> list[str]:
    rows = []
    for line in of_form(lines, Form.BOOT):
        name, _, value = line.change.text.partition("=")
        if name in _KNOWN:
            rows += [f"  {row}" if row else "" for row in line.written(f'{name}: "{value}"')]
    return ["kernel_cmdline:", *rows] if rows else []


def _listed(head: str, line: Line | None, rows: Sequence[str]) -> list[str]:
    if line is None:
        return []
    body = [row if line.active else f"# {row}" for row in rows]
    return [*line.comment, head if line.active else f"# {head}", *body, ""]


def _text(lines: Sequence[Line]) -> str | None:
    interrupts, governor = setting_of(lines, "irq-affinity"), setting_of(lines, "governor")
    cpus = interrupts.change.setting[1] if interrupts is not None and interrupts.change.setting else ""
    parts = [*_arguments(lines),
             *_listed("irq_tuning:", interrupts, (f'  - cpus: "{cpus}"', "    filter: {}")),
             *_listed("cpu_governance:", governor, ('  - cpus: "all"', '    scaling_governor: "performance"'))]
    return text_of("To /var/snap/rt-conf/common/config.yaml", parts) if parts else None


EMITTER = ("rt-conf.yaml", _text)
