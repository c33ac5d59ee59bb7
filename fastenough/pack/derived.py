# SPDX-License-Identifier: GPL-2.0-or-later
"""The members derived from the recordings and the question, and the versions of the programs that derive them."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import fastenough
from fastenough.analysis import Assessment
from fastenough.analysis.uncertainty import budgets_of
from fastenough.model import BadInput
from fastenough.pack.assumptions import assumptions_of
from fastenough.pack.manifest import ASSESSMENT, ASSUMPTIONS, MACHINES, QUESTION, UNCERTAINTY
from fastenough.pack.plain import to_json
from fastenough.pack.question import PackedQuestion, with_excluded
from fastenough.recording import Recording
from fastenough.recording.lines import parse_line

_FORMER_KEYS: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    QUESTION: {"": {"together": "all_runs_agree"}},
    ASSESSMENT: {
        "": {"settle": "next_steps"},
        "judgments": {"shown": "evidence"},
        "findings": {"settle": "next_step"},
    },
}
"""Keys in packs of older versions, by member and by the key that holds their object; "" is the document."""
_ADDED_KEYS: Mapping[str, Mapping[str, Mapping[str, object]]] = {
    QUESTION: {"": {"planned": None, "agreed_results": None}, "excluded": {"maximum_is_least": False}},
    ASSESSMENT: {"": {"requirement_results": []}},
}
"""Last keys that objects of older versions lack, with their values there; by member and key as above."""


@dataclass(frozen=True)
class Versions:
    """The programs on which a verdict depends.  ``source_sha256``: hash of the source of fastenough, and so of the
    method (docs/pack.md says how to compute it)."""

    fastenough: str
    source_sha256: str
    python: str
    numpy: str
    scipy: str


@cache
def versions_here() -> Versions:
    """The versions in this process."""
    return Versions(
        fastenough.__version__, _source_sha256(), platform.python_version(), version("numpy"), version("scipy")
    )


def _source_sha256() -> str:
    """The hash of a list of the package's Python files with their hashes, as sha256sum(1) prints it."""
    package = Path(fastenough.__file__).parent
    names = sorted(path.relative_to(package).as_posix() for path in package.rglob("*.py"))
    lines = (f"{hashlib.sha256((package / name).read_bytes()).hexdigest()}  {name}\n" for name in names)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


@dataclass(frozen=True)
class Derived:
    """The verdict, and the members by name."""

    assessment: Assessment
    members: Mapping[str, bytes]


def derive(recordings: Sequence[Recording], question: PackedQuestion, alone: Assessment) -> Derived:
    """The verdict and the derived members; identical in every process of the same versions.

    ``alone``: the verdict on them, whatever else the store has.
    """
    assessment = with_excluded(alone, question)
    return Derived(
        assessment,
        {
            ASSESSMENT: to_json(assessment),
            ASSUMPTIONS: to_json(assumptions_of(recordings, question, assessment)),
            UNCERTAINTY: to_json(budgets_of(recordings)),
            MACHINES: to_json({recording.run_id: recording.head.profile for recording in recordings}),
        },
    )


def with_current_keys(member: str, content: bytes) -> bytes:
    """The content of a member with the keys of this version.

    Text that is not written as in a pack, or has a key in both spellings, is returned unchanged.
    """
    try:
        value = parse_line(content)
        if to_json(value) != content:
            return content
        return to_json(_current(value, "", _FORMER_KEYS.get(member, {}), _ADDED_KEYS.get(member, {})))
    except (ValueError, BadInput):
        return content


def _current(
    value: Any, key: str, former: Mapping[str, Mapping[str, str]], added: Mapping[str, Mapping[str, object]]
) -> Any:
    if isinstance(value, list):
        return [_current(item, key, former, added) for item in value]
    if isinstance(value, dict):
        names = former.get(key, {})
        renamed = {names.get(name, name): _current(item, name, former, added) for name, item in value.items()}
        if len(renamed) != len(value):
            raise ValueError("a key occurs in both spellings")
        return renamed | {name: item for name, item in added.get(key, {}).items() if name not in renamed}
    return value
