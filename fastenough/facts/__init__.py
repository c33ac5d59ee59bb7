# SPDX-License-Identifier: GPL-2.0-or-later
"""Facts about a board: one file per family, one line here for each; together they are the profile of a run."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Collection, Iterable, Sequence

from fastenough.facts.fact import Absent, Fact, Inputs, Profile, Unread
from fastenough.link import Link, Stalled, read_matching
from fastenough.link.base import Flood
from fastenough.registry import listed

__all__ = ["FACTS", "Absent", "Fact", "Inputs", "Profile", "collect", "gather", "profile_sha256"]

FACTS: tuple[Fact, ...] = tuple(
    fact
    for family in listed(
        __name__,
        "FACTS",
        (
            "machine",
            "identity",
            "kernel",
            "cpu",
            "memory",
            "timing",
            "power",
            "interrupts",
            "tasks",
            "tunables",
            "allowance",
            "disturbance",
            "software",
            "console",
            "cores",
            "thermal",
            "limits",
            "mounts",
            "services",
            "cache",
            "machine_check",
            "latency_request",
            "activity",
            "scheduler",
            "devices",
            "emulator",
        ),
    )
    for fact in family
)

_GZIP, _OF_GZIP = b"\x1f\x8b", 16 + zlib.MAX_WBITS
_NOT_UNDERSTOOD = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""What parsers raise for text, or a structure in JSON, that has another form than expected."""
_MOST_UNPACKED = 1 << 24
"""Bytes; the configuration of a kernel has less than half a million."""


def _text(content: bytes) -> str:
    """The text of a file, unpacked; empty if it is damaged or too long."""
    if content.startswith(_GZIP):
        unpacking = zlib.decompressobj(_OF_GZIP)
        try:
            content = unpacking.decompress(content, _MOST_UNPACKED)
        except zlib.error:
            return ""
        if not unpacking.eof:
            return ""
    return content.decode(errors="replace")


def _texts(link: Link, patterns: Iterable[str]) -> dict[str, str]:
    return {path: _text(content) for path, content in read_matching(link, patterns).items()}


def _further(facts: Iterable[Fact], inputs: Inputs) -> list[str]:
    """Files whose names follow from the first answers, in the order of the facts."""
    paths: dict[str, None] = {}
    for name_files in dict.fromkeys(fact.further for fact in facts if fact.further):
        paths.update(dict.fromkeys(name_files(inputs)))
    return list(paths)


def gather(link: Link, facts: Sequence[Fact] = FACTS) -> Inputs:
    """Read from a board all files and commands that the facts need, each once."""
    binary_files = {path for fact in facts for path in fact.binary_files}
    patterns = (*binary_files, *(pattern for fact in facts for pattern in fact.files))
    files = {
        path: content.hex() if path in binary_files else _text(content)
        for path, content in read_matching(link, patterns).items()
    }
    files |= _texts(link, _further(facts, Inputs(files, {})))
    outputs: dict[str, str] = {}
    unread: dict[str, str] = {}
    for command in sorted({command for fact in facts for command in fact.commands}):
        try:
            completed = link.run(command.split())
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            continue
        except (OSError, Stalled, Flood) as reason:
            unread[command] = str(reason)
            continue
        if completed.status == 0:
            outputs[command] = completed.text
    return Inputs(files, outputs, unread)


def collect(link: Link, only: Collection[str] | None = None) -> Profile:
    """The profile: every fact by name, None where it is absent, and under ``absent`` the reason for each of those.

    ``only``: names of the requested facts; None for all.
    """
    facts = [fact for fact in FACTS if only is None or fact.name in only]
    inputs = gather(link, facts)
    profile: dict[str, object] = {}
    absent: dict[str, str] = {}
    for fact in facts:
        try:
            profile[fact.name] = fact.parse(inputs)
        except Absent as reason:
            profile[fact.name] = None
            absent[fact.name] = str(reason)
        except Unread as reason:
            profile[fact.name] = None
            absent[fact.name] = f"not read: {reason}"
        except _NOT_UNDERSTOOD as error:
            profile[fact.name] = None
            absent[fact.name] = f"not understood: {error!r}"
    return profile | {"absent": absent}


def profile_sha256(profile: Profile) -> str:
    """The hash of the board and its configuration, without volatile facts."""
    volatile = {fact.name for fact in FACTS if fact.volatile} | {"absent"}
    lasting = {name: value for name, value in profile.items() if name not in volatile}
    return hashlib.sha256(json.dumps(lasting, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
