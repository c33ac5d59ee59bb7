# SPDX-License-Identifier: GPL-2.0-or-later
"""The user-space probe and ``chrt`` for the guest: static, cross-built."""

from __future__ import annotations

import subprocess
from pathlib import Path

from fastenough.link.base import Link
from fastenough.model import BadInput, FastenoughError, NotApplicable
from fastenough.virtual.machines import MACHINES
from fastenough.virtual.meson_build import build
from fastenough.virtual.module import compiler
from fastenough.virtual.packages import GUEST_ARCH, cache_lock

PROBE = "/bin/fastenough-probe"
"""Path of the probe in the guest."""
_TARGET = "target/probe/fastenough-probe"
_CHRT = Path(__file__).resolve().parent / "chrt.c"
FAMILIES = {"arm64": "aarch64", "amd64": "x86_64", "armhf": "arm"}
"""Meson's names of the architectures of guests."""
_CROSS_FILE = """[binaries]
c = '{compiler}'
[host_machine]
system = 'linux'
cpu_family = '{family}'
cpu = 'generic'
endian = 'little'
"""


def build_probe(arch: str = GUEST_ARCH) -> bytes:
    """The probe of this checkout; raises FastenoughError with the first error, NotApplicable without tools."""
    with cache_lock() as cache:
        cross = cache / f"guest-{arch}.ini"
        cross.write_text(_CROSS_FILE.format(compiler=compiler(arch), family=FAMILIES[arch]))
    try:
        (probe,) = build(
            f"guest-{arch}",
            (f"--cross-file={cross}", "-Dprobe_static=true", "-Ddebug=false", "-Dc_link_args=-s"),
            (_TARGET,),
        )
    except (BadInput, NotApplicable):
        raise
    except FastenoughError as error:
        raise FastenoughError(f"the guest's programs do not build: {error}") from error
    return probe.read_bytes()


def build_chrt(arch: str = GUEST_ARCH) -> bytes:
    """A ``chrt`` for the guest, whose busybox has none."""
    with cache_lock() as cache:
        built = cache / f"chrt-{arch}"
        command = [
            compiler(arch),
            "-std=gnu11",
            "-O2",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-static",
            "-s",
            "-o",
            str(built),
            str(_CHRT),
        ]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            raise FastenoughError(f"the guest's programs do not build: {(result.stderr.splitlines() or ['?'])[0]}")
        return built.read_bytes()


def guest_arch(link: Link) -> str:
    """Debian's name of a guest's architecture."""
    machine = link.run(["uname", "-m"]).text.strip()
    return next(arch for arch, known in MACHINES.items() if known.uname_machine == machine)


def install(link: Link) -> str:
    """Copy both into the guest; returns the path of the probe."""
    arch = guest_arch(link)
    for path, content in ((PROBE, build_probe(arch)), ("/bin/chrt", build_chrt(arch))):
        link.write(path, content)
        link.run(["chmod", "755", path])
    return PROBE
