# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernels that guests boot: where each comes from, and what lies where once its packages are unpacked."""

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
    """Where a kernel comes from: what its meta package (``linux-image-…``) has before the architecture, the release
    of Debian (empty: what this machine's own sources have), further words for make to build modules for it, and the
    architecture of guests that boot it."""

    before: str
    suite: str = ""
    make: tuple[str, ...] = ()
    arch: str = "arm64"


_NEWER_TOOLS = ("CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT=", "KCFLAGS=-Wno-attributes", "CONFIG_DEBUG_INFO_BTF_MODULES=")
"""For make, where a kernel is newer than this machine's compiler and pahole: what they do not know is left out."""

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
"""Every kernel that a guest can boot, by its name."""


@dataclass(frozen=True)
class Kernel:
    """One unpacked kernel: its release, its image and where its headers and modules lie."""

    name: str
    arch: str
    release: str
    tree: Path

    @property
    def machine(self) -> GuestMachine:
        """What its guests are."""
        return MACHINES[self.arch]

    @property
    def image(self) -> Path:
        """Newer packages have it beside the modules."""
        return _first(self.tree / "boot" / f"vmlinuz-{self.release}", self._modules / "vmlinuz")

    @property
    def device_tree(self) -> Path:
        """What tells the kernel of its machine, where the machine does not."""
        return self.tree / "usr/lib" / f"linux-image-{self.release}" / self.machine.device_tree

    @property
    def _modules(self) -> Path:
        return _first(*(self.tree / place / self.release for place in ("lib/modules", "usr/lib/modules")))

    @property
    def make(self) -> tuple[str, ...]:
        """Words for make to build modules for it here."""
        return KERNELS[self.name].make if self.name in KERNELS else ()

    @property
    def headers(self) -> Path:
        return self.tree / "usr/src" / f"linux-headers-{self.release}"

    @property
    def busybox(self) -> Path:
        """The guest's only tool box."""
        return _first(self.tree / "bin/busybox", self.tree / "usr/bin/busybox")

    @property
    def root(self) -> Path:
        """Files that its guests have besides; where there are none, no such folder."""
        return self.tree / "root"

    def module(self, name: str) -> bytes | None:
        """A module of the kernel's own package, None where the kernel has it built in."""
        found = self._module_file(name)
        return None if found is None else module_content(found)

    def _module_file(self, name: str) -> Path | None:
        if any(line.endswith(f"/{name}.ko") for line in (self._modules / "modules.builtin").read_text().splitlines()):
            return None
        for found in self._modules.rglob(f"{name}.ko*"):
            return found
        raise FastenoughError(f"the package of kernel {self.release} has no module {name}")

    def guest_modules(self) -> dict[str, Path]:
        """Files of the modules that a guest boots with and that are not built in, each behind those it depends on."""
        return dict(self._with_needed(self.machine.modules))

    def _with_needed(self, names: Iterable[str]) -> Iterator[tuple[str, Path]]:
        for name in names:
            found = self._module_file(name)
            if found is not None:
                yield from self._with_needed(re.findall("[^,]+", _information(module_content(found), "depends")))
                yield name, found

    def parts(self) -> list[Path]:
        """What a guest is made of."""
        return [
            self.image,
            self.busybox,
            *([self.device_tree] if self.machine.device_tree else []),
            *self.guest_modules().values(),
        ]


def _first(*places: Path) -> Path:
    """The first that there is, or else the last."""
    return next((place for place in places if place.exists()), places[-1])


def module_content(module: Path) -> bytes:
    """What is in a module's file, unpacked."""
    return lzma.decompress(module.read_bytes()) if module.suffix == ".xz" else module.read_bytes()


def _information(module: bytes, field: str) -> str:
    """One field of a module's information section."""
    found = re.search(rb"\0%s=([^\0]*)\0" % field.encode(), module)
    return found[1].decode() if found else ""
