# SPDX-License-Identifier: GPL-2.0-or-later
"""Packs for tests: a ZIP file of raw bytes in which every field can be wrong, and small packs with their hashes."""

from __future__ import annotations

import hashlib
import io
import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fastenough.analysis.excluded_runs import Selection
from fastenough.jobs.assess import Question, read_runs
from fastenough.jobs.pack import end_pack, prepare, write_members
from fastenough.model import Requirement
from fastenough.store import Store
from tests.support.recordings import Plan, write

LIMIT = Requirement(200_000)


@dataclass(frozen=True)
class Raw:
    """One file of a ZIP file.  ``None``: what follows from the content."""

    name: bytes
    content: bytes
    flags: int = 0
    method: int = 0
    crc: int | None = None
    size: int | None = None
    stored_size: int | None = None
    extra: bytes = b""
    attributes: int = 0o100644 << 16
    offset: int | None = None
    date: int = 33
    comment: bytes = b""

    @property
    def _common(self) -> tuple[int, ...]:
        size = len(self.content) if self.size is None else self.size
        stored = len(self.content) if self.stored_size is None else self.stored_size
        crc = zlib.crc32(self.content) if self.crc is None else self.crc
        return (20, self.flags, self.method, 0, self.date, crc, stored, size, len(self.name), len(self.extra))

    def local(self) -> bytes:
        return struct.pack("<4sHHHHHLLLHH", b"PK\3\4", *self._common) + self.name + self.extra + self.content

    def central(self, offset: int) -> bytes:
        at = offset if self.offset is None else self.offset
        fixed = struct.pack("<4sHHHHHHLLLHH", b"PK\1\2", 3 << 8 | 20, *self._common)
        fixed += struct.pack("<HHHLL", len(self.comment), 0, 0, self.attributes, at)
        return fixed + self.name + self.extra + self.comment


def zip_of(files: Sequence[Raw], listed: Sequence[Raw] | None = None, comment: bytes = b"") -> bytes:
    """A ZIP file; ``listed``: what its directory says, one for each file."""
    body, directory = b"", b""
    for file, said in zip(files, listed or files, strict=True):
        directory += said.central(len(body))
        body += file.local()
    count = len(files)
    end = struct.pack("<4sHHHHLLH", b"PK\5\6", 0, 0, count, count, len(directory), len(body), len(comment))
    return body + directory + end + comment


def files_of(pack: bytes) -> dict[str, bytes]:
    """The files of a pack, by name, in their order."""
    found, at = {}, 0
    while pack[at : at + 4] == b"PK\3\4":
        size, name_size = struct.unpack_from("<LH", pack, at + 22)
        name = pack[at + 30 : at + 30 + name_size].decode()
        found[name] = pack[at + 30 + name_size : at + 30 + name_size + size]
        at += 30 + name_size + size
    return found


def zipped(files: Mapping[str, bytes]) -> bytes:
    return zip_of([Raw(name.encode(), content) for name, content in files.items()])


def with_files(pack: bytes, changed: Mapping[str, bytes]) -> bytes:
    """The pack with other content, and the hashes of it in its manifest: what a forger can do without a key."""
    files = {**files_of(pack), **changed}
    manifest = json.loads(files["manifest.json"])
    for member in manifest["members"]:
        content = files[member["name"]]
        member |= {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    return zipped(files | {"manifest.json": text_of(manifest)})


def text_of(document: Any) -> bytes:
    return json.dumps(document, indent=1).encode() + b"\n"


def add_run(store: Store, scratch: Path, *, seconds: int = 16, latest_ns: int = 5_000, **more: Any) -> str:
    """A run of one CPU in a store; its last value is ``latest_ns``."""
    origin, attached = more.pop("origin", {}), more.pop("attached", {})
    writer = store.begin(origin)
    values = [np.full(1000, 5_000) for _ in range(seconds)]
    values[-1][-1] = latest_ns
    plan = Plan([values], run_id=writer.id, views=("wakeup_corrected",), **more)
    for line in write(scratch, plan).read_bytes().splitlines(keepends=True):
        writer.line(line)
    for name, content in attached.items():
        writer.attach(name, content)
    writer.end()
    return writer.id


def pack_of(store: Store, runs: Sequence[str], key: Path | None = None, **question: Any) -> bytes:
    """The pack of these runs."""
    planned = question.get("selection", Selection.CAMPAIGN) is Selection.CAMPAIGN
    asked = replace(Question(LIMIT, 0.95, selection=Selection.CAMPAIGN, planned=planned), **question)
    prepared = prepare(read_runs(store, runs), asked, store)
    stream = io.BytesIO()
    archive, manifest = write_members(prepared, stream)
    end_pack(archive, manifest, key)
    return stream.getvalue()
