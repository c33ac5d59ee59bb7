# SPDX-License-Identifier: GPL-2.0-or-later
"""Tasks in the kernel of the EVL core: the module ``fastenough_oob``, read and recorded like Linux's."""

from __future__ import annotations

from dataclasses import dataclass

from fastenough.board.base import Booted
from fastenough.implementations.base import TaskKind
from fastenough.implementations.evl_user import DEVICE
from fastenough.implementations.linux_kernel import LinuxKernel
from fastenough.model import NotApplicable


@dataclass(frozen=True)
class EvlKernel(LinuxKernel):
    """``line_thread``: empty, because the core's interrupt handler responds."""

    name: str = "evl-kernel"
    kind: TaskKind = TaskKind.CORE_KERNEL
    module: str = "fastenough_oob"
    probes: tuple[str, ...] = ("response", "periodic", "timer")

    def needs(self, booted: Booted) -> None:
        if not booted.link.exists(DEVICE):
            raise NotApplicable(f"the board's kernel has no EVL core ({DEVICE} is not there)")
        super().needs(booted)


IMPLEMENTATION = EvlKernel()
