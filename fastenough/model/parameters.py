# SPDX-License-Identifier: GPL-2.0-or-later
"""One vocabulary of parameters for all implementations (docs/format.md, Parameters)."""

from __future__ import annotations

HOW_LONG = frozenset({"duration_ns", "loops"})
"""How long a run lasts shapes no latency: runs that differ in these alone may be merged."""

_NS = "_ns"


def parameter_name(option: str, *, is_duration: bool) -> str:
    """The name in a recording of an option of a plan or the command line: ``report`` is ``report_ns``."""
    return option.replace("-", "_") + (_NS if is_duration else "")
