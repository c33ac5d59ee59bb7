# SPDX-License-Identifier: GPL-2.0-or-later
"""Syntax of OpenMetrics 1.0: families, labels, and the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

KIND = "application/openmetrics-text; version=1.0.0; charset=utf-8"
END = "# EOF\n"
_ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


def labelled(pairs: Mapping[str, object]) -> str:
    """The labels of a sample, in braces."""
    return "{" + ",".join(f'{name}="{str(value).translate(_ESCAPED)}"' for name, value in pairs.items()) + "}"


def family(name: str, kind: str, help_text: str, unit: str = "") -> Iterator[str]:
    """The header of a family."""
    yield f"# TYPE {name} {kind}\n"
    if unit:
        yield f"# UNIT {name} {unit}\n"
    yield f"# HELP {name} {help_text}\n"
