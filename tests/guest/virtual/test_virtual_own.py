# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels that users built: named once, booted like Debian's; what does not fit together is refused in one line."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastenough.board.virtual import GuestBoard
from fastenough.model import BadInput, NotApplicable
from fastenough.virtual.board import VirtualBoard
from fastenough.virtual.custom_kernels import (
    KernelFiles,
    find_kernel,
    identify_image,
    register_kernel,
    registered_names,
)
from fastenough.virtual.kernels import Kernel
from fastenough.virtual.module import build_module
from fastenough.virtual.packages import cache_dir, fetch
from fastenough.virtual.snapshot import snapshot_of
from tests.support.virtual_boards import BOOT_S, ONE_OF_EACH, RESPONSE, load_module, unload_module

pytestmark = pytest.mark.untimed

NAME = f"tried-{os.getpid()}"
RELEASE = "9.9.9-mine"


def image_of(release: str, mark: bytes = b"ARM\x64", place: int = 56) -> bytes:
    head = bytearray(1024)
    head[place : place + len(mark)] = mark
    return bytes(head) + b"Linux version %s (me@here)\0" % release.encode()


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "Image"
    path.write_bytes(image_of(RELEASE))
    return path


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """The cache is everybody's."""
    yield
    (cache_dir() / "own" / NAME).unlink(missing_ok=True)
    for tree in (cache_dir() / "own").glob(f".{NAME}:*"):
        shutil.rmtree(tree, ignore_errors=True)


@pytest.fixture(scope="module")
def debian() -> Kernel:
    return fetch(ONE_OF_EACH[0])


def of(kernel: Kernel) -> KernelFiles:
    """The files of an unpacked kernel, as a user would name them."""
    return KernelFiles(kernel.image, kernel.tree, kernel.headers)


def test_it_boots_with_its_module_its_pins_and_what_the_user_adds(debian: Kernel, tmp_path: Path) -> None:
    (tmp_path / "opt").mkdir()
    (tmp_path / "opt" / "library").write_text("the user's own")
    (tmp_path / "opt" / "link").symlink_to("library")
    register_kernel(NAME, KernelFiles(debian.image, debian.tree, debian.headers, tmp_path))
    assert NAME in GuestBoard().configurations()
    with VirtualBoard(NAME, boot_timeout_s=BOOT_S, snapshot=False) as board:
        assert board.link.run(["uname", "-r"]).text.strip() == debian.release
        assert board.link.read("/opt/link") == b"the user's own"
        load_module(board, RESPONSE)
        unload_module(board)


def test_who_looks_while_it_is_named_again_finds_one_or_the_other(image: Path, tmp_path: Path) -> None:
    headers, other = tmp_path / "built", tmp_path / "other"
    (headers / "include" / "generated").mkdir(parents=True)
    (headers / "include" / "generated" / "utsrelease.h").write_text(f'#define UTS_RELEASE "{RELEASE}"\n')
    other.write_bytes(image_of("9.9.10"))
    register_kernel(NAME, KernelFiles(image, headers=headers))
    ended, looks = threading.Event(), 0

    def name_again() -> None:
        for number in range(60):
            register_kernel(NAME, KernelFiles(image, headers=headers) if number % 2 else KernelFiles(other))
        ended.set()

    naming = threading.Thread(target=name_again)
    naming.start()
    while not ended.is_set():
        kernel = find_kernel(NAME)
        assert kernel.image.is_file() and kernel.busybox.is_file()
        assert kernel.release == "9.9.10" or kernel.headers.is_dir()
        looks += 1
    naming.join()
    assert looks > 30 and NAME in registered_names()


def _age(path: Path, days: float) -> None:
    then = path.lstat().st_mtime - days * 86_400
    os.utime(path, (then, then), follow_symlinks=False)


def test_a_tree_stays_for_a_day_after_it_was_replaced(image: Path) -> None:
    register_kernel(NAME, KernelFiles(image))
    first = find_kernel(NAME)
    _age(first.image.parents[1], 3)
    register_kernel(NAME, KernelFiles(image))
    register_kernel(NAME, KernelFiles(image))
    assert first.image.is_file()
    _age(first.image.parents[1], 3)
    register_kernel(NAME, KernelFiles(image))
    assert not first.image.exists()


def test_a_naming_that_was_killed_hinders_no_later_one(image: Path) -> None:
    register_kernel(NAME, KernelFiles(image))
    trees = cache_dir() / "own"
    left = trees / f".{NAME}:killed.link"
    left.symlink_to(f".{NAME}:killed")
    _age(left, 3)
    register_kernel(NAME, KernelFiles(image))
    assert not left.is_symlink() and find_kernel(NAME).image.is_file()


def test_it_is_what_lies_there_now(image: Path, tmp_path: Path) -> None:
    register_kernel(NAME, KernelFiles(image))
    assert NAME in registered_names()
    before = snapshot_of(find_kernel(NAME), b"", 2)
    image.write_bytes(image_of(RELEASE) + b"built again")
    assert snapshot_of(find_kernel(NAME), b"", 2) != before
    image.write_bytes(image_of("9.9.10"))
    with pytest.raises(BadInput, match=f"no longer the image of {RELEASE}"):
        find_kernel(NAME)
    image.unlink()
    with pytest.raises(BadInput, match="no longer the image"):
        find_kernel(NAME)


def test_without_modules_all_is_built_in_and_without_headers_no_module_is_built(image: Path) -> None:
    kernel = register_kernel(NAME, KernelFiles(image))
    assert kernel.guest_modules() == {}
    with pytest.raises(NotApplicable, match="its headers are missing"):
        build_module(kernel)


def test_a_packed_image_says_its_release(tmp_path: Path) -> None:
    (tmp_path / "Image.gz").write_bytes(gzip.compress(image_of(RELEASE)))
    assert identify_image(tmp_path / "Image.gz") == ("arm64", RELEASE)


@pytest.mark.parametrize(
    "content",
    [b"", b"\x1f\x8b", b"\x1f\x8b\x08" + bytes(50), image_of(RELEASE)[:600], image_of(RELEASE, b"ELF")],
    ids=range(5),
)
def test_what_is_no_kernel_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "Image").write_bytes(content)
    with pytest.raises(BadInput, match="--image"):
        identify_image(tmp_path / "Image")


def test_an_x86_kernel_says_its_release_in_its_head(tmp_path: Path) -> None:
    content = bytearray(image_of("not this", b"HdrS", 0x202))
    content[0x20E:0x210] = (0x100).to_bytes(2, "little")
    content[0x300 : 0x300 + len(RELEASE) + 5] = f"{RELEASE} (me)".encode()[: len(RELEASE) + 5]
    (tmp_path / "bzImage").write_bytes(content)
    assert identify_image(tmp_path / "bzImage") == ("amd64", RELEASE)
    content[0x20E:0x210] = b"\xff\xff"
    (tmp_path / "bzImage").write_bytes(content)
    with pytest.raises(BadInput, match="not an arm64 or x86-64 kernel"):
        identify_image(tmp_path / "bzImage")


def test_parts_of_different_kernels_are_refused(debian: Kernel, image: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=f"no modules of kernel {RELEASE}"):
        register_kernel(NAME, KernelFiles(image, modules=debian.tree))
    with pytest.raises(BadInput, match=f"of kernel {debian.release}, but the image is {RELEASE}"):
        register_kernel(NAME, KernelFiles(image, headers=debian.headers))
    with pytest.raises(BadInput, match="not a folder in which a kernel was built"):
        register_kernel(NAME, KernelFiles(image, headers=tmp_path))


@pytest.mark.parametrize("name", ["rt", "as-booted", "..", "a/b", "Name", "", "x" * 41])
def test_a_name_that_cannot_be_is_refused(image: Path, name: str) -> None:
    with pytest.raises(BadInput, match="not a valid name for a kernel of your own"):
        register_kernel(name, KernelFiles(image))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--modules", "."], "require --image"),
        (["--kernel", "no-such"], "unknown kernel 'no-such'"),
        (["--image", __file__], "not an arm64"),
    ],
)
def test_wrong_usage_is_one_line(words: list[str], said: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fastenough", "bench", "up", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "FASTENOUGH_RUN": str(tmp_path)},
    )
    assert done.returncode == 2
    assert said in done.stderr and len(done.stderr.splitlines()) == 1
