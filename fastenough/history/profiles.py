# SPDX-License-Identifier: GPL-2.0-or-later
"""Stored profiles: the facts that do not change from run to run, the displayed ones, and the differences of two
profiles."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from fastenough.analysis.keys import KEYED_FACTS
from fastenough.facts import FACTS, Profile

_VOLATILE = {fact.name for fact in FACTS if fact.volatile} | {"absent"}
_MOST_CHARS = 200
"""Characters of a value."""


@dataclass(frozen=True)
class ProfileDifference:
    """A difference of two profiles; a value is empty if its profile lacks the part.  ``latency``: it affects
    latencies."""

    key: str
    was: str
    now: str
    latency: bool


def stable_facts(profile: Profile) -> Profile:
    """A profile without the facts that change from run to run."""
    return {name: value for name, value in profile.items() if name not in _VOLATILE and value is not None}


def packed_profile(profile: Profile) -> bytes:
    return zlib.compress(json.dumps(stable_facts(profile), sort_keys=True).encode())


def unpacked_profile(content: bytes) -> Profile:
    profile: Profile = json.loads(zlib.decompress(content))
    return profile


def _parts(value: Any, name: str) -> Iterator[tuple[str, str]]:
    """Every part by its whole name; a list of plain values is one for each of them."""
    if isinstance(value, dict):
        for part, below in value.items():
            yield from _parts(below, f"{name}.{part}" if name else str(part))
    elif isinstance(value, list) and all(isinstance(item, str) for item in value):
        for item in value:
            part, equals, of = item.partition("=")
            yield f"{name}.{part}", of if equals else "yes"
    elif value is not None:
        yield name, value if isinstance(value, str) else json.dumps(value)


def profile_differences(was: Profile, now: Profile) -> list[ProfileDifference]:
    """The lasting differences of two profiles, first those that affect latencies."""
    before, after = dict(_parts(stable_facts(was), "")), dict(_parts(stable_facts(now), ""))
    differing = [
        name
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name) and (name not in _ADDED_PARTS or (name in before and name in after))
    ]
    repeated = {
        name
        for name in differing
        if name == "kernel_config.sha256"
        or (name.startswith("kernel_config.set.") and name.replace(".set.", ".of_interest.") in differing)
    }
    if repeated != set(differing):  # a changed hash is listed only without details of the change
        differing = [name for name in differing if name not in repeated]
    differences = [
        ProfileDifference(name, before.get(name, "")[:_MOST_CHARS], after.get(name, "")[:_MOST_CHARS], _matters(name))
        for name in differing
    ]
    return sorted(differences, key=lambda difference: not difference.latency)


def _matters(name: str) -> bool:
    fact = name.partition(".")[0]
    return fact in KEYED_FACTS and fact not in _TOLD_ONLY and not name.startswith("kernel_config.set.")


_ADDED_PARTS = {"kernel.build_id"}
"""Parts that profiles of older versions lack: nothing changed where only one of two profiles has them."""
_TOLD_ONLY = {"packages", "modules"}
"""Facts that keys name and that forbid nothing."""


class DisplayFacts(TypedDict):
    """Displayed facts of a board; 0 or empty if unknown."""

    cpus: int
    arch: str
    model: str
    kernel: str
    preemption: str
    facts: dict[str, str]


def display_facts(profile: Profile) -> DisplayFacts:
    """The facts of a profile that pages show."""
    count = _part(profile, "cpu", "count")
    return {
        "cpus": int(count) if count.isdecimal() else 0,
        "arch": _part(profile, "cpu", "architecture"),
        "model": _part(profile, "cpu", "model"),
        "kernel": _part(profile, "kernel", "release"),
        "preemption": _part(profile, "kernel", "preemption"),
        "facts": _facts(profile),
    }


def _facts(profile: Profile) -> dict[str, str]:
    governors = {
        str(cpu.get("scaling_governor"))
        for cpu in _below(profile, "frequency", "cpus").values()
        if isinstance(cpu, dict)
    }
    facts = {
        "governor": ", ".join(sorted(governors)),
        "isolcpus": _part(profile, "cpu_isolation", "isolated"),
        "nohz_full": _part(profile, "cpu_isolation", "nohz_full"),
        "clock source": _text(profile, "clocksource"),
        "idle driver": _part(profile, "idle", "driver"),
        "microcode": _part(profile, "cpu", "microcode"),
        "hypervisor": _text(profile, "hypervisor"),
        "command line": _text(profile, "cmdline"),
    }
    return {name: value for name, value in facts.items() if value}


def _part(profile: Profile, fact: str, name: str) -> str:
    """A part of a fact as text, empty if unknown."""
    values = profile.get(fact)
    value = values.get(name) if isinstance(values, dict) else None
    return "" if value is None else str(value)[:_MOST_CHARS]


def _below(profile: Profile, fact: str, name: str) -> Mapping[str, object]:
    values = profile.get(fact)
    value = values.get(name) if isinstance(values, dict) else None
    return value if isinstance(value, dict) else {}


def _text(profile: Profile, fact: str) -> str:
    value = profile.get(fact)
    return value[: _MOST_CHARS * 5] if isinstance(value, str) else ""
