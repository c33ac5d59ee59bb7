# SPDX-License-Identifier: GPL-2.0-or-later
"""File systems that write when they are read, or wait for a network."""

from __future__ import annotations

from fastenough.audit.check import Check
from fastenough.audit.facts import Facts
from fastenough.audit.finding import Group, Seen, Severity, costs, done, fine

_NAMED = 4


def _look(facts: Facts) -> Seen:
    known = facts.need("mounts")
    far = [str(each["point"]) for each in known if each["network"]]
    writing = [
        str(each["point"])
        for each in known
        if not {"relatime", "noatime", "ro"} & set(each["options"])
        and not each["network"]
        and not str(each["kind"]).startswith(("fuse", "overlay"))
    ]
    if not far and not writing:
        return fine("none is behind a network, and none writes at each reading")
    said = [f"behind a network: {', '.join(far[:_NAMED])}"] if far else []
    said += [f"each reading writes a time: {', '.join(writing[:_NAMED])}"] if writing else []
    changes = [done("keep the task's program, libraries and data on a local file system")] if far else []
    changes += [done("mount them with noatime")] if writing else []
    return costs("; ".join(said), *changes, severity=Severity.MEDIUM if "/" in far else None)


CHECK = Check(
    "file-systems",
    "file systems",
    Group.SERVICES,
    Severity.LOW,
    _look,
    why="A page of the program that is not in memory comes over the network, and its traffic interrupts the CPUs. "
    "Enea's worst load is the disk's over NFS.",
    source="Enea, appendix A, table A.1; mount(8), noatime; rtcqs looks at it too",
    elsewhere="none to speak of",
)
