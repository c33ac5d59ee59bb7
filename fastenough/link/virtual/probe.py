# SPDX-License-Identifier: GPL-2.0-or-later
"""The user-space probe for the guest, and the tool its kernel threads are raised with: static, cross-built."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from fastenough.link.base import Link
from fastenough.link.virtual.building import tool, tool_environment
from fastenough.link.virtual.module import CHECKOUT, compiler
from fastenough.link.virtual.packages import GUEST_ARCH, cache_lock
from fastenough.model import FastenoughError, NotApplicable

PROBE = "/bin/fastenough-probe"
"""Where it lies in the guest."""
_TARGET = "target/probe/fastenough-probe"
_CHRT = Path(__file__).resolve().parent / "chrt.c"
_CROSS_FILE = """[binaries]
c = '{compiler}'
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'generic'
endian = 'little'
"""


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=tool_environment())
    if done.returncode:
        lines = (done.stdout + done.stderr).splitlines()
        first = next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "no word why")
        raise FastenoughError(f"the guest's programs do not build: {first}")


def build_probe(arch: str = GUEST_ARCH) -> bytes:
    """The probe of this checkout; raises FastenoughError with the first complaint, NotApplicable without tools."""
    meson, ninja = tool("meson", "meson"), tool("ninja", "ninja-build")
    if not (CHECKOUT / "meson.build").is_file():
        raise NotApplicable("the guest's probe is built from a checkout of fastenough, not from the installed wheel")
    with cache_lock() as cache:
        build, cross = cache / f"guest-{arch}", cache / f"guest-{arch}.ini"
        if not (build / "build.ninja").is_file():
            cross.write_text(_CROSS_FILE.format(compiler=compiler(arch)))
            shutil.rmtree(build, ignore_errors=True)
            _run([meson, "setup", str(build), str(CHECKOUT), f"--cross-file={cross}", "-Dpython_package=false",
                  "-Dprobe_static=true", "-Ddebug=false", "-Dc_link_args=-s"])
        _run([ninja, "-C", str(build), _TARGET])
        return (build / _TARGET).read_bytes()


def build_chrt(arch: str = GUEST_ARCH) -> bytes:
    """A ``chrt`` for the guest, whose busybox has none."""
    with cache_lock() as cache:
        built = cache / f"chrt-{arch}"
        _run([compiler(arch), "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-s", "-o", str(built),
              str(_CHRT)])
        return built.read_bytes()


def install(link: Link) -> str:
    """Put both into the guest; returns where the probe lies."""
    for place, content in ((PROBE, build_probe()), ("/bin/chrt", build_chrt())):
        link.write(place, content)
        link.run(["chmod", "755", place])
    return PROBE
