# SPDX-License-Identifier: GPL-2.0-or-later
"""Files of the kernel that are written at each boot, for tmpfiles.d(5)."""

from __future__ import annotations

from collections.abc import Sequence

from fastenough.audit.emit.lines import Line, of_form, text_of
from fastenough.audit.finding import Form


def _row(line: Line) -> str:
    path, _, value = line.change.text.partition("=")
    return f"w {path} - - - - {value}"


def _text(lines: Sequence[Line]) -> str | None:
    written = [row for line in of_form(lines, Form.FILE) for row in line.written(_row(line))]
    return text_of("To /etc/tmpfiles.d/fastenough.conf", written) if written else None


EMITTER = ("fastenough-tmpfiles.conf", _text)
