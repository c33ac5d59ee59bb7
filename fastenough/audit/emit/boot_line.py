# SPDX-License-Identifier: GPL-2.0-or-later
"""Arguments of the kernel, as a drop-in for GRUB."""

from __future__ import annotations

from collections.abc import Sequence

from fastenough.audit.emit.lines import Line, of_form, text_of
from fastenough.audit.finding import Form


def _text(lines: Sequence[Line]) -> str | None:
    written = [
        row
        for line in of_form(lines, Form.BOOT)
        for row in line.written(f'GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT {line.change.text}"')
    ]
    return (
        text_of(
            "Boot line: to /etc/default/grub.d/fastenough.cfg, then update-grub; elsewhere add the words to the "
            "kernel's command line",
            written,
        )
        if written
        else None
    )


EMITTER = ("fastenough-grub.cfg", _text)
