# SPDX-License-Identifier: GPL-2.0-or-later
"""The distribution and its packages."""

from __future__ import annotations

import hashlib
from typing import TypedDict

from fastenough.facts.fact import Absent, Fact, Inputs

_RELEASES = ("/etc/os-release", "/usr/lib/os-release")
_STATUS_FILES = ("/var/lib/dpkg/status", "/usr/lib/opkg/status", "/var/lib/opkg/status")
_RPM = "rpm -qa --qf %{NAME}=%{VERSION}-%{RELEASE}\\n"
_OF_INTEREST = (
    "libc6",
    "glibc",
    "musl",
    "busybox",
    "systemd",
    "stress-ng",
    "rt-tests",
    "irqbalance",
    "tuned",
    "rtkit",
    "linux-image-",
    "intel-microcode",
    "amd64-microcode",
    "xenomai",
    "libevl",
)


class PackagesFact(TypedDict):
    """Number and hash of the installed packages, versions of those that affect latency, and all as name=version."""

    count: int
    sha256: str
    of_interest: dict[str, str]
    installed: list[str]


def parse_os_release(text: str) -> dict[str, str]:
    """The assignments of os-release(5) without quotes."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line and not line.startswith("#"))
    return {name: value.strip("\"'") for name, _, value in pairs}


def parse_status(text: str) -> dict[str, str]:
    """Versions by installed package from a dpkg or opkg status file."""
    packages = {}
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line and not line.startswith(" "))
        if fields.get("Status", "").split()[-1:] == ["installed"]:
            packages[fields["Package"]] = fields["Version"]
    return packages


def parse_rpm(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def _installed(inputs: Inputs) -> dict[str, str]:
    for path in _STATUS_FILES:
        if path in inputs.files:
            return parse_status(inputs.files[path])
    try:
        return parse_rpm(inputs.output(_RPM))
    except Absent as reason:
        raise Absent("no list of packages: none of dpkg, opkg and rpm is here") from reason


def _packages(inputs: Inputs) -> PackagesFact:
    installed = _installed(inputs)
    listed = [f"{name}={version}" for name, version in sorted(installed.items())]
    return {
        "count": len(listed),
        "sha256": hashlib.sha256("\n".join(listed).encode()).hexdigest(),
        "of_interest": {name: version for name, version in sorted(installed.items()) if name.startswith(_OF_INTEREST)},
        "installed": listed,
    }


def _os_release(inputs: Inputs) -> dict[str, str]:
    for path in _RELEASES:
        if path in inputs.files:
            names = ("ID", "VERSION_ID", "PRETTY_NAME", "BUILD_ID")
            release = parse_os_release(inputs.files[path])
            return {name: release[name] for name in names if name in release}
    raise Absent("there is no os-release file")


FACTS = (
    Fact("os_release", _os_release, files=_RELEASES),
    Fact("packages", _packages, files=_STATUS_FILES, commands=(_RPM,)),
)
