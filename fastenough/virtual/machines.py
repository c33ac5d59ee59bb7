# SPDX-License-Identifier: GPL-2.0-or-later
"""The machines that QEMU can be for guests, by the architecture of their kernels (Debian's names of them)."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

from fastenough.model import NotApplicable
from fastenough.virtual.pins import PinPort
from fastenough.virtual.qtest_pins import QtestPort
from fastenough.virtual.shared_pins import SharedPort


@dataclass(frozen=True)
class Machine:
    """``program`` of Debian's ``package``, started with ``words``; ``console`` is what the guest calls its serial line,
    ``agent_bus`` the device that carries the agent's port, ``modules`` are the kernel's own that it needs for that."""

    program: str
    package: str
    words: tuple[str, ...]
    console: str
    agent_bus: str
    modules: tuple[str, ...]
    pins: type[PinPort]

    def require(self) -> None:
        """Raises NotApplicable, saying how to fix it, where there is no such QEMU."""
        if shutil.which(self.program) is None:
            raise NotApplicable(f"{self.program} is missing; run: apt-get install {self.package}")


MACHINES = {
    "arm64": Machine("qemu-system-aarch64", "qemu-system-arm", ("-M", "virt", "-cpu", "cortex-a53"), "ttyAMA0",
                     "virtio-serial-device", ("virtio_mmio", "virtio_console"), QtestPort),
    "amd64": Machine("qemu-system-x86_64", "qemu-system-x86", ("-M", "q35", "-cpu", "max"), "ttyS0",
                     "virtio-serial-pci", ("virtio_pci", "virtio_console"), SharedPort),
}
