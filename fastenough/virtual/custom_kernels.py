# SPDX-License-Identifier: GPL-2.0-or-later
"""Custom kernels built by users, by the names that they registered.

Each is a tree in the cache with the layout of Debian's unpacked packages, of links to the user's files: after
a rebuild the new kernel boots.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import tempfile
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fastenough.model import BadInput
from fastenough.virtual.kernels import KERNELS, Kernel
from fastenough.virtual.machines import MACHINES
from fastenough.virtual.packages import DownloadCallback, cache_dir, cache_lock, fetch, no_progress

_NAME = re.compile(r"[a-z0-9][a-z0-9.+-]{0,39}")
_RESERVED = "as-booted"
_BUILT_RELEASE = re.compile(r'UTS_RELEASE "([^"]+)"')
_RELEASE = re.compile(rb"[!-~]+")
REPLACED_S = 86_400.0
"""Time after which a replaced tree is deleted: guests may still use it."""
_VERSION_BANNER = re.compile(rb"Linux version ([!-~]+) ")


@dataclass(frozen=True)
class KernelFiles:
    """The files of a custom kernel.

    ``image``: arm64's Image or Image.gz, x86's bzImage.  ``modules``: what ``make modules_install`` wrote (its
    INSTALL_MOD_PATH, or the folder of the release in it); None if the kernel has all built in.  ``headers``: the
    build folder; None if no module is built for it.  ``root``: additional files of the guest, or None.
    """

    image: Path
    modules: Path | None = None
    headers: Path | None = None
    root: Path | None = None


def _content(image: Path) -> bytes:
    try:
        content = image.read_bytes()
        return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    except (OSError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise BadInput(f"--image {image}: {getattr(error, 'strerror', None) or error}") from error


def _arm64_release(content: bytes) -> str | None:
    match = _VERSION_BANNER.search(content) if content[56:60] == b"ARM\x64" else None
    return match[1].decode() if match else None


def _x86_release(content: bytes) -> str | None:
    """Its header has the position (Linux, "The Linux/x86 Boot Protocol": kernel_version); the rest is compressed."""
    if content[0x202:0x206] != b"HdrS":
        return None
    match = _RELEASE.match(content, 0x200 + int.from_bytes(content[0x20E:0x210], "little"))
    return match[0].decode() if match else None


def identify_image(image: Path) -> tuple[str, str]:
    """Architecture and release of a kernel image; raises BadInput."""
    content = _content(image)
    for arch, read_release in _RELEASE_READERS.items():
        release = read_release(content)
        if release is not None:
            return arch, release
    raise BadInput(
        f"--image {image}: not an arm64 or x86-64 kernel; name arch/arm64/boot/Image, Image.gz or "
        "arch/x86/boot/bzImage of your build"
    )


_RELEASE_READERS: dict[str, Callable[[bytes], str | None]] = {"arm64": _arm64_release, "amd64": _x86_release}


def _modules(folder: Path, release: str) -> Path:
    for path in (folder / "lib" / "modules" / release, folder / "usr" / "lib" / "modules" / release, folder):
        if (path / "modules.builtin").is_file():
            if path.resolve().name != release:
                raise BadInput(f"--modules {folder}: of kernel {path.resolve().name}, but the image is {release}")
            return path
    raise BadInput(
        f"--modules {folder}: no modules of kernel {release} (no lib/modules/{release}/modules.builtin); "
        "run: make modules_install INSTALL_MOD_PATH=…"
    )


def _headers(folder: Path, release: str) -> Path:
    try:
        match = _BUILT_RELEASE.search((folder / "include" / "generated" / "utsrelease.h").read_text())
    except OSError:
        match = None
    if match is None:
        raise BadInput(
            f"--headers {folder}: not a folder in which a kernel was built (no include/generated/utsrelease.h)"
        )
    if match[1] != release:
        raise BadInput(f"--headers {folder}: of kernel {match[1]}, but the image is {release}")
    return folder


def _trees(cache: Path) -> Path:
    return cache / "own"


def _link(path: Path, target: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target.resolve())


def _new_tree(trees: Path, name: str) -> Path:
    """An empty folder for the tree of a kernel; trees that were replaced long ago are removed."""
    trees.mkdir(parents=True, exist_ok=True)
    current = (trees / name).resolve()
    for tree in trees.glob(f".{name}:*"):
        if tree == current or time.time() - tree.lstat().st_mtime <= REPLACED_S:
            continue
        if tree.is_symlink():  # left by a registration that was killed
            tree.unlink()
        else:
            shutil.rmtree(tree, ignore_errors=True)
    tree = Path(tempfile.mkdtemp(dir=trees, prefix=f".{name}:"))
    tree.chmod(0o755)
    return tree


def _replace(path: Path, tree: Path) -> None:
    """Give a tree its name atomically: a concurrent reader finds the old or the new one."""
    link = tree.with_name(f"{tree.name}.link")
    link.symlink_to(tree.name)
    if path.is_symlink() and path.is_dir():
        os.utime(path)  # the replaced tree is kept from this time on
    elif path.is_dir():  # made by an earlier version, without a link
        path.rename(tree.with_name(f"{tree.name}.before"))
    link.replace(path)


def registered_names() -> tuple[str, ...]:
    """Names of the registered kernels."""
    trees = _trees(cache_dir())
    return tuple(sorted(tree.name for tree in trees.iterdir() if _NAME.fullmatch(tree.name))) if trees.is_dir() else ()


def linked_images() -> frozenset[Path]:
    """Images of the registered kernels, and of those that they replaced and that guests may still use."""
    links = (link for tree in _trees(cache_dir()).glob("*") for link in tree.glob("boot/*") if link.is_symlink())
    return frozenset(link.readlink() for link in links)


def require_custom_name(name: str) -> None:
    """Raises BadInput unless a custom kernel can have that name."""
    if not _NAME.fullmatch(name) or name in KERNELS or name == _RESERVED:
        raise BadInput(
            f"--kernel {name}: not a valid name for a kernel of your own; use lower-case letters, digits, '.', '+' and "
            "'-', and none of Debian's"
        )


def register_kernel(name: str, files: KernelFiles, on_download: DownloadCallback = no_progress) -> Kernel:
    """Register a custom kernel under a name, in place of a previous one.

    Its guests have Debian's busybox.  Raises BadInput for an invalid name or file, NotApplicable without QEMU.
    """
    require_custom_name(name)
    if files.root is not None and not files.root.is_dir():
        raise BadInput(f"--root {files.root}: not a folder")
    arch, release = identify_image(files.image)
    MACHINES[arch].require()
    debian = next(known for known, origin in KERNELS.items() if origin.arch == arch)
    parts = [(f"boot/vmlinuz-{release}", files.image), ("bin/busybox", fetch(debian, on_download=on_download).busybox)]
    if files.modules is not None:
        parts.append((f"lib/modules/{release}", _modules(files.modules, release)))
    if files.headers is not None:
        parts.append((f"usr/src/linux-headers-{release}", _headers(files.headers, release)))
    if files.root is not None:
        parts.append(("root", files.root))
    with cache_lock() as cache:
        tree = _new_tree(_trees(cache), name)
        for path, target in parts:
            _link(tree / path, target)
        if files.modules is None:
            folder = tree / "lib" / "modules" / release
            folder.mkdir(parents=True)
            (folder / "modules.builtin").write_text("".join(f"kernel/{name}.ko\n" for name in MACHINES[arch].modules))
        _replace(_trees(cache) / name, tree)
    return Kernel(name, arch, release, tree)


def find_kernel(name: str, on_download: DownloadCallback = no_progress) -> Kernel:
    """The custom or Debian kernel of that name (see ``fetch`` for further errors).

    Raises BadInput for an unknown name, and if the image of a custom kernel has changed or moved; NotApplicable if
    there is no QEMU for it.
    """
    if name in KERNELS:
        MACHINES[KERNELS[name].arch].require()
        return fetch(name, on_download=on_download)
    custom = registered_names()
    if name not in custom:
        raise BadInput(
            f"unknown kernel {name!r}; choose one of {', '.join((*KERNELS, *custom))}, "
            "or add one of your own with --image"
        )
    tree = (_trees(cache_dir()) / name).resolve()
    image = next((tree / "boot").iterdir())
    release = image.name.removeprefix("vmlinuz-")
    arch, image_release = identify_image(image) if image.is_file() else ("", "")
    if image_release != release:
        raise BadInput(
            f"kernel {name}: {image.resolve()} is no longer the image of {release}; specify its files again "
            f"with: fastenough bench up --kernel {name} --image FILE …"
        )
    MACHINES[arch].require()
    return Kernel(name, arch, release, tree)
