# SPDX-License-Identifier: GPL-2.0-or-later
"""Sources of kernels: Debian's source packages, fetched by the machine's apt, and directories of users."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from fastenough.model import BadInput, FastenoughError
from fastenough.virtual.packages import Apt, DownloadCallback, cache_lock, host_arch, no_progress, output_of

_PACKAGE = re.compile(r"linux-source-\d+\.\d+")
BUILD_LOCK = "build-lock"
"""Lock of the cache for sources and builds of kernels, which take minutes."""


@dataclass(frozen=True)
class KernelSource:
    """A source tree; ``version``: name and version of its package, None for a directory, whose files may change."""

    tree: Path
    version: str | None

    @property
    def identity(self) -> str:
        """Name of the source in the key of a build."""
        return self.version or str(self.tree)


def find_source(name: str, on_download: DownloadCallback = no_progress) -> KernelSource:
    """A directory, or else Debian's package of that name, from the cache or through apt.

    Raises BadInput if it is neither or not the source of a kernel, NotApplicable if this is not a Debian machine,
    FastenoughError if apt has no such package.
    """
    if _is_package(name):
        return _fetch(name, on_download)
    return KernelSource(_source_directory(name), None)


def require_source(name: str) -> None:
    """Raises BadInput for a name that is neither that of a package nor the directory of a kernel's source."""
    if not _is_package(name):
        _source_directory(name)


def _is_package(name: str) -> bool:
    return _PACKAGE.fullmatch(name) is not None and not Path(name).is_dir()


def require_plain(path: Path, hint: str) -> None:
    """Raises BadInput for a path that the make of kernels does not support."""
    if re.search(r"[\s:]", str(path)):
        raise BadInput(f"{path}: no kernel can be built in a path with spaces or colons; {hint}")


def _source_directory(name: str) -> Path:
    tree = Path(name).resolve()
    if not all((tree / part).is_file() for part in ("Makefile", "Kconfig")):
        raise BadInput(
            f"--source {name}: neither the directory of a kernel's source (no Makefile and Kconfig) nor a package such "
            "as linux-source-6.12"
        )
    require_plain(tree, "move the source")
    if (tree / ".config").exists() or (tree / "include" / "config").exists():
        raise BadInput(
            f"--source {name}: a kernel was configured in this directory, so that none can be built outside of it; "
            "run 'make mrproper' there, which removes .config"
        )
    return tree


def _fetch(package: str, on_download: DownloadCallback) -> KernelSource:
    with cache_lock(BUILD_LOCK) as cache:
        sources = cache / "sources"
        cached = sorted(sources.glob(f"{package}_*"))
        if cached:
            return KernelSource(cached[-1], cached[-1].name)
        apt = Apt(sources / "apt", host_arch())
        apt.update()
        apt.depends(package)
        version = apt.versions([package])[package]
        unpacking = sources / "unpacking"
        shutil.rmtree(unpacking, ignore_errors=True)
        apt.unpack([package], unpacking, on_download)
        archive = next((unpacking / "usr" / "src").glob(f"{package}.tar.*"), None)
        if archive is None:
            raise FastenoughError(f"package {package} {version} has no usr/src/{package}.tar")
        output_of(["tar", "-xf", str(archive), "-C", str(unpacking)])
        tree = sources / f"{package}_{version}"
        (unpacking / package).rename(tree)
        shutil.rmtree(unpacking)
        return KernelSource(tree, tree.name)
