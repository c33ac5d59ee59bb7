# SPDX-License-Identifier: GPL-2.0-or-later
"""A configuration: what was booted on a board."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Configuration:
    """``kernel_release`` as ``uname -r`` says, ``command_line`` the kernel's; None: not known."""

    name: str
    kernel_release: str | None = None
    kernel_config_sha256: str | None = None
    command_line: str | None = None
