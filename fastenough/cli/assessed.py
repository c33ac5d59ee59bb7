# SPDX-License-Identifier: GPL-2.0-or-later
"""An assessment, as it is printed."""

from __future__ import annotations

from fastenough.analysis import Assessment
from fastenough.cli.output import say


def print_assessment(assessment: Assessment) -> None:
    """Print the verdict, its reasons, next steps and caveats."""
    print()
    say(f"{assessment.verdict}: {assessment.headline}")
    for title, lines in (
        ("Reasons", assessment.reasons),
        ("Next steps", assessment.settle),
        ("Caveats", assessment.cautions),
    ):
        if lines:
            print(f"{title}:")
            for line in lines:
                say(f"- {line}", "  ")
    say(assessment.life_safety)
