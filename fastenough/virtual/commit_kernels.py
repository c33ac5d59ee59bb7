# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels of the commits of a repository, each built once.

All commits of a repository are checked out in one folder and built in one build directory, so that make compiles what
differs from the commit before.  The kernel of each commit is registered.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from fastenough.model import BadInput
from fastenough.virtual.custom_kernels import find_kernel, register_kernel
from fastenough.virtual.git_repository import GitRepository
from fastenough.virtual.kernel_build import StepCallback, build_kernel, build_key, compiler_version
from fastenough.virtual.kernel_source import KernelSource
from fastenough.virtual.packages import cache_dir, cache_lock

_LOCK = "commits-lock"


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
            if not _is_available(name):
                source = self._source(cache)
                tell("checking out")
                self.repository.check_out(commit, source.tree)
                built = build_kernel(source, self.arch, self.options, tell)
                register_kernel(name, replace(built.files, headers=None))
        return name

    def _source(self, cache: Path) -> KernelSource:
        key = hashlib.sha256(str(self.repository.objects).encode()).hexdigest()[:12]
        return KernelSource(cache / "checkouts" / key, None)


def _is_available(name: str) -> bool:
    try:
        find_kernel(name)
    except BadInput:
        return False
    return True
