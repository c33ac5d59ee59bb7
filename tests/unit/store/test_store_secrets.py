# SPDX-License-Identifier: GPL-2.0-or-later
"""What is printed of an index's database, and of names that look like markup."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastenough.store import INDEX_SETTING, Store
from tests.process.store.test_store_integrity import begin, fastenough, lines

URLS = [
    "postgresql+psycopg://fe:hunter2@127.0.0.1:1/name",
    "postgresql+psycopg://fe@127.0.0.1:1/name?password=hunter2",
    "postgresql+psycopg://fe:hunter2@127.0.0.1:port/name",
    "postgresql+psycopg://fe:hunter2/@127.0.0.1/name",
    "postgresql+psycopg://fe@127.0.0.1:1/name?nonsense=hunter2",
    "postgresql+psycopg://fe:hunter2@hunter2.invalid:1/name",
    "oracle+nothing://fe:hunter2@somewhere/x",
    "fe:hunter2@somewhere",
    "sqlite:////nowhere/hunter2?mode=hunter2",
    "mysql://fe:hunter%32@somewhere/x",
]


@pytest.mark.parametrize("url", URLS)
def test_a_password_is_never_printed(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "store")
    monkeypatch.setenv(INDEX_SETTING, url)
    ended = fastenough(store, "list")
    assert ended.returncode in (2, 4)
    assert "index" in ended.stderr
    assert "password=hunter2" not in ended.stderr
    assert "hunter2@" not in ended.stderr
    assert "hunter2" not in ended.stderr.replace("/nowhere/hunter2", "")


def test_names_that_look_like_markup(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    for board in ("[/x]", "[red]x", ":smile:", "a\x1b[2Jb\ud800"):
        writer = begin(store, 0)
        for line in lines(store.path, writer.id, "none", head={"board": board}):
            writer.line(line)
        writer.end()
    listed = fastenough(store, "list")
    assert listed.returncode == 0
    for shown in ("[/x]", "[red]x", ":smile:", "a\ufffd[2Jb\ufffd"):
        assert shown in listed.stdout
    assert fastenough(store, "show", "last").returncode == 0
