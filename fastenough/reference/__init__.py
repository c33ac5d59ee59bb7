# SPDX-License-Identifier: GPL-2.0-or-later
"""Reference systems: figures that others published, as data with their source; one file each, one line here for each.

They are there for the scale, and to see that the same computation gives the same numbers as the source.  Nothing here
is evidence about anybody's own machine.
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
    """The reference system of this name; raises BadInput where there is none."""
    if name not in NAMES:
        raise BadInput(f"no reference system is called '{name}'; there are {', '.join(NAMES)}")
    return read_reference(name, (_HERE / f"{name}.csv").read_text())


@cache
def claims_of(name: str) -> tuple[Claim, ...]:
    """What the texts say about a reference system's figures."""
    return tuple(claim for claim in read_claims((_HERE / "claims.csv").read_text()) if claim.reference == name)
