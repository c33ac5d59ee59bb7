# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels of the commits of a repository, each built once.

All commits of a repository are checked out in one folder and built in one build directory, so that make compiles what
differs from the commit before.  Image and modules of each are copied, and registered under a name of their own.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fastenough.virtual.custom_kernels import KernelFiles, register_kernel, registered_names
from fastenough.virtual.git_repository import GitRepository
from fastenough.virtual.kernel_build import StepCallback, build_kernel, build_key, compiler_version
from fastenough.virtual.kernel_source import KernelSource
from fastenough.virtual.packages import cache_dir, cache_lock

_LOCK = "commits-lock"
_IMAGE, _MODULES = "image", "modules"


@dataclass(frozen=True)
class CommitKernels:
    """Kernels of one repository, architecture and set of options."""

    repository: GitRepository
    arch: str
    options: Mapping[str, str]

    def name(self, commit: str) -> str:
        """Name of the kernel of a commit; it depends on commit, repository, architecture, options and compiler."""
        key = f"{build_key(self._source(cache_dir()), self.arch, self.options)} {compiler_version(self.arch)}"
        return f"{commit[:12]}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"

    def build(self, commit: str, tell: StepCallback) -> str:
        """Name of the kernel of a commit, which is built unless it is in the cache.

        Raises FastenoughError as :func:`build_kernel` does.
        """
        name = self.name(commit)
        with cache_lock(_LOCK) as cache:
            folder = cache / "commits" / name
            if not folder.is_dir():
                source = self._source(cache)
                tell("checking out")
                self.repository.check_out(commit, source.tree)
                _store(build_kernel(source, self.arch, self.options, tell).files, folder)
            if name not in registered_names():
                register_kernel(name, KernelFiles(folder / _IMAGE, folder / _MODULES))
        return name

    def _source(self, cache: Path) -> KernelSource:
        key = hashlib.sha256(str(self.repository.objects).encode()).hexdigest()[:12]
        return KernelSource(cache / "checkouts" / key, None)


def _store(files: KernelFiles, folder: Path) -> None:
    """Copy image and modules, whole or not at all."""
    assert files.modules is not None
    unfinished = folder.with_name(f".{folder.name}")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    shutil.copy2(files.image, unfinished / _IMAGE)
    shutil.copytree(files.modules, unfinished / _MODULES, symlinks=True)
    unfinished.rename(folder)
