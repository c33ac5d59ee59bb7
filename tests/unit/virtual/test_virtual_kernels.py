# SPDX-License-Identifier: GPL-2.0-or-later
"""What lies where in a kernel's unpacked packages, whichever release of Debian they are of."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import pytest

from fastenough.virtual import initramfs
from fastenough.virtual.kernels import Kernel

RELEASE = "9.9.9-arm64"


def module(depends: str) -> bytes:
    return b"\x7fELF\0license=GPL\0depends=%s\0name=any\0" % depends.encode()


@pytest.fixture(params=["lib/modules", "usr/lib/modules"])
def kernel(request: pytest.FixtureRequest, tmp_path: Path) -> Kernel:
    """One that needs two modules more than those that guests boot with, and has another built in."""
    folder = tmp_path / request.param / RELEASE
    (folder / "kernel").mkdir(parents=True)
    (folder / "modules.builtin").write_text("kernel/drivers/virtio/virtio_ring.ko\n")
    (folder / "kernel" / "virtio_mmio.ko.xz").write_bytes(lzma.compress(module("virtio,virtio_ring")))
    (folder / "kernel" / "virtio_console.ko").write_bytes(module("virtio"))
    (folder / "kernel" / "virtio.ko").write_bytes(module("virtio_first"))
    (folder / "kernel" / "virtio_first.ko").write_bytes(module(""))
    (folder / "vmlinuz").touch()
    return Kernel("stock", "arm64", RELEASE, tmp_path)


def test_modules_are_behind_those_they_depend_on(kernel: Kernel) -> None:
    assert list(kernel.guest_modules()) == ["virtio_first", "virtio", "virtio_mmio", "virtio_console"]
    assert kernel.module("virtio_mmio") == module("virtio,virtio_ring")
    assert kernel.module("virtio_ring") is None


def test_an_image_beside_the_modules_is_found(kernel: Kernel) -> None:
    assert kernel.image.name == "vmlinuz" and kernel.image.is_file()
    (kernel.tree / "boot").mkdir()
    (kernel.tree / "boot" / f"vmlinuz-{RELEASE}").touch()
    assert kernel.image.parent.name == "boot"


def test_a_guest_inserts_them_in_that_order(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first program takes them by name."""
    monkeypatch.setattr(initramfs, "build_agent", lambda arch: b"")
    (kernel.tree / "bin").mkdir()
    (kernel.tree / "bin" / "busybox").touch()
    archive = gzip.decompress(initramfs.build_initramfs(kernel))
    places = [
        archive.index(b"lib/%02d-%s.ko\0" % (number, name.encode()))
        for number, name in enumerate(kernel.guest_modules())
    ]
    assert places == sorted(places)
