# SPDX-License-Identifier: GPL-2.0-or-later
"""Variables of the kernel, for sysctl(8)."""

from __future__ import annotations

from collections.abc import Sequence

from fastenough.audit.emit.lines import Line, of_form, text_of
from fastenough.audit.finding import Form


def _text(lines: Sequence[Line]) -> str | None:
    written = [
        row for line in of_form(lines, Form.SYSCTL) for row in line.written(line.change.text.replace("=", " = ", 1))
    ]
    return text_of("To /etc/sysctl.d/90-fastenough.conf, then sysctl --system", written) if written else None


EMITTER = ("90-fastenough.conf", _text)
