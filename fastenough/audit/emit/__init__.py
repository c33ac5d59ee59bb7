# SPDX-License-Identifier: GPL-2.0-or-later
"""The changes of an audit as files for other tools.

Each line has a comment above it with its purpose and its measured effect.  A line is active unless a measurement showed
no benefit or it reduces security or safety; then it is commented out.
"""

from __future__ import annotations

from collections.abc import Sequence

from fastenough.audit.emit.formats import EMITTERS
from fastenough.audit.emit.lines import Line, Remarks, lines_of
from fastenough.audit.finding import Finding

__all__ = ["EMITTERS", "Line", "Remarks", "emit"]


def emit(findings: Sequence[Finding], remarks: Remarks) -> dict[str, str]:
    """Return file contents by file name; ``remarks``: measured effects by name of the setting."""
    lines = lines_of(findings, remarks)
    return {name: text for name, emitter in EMITTERS if (text := emitter(lines)) is not None}
