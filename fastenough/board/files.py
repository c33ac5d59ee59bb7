# SPDX-License-Identifier: GPL-2.0-or-later
"""The static probe for boards of other architectures than the bench's: a given file, or cross-compiled."""

from __future__ import annotations

import os
import re
import struct
from dataclasses import dataclass
from pathlib import Path

from fastenough.link import find_probe
from fastenough.model import NotApplicable
from fastenough.virtual.meson_build import build, require_tool
from fastenough.virtual.module import CHECKOUT

FILES_SETTING = "FASTENOUGH_PROBES"
"""Environment variable for a folder of files ``fastenough-probe-MACHINE``; MACHINE is the output of ``uname -m``."""
_TARGET = "target/probe/fastenough-probe"
_LITTLE, _BIG = 1, 2


@dataclass(frozen=True)
class Machine:
    """A machine type: bits, byte order and machine number of its ELF files, and the cross file that builds them."""

    bits: int
    order: int
    number: int
    cross: str | None = None


MACHINES = {
    "x86_64": Machine(64, _LITTLE, 62, "amd64"),
    "i686": Machine(32, _LITTLE, 3),
    "i586": Machine(32, _LITTLE, 3),
    "aarch64": Machine(64, _LITTLE, 183, "arm64"),
    "armv8l": Machine(32, _LITTLE, 40, "armhf"),
    "armv7l": Machine(32, _LITTLE, 40, "armhf"),
    "armv6l": Machine(32, _LITTLE, 40, "armel"),
    "armv5tel": Machine(32, _LITTLE, 40, "armel"),
    "armv5tejl": Machine(32, _LITTLE, 40, "armel"),
    "riscv64": Machine(64, _LITTLE, 243, "riscv64"),
    "ppc": Machine(32, _BIG, 20, "powerpc"),
    "mips": Machine(32, _BIG, 8, "mips"),
}
"""Machine types by the output of ``uname -m``."""


def file_for(machine: str) -> bytes:
    """Return the probe for a board's ``uname -m``; raise NotApplicable without one."""
    if machine not in MACHINES:
        raise NotApplicable(f"no probe is available for machine type {machine!r}; supported: {', '.join(MACHINES)}")
    path = _probe_path(machine)
    content = path.read_bytes()
    _require_fit(path, content, machine)
    return content


def _probe_path(machine: str) -> Path:
    folder = os.environ.get(FILES_SETTING)
    if folder and (Path(folder) / f"fastenough-probe-{machine}").is_file():
        return Path(folder) / f"fastenough-probe-{machine}"
    if machine == os.uname().machine:
        return Path(find_probe())
    cross = MACHINES[machine].cross
    if cross is None:
        raise NotApplicable(
            f"no probe is available for machine type {machine}; put fastenough-probe-{machine} into a folder "
            f"and set {FILES_SETTING} to that folder"
        )
    return _cross_build(cross)


def _cross_build(cross: str) -> Path:
    file = CHECKOUT / "target" / "cross" / f"{cross}.ini"
    compiler = re.search(r"^c = '([^']+)'", file.read_text(), re.MULTILINE) if file.is_file() else None
    if compiler is not None:
        require_tool(compiler[1], f"gcc-{compiler[1].removesuffix('-gcc')}")
    (built,) = build(f"board-{cross}", (f"--cross-file={file}", "-Ddebug=false", "-Dc_link_args=-s"), (_TARGET,))
    return built


def _require_fit(path: Path, content: bytes, machine: str) -> None:
    """Raise NotApplicable for a file of another machine type: the board's shell would run it as a script."""
    known = MACHINES[machine]
    order = "<" if known.order == _LITTLE else ">"
    head = content[:20]
    fits = (
        len(head) == 20
        and head[:4] == b"\x7fELF"
        and (head[4], head[5]) == (known.bits // 32, known.order)
        and struct.unpack(f"{order}H", head[18:20])[0] == known.number
    )
    if not fits:
        raise NotApplicable(
            f"{path} is not a program for machine type {machine}; rebuild it, or remove it "
            f"from the folder {FILES_SETTING}"
        )
