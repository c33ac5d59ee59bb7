# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's programs for boards that lack them: whole, and no more than they need."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
from pathlib import Path

import pytest

from fastenough.loads import TOOL_PACKAGES
from fastenough.model import FastenoughError
from fastenough.virtual.packages import GUEST_ARCH, Apt, cache_dir
from fastenough.virtual.tools import Tools, fetch_tools
from tests.support.tools import require

pytestmark = pytest.mark.untimed


@pytest.fixture(scope="module")
def fetched() -> Tools:
    require("apt-get", "dpkg", "readelf")
    return fetch_tools(TOOL_PACKAGES, GUEST_ARCH)


def _names(archive: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as content:
        return content.getnames()


@pytest.mark.slow
def test_an_archive_holds_what_its_programs_need_and_no_more(fetched: Tools) -> None:
    small, large = fetched.archive(["hackbench"]), fetched.archive(list(TOOL_PACKAGES))
    assert {"bin/hackbench", "programs/hackbench", "run/hackbench", "lib/libc.so.6"} < set(_names(small))
    assert len(_names(small)) < 10 and "lib/libcrypto.so.3" not in _names(small)
    assert {f"bin/{tool}" for tool in TOOL_PACKAGES} < set(_names(large)) > set(_names(small))
    assert "lib/libcrypto.so.3" in _names(large)
    assert fetched.archive(["hackbench"]) == small
    assert set(fetched.versions) == set(TOOL_PACKAGES.values())


@pytest.mark.slow
def test_what_is_not_whole_is_not_used(fetched: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be fetched again; here it cannot be."""
    monkeypatch.setenv("FASTENOUGH_CACHE", str(tmp_path))
    for scheme in ("http", "https"):
        monkeypatch.setenv(f"{scheme}_proxy", "http://127.0.0.1:9")
    kept = cache_dir() / "tools" / fetched.folder.name
    shutil.copytree(fetched.folder, kept)
    assert fetch_tools(TOOL_PACKAGES, GUEST_ARCH).folder == kept
    for name in ("programs/stress-ng", "lib/libc.so.6", "bin/hackbench"):
        content = (kept / name).read_bytes()
        os.truncate(kept / name, len(content) - 1)
        with pytest.raises(FastenoughError, match="the package sources cannot be reached"):
            fetch_tools(TOOL_PACKAGES, GUEST_ARCH)
        (kept / name).write_bytes(content)
        assert fetch_tools(TOOL_PACKAGES, GUEST_ARCH).folder == kept
    for garbage in ("", "[]", '{"sha256": {}}', '{"sha256": [1], "files": 1}', "\0"):
        (kept / "tools.json").write_text(garbage)
        with pytest.raises(FastenoughError, match="the package sources cannot be reached"):
            fetch_tools(TOOL_PACKAGES, GUEST_ARCH)


def test_libraries_are_followed_and_nothing_else(tmp_path: Path) -> None:
    def entry(name: str, depends: str = "") -> str:
        field = f"Depends: {depends}\n" if depends else ""
        return f"Package: {name}\nArchitecture: all\nVersion: 1\n{field}Filename: ./{name}.deb\nSize: 1\n\n"

    (tmp_path / "Packages").write_text(
        entry("tool", "liba1 (>= 1), python, zlib1g")
        + entry("liba1", "libb1 | libc1, libnone1")
        + entry("libb1", "liba1")
        + entry("libc1")
        + entry("zlib1g")
        + entry("python", "libpython1")
        + entry("libpython1")
    )
    folder = tmp_path / "apt"
    folder.mkdir()
    (folder / "sources.list").write_text(f"deb [trusted=yes] file:{tmp_path} ./\n")
    apt = Apt(folder, GUEST_ARCH)
    apt.update()
    assert sorted(apt.with_libraries(["tool"])) == ["liba1", "libb1", "libc1", "tool", "zlib1g"]
    assert apt.versions(["tool", "zlib1g"]) == {"tool": "1", "zlib1g": "1"}
    with pytest.raises(FastenoughError, match="no package gone in the apt sources"):
        apt.with_libraries(["gone"])
