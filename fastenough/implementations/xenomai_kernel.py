# SPDX-License-Identifier: GPL-2.0-or-later
"""Tasks in the kernel of Xenomai 3's Cobalt core: the module ``fastenough_rtdm``, read and recorded like Linux's."""

from __future__ import annotations

from dataclasses import dataclass

from fastenough.board.base import Booted
from fastenough.implementations.base import TaskKind
from fastenough.implementations.linux_kernel import LinuxKernel
from fastenough.implementations.xenomai_user import VERSION
from fastenough.model import NotApplicable


@dataclass(frozen=True)
class XenomaiKernel(LinuxKernel):
    """``line_thread``: empty, because the core's interrupt handler responds."""

    name: str = "xenomai-kernel"
    kind: TaskKind = TaskKind.CORE_KERNEL
    module: str = "fastenough_rtdm"
    probes: tuple[str, ...] = ("response", "periodic", "timer")

    def needs(self, booted: Booted) -> None:
        if not booted.link.exists(VERSION):
            raise NotApplicable(f"the board's kernel has no Cobalt core, and so no RTDM ({VERSION} is not there)")
        super().needs(booted)


IMPLEMENTATION = XenomaiKernel()
