# SPDX-License-Identifier: GPL-2.0-or-later
"""A fragment for merge_config.sh, Yocto and the like."""

from __future__ import annotations

from collections.abc import Sequence

from fastenough.audit.emit.lines import Line, of_form, text_of
from fastenough.audit.finding import Form


def _option(text: str) -> str:
    name, _, value = text.partition("=")
    return f"# {name} is not set" if value == "n" else text


def _text(lines: Sequence[Line]) -> str | None:
    written = [
        row
        for line in of_form(lines, Form.CONFIG)
        for row in [*line.comment, *map(_option, line.change.text.split()), ""]
    ]
    return (
        text_of("Kernel configuration: scripts/kconfig/merge_config.sh .config fastenough.cfg", written)
        if written
        else None
    )


EMITTER = ("fastenough.cfg", _text)
