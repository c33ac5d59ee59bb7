# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels of guests: their Debian packages, and the layout of the unpacked packages."""

from __future__ import annotations

import lzma
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fastenough.model import FastenoughError
from fastenough.virtual.machines import MACHINES, GuestMachine


@dataclass(frozen=True)
class KernelPackage:
    """The package of a kernel: the part of its meta package between ``linux-image-`` and the architecture, the release
    of Debian (empty: that of this machine's package sources), further make arguments to build modules for it, and the
    architecture of guests that boot it."""

    meta_prefix: str
    suite: str = ""
    make: tuple[str, ...] = ()
    arch: str = "arm64"


_NEWER_TOOLS = ("CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT=", "KCFLAGS=-Wno-attributes", "CONFIG_DEBUG_INFO_BTF_MODULES=")
"""Make arguments for a kernel newer than this machine's compiler and pahole: they disable unsupported options."""

KERNELS = {
    "stock": KernelPackage(""),
    "rt": KernelPackage("rt-"),
    "stock-6.12": KernelPackage("6.12-"),
    "rt-6.12": KernelPackage("6.12-rt-"),
    "stock-5.10": KernelPackage("", "bullseye"),
    "rt-5.10": KernelPackage("rt-", "bullseye"),
    "stock-sid": KernelPackage("", "sid", _NEWER_TOOLS),
    "rt-sid": KernelPackage("rt-", "sid", _NEWER_TOOLS),
    "stock-amd64": KernelPackage("", arch="amd64"),
    "rt-amd64": KernelPackage("rt-", arch="amd64"),
    "stock-armhf": KernelPackage("", arch="armhf"),
    "rt-armhf": KernelPackage("rt-", arch="armhf"),
}
"""Debian's kernels for guests, by name."""


@dataclass(frozen=True)
class Kernel:
    """One unpacked kernel: its release, its image and where its headers and modules lie."""

    name: str
    arch: str
    release: str
    tree: Path

    @property
    def machine(self) -> GuestMachine:
        """The machine of its guests."""
        return MACHINES[self.arch]

    @property
    def image(self) -> Path:
        """Newer packages have it beside the modules."""
        return _first(self.tree / "boot" / f"vmlinuz-{self.release}", self._modules / "vmlinuz")

    @property
    def device_tree(self) -> Path:
        """The device tree, for machines that do not provide one."""
        return self.tree / "usr/lib" / f"linux-image-{self.release}" / self.machine.device_tree

    @property
    def _modules(self) -> Path:
        return _first(*(self.tree / place / self.release for place in ("lib/modules", "usr/lib/modules")))

    @property
    def make(self) -> tuple[str, ...]:
        """Make arguments to build modules for it here."""
        return KERNELS[self.name].make if self.name in KERNELS else ()

    @property
    def headers(self) -> Path:
        return self.tree / "usr/src" / f"linux-headers-{self.release}"

    @property
    def busybox(self) -> Path:
        """The guest's busybox."""
        return _first(self.tree / "bin/busybox", self.tree / "usr/bin/busybox")

    @property
    def root(self) -> Path:
        """Folder with additional files of its guests; need not exist."""
        return self.tree / "root"

    def module(self, name: str) -> bytes | None:
        """A module of the kernel's package, None if it is built in."""
        path = self._module_file(name)
        return None if path is None else module_content(path)

    def _module_file(self, name: str) -> Path | None:
        if any(line.endswith(f"/{name}.ko") for line in (self._modules / "modules.builtin").read_text().splitlines()):
            return None
        for path in self._modules.rglob(f"{name}.ko*"):
            return path
        raise FastenoughError(f"the package of kernel {self.release} has no module {name}")

    def guest_modules(self) -> dict[str, Path]:
        """Files of the modules that a guest loads at boot, in order of dependency."""
        return dict(self._with_dependencies(self.machine.modules))

    def _with_dependencies(self, names: Iterable[str]) -> Iterator[tuple[str, Path]]:
        for name in names:
            path = self._module_file(name)
            if path is not None:
                yield from self._with_dependencies(re.findall("[^,]+", _information(module_content(path), "depends")))
                yield name, path

    def parts(self) -> list[Path]:
        """The files that a guest consists of."""
        return [
            self.image,
            self.busybox,
            *([self.device_tree] if self.machine.device_tree else []),
            *self.guest_modules().values(),
        ]


def _first(*paths: Path) -> Path:
    """The first existing path, or else the last one."""
    return next((path for path in paths if path.exists()), paths[-1])


def module_content(module: Path) -> bytes:
    """The uncompressed content of a module file."""
    return lzma.decompress(module.read_bytes()) if module.suffix == ".xz" else module.read_bytes()


def _information(module: bytes, field: str) -> str:
    """A field of the information section of a module."""
    match = re.search(rb"\0%s=([^\0]*)\0" % field.encode(), module)
    return match[1].decode() if match else ""
