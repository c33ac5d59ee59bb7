# SPDX-License-Identifier: GPL-2.0-or-later
"""A configuration for rt-conf of Ubuntu: boot arguments, interrupt affinity and governors.

The form is that of rt-conf since mid-2025: ``kernel-cmdline`` has a list of parameters; each rule of ``irq-tuning`` and
``cpu-governance`` has a label.
"""

from __future__ import annotations

from collections.abc import Sequence

from fastenough.audit.emit.lines import Line, of_form, setting_of, text_of
from fastenough.audit.finding import Form


def _indented(rows: Sequence[str]) -> list[str]:
    return [f"    {row}" if row else "" for row in rows]


def _arguments(lines: Sequence[Line]) -> list[str]:
    arguments = [(line, word) for line in of_form(lines, Form.BOOT) for word in line.change.text.split()]
    rows = [row for line, word in arguments for row in _indented(line.written(f'- "{word}"'))]
    empty = "" if any(line.active for line, _ in arguments) else " []"
    return ["kernel-cmdline:", f"  parameters:{empty}", *rows] if rows else []


def _rule(section: str, label: str, line: Line | None, rows: Sequence[str]) -> list[str]:
    if line is None:
        return []
    body = [f"{section}:", f"  {label}:", *(f"    {row}" for row in rows)]
    return [*line.comment, *(body if line.active else [f"# {row}" for row in body]), ""]


def _text(lines: Sequence[Line]) -> str | None:
    interrupts, governor = setting_of(lines, "irq-affinity"), setting_of(lines, "governor")
    cpus = interrupts.change.setting[1] if interrupts is not None and interrupts.change.setting else ""
    parts = [
        *_arguments(lines),
        *_rule("irq-tuning", "all-interrupts", interrupts, (f'cpus: "{cpus}"', "filter: {}")),
        *_rule("cpu-governance", "all-cpus", governor, ('cpus: "all"', 'scaling-governor: "performance"')),
    ]
    return text_of("To /var/snap/rt-conf/common/config.yaml", parts) if parts else None


EMITTER = ("rt-conf.yaml", _text)
