# SPDX-License-Identifier: GPL-2.0-or-later
"""A store, or the folder of a report, of another user: no link in it makes us overwrite, change or show a file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from fastenough.files import Untrusted
from fastenough.folder import Folder
from fastenough.history import OWNER, History, catch_up
from fastenough.model import BadInput, FastenoughError
from fastenough.report import require_writable
from fastenough.store import Store
from fastenough.store.directory import LIVE_FILE, RUN_FILE, SEALED_FILE
from fastenough.web.pages import PAGES
from fastenough.web.published import files
from fastenough.web.site import Site
from tests.process.store.test_store_integrity import begin, fastenough, judged, keep, lines
from tests.support.privileges import needs_root

NOBODY = 65534
SECRET = '{"type":"head","secret":"hunter2"}\n'

pytestmark = [pytest.mark.check, needs_root("a user whom root does not trust")]


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file of root's that nobody else may read or change."""
    path = tmp_path / "secret"
    path.write_text(SECRET)
    path.chmod(0o600)
    return path


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A folder of another user."""
    path = tmp_path / "theirs"
    path.mkdir()
    give(path)
    return path


def give(path: Path) -> None:
    for entry in (path, *path.rglob("*")):
        os.chown(entry, NOBODY, NOBODY, follow_symlinks=False)


def unharmed(secret: Path) -> bool:
    return secret.read_text() == SECRET and secret.stat().st_mode & 0o777 == 0o600


def by_link(target: Path, name: Path) -> None:
    name.symlink_to(target)
    os.chown(name, NOBODY, NOBODY, follow_symlinks=False)


def by_hard_link(target: Path, name: Path) -> None:
    name.hardlink_to(target)


PLANTS: list[Callable[[Path, Path], None]] = [by_link, by_hard_link]


@pytest.mark.parametrize("plant", PLANTS)
@pytest.mark.parametrize("name", [LIVE_FILE, SEALED_FILE, RUN_FILE])
def test_a_planted_link_is_neither_read_nor_written(
    theirs: Path,
    secret: Path,
    plant: Callable[[Path, Path], None],
    name: str,
) -> None:
    store = Store(theirs / "store")
    writer = begin(store, 0)
    for line in lines(store.path, writer.id, "none")[:-1]:
        writer.line(line)
    if name != LIVE_FILE:
        writer.end()
    writer.close()
    planted = writer.path / name
    planted.unlink()
    plant(secret, planted)
    give(writer.path) if plant is by_link else os.chown(writer.path, NOBODY, NOBODY)
    again = Store(store.path)
    again.settle()
    recording = again.load(writer.id)
    assert unharmed(secret)
    assert recording.damage is not None
    assert ("symbolic link" if plant is by_link else "hard link") in recording.damage
    assert again.verify()[writer.id]
    shown = fastenough(store, "show", writer.id)
    assert "hunter2" not in shown.stdout + shown.stderr
    assert judged(store, writer.id).verdict == "BROKEN"
    assert unharmed(secret)


@pytest.mark.parametrize("plant", PLANTS)
def test_the_website_serves_no_planted_recording(
    theirs: Path, secret: Path, tmp_path: Path, plant: Callable[[Path, Path], None]
) -> None:
    """Served and published: neither a root-only file, nor a recording that is not what was sealed."""
    run = keep(Store(theirs / "store"), 0)
    place = theirs / "store" / "runs" / run / SEALED_FILE
    sealed = place.read_bytes()
    give(theirs)
    with contextlib.closing(History.temporary()) as history:
        store = Store(theirs / "store")
        site = Site(history, OWNER, store)
        catch_up(history, store)
        (page,) = (one for one in PAGES if one.pattern.endswith(SEALED_FILE))
        assert page.make(site, run=run) == sealed
        for put in (lambda: plant(secret, place), lambda: place.write_bytes(zstandard.compress(SECRET.encode()))):
            place.unlink()
            put()
            with pytest.raises(BadInput, match=r"recording( file)? is not"):
                page.make(site, run=run)
            assert not [path for path, _ in files(site, [page]) if path.endswith(SEALED_FILE)]
    assert unharmed(secret)


def test_a_history_that_is_a_link_is_not_opened(secret: Path, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    for name in ("history.sqlite", "history.sqlite-wal"):
        (store.path / name).symlink_to(secret)
        for url in (None, f"sqlite:///{store.path}/history.sqlite"):
            with pytest.raises(BadInput, match="symbolic link"):
                History.of(store, url)
        (store.path / name).unlink()
    assert unharmed(secret)


@pytest.mark.parametrize("name", ["history.sqlite", "history.sqlite-wal"])
def test_a_database_that_another_user_put_there_is_not_opened(theirs: Path, secret: Path, name: str) -> None:
    """Wherever it is and however it is named: SQLite follows links."""
    (theirs / name).symlink_to(secret)
    for url in (f"sqlite:///{theirs}/history.sqlite", f"sqlite:///{theirs}/../theirs/history.sqlite"):
        with pytest.raises(BadInput, match="writable by other users"):
            History.at(url)
    assert unharmed(secret) and [one.name for one in theirs.iterdir()] == [name]


def test_in_a_store_of_another_user_no_history_is_kept(theirs: Path, tmp_path: Path) -> None:
    """Root serves it all the same, with a history of its own that is gone afterwards."""
    keep(Store(theirs / "store"), 0)
    give(theirs)
    with pytest.raises(BadInput, match="writable by other users"):
        History.of(Store(theirs / "store"))
    done = fastenough(Store(theirs / "store"), "web", "--into", str(tmp_path / "site"), "--all-boards")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "board").is_dir()
    assert not (theirs / "store" / "history.sqlite").exists()


def test_beside_names_that_were_predictable(theirs: Path, secret: Path) -> None:
    store = Store(theirs / "store")
    writer = begin(store, 0)
    for name in (RUN_FILE, SEALED_FILE):
        by_link(secret, writer.path / f"{name}.new")
    for line in lines(store.path, writer.id, "none"):
        writer.line(line)
    writer.end()
    assert unharmed(secret)
    assert store.verify() == {}


def test_a_run_folder_that_is_a_link(theirs: Path, tmp_path: Path) -> None:
    """A link to a store of root's would show its runs to whoever gets the report."""
    own = Store(tmp_path / "own")
    run = keep(own, 0)
    store = Store(theirs / "store")
    by_link(own.path / "runs" / run, store.path / "runs" / run)
    damage = Store(store.path).load(run).damage
    assert damage is not None
    assert "symbolic link" in damage


def test_runs_or_store_that_are_links(theirs: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (theirs / "store").mkdir()
    by_link(tmp_path / "elsewhere", theirs / "store" / "runs")
    by_link(tmp_path / "elsewhere", theirs / "link")
    for path in (theirs / "store", theirs / "link", theirs / "link" / "below"):
        with pytest.raises(BadInput, match="symbolic link"):
            Store(path)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_link_of_ones_own_is_followed(tmp_path: Path) -> None:
    """As people do whose home is small."""
    (tmp_path / "large").mkdir()
    (tmp_path / "store").symlink_to("large")
    run = keep(Store(tmp_path / "store"), 0)
    assert (tmp_path / "large" / "runs" / run).is_dir()


@pytest.mark.parametrize("name", ["index.sqlite", "index.sqlite-journal", "index.sqlite-wal"])
def test_the_index_of_another_user_is_not_opened(theirs: Path, secret: Path, name: str) -> None:
    """SQLite follows links, and deletes files that a planted journal names."""
    (theirs / "store").mkdir()
    by_link(secret, theirs / "store" / name)
    give(theirs / "store")
    store = Store(theirs / "store")
    run = keep(store, 0)
    assert [summary.id for summary in Store(store.path).runs()] == [run]
    assert sorted(entry.name for entry in store.path.iterdir()) == sorted([name, "made.jsonl", "runs"])
    assert unharmed(secret)
    assert store.rebuild() == {}
    assert unharmed(secret)


def test_a_folder_that_was_exchanged_stays_the_one_that_was_opened(theirs: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "runs").mkdir(parents=True)
    store = Store(theirs / "store")
    store.path.rename(theirs / "aside")
    by_link(tmp_path / "elsewhere", theirs / "store")
    writer = begin(store, 0)
    writer.line(b"{}\n")
    writer.end()
    assert list((tmp_path / "elsewhere" / "runs").iterdir()) == []
    assert (theirs / "aside" / "runs" / writer.id / SEALED_FILE).is_file()


@pytest.mark.parametrize("name", ["index.html", "report.json", "figures", "tables"])
def test_a_report_follows_no_link(theirs: Path, secret: Path, tmp_path: Path, name: str) -> None:
    store = Store(tmp_path / "own")
    run = keep(store, 0)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "old.csv").write_text("keep")
    out = theirs / "report"
    out.mkdir()
    (out / "report.json").write_text("{}")
    if name == "report.json":
        (out / name).unlink()
    by_link(secret if "." in name else tmp_path / "elsewhere", out / name)
    ended = fastenough(store, "report", run, "--limit", "1ms", "--out", str(out))
    assert (ended.returncode, "symbolic link" in ended.stderr) == (2, True)
    assert unharmed(secret)
    assert [entry.name for entry in (tmp_path / "elsewhere").iterdir()] == ["old.csv"]


def test_a_report_folder_that_is_another_users_link(theirs: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    by_link(tmp_path / "elsewhere", theirs / "report")
    for path in (theirs / "report", theirs / "report" / "new"):
        with pytest.raises(BadInput, match="symbolic link of user 65534"):
            require_writable(path)


def test_names_that_lead_out_of_a_folder(tmp_path: Path) -> None:
    with Folder.at(tmp_path) as folder, pytest.raises(Untrusted, match="no name of a file"):
        folder.replace("../x", b"")
    assert issubclass(Untrusted, FastenoughError)


def test_files_made_for_another_user_can_be_read_by_them(theirs: Path) -> None:
    """What root measures in a user's checkout is of use to that user."""
    store = Store(theirs / "store")
    run = keep(store, 0)
    assert all(path.stat().st_mode & 0o004 for path in (store.path / "runs" / run).iterdir())


def test_a_pull_removes_what_a_killed_one_left_unfinished(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.spool("board", "ring", lambda: None) as spool:
        spool.add("run.jsonl", b"{}\n")
    (folder,) = (tmp_path / "pulled").glob("board-*")
    unfinished = [place / f".run.{'0af3' * 4}.new" for place in (folder, tmp_path / "pulled/ids")]
    others = [folder / ".run.new", folder / f"run.{'0af3' * 4}.new"]
    for path in (*unfinished, *others):
        path.write_bytes(b"")
    with store.spool("board", "ring", lambda: None) as spool:
        assert spool.size("run.jsonl") == 3
    assert not any(path.exists() for path in unfinished)
    assert all(path.exists() for path in others)
