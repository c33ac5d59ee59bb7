# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU machines of guests, by architecture of their kernels (Debian's names)."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

from fastenough.model import NotApplicable
from fastenough.virtual.pins import PinPort
from fastenough.virtual.qtest_pins import ImxPort, Pl061Port
from fastenough.virtual.shared_pins import SharedPort


@dataclass(frozen=True)
class GuestMachine:
    """``program`` of Debian's ``package`` is started with ``arguments``, its serial lines (``serial``) and the
    device of the agent's port (``agent``); the chardevs of the two are ``console`` and ``agent``.

    In the guest the line is ``console``, and ``uname -m`` prints ``uname_machine``.  ``modules``: the required modules
    of the kernel; ``device_tree``: a file of the kernel's package; ``can_restore``: whether a saved state works when
    restored, including its agent's port; ``kernel_arguments``: those that each of its guests is booted with.
    """

    program: str
    package: str
    arguments: tuple[str, ...]
    serial: tuple[str, ...]
    agent: tuple[str, ...]
    console: str
    uname_machine: str
    modules: tuple[str, ...]
    pins: type[PinPort]
    device_tree: str = ""
    can_restore: bool = True
    kernel_arguments: str = ""

    def require(self) -> None:
        """Raises NotApplicable with a hint if this QEMU is not installed."""
        if shutil.which(self.program) is None:
            raise NotApplicable(f"{self.program} is missing; run: apt-get install {self.package}")


_FIRST_LINE = ("-serial", "chardev:console")
_SECOND_LINE = ("-serial", "null", *_FIRST_LINE)
_PORT = ("-device", "virtserialport,chardev=agent,nr=1,name=agent")
_NO_KPTI = "kpti=off"
"""A Cortex-A53 needs no kernel page-table isolation; without it QEMU takes a third less time for system calls."""
_NETWORK = ("-nic", "user,restrict=on,guestfwd=tcp:10.0.2.100:4321-chardev:agent")
"""An isolated network: the guest's first program connects to that address only."""

MACHINES = {
    "arm64": GuestMachine(
        "qemu-system-aarch64",
        "qemu-system-arm",
        ("-M", "virt", "-cpu", "cortex-a53"),
        _FIRST_LINE,
        ("-device", "virtio-serial-device", *_PORT),
        "ttyAMA0",
        "aarch64",
        ("virtio_mmio", "virtio_console"),
        Pl061Port,
        kernel_arguments=_NO_KPTI,
    ),
    "amd64": GuestMachine(
        "qemu-system-x86_64",
        "qemu-system-x86",
        ("-M", "q35", "-cpu", "max"),
        _FIRST_LINE,
        ("-device", "virtio-serial-pci", *_PORT),
        "ttyS0",
        "x86_64",
        ("virtio_pci", "virtio_console"),
        SharedPort,
    ),
    "armhf": GuestMachine(
        "qemu-system-arm",
        "qemu-system-arm",
        ("-M", "sabrelite"),
        _SECOND_LINE,
        _NETWORK,
        "ttymxc1",
        "armv7l",
        ("gpio-mxc", "smsc", "fec"),
        ImxPort,
        "imx6q-sabrelite.dtb",
        can_restore=False,
    ),
}
