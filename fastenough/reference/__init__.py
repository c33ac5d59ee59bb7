# SPDX-License-Identifier: GPL-2.0-or-later
"""Reference systems: published figures with their source; one file and one line here for each.

They give a scale, and they check that the same computation reproduces the numbers of the source.  They are no evidence
about any other machine.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from fastenough.model import BadInput
from fastenough.reference.claims import Claim, read_claims
from fastenough.reference.figures import Figure, Reference, read_reference

NAMES = (
    "beagleboard",
    "p2041",
    "at91sam",
    "rtlinux",
    "osadl",
)

_HERE = Path(__file__).parent

__all__ = ["NAMES", "Claim", "Figure", "Reference", "claims_of", "find_reference"]


@cache
def find_reference(name: str) -> Reference:
    """The reference system of this name; raises BadInput if there is none."""
    if name not in NAMES:
        raise BadInput(f"no reference system is called '{name}'; there are {', '.join(NAMES)}")
    return read_reference(name, (_HERE / f"{name}.csv").read_text())


@cache
def claims_of(name: str) -> tuple[Claim, ...]:
    """The claims of the texts about the figures of a reference system."""
    return tuple(claim for claim in read_claims((_HERE / "claims.csv").read_text()) if claim.reference == name)
