# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels that somebody built, for ``make check-kernels IMAGES=DIR``; docs/virtual-bench.md says what lies in DIR."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastenough.virtual.board import VirtualBoard
from fastenough.virtual.custom_kernels import KernelFiles, register_kernel
from tests.support.virtual_boards import booted

IMAGES = "FASTENOUGH_IMAGES"
"""Environment variable: the folder with a folder for each kernel."""
BUSY = "for cpu in 0 1; do while true; do cat /proc/stat; done >/dev/null & done; "
"""Words of a shell that keep both CPUs of a guest busy until the shell ends."""


def _there(path: Path) -> Path | None:
    return path if path.exists() else None


def require_own_kernel(name: str) -> str:
    """Makes the kernel known to the virtual bench under its name; skips with the reason where it was not built."""
    folder = Path(os.environ.get(IMAGES, "")).absolute() / name
    image = folder / "image"
    if IMAGES not in os.environ:
        pytest.skip(f"no kernel {name}: it is somebody's own; run: make check-kernels IMAGES=DIR")
    if not image.is_file():
        pytest.skip(f"no kernel {name}: there is no {image}")
    register_kernel(name, KernelFiles(image, *(_there(folder / part) for part in ("modules", "headers", "root"))))
    return name


def booted_own(name: str) -> Iterator[VirtualBoard]:
    """For a fixture: a board with that kernel, which must have nothing to complain of when it ends."""
    yield from booted(require_own_kernel(name))
