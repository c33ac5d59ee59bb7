# SPDX-License-Identifier: GPL-2.0-or-later
"""What containers and services grant of a machine is in the profile, in both versions of control groups."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fastenough.analysis.machine import may_have_quota
from fastenough.facts import collect, profile_sha256
from fastenough.facts.allowance import GROUP_NOT_MOUNTED
from fastenough.facts.fact import Profile
from fastenough.link import FakeLink, LocalLink
from tests.support.control_groups import inside, own_group
from tests.support.recordings import Plan, latencies, recording

pytestmark = pytest.mark.untimed

ROOT = Path(__file__).resolve().parents[3]
STATUS = "Name:\tpython\nCpus_allowed:\t2\nCpus_allowed_list:\t{}\n"
STAT = "nr_periods {}\nnr_throttled {}\nthrottled_time {}\n"
VERSION_1 = {
    "/proc/self/status": STATUS.format("1"),
    "/proc/self/cgroup": "4:cpuset:/docker/0a1b\n3:cpu,cpuacct:/docker/0a1b\n1:name=systemd:/docker/0a1b\n0::/\n",
    "/proc/self/mountinfo": (
        "22 1 8:1 / / rw - ext4 /dev/sda rw\n"
        "31 22 0:28 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
        "32 22 0:29 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n"
        "33 22 0:30 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
    ),
    "/sys/fs/cgroup/cpuset/docker/0a1b/cpuset.cpus": "1\n",
    "/sys/fs/cgroup/cpu,cpuacct/cgroup.sane_behavior": "0\n",
    "/sys/fs/cgroup/cpu,cpuacct/cpu.rt_runtime_us": "950000\n",
    "/sys/fs/cgroup/cpu,cpuacct/cpu.rt_period_us": "1000000\n",
    "/sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_quota_us": "20000\n",
    "/sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_period_us": "100000\n",
    "/sys/fs/cgroup/cpu,cpuacct/docker/cpu.stat": STAT.format(297, 296, 5_000_000),
    "/sys/fs/cgroup/cpu,cpuacct/docker/0a1b/cpu.cfs_quota_us": "-1\n",
    "/sys/fs/cgroup/cpu,cpuacct/docker/0a1b/cpu.cfs_period_us": "100000\n",
    "/sys/fs/cgroup/cpu,cpuacct/docker/0a1b/cpu.rt_runtime_us": "5000\n",
    "/sys/fs/cgroup/cpu,cpuacct/docker/0a1b/cpu.rt_period_us": "1000000\n",
    "/sys/fs/cgroup/cpu,cpuacct/docker/0a1b/cpu.stat": STAT.format(3, 1, 7),
}
VERSION_2 = {
    "/proc/self/status": STATUS.format("0-3,6"),
    "/proc/self/cgroup": "0::/\n",
    "/proc/self/mountinfo": (
        "600 580 0:49 / / rw - overlay overlay rw\n"
        "611 606 0:28 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw,nsdelegate\n"
    ),
    "/sys/fs/cgroup/cpu.max": "150000 100000\n",
    "/sys/fs/cgroup/cpu.stat": "usage_usec 5\nuser_usec 1\nnr_periods 40\nnr_throttled 31\nthrottled_usec 1200\n",
    "/sys/fs/cgroup/cpuset.cpus.effective": "0-3,6\n",
}
BARE_2 = {
    "/proc/self/cgroup": "0::/user.slice/user-0.slice/session-1.scope\n",
    "/proc/self/mountinfo": "31 22 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
    "/sys/fs/cgroup/cgroup.controllers": "cpu\n",
    "/sys/fs/cgroup/cpu.stat": "usage_usec 5\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n",
    "/sys/fs/cgroup/user.slice/cgroup.controllers": "cpu\n",
    "/sys/fs/cgroup/user.slice/cgroup.type": "domain\n",
    "/sys/fs/cgroup/user.slice/cpu.max": "max 100000\n",
    "/sys/fs/cgroup/user.slice/cpu.stat": "usage_usec 5\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n",
    "/sys/fs/cgroup/user.slice/user-0.slice/cpu.stat": "usage_usec 4\n",
    "/sys/fs/cgroup/user.slice/user-0.slice/session-1.scope/cpu.stat": "usage_usec 3\n",
    "/sys/fs/cgroup/cpuset.cpus.effective": "0-7\n",
}


def test_version_1_with_limits_on_several_levels() -> None:
    profile = collect(FakeLink(VERSION_1))
    assert profile["cpus_allowed"] == "1"
    assert profile["cpuset"] == "1"
    assert profile["cpu_quota"] == {"granted_us": 20_000, "period_us": 100_000}
    assert profile["real_time_budget"] == {"granted_us": 5_000, "period_us": 1_000_000}
    assert profile["control_group"] == {
        "version": 1,
        "folder": "/sys/fs/cgroup/cpu,cpuacct/docker/0a1b",
        "nr_periods": 300,
        "nr_throttled": 297,
        "throttled_ns": 5_000_007,
    }


def test_version_2_in_a_container() -> None:
    profile = collect(FakeLink(VERSION_2))
    assert profile["cpus_allowed"] == profile["cpuset"] == "0-3,6"
    assert profile["cpu_quota"] == {"granted_us": 150_000, "period_us": 100_000}
    assert profile["real_time_budget"] is None
    assert "real_time_budget" not in profile["absent"]
    assert profile["control_group"] == {
        "version": 2,
        "folder": "/sys/fs/cgroup",
        "nr_periods": 40,
        "nr_throttled": 31,
        "throttled_ns": 1_200_000,
    }


def test_version_2_without_limits() -> None:
    profile = collect(FakeLink(BARE_2))
    assert profile["cpu_quota"] is None and "cpu_quota" not in profile["absent"]
    assert profile["cpuset"] == "0-7"
    assert profile["control_group"]["nr_throttled"] == 0


@pytest.mark.parametrize(
    "files, missing, unknown",
    [
        (VERSION_2, "cpu.max", "cpu_quota"),
        (VERSION_2, "cpu.stat", "control_group"),
        (BARE_2, "user.slice/cpu.max", "cpu_quota"),
        (BARE_2, "user.slice/cpu.stat", "control_group"),
        (BARE_2, "user.slice/user-0.slice/cpu.stat", "control_group"),
        (BARE_2, "user.slice/user-0.slice/cpu.stat", "cpu_quota"),
        (VERSION_1, "cpu,cpuacct/docker/cpu.cfs_quota_us", "cpu_quota"),
        (VERSION_1, "cpu,cpuacct/docker/cpu.cfs_period_us", "cpu_quota"),
        (VERSION_1, "cpu,cpuacct/docker/cpu.stat", "control_group"),
        (VERSION_1, "cpu,cpuacct/docker/0a1b/cpu.rt_period_us", "real_time_budget"),
    ],
)
def test_what_cannot_be_read_of_a_group_is_unknown(files: dict[str, str], missing: str, unknown: str) -> None:
    """Of the group's own files and of those of the groups above it."""
    assert unknown not in collect(FakeLink(files))["absent"]
    rest = {path: text for path, text in files.items() if path != f"/sys/fs/cgroup/{missing}"}
    profile = collect(FakeLink(rest))
    assert profile[unknown] is None and "cgroup" in profile["absent"][unknown]


def _may_have_quota(folder: Path, profile: Profile) -> bool:
    run = recording(folder, Plan(latencies(1, intervals=2)))
    return may_have_quota(replace(run, head=replace(run.head, profile=profile)))


@pytest.mark.parametrize(
    "files, missing",
    [
        (VERSION_2, ["cpu.max"]),
        (VERSION_2, ["cpu.max", "cpu.stat"]),
        (BARE_2, ["user.slice/cpu.max"]),
        (BARE_2, ["user.slice/cpu.max", "user.slice/cpu.stat"]),
        (BARE_2, ["user.slice/user-0.slice/cpu.stat"]),
        (VERSION_1, ["cpu,cpuacct/docker/cpu.cfs_quota_us"]),
        (VERSION_1, ["cpu,cpuacct/docker/cpu.cfs_period_us"]),
        (VERSION_1, [f"cpu,cpuacct/docker/cpu.{name}" for name in ("cfs_quota_us", "cfs_period_us", "stat")]),
    ],
)
def test_a_group_that_cannot_be_read_may_have_a_quota(
    files: dict[str, str], missing: list[str], tmp_path: Path
) -> None:
    paths = {f"/sys/fs/cgroup/{name}" for name in missing}
    profile = collect(FakeLink({path: text for path, text in files.items() if path not in paths}))
    assert profile["cpu_quota"] is None and _may_have_quota(tmp_path, profile)


_NO_MOUNT = "22 1 8:1 / / rw - ext4 /dev/sda rw\n"
_OTHER_MOUNT = "611 606 0:28 /lxc /sys/fs/cgroup rw - cgroup2 cgroup rw\n"


@pytest.mark.parametrize(
    "groups, mounts",
    [
        ("0::/user.slice\n", _NO_MOUNT),
        ("3:cpu:/docker/0a1b\n0::/\n", _NO_MOUNT),
        ("0::/user.slice\n", _OTHER_MOUNT),
        ("0::/../x\n", BARE_2["/proc/self/mountinfo"]),
    ],
)
def test_a_group_that_is_not_mounted_may_have_a_quota(groups: str, mounts: str, tmp_path: Path) -> None:
    profile = collect(FakeLink({"/proc/self/cgroup": groups, "/proc/self/mountinfo": mounts}))
    assert profile["cpu_quota"] is None and _may_have_quota(tmp_path, profile)


def test_runs_in_groups_that_are_not_mounted_can_be_merged() -> None:
    """Each login has a group of another name."""
    profiles = [
        collect(FakeLink({"/proc/self/cgroup": f"0::/user.slice/{name}\n", "/proc/self/mountinfo": _NO_MOUNT}))
        for name in ("session-3.scope", "session-4.scope")
    ]
    reasons = {profile["absent"][fact] for profile in profiles for fact in ("cpu_quota", "real_time_budget")}
    assert reasons == {GROUP_NOT_MOUNTED}


_BEFORE_4_15 = {
    "/proc/self/cgroup": "0::/user.slice\n",
    "/proc/self/mountinfo": BARE_2["/proc/self/mountinfo"],
    "/sys/fs/cgroup/cgroup.controllers": "io memory pids\n",
    "/sys/fs/cgroup/user.slice/cgroup.controllers": "memory pids\n",
    "/sys/fs/cgroup/user.slice/cgroup.type": "domain\n",
}


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"/proc/self/cgroup": "", "/proc/self/mountinfo": _NO_MOUNT},
        {"/proc/self/cgroup": "0::/\n", "/proc/self/mountinfo": _NO_MOUNT},
        {"/proc/self/cgroup": "1:name=systemd:/init.scope\n", "/proc/self/mountinfo": _NO_MOUNT},
        _BEFORE_4_15,
        {path: text for path, text in _BEFORE_4_15.items() if not path.endswith("cgroup.type")},
        BARE_2,
    ],
)
def test_no_group_has_a_quota_without_a_controller_of_cpu_time(files: dict[str, str], tmp_path: Path) -> None:
    """Kernels before 4.15 have no such controller, and no cpu.stat, in version 2."""
    profile = collect(FakeLink(files))
    assert profile["cpu_quota"] is None and not _may_have_quota(tmp_path, profile)


def test_without_the_bandwidth_controller_no_group_has_a_quota() -> None:
    files = {path: text for path, text in VERSION_1.items() if "cfs" not in path and "cpu.stat" not in path}
    shares = {f"/sys/fs/cgroup/cpu,cpuacct/docker/{group}cpu.shares": "1024\n" for group in ("", "0a1b/")}
    profile = collect(FakeLink(files | shares))
    assert profile["cpu_quota"] is None and "cpu_quota" not in profile["absent"]
    assert profile["control_group"]["nr_throttled"] == 0


@pytest.mark.parametrize("text", ["", "max", "100 0", "100 -1", "1 2 3"])
def test_a_malformed_quota_is_unknown(text: str) -> None:
    profile = collect(FakeLink(VERSION_2 | {"/sys/fs/cgroup/cpu.max": text}))
    assert profile["cpu_quota"] is None and "cpu_quota" in profile["absent"]


@pytest.mark.parametrize("name", ["/rt test", "/rt(1)", "/a;b/it's", "/rt\\x", "/rt ", "/$(touch x)"])
def test_limits_of_a_group_with_an_unusual_name(name: str) -> None:
    folder = f"/sys/fs/cgroup{name}"
    group = {"/proc/self/cgroup": f"0::{name}\n", f"{folder}/cpu.max": "10000 100000\n"}
    stat = {f"{folder}/cpu.stat": "nr_periods 9\nnr_throttled 4\nthrottled_usec 8\n"}
    stat["/sys/fs/cgroup/a;b/cpu.stat"] = "usage_usec 9\n"
    profile = collect(FakeLink(VERSION_2 | group | stat))
    assert profile["cpu_quota"] == {"granted_us": 10_000, "period_us": 100_000}
    assert profile["control_group"]["nr_throttled"] == 35


def test_a_mounted_group_with_a_space_in_its_name() -> None:
    mounts = VERSION_2["/proc/self/mountinfo"].replace("0:28 / ", "0:28 /rt\\040test ")
    profile = collect(FakeLink(VERSION_2 | {"/proc/self/cgroup": "0::/rt test\n", "/proc/self/mountinfo": mounts}))
    assert profile["cpu_quota"] == {"granted_us": 150_000, "period_us": 100_000}


@pytest.mark.parametrize("name", ["/rt*", "/a?/b", "/[a]", "/rt\ufffd", "/../x", "/a" * 40])
def test_limits_of_a_group_whose_files_cannot_be_read_are_unknown(name: str) -> None:
    profile = collect(FakeLink(VERSION_2 | {"/proc/self/cgroup": f"0::{name}\n"}))
    for fact in ("cpuset", "cpu_quota", "real_time_budget", "control_group"):
        assert profile[fact] is None and fact in profile["absent"]


def test_the_name_of_a_container_is_no_other_board_but_its_limits_are() -> None:
    def renamed(files: dict[str, str], old: str, new: str) -> dict[str, str]:
        return {path.replace(old, new): text.replace(old, new) for path, text in files.items()}

    before = profile_sha256(collect(FakeLink(VERSION_1)))
    assert profile_sha256(collect(FakeLink(renamed(VERSION_1, "0a1b", "77ff")))) == before
    assert profile_sha256(collect(FakeLink(renamed(VERSION_1, "20000", "30000")))) != before
    assert profile_sha256(collect(FakeLink(renamed(VERSION_1, "list:\t1", "list:\t0-1")))) != before


@pytest.mark.parametrize(
    "damaged",
    [
        {"/proc/self/cgroup": "0\n"},
        {"/proc/self/cgroup": ""},
        {"/proc/self/mountinfo": "1 - cgroup2 x\n"},
        {"/proc/self/mountinfo": "1 2 3 / /fs rw - cgroup\n"},
        {"/proc/self/cgroup": "0::/../../x\n"},
        {"/sys/fs/cgroup/cpu.max": "many 0\n"},
        {"/proc/self/status": "x"},
        {"/proc/self/cgroup": "0::/$(touch x)\n0::/*\n"},
    ],
)
def test_damage_breaks_nothing(damaged: dict[str, str]) -> None:
    profile = collect(FakeLink(VERSION_2 | damaged))
    names = ("cpus_allowed", "cpuset", "cpu_quota", "real_time_budget", "control_group")
    assert any(profile[name] is None for name in names)
    json.dumps(profile)


_PROFILE = """
import json
from fastenough.facts import collect
from fastenough.link import LocalLink
print(json.dumps(collect(LocalLink())))
"""


def _profile_inside(group: Path) -> Any:
    done = inside(group, ["env", f"PYTHONPATH={ROOT}", sys.executable, "-c", _PROFILE])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_limits_of_this_machine() -> None:
    with own_group("cpu") as group:
        (group / "cpu.cfs_quota_us").write_text("50000")
        (group / "cpu.rt_runtime_us").write_text("7000")
        inner = group / "inner"
        inner.mkdir()
        try:
            profile = _profile_inside(inner)
        finally:
            inner.rmdir()
    assert profile["cpu_quota"] == {"granted_us": 50_000, "period_us": 100_000}
    assert profile["real_time_budget"]["granted_us"] == 0
    assert profile["control_group"]["folder"] == str(inner)


def test_a_cpuset_of_this_machine() -> None:
    with own_group("cpuset") as group:
        (group / "cpuset.mems").write_text((group.parent / "cpuset.mems").read_text())
        (group / "cpuset.cpus").write_text("0")
        profile = _profile_inside(group)
    assert profile["cpuset"] == profile["cpus_allowed"] == "0"
    assert profile["cpus_allowed"] != collect(LocalLink())["cpuset"]
