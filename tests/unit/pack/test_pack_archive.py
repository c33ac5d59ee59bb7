# SPDX-License-Identifier: GPL-2.0-or-later
"""The ZIP file of a pack: every program can read it, and no other ZIP file is read."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from fastenough.model import BadInput
from fastenough.pack.archive import MOST_MEMBERS, Archive, ArchiveWriter
from tests.support.packs import Raw, zip_of

FILES = [Raw(b"recordings/a.jsonl.zst", b"\0\1\2" * 5), Raw(b"question.json", b"{}\n"), Raw(b"manifest.json", b"[]\n")]
FIRST, SECOND, THIRD = FILES
GOOD = zip_of(FILES)


def read(folder: Path, content: bytes) -> Archive:
    path = folder / "x.zip"
    path.write_bytes(content)
    return Archive(path.open("rb"), "x.zip")


def require_refused(folder: Path, content: bytes, reason: str = "") -> None:
    with pytest.raises(BadInput, match=reason or None) as caught:
        read(folder, content)
    assert "\n" not in str(caught.value) and str(caught.value).startswith("x.zip: ")


def test_it_is_written_as_the_format_says_and_read_by_other_programs(tmp_path: Path) -> None:
    stream = io.BytesIO()
    writer = ArchiveWriter(stream)
    for file in FILES:
        writer.add(file.name.decode(), file.content)
    writer.end()
    assert stream.getvalue() == GOOD
    with zipfile.ZipFile(stream) as others:
        assert others.testzip() is None
        assert {name.encode(): others.read(name) for name in others.namelist()} == {
            file.name: file.content for file in FILES
        }
        assert {entry.external_attr >> 16 for entry in others.infolist()} == {0o100644}
        assert {entry.date_time for entry in others.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_members_are_read_where_they_are(tmp_path: Path) -> None:
    archive = read(tmp_path, GOOD)
    assert [entry.name.encode() for entry in archive.entries] == [file.name for file in FILES]
    first, second = (archive.open_member(entry) for entry in archive.entries[:2])
    assert (first.read(1), second.read(), first.read()) == (b"\0", b"{}\n", FIRST.content[1:])
    assert first.seek(0, io.SEEK_END) == len(FIRST.content)
    with pytest.raises(BadInput, match="question"):
        archive.read(archive.entries[1], 2)


def test_each_changed_byte_is_detected(tmp_path: Path) -> None:
    for place in range(len(GOOD)):
        require_refused(tmp_path, GOOD[:place] + bytes([GOOD[place] ^ 1 << place % 8]) + GOOD[place + 1 :])


def test_each_truncation_is_detected(tmp_path: Path) -> None:
    for length in range(len(GOOD)):
        require_refused(tmp_path, GOOD[:length])


BOMB = zlib.compress(bytes(1 << 20), 9)[2:-4]
LYING = replace(FIRST, content=BOMB, method=8, crc=zlib.crc32(bytes(1 << 20)), size=1 << 20)
NAMES = (
    b"../question.json",
    b"/etc/passwd",
    b"a/../../b",
    b"a\\b",
    b"C:a",
    b"a//b",
    b"a/",
    b".",
    b"",
    b".hidden",
    b"a/.b",
    *(b"a" * 300, b"a\0b", b"a\x1b[2J", "é".encode(), b"\xff", b"a/b/c", b"con .json", b"-rf"),
)


@pytest.mark.parametrize("name", NAMES)
def test_names_that_leave_the_pack_are_refused(tmp_path: Path, name: bytes) -> None:
    require_refused(tmp_path, zip_of([replace(FIRST, name=name), SECOND]), "no file named")


HOSTILE = {
    "a bomb": (zip_of([LYING, SECOND]), "compressed"),
    "a bomb that says it is stored": (zip_of([replace(LYING, method=0), SECOND]), "not stored"),
    "an encrypted file": (zip_of([replace(FIRST, flags=1), SECOND]), "encrypted"),
    "sizes behind the data": (zip_of([replace(FIRST, flags=8), SECOND]), "not stored"),
    "a size beyond the end": (zip_of([replace(FIRST, size=1 << 31, stored_size=1 << 31)]), "truncated"),
    "the size of ZIP64": (zip_of([replace(FIRST, size=0xFFFFFFFF, stored_size=0xFFFFFFFF)]), "truncated"),
    "an extra field": (zip_of([replace(FIRST, extra=struct.pack("<HH", 1, 0))]), "not stored"),
    "another time": (zip_of([replace(FIRST, date=34)]), "not stored"),
    "a wrong checksum": (zip_of([replace(FIRST, crc=5)]), "damaged"),
    "a symbolic link": (zip_of(FILES, [replace(FIRST, attributes=0o120777 << 16), SECOND, THIRD]), "directory"),
    "a program": (zip_of(FILES, [replace(FIRST, attributes=0o104755 << 16), SECOND, THIRD]), "directory"),
    "another name in the directory": (zip_of(FILES, [replace(FIRST, name=b"x"), SECOND, THIRD]), "directory"),
    "overlapping files": (zip_of(FILES, [FIRST, replace(SECOND, offset=0), THIRD]), "directory"),
    "a comment of a file": (zip_of(FILES, [replace(FIRST, comment=b"x"), SECOND, THIRD]), "directory"),
    "a comment": (zip_of(FILES, comment=b"x"), "directory"),
    "two of one name": (zip_of([FIRST, SECOND, FIRST]), "two files"),
    "names that differ in case": (zip_of([SECOND, replace(SECOND, name=b"Question.json")]), "two files"),
    "data after the end": (GOOD + b"x", "after its end"),
    "a second pack after the end": (GOOD + GOOD, "after its end"),
    "data before the begin": (b"#!/bin/sh\n" + GOOD, "not an evidence pack"),
    "nothing": (b"", "not an evidence pack"),
    "no file": (zip_of([]), "not an evidence pack"),
    "something else": (b"GIF89a" * 100, "not an evidence pack"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_files_are_refused(tmp_path: Path, what: str) -> None:
    require_refused(tmp_path, *HOSTILE[what])


def test_the_number_of_files_is_bounded(tmp_path: Path) -> None:
    many = [Raw(b"recordings/%d.jsonl.zst" % number, b"") for number in range(10_000)]
    require_refused(tmp_path, zip_of(many), "more than")
    assert len(read(tmp_path, zip_of(many[:MOST_MEMBERS])).entries) == MOST_MEMBERS


def test_a_writer_makes_nothing_that_is_refused() -> None:
    writer = ArchiveWriter(io.BytesIO())
    for number in range(MOST_MEMBERS):
        writer.add(f"{number}", b"")
    with pytest.raises(BadInput, match="at most"):
        writer.add("more", b"")
