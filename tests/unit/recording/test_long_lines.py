# SPDX-License-Identifier: GPL-2.0-or-later
"""The end of a long run on many CPUs may be longer than any other line."""

from __future__ import annotations

import hashlib
import io
from contextlib import closing
from pathlib import Path

import pytest

from fastenough.folder import Folder
from fastenough.history.ingest import _lines
from fastenough.jobs.live import FileTail
from fastenough.model import BadInput
from fastenough.recording import read_recording
from fastenough.recording.lines import MOST_LINE_BYTES
from fastenough.store import Store
from fastenough.web.uploads import _content_sha256

GOLDEN = Path(__file__).resolve().parents[3] / "format" / "golden" / "timer-2.jsonl"


def _lengthened(kind: str) -> bytes:
    """A recording whose lines of this type are longer than any but an end may be."""
    begin = b'{"type":"%s",' % kind.encode()
    return GOLDEN.read_bytes().replace(begin, begin + b" " * (MOST_LINE_BYTES + (1 << 20)))


def test_a_long_end_is_read(tmp_path: Path) -> None:
    path, content = tmp_path / "long.jsonl", _lengthened("end")
    path.write_bytes(content)
    assert read_recording(path).end == read_recording(GOLDEN).end
    assert b"".join(_lines(io.BytesIO(content), "run", 0)) == content
    with Folder.at(tmp_path) as folder, closing(FileTail(folder, path.name)) as tail:
        assert b"".join(line for lines in iter(tail.take, []) for line in lines) == content


def test_a_run_with_a_long_end_is_sealed(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    writer = store.begin()
    run_id = read_recording(GOLDEN).run_id
    for line in _lengthened("end").replace(run_id.encode(), writer.id.encode()).splitlines(keepends=True):
        writer.line(line)
    assert writer.end().state == "ended"
    assert store.load(writer.id).damage is None


def test_other_long_lines_are_refused(tmp_path: Path) -> None:
    path, content = tmp_path / "long.jsonl", _lengthened("interval")
    path.write_bytes(content)
    with pytest.raises(BadInput):
        read_recording(path)
    with pytest.raises(BadInput):
        list(_lines(io.BytesIO(content), "run", 0))


def test_a_long_end_of_an_upload_is_refused() -> None:
    with pytest.raises(BadInput):
        _content_sha256(io.BytesIO(_lengthened("end")), "run")
    assert _content_sha256(io.BytesIO(GOLDEN.read_bytes()), "run") == hashlib.sha256(GOLDEN.read_bytes()).hexdigest()
