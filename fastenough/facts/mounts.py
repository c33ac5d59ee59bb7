# SPDX-License-Identifier: GPL-2.0-or-later
"""File systems on a device or network."""

from __future__ import annotations

from typing import TypedDict

from fastenough.facts.fact import Absent, Fact, Inputs

_MOUNTS = "/proc/self/mountinfo"
_NETWORK = ("nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "ceph", "afs")


class MountFact(TypedDict):
    """One file system; ``network``: whether it is a network file system."""

    point: str
    kind: str
    options: list[str]
    network: bool


def _mounts(inputs: Inputs) -> list[MountFact]:
    file_systems: list[MountFact] = []
    for line in inputs.text(_MOUNTS).splitlines():
        fields, _, rest = line.partition(" - ")
        kind, source = rest.split()[:2]
        point, options = fields.split()[4:6]
        if source.startswith("/dev/") or kind in _NETWORK or point == "/" or kind.startswith("fuse."):
            file_systems.append(
                {"point": point, "kind": kind, "options": sorted(set(options.split(","))), "network": kind in _NETWORK}
            )
    if not file_systems:
        raise Absent("no file system can be seen")
    return file_systems


FACTS = (Fact("mounts", _mounts, files=(_MOUNTS,), volatile=True),)
