# SPDX-License-Identifier: GPL-2.0-or-later
"""The virtual bench's cache: what is not whole is found and made again, and checkouts share it without mixing."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastenough.model import FastenoughError, NotApplicable
from fastenough.virtual import packages
from fastenough.virtual.board import VirtualBoard
from fastenough.virtual.initramfs import build_initramfs
from fastenough.virtual.packages import GUEST_ARCH, cache_dir, fetch
from fastenough.virtual.snapshot import Snapshot, snapshot_of
from tests.support.privileges import require_root
from tests.support.virtual_boards import booted

pytestmark = pytest.mark.untimed

ROOT = Path(__file__).resolve().parents[3]
NOWHERE = {f"{scheme}_proxy": "http://127.0.0.1:9" for scheme in ("http", "https")}


@pytest.fixture(scope="module", autouse=True)
def stock_is_there() -> None:
    try:
        for _ in booted("stock"):
            pass
    except NotApplicable as reason:
        pytest.skip(str(reason))


@pytest.fixture
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache with the kernels of the usual one, and an empty folder of snapshots."""
    usual, own = cache_dir(), tmp_path / "cache" / "virtual"
    (own / "snapshots").mkdir(parents=True)
    for name in (f"tree-1-{GUEST_ARCH}", "built"):
        (own / name).symlink_to(usual / name)
    monkeypatch.setenv("FASTENOUGH_CACHE", str(own.parent))
    return own


def answers(board: VirtualBoard) -> bool:
    return board.link.run(["uname", "-r"]).text.strip() == board.kernel.release


def saved_here() -> Snapshot:
    kernel = fetch("stock")
    return snapshot_of(kernel, build_initramfs(kernel), 2)


@pytest.mark.matrix
def test_a_truncated_snapshot_is_discarded_and_the_board_boots(own_cache: Path) -> None:
    path = saved_here().path
    usual = fetch("stock").tree.resolve().parent / "snapshots"
    for name in (path.name, f"{path.name}.sha256"):
        shutil.copy(usual / name, path.parent)
    os.truncate(path, path.stat().st_size // 2)
    with VirtualBoard("stock") as board:
        assert (board.was_restored, answers(board)) == (False, True)
    assert saved_here().intact()
    with VirtualBoard("stock") as board:
        assert (board.was_restored, answers(board)) == (True, True)


def test_a_snapshot_that_qemu_does_not_take_is_discarded(own_cache: Path) -> None:
    """Whole by its hash, and of no use all the same: as one that another version of QEMU has saved."""
    path = saved_here().path
    path.write_bytes(b"no state of a guest" * 1000)
    path.with_name(f"{path.name}.sha256").write_text(hashlib.sha256(path.read_bytes()).hexdigest())
    with VirtualBoard("stock") as board:
        assert (board.was_restored, answers(board)) == (False, True)
    assert saved_here().intact()


@pytest.fixture
def small_disk(own_cache: Path) -> Iterator[Path]:
    folder = own_cache / "snapshots"
    require_root("it mounts a small disk")
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(folder)], check=False, capture_output=True
    ).returncode:
        pytest.skip("this machine lets nobody mount a tmpfs")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_leaves_no_half_a_snapshot(small_disk: Path) -> None:
    (small_disk / "6.12.partial").write_bytes(b"left by an earlier version")
    with VirtualBoard("stock") as board:
        assert answers(board)
        assert list(small_disk.iterdir()) == []


def test_a_kernel_that_is_not_whole_is_fetched_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Here it cannot be: so that is what is said, and not that there is no such package."""
    kernel = fetch("stock")
    tree = tmp_path / "cache" / "virtual" / kernel.tree.name
    for part in [*kernel.parts(), kernel.tree / "lib/modules" / kernel.release / "modules.builtin"]:
        (tree / part.relative_to(kernel.tree)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(part, tree / part.relative_to(kernel.tree))
    record = "stock-image.json"
    shutil.copy(kernel.tree / record, tree)
    monkeypatch.setenv("FASTENOUGH_CACHE", str(tmp_path / "cache"))
    for name, value in NOWHERE.items():
        monkeypatch.setenv(name, value)
    assert fetch("stock").release == kernel.release
    for part in fetch("stock").parts():
        os.truncate(part, part.stat().st_size - 1)
        with pytest.raises(FastenoughError, match="the package sources cannot be reached") as refusal:
            fetch("stock")
        assert "no package" not in str(refusal.value) and "\n" not in str(refusal.value)
        shutil.copy(kernel.tree / part.relative_to(tree), part)
        assert fetch("stock").image.is_file()
    for garbage in ("", "[]", '{"release": "6.1"}', '{"release": "6.1", "sha256": [1]}', "\0"):
        (tree / record).write_text(garbage)
        with pytest.raises(FastenoughError, match="the package sources cannot be reached"):
            fetch("stock")


def test_headers_are_found_where_the_cache_was_moved_to(tmp_path: Path) -> None:
    """Debian's name each other by the place they are installed at; the module was built only where they came first."""
    for place in ("first", "moved"):
        headers = tmp_path / place / "usr" / "src" / "linux-headers-6.1"
        if place == "first":
            headers.mkdir(parents=True)
            (headers / "Makefile").write_text(
                "include /usr/src/linux-headers-6.1-common/Makefile\nKBUILD_OUTPUT=/usr/src/linux-headers-6.1\n"
            )
        else:
            (tmp_path / "first").rename(tmp_path / "moved")
        packages.use_in_place(headers, tmp_path / place)
        assert (headers / "Makefile").read_text() == (
            f"include {tmp_path}/{place}/usr/src/linux-headers-6.1-common/Makefile\n"
            f"KBUILD_OUTPUT={tmp_path}/{place}/usr/src/linux-headers-6.1\n"
        )


def test_a_source_that_is_gone_does_not_hide_the_others(tmp_path: Path) -> None:
    """Packages of the source that answers are found; of others it is said that a source was out of reach."""
    (tmp_path / "Packages").write_text(
        "Package: here\nArchitecture: all\nVersion: 1\nDepends: other (= 1), more\nFilename: ./here.deb\nSize: 1\n\n"
    )
    there, gone = (f"deb [trusted=yes] {place} ./\n" for place in (f"file:{tmp_path}", "http://127.0.0.1:9"))
    folder = tmp_path / "apt"
    folder.mkdir()
    (folder / "sources.list").write_text(there + gone)
    apt = packages.Apt(folder, GUEST_ARCH)
    apt.update()
    assert apt.depends("here") == ["other", "more"]
    with pytest.raises(FastenoughError, match=r"cannot be reached, and gone is not known .*127\.0\.0\.1:9"):
        apt.depends("gone")
    (folder / "sources.list").write_text(there)
    apt.update()
    with pytest.raises(FastenoughError, match="no package gone in the apt sources"):
        apt.depends("gone")


@pytest.mark.matrix
def test_checkouts_that_share_a_cache_get_their_own_programs(own_cache: Path, tmp_path: Path) -> None:
    """Another checkout's probe says another version; the order of building does not matter."""
    (own_cache / "built").unlink()
    other = tmp_path / "other"
    for name in ("meson.build", "meson_options.txt", "format", "gauge", "target", "fastenough"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        other.mkdir(exist_ok=True)
        copy(ROOT / name, other / name)
    build = other / "meson.build"
    build.write_text(build.read_text().replace("version: '0.2.0'", "version: '9.9.9'"))
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from fastenough.virtual.probe import build_probe; "
        "sys.stdout.buffer.write(build_probe())"
    )
    probes = [
        subprocess.run([sys.executable, "-I", "-c", code, str(checkout)], capture_output=True, check=True).stdout
        for checkout in (ROOT, other, ROOT)
    ]
    assert probes[0] == probes[2] != probes[1]
    assert b"9.9.9" in probes[1] and b"9.9.9" not in probes[0]
    assert len(list((own_cache / "built").iterdir())) == 2
