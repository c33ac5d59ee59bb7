# SPDX-License-Identifier: GPL-2.0-or-later
"""A profile for tuned, beside which no other file here is needed but the kernel's fragment."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fastenough.audit.emit.lines import Line, of_form, setting_of, text_of
from fastenough.audit.finding import Form


def _assigned(line: Line) -> list[str]:
    return line.written(line.change.text.replace("=", " = ", 1))


def _part(name: str, lines: Sequence[Line], row: Callable[[Line], list[str]] = _assigned) -> list[str]:
    return [f"[{name}]", *(each for line in lines for each in row(line))] if lines else []


def _cpu(lines: Sequence[Line]) -> list[str]:
    """What tuned has words of its own for."""
    named = (
        ("governor", "governor = {}"),
        ("energy-preference", "energy_performance_preference = {}"),
        ("idle-latency", "force_latency = {}"),
    )
    rows = [
        each
        for name, said in named
        if (line := setting_of(lines, name)) is not None and line.change.setting
        for each in line.written(said.format(line.change.setting[1]))
    ]
    return ["[cpu]", *rows] if rows else []


def _text(lines: Sequence[Line]) -> str | None:
    arguments = of_form(lines, Form.BOOT)
    files = [line for line in of_form(lines, Form.FILE) if "*" not in line.change.text]
    parts = [*_cpu(lines), *_part("sysctl", of_form(lines, Form.SYSCTL)), *_part("sysfs", files)]
    if arguments:
        parts += ["[bootloader]"]
        for number, line in enumerate(arguments):
            parts += line.written(f"cmdline_fastenough{number} = +{line.change.text}")
    return (
        text_of(
            "To /etc/tuned/fastenough/tuned.conf, then tuned-adm profile fastenough",
            ["[main]", "summary = What fastenough audit found on this machine", "", *parts],
        )
        if parts
        else None
    )


EMITTER = ("tuned.conf", _text)
