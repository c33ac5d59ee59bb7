# SPDX-License-Identifier: GPL-2.0-or-later
"""What the start of a taker lists in the archive, and which files it removes, on a disk and in an object store."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from fastenough.fleet import archive
from fastenough.fleet.archive import FleetArchive, Partition, PartPlace
from tests.support.object_store import object_store_url

TYPES, MONTHS, SHARDS, PARTS = (
    ("gate", "panel", "probe"),
    ("2026-09", "2026-10", "2026-11"),
    (0, 7, 12, 15),
    range(1, 5),
)


class CountedFiles:
    """A file system that counts the paths in the answers to its listings."""

    def __init__(self, files: Any) -> None:
        self._files = files
        self.listed: list[str] = []

    def get_file_info(self, selector: Any) -> Any:
        found = self._files.get_file_info(selector)
        self.listed += [file.path for file in found]
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)


@pytest.fixture(params=["disk", "object store"])
def location(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "disk":
        yield str(tmp_path / "archive")
        return
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with object_store_url("bucket") as url:
        yield url


def _named(kind: str, month: str, shard: int, part: int) -> str:
    return f"{Partition(kind, month, shard).folder}/0002-{part:012}.parquet"


def _paths(archive: FleetArchive) -> set[str]:
    return {path for _, path in archive.readable()}


@pytest.mark.check
def test_the_start_of_a_shard_lists_no_file_of_another_one(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = FleetArchive(location)
    every = {_named(*place) for place in product(TYPES, MONTHS, SHARDS, PARTS)}
    # and one month of a type in which the shard has no file
    every |= {_named("rare", "2026-11", 3, 1), f"{Partition('gate', '2026-09', 7).folder}/closed-0001.parquet"}
    for path in every:
        archive.put(path, [b"x"])
    counted = CountedFiles(archive._files)
    monkeypatch.setattr(archive, "_files", counted)
    archive.drop_from(PartPlace(7, 2, 3))
    types, months, mine = len(TYPES) + 1, len(TYPES) * len(MONTHS) + 1, len(TYPES) * len(MONTHS) * len(PARTS) + 1
    assert len(counted.listed) == types + months + mine
    assert not [path for path in counted.listed if "shard=" in path and "shard=7/" not in path]
    gone = {_named(*place) for place in product(TYPES, MONTHS, (7,), (3, 4))}
    assert _paths(FleetArchive(location)) == every - gone


def test_a_new_archive_has_nothing_to_drop(location: str) -> None:
    archive = FleetArchive(location)
    archive.drop_from(PartPlace(0, 0, 0))
    assert _paths(archive) == set()


@pytest.mark.check
def test_new_folders_of_the_archive_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a power failure could take back a file for which a taker has answered boards."""
    synced: list[Path] = []
    monkeypatch.setattr(archive, "sync_directory", synced.append, raising=False)
    place = FleetArchive(str(tmp_path / "archive"))
    for name in ("first", "second"):
        place.put(f"type=a/month=2026-11/shard=0/{name}.parquet", [b"content"])
    month = tmp_path / "archive" / "type=a" / "month=2026-11"
    assert synced == [month, month.parent, month.parent.parent, tmp_path]
