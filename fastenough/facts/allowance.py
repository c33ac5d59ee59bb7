# SPDX-License-Identifier: GPL-2.0-or-later
"""CPUs and CPU time granted to the bench and to its processes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import TypedDict

from fastenough.facts.fact import Absent, Fact, Inputs

_STATUS = "/proc/self/status"
_GROUPS = "/proc/self/cgroup"
_MOUNTS = "/proc/self/mountinfo"
_NS_PER_US = 1000
_MOST_LEVELS = 32
_SANE, _CONTROLLERS, _TYPE = _KINDS = ("cgroup.sane_behavior", "cgroup.controllers", "cgroup.type")
"""Files by which a root is known: the first is in that of version 1 only, the last in no root of version 2."""

_UNREADABLE = re.compile(r"[*?[\uFFFD]|(?:^|/)\.\.(?:/|$)")
"""Parts of a group's path that would name other files: patterns, undecodable bytes, and a group outside the mount."""
_ESCAPED = re.compile(r"\\([0-7]{3})")

GROUP_NOT_MOUNTED = "the files of the control group are not mounted here"
"""Why the quota of a group is unknown, as in a chroot; the same text in each run there, so that they can be merged."""

_Budget = tuple[int, int]
"""Granted µs and period in µs."""


def _allowed(inputs: Inputs) -> str:
    for line in inputs.text(_STATUS).splitlines():
        name, _, value = line.partition(":")
        if name == "Cpus_allowed_list":
            return value.strip()
    raise Absent("/proc/self/status names no CPUs")


def parse_groups(text: str) -> dict[str, str]:
    """The path of this process's group by controller; "" is the unified hierarchy (version 2)."""
    paths = {}
    for line in filter(None, text.split("\n")):
        _, controllers, path = line.split(":", 2)
        paths.update(dict.fromkeys(controllers.split(","), path))
    return paths


def _unescaped(text: str) -> str:
    """A name of mountinfo, which has white space and backslashes as octal numbers."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), text)


def parse_mounts(text: str) -> dict[str, tuple[str, str]]:
    """Root and mount point of each hierarchy by controller (proc(5), mountinfo); "" is the unified one."""
    mounts: dict[str, tuple[str, str]] = {}
    for line in text.splitlines():
        fields, _, rest = line.partition(" - ")
        kind, _, options = rest.partition(" ")
        root, point = map(_unescaped, fields.split()[3:5])
        if kind == "cgroup2":
            mounts.setdefault("", (root, point))
        elif kind == "cgroup":
            for controller in options.split()[-1].split(","):
                mounts.setdefault(controller, (root, point))
    return mounts


def _levels(inputs: Inputs, controller: str) -> tuple[int, list[str]]:
    """Version, and the visible folders of the own group and its parents, the own one first.

    Raises Absent without a hierarchy for the controller, or if it is not mounted; ValueError if it cannot be read.
    """
    inputs.text(_GROUPS)  # raises Absent
    paths = parse_groups(inputs.files[_GROUPS])  # with the white space at the end of a name
    mounts = parse_mounts(inputs.text(_MOUNTS))
    version = 1 if controller in paths else 2
    hierarchy = controller if version == 1 else ""
    if hierarchy not in paths or (hierarchy not in mounts and paths[hierarchy] == "/"):
        raise Absent(f"no hierarchy of control groups for {controller} is mounted here")
    if hierarchy not in mounts:
        raise Absent(GROUP_NOT_MOUNTED)
    root, point = mounts[hierarchy]
    own = PurePosixPath(point) / PurePosixPath(paths[hierarchy]).relative_to(root)
    folders = [own, *(folder for folder in own.parents if folder.is_relative_to(point))]
    if _UNREADABLE.search(str(own)) or len(folders) > _MOST_LEVELS:
        raise ValueError(f"the files of the control group {paths[hierarchy]!r} cannot be read")
    return version, [str(folder) for folder in folders]


def _files(inputs: Inputs) -> list[str]:
    names = {
        "cpu": (
            "cpu.max",
            "cpu.cfs_quota_us",
            "cpu.cfs_period_us",
            "cpu.rt_runtime_us",
            "cpu.rt_period_us",
            "cpu.stat",
            "cpu.shares",
            *_KINDS,
        ),
        "cpuset": ("cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"),
    }
    paths = []
    for controller, files in names.items():
        try:
            _, folders = _levels(inputs, controller)
        except (Absent, ValueError, IndexError):
            continue
        paths += [f"{folder}/{file}" for folder in folders for file in files]
    return paths


def _has_no_quota(inputs: Inputs, folder: str) -> bool:
    """Whether a group has no file of a quota by design: the root, and groups without the bandwidth controller.

    In version 2 the group's controllers or cpu.stat show this; kernels before 4.15 have neither the controller nor
    cpu.stat there.  In version 1 the files of the quota and cpu.stat are missing together.
    """

    def has(name: str) -> bool:
        return inputs.get(f"{folder}/{name}") is not None

    controllers = inputs.get(f"{folder}/{_CONTROLLERS}")
    if has(_SANE) or (controllers is not None and ("cpu" not in controllers.split() or not has(_TYPE))):
        return True
    stat = inputs.get(f"{folder}/cpu.stat")
    return has("cpu.shares") if stat is None else "nr_periods" not in stat


def _quota(inputs: Inputs, folder: str) -> _Budget | None:
    text = inputs.get(f"{folder}/cpu.max")
    if text is not None:
        granted, period = text.split()
        return None if granted == "max" else _budget(int(granted), int(period))
    names = (f"{folder}/cpu.cfs_quota_us", f"{folder}/cpu.cfs_period_us")
    if all(inputs.get(name) is None for name in names) and not _has_no_quota(inputs, folder):
        raise ValueError(f"the CPU quota of {folder} cannot be read")
    return _pair(inputs, *names)


def _real_time(inputs: Inputs, folder: str) -> _Budget | None:
    return _pair(inputs, f"{folder}/cpu.rt_runtime_us", f"{folder}/cpu.rt_period_us")


def _pair(inputs: Inputs, granted: str, period: str) -> _Budget | None:
    """The budget in two files; None if there is none.  Raises ValueError if one of them cannot be read."""
    granted_us, period_us = inputs.get(granted), inputs.get(period)
    if granted_us is None and period_us is None:
        return None
    if granted_us is None or period_us is None:
        raise ValueError(f"only one of {granted} and {period} can be read")
    return _budget(int(granted_us), int(period_us))


def _budget(granted_us: int, period_us: int) -> _Budget | None:
    """None if it is unlimited; raises ValueError for a period that no kernel has."""
    if period_us <= 0:
        raise ValueError(f"period of {period_us} us")
    return None if granted_us < 0 else (granted_us, period_us)


def _tightest(inputs: Inputs, budget: Callable[[Inputs, str], _Budget | None]) -> dict[str, int] | None:
    """The smallest share over all levels; None if none is set."""
    _, folders = _levels(inputs, "cpu")
    limits = [limit for folder in folders if (limit := budget(inputs, folder)) is not None]
    if not limits:
        return None
    granted_us, period_us = min(limits, key=lambda limit: limit[0] / limit[1])
    return {"granted_us": granted_us, "period_us": period_us}


def _cpuset(inputs: Inputs) -> str:
    _, folders = _levels(inputs, "cpuset")
    for folder in folders:
        for name in ("cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"):
            cpus = inputs.get(f"{folder}/{name}")
            if cpus:
                return cpus
    raise Absent("the control group has no cpuset")


class ControlGroupFact(TypedDict):
    """Throttling since the creation of the groups, over all levels; path and version identify the groups."""

    version: int
    folder: str
    nr_periods: int
    nr_throttled: int
    throttled_ns: int


def _throttled(inputs: Inputs) -> ControlGroupFact:
    version, folders = _levels(inputs, "cpu")
    counted = {"nr_periods": 0, "nr_throttled": 0, "throttled_ns": 0}
    for folder in folders:
        stat = inputs.get(f"{folder}/cpu.stat")
        if stat is None and not _has_no_quota(inputs, folder):
            raise ValueError(f"{folder}/cpu.stat cannot be read")
        for name, value in (line.split()[:2] for line in (stat or "").splitlines()):
            if name in ("nr_periods", "nr_throttled"):
                counted[name] += int(value)
            elif name in ("throttled_time", "throttled_usec"):
                counted["throttled_ns"] += int(value) * (_NS_PER_US if name == "throttled_usec" else 1)
    return {
        "version": version,
        "folder": folders[0],
        "nr_periods": counted["nr_periods"],
        "nr_throttled": counted["nr_throttled"],
        "throttled_ns": counted["throttled_ns"],
    }


FACTS = (
    Fact("cpus_allowed", _allowed, files=(_STATUS,)),
    Fact("cpuset", _cpuset, files=(_GROUPS, _MOUNTS), further=_files),
    Fact("cpu_quota", lambda inputs: _tightest(inputs, _quota), files=(_GROUPS, _MOUNTS), further=_files),
    Fact("real_time_budget", lambda inputs: _tightest(inputs, _real_time), files=(_GROUPS, _MOUNTS), further=_files),
    Fact("control_group", _throttled, files=(_GROUPS, _MOUNTS), further=_files, volatile=True),
)
