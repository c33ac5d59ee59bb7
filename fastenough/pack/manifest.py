# SPDX-License-Identifier: GPL-2.0-or-later
"""The manifest of a pack: every member with its hash, and the runs; and the names of the members."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fastenough.model import BadInput
from fastenough.pack.archive import Archive, Entry
from fastenough.pack.plain import from_json

MANIFEST = "manifest.json"
SIGNATURE = "manifest.json.sig"
QUESTION = "question.json"
VERSIONS = "versions.json"
ASSESSMENT = "assessment.json"
ASSUMPTIONS = "assumptions.json"
UNCERTAINTY = "uncertainty.json"
MACHINES = "machines.json"
DOCUMENTS = (QUESTION, VERSIONS, ASSESSMENT, ASSUMPTIONS, UNCERTAINTY, MACHINES)
MOST_RUNS = 1000
MOST_DOCUMENT_BYTES = 64 << 20
MOST_SIGNATURE_BYTES = 1 << 16
_FORMAT, _VERSION = "fastenough-pack", 1
_RUN_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,99}")


@dataclass(frozen=True)
class Member:
    """A member and the SHA-256 of its content."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class PackedRun:
    """A run: the SHA-256 of its uncompressed recording, as in the store, and the name of the member with its plan."""

    id: str
    sha256: str
    plan: str | None


@dataclass(frozen=True)
class Manifest:
    """All members except the manifest and its signature, in their order."""

    members: tuple[Member, ...]
    runs: tuple[PackedRun, ...]
    format: str = _FORMAT
    version: int = _VERSION


def recording_name(run_id: str) -> str:
    """The name of the member with the recording of a run; raises BadInput for an id that cannot be a name."""
    if not _RUN_ID.fullmatch(run_id):
        raise BadInput(f"run {run_id[:80]}: a pack cannot hold a run with this id; import or measure it again")
    return f"recordings/{run_id}.jsonl.zst"


def plan_name(number: int) -> str:
    """The name of the member with the plan of this number."""
    return f"plans/{number}.toml"


def manifest_of(entries: Iterable[Entry], runs: Sequence[PackedRun]) -> Manifest:
    """The manifest of these members."""
    return Manifest(tuple(Member(entry.name, entry.bytes, entry.sha256) for entry in entries), tuple(runs))


def _expected_names(runs: Sequence[PackedRun]) -> list[str]:
    plans = dict.fromkeys(run.plan for run in runs if run.plan is not None)
    if list(plans) != [plan_name(number) for number in range(1, len(plans) + 1)]:
        raise BadInput("its plans are not numbered from 1")
    return [*(recording_name(run.id) for run in runs), *plans, *DOCUMENTS]


@dataclass(frozen=True)
class Contents:
    """The checked members of an archive, by name; ``signature`` is None if the pack is not signed."""

    archive: Archive
    manifest: Manifest
    manifest_bytes: bytes
    members: dict[str, Entry]
    signature: Entry | None

    def read(self, name: str) -> bytes:
        return self.archive.read(self.members[name], MOST_DOCUMENT_BYTES)


def contents_of(archive: Archive) -> Contents:
    """The members of an archive; raises BadInput unless they are those of its manifest, with the same hashes."""
    *members, last = archive.entries
    signature = last if last.name == SIGNATURE else None
    if signature is not None and members:
        *members, last = members
    if last.name != MANIFEST:
        raise BadInput(f"{archive.name}: not an evidence pack: it does not end with {MANIFEST}")
    raw = archive.read(last, MOST_DOCUMENT_BYTES)
    try:
        manifest = from_json(Manifest, raw)
        if (manifest.format, manifest.version) != (_FORMAT, _VERSION):
            raise BadInput(f"its version is not supported; this program reads version {_VERSION}")
        _check(manifest, members)
    except (ValueError, BadInput) as error:
        raise BadInput(f"{archive.name}: {MANIFEST}: {str(error)[:200]}") from error
    return Contents(archive, manifest, raw, {entry.name: entry for entry in members}, signature)


def _check(manifest: Manifest, members: Sequence[Entry]) -> None:
    """Raises BadInput unless the manifest lists these members, and they are those that its runs require."""
    if len(manifest.runs) > MOST_RUNS or not manifest.runs:
        raise BadInput(f"it has {len(manifest.runs)} runs; a pack has 1 to {MOST_RUNS}")
    listed = manifest_of(members, ()).members
    names, stated_names = [member.name for member in listed], [member.name for member in manifest.members]
    if names != stated_names:
        absent = [name for name in stated_names if name not in names]
        surplus = [name for name in names if name not in stated_names]
        difference = (
            f"{absent[0][:80]} is missing" if absent else f"{surplus[0]} is not listed" if surplus else "wrong order"
        )
        raise BadInput(f"it does not list the files of the pack: {difference}")
    changed = [
        member.name for member, stated_member in zip(listed, manifest.members, strict=True) if member != stated_member
    ]
    if changed:
        raise BadInput(f"SHA-256 mismatch: {changed[0]} was changed after it was packed")
    if names != _expected_names(manifest.runs):
        raise BadInput("its files are not those of its runs")
