# SPDX-License-Identifier: GPL-2.0-or-later
"""What an audit found, as files for other tools: one file each, one line here for each.

Every line stands below what it is for and what it was measured to do.  A line is active unless it was measured and no
benefit was shown, or it gives security or safety away; then it is a comment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fastenough.audit.emit.lines import Line, Remarks, lines_of
from fastenough.audit.finding import Finding
from fastenough.registry import listed

__all__ = ["EMITTERS", "Line", "Remarks", "emit"]

Emitter = Callable[[Sequence[Line]], str | None]

EMITTERS: tuple[tuple[str, Emitter], ...] = tuple(
    listed(
        __name__,
        "EMITTER",
        (
            "kernel_fragment",
            "boot_line",
            "sysctl",
            "tuned",
            "rt_conf",
            "systemd",
            "tmpfiles",
        ),
    )
)
"""The name of the file, and a function of all lines that gives its text, None where it would hold none."""


def emit(findings: Sequence[Finding], remarks: Remarks) -> dict[str, str]:
    """Texts by the names of their files; ``remarks``: what was measured, by the name of a setting."""
    lines = lines_of(findings, remarks)
    return {name: text for name, emitter in EMITTERS if (text := emitter(lines)) is not None}
