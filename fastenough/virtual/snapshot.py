# SPDX-License-Identifier: GPL-2.0-or-later
"""Saved states of booted guests: each in a file of the cache, its hash in another; a damaged one is discarded."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from fastenough.files import replace_whole, replacing
from fastenough.virtual.kernels import Kernel
from fastenough.virtual.packages import cache_lock, file_hash


@dataclass(frozen=True)
class Snapshot:
    """The saved state, if any, of a kernel image with its arguments, an initramfs and a number of CPUs."""

    path: Path
    release: str

    @property
    def _hash_path(self) -> Path:
        return self.path.with_name(f"{self.path.name}.sha256")

    def intact(self) -> bool:
        """Whether it exists and matches its hash; a damaged one is discarded."""
        with cache_lock():
            try:
                matches = file_hash(self.path) == self._hash_path.read_text(errors="replace")
            except OSError:
                matches = False
            if not matches:
                self.discard()
            return matches

    def discard(self) -> None:
        """Remove it and all other states of this kernel: its guests boot again."""
        for pattern in (f"{self.release}-*", f".{self.release}-*.new", "*.partial"):
            for outdated in self.path.parent.glob(pattern):
                outdated.unlink(missing_ok=True)

    def store(self, save: Callable[[BinaryIO], str]) -> None:
        """Store a state, in place of outdated ones; raises OSError if it cannot be written."""
        with cache_lock():
            self.discard()
            with replacing(self.path) as stream:
                digest = save(stream)
            try:
                replace_whole(self._hash_path, digest.encode())
            except OSError:
                self.discard()
                raise


def snapshot_of(kernel: Kernel, initramfs: bytes, cpus: int) -> Snapshot:
    """The snapshot for such a guest."""
    booted = f"{cpus} {file_hash(kernel.image)} {kernel.machine.kernel_arguments} "
    key = hashlib.sha256(booted.encode() + initramfs).hexdigest()[:16]
    with cache_lock() as cache:
        folder = cache / "snapshots"
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
        return Snapshot(folder / f"{kernel.release}-{key}", kernel.release)
