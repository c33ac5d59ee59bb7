# SPDX-License-Identifier: GPL-2.0-or-later
"""The monitor for the guest, and the injector that calibrates it.

Their BPF programs are those of the bench; the programs that load them are cross-built and static.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from fastenough.link.base import Link
from fastenough.model import BadInput, FastenoughError, NotApplicable
from fastenough.virtual.meson_build import build, require_tool
from fastenough.virtual.module import compiler
from fastenough.virtual.packages import GUEST_ARCH, Apt, cache_lock
from fastenough.virtual.probe import FAMILIES, guest_arch

MONITOR = "/bin/fastenough-monitor"
INJECTOR = "/bin/fastenough-inject"
"""Paths of the programs in the guest."""
_TARGETS = {MONITOR: "target/monitor/fastenough-monitor", INJECTOR: "target/monitor/inject/fastenough-inject"}
_OPTIONS = ("-Dprobe_static=true", "-Dmonitor=enabled", "-Ddebug=false", "-Dc_link_args=-s")
_LIBRARIES = ("libbpf-dev", "libelf-dev", "zlib1g-dev")
_TRIPLETS = {"arm64": "aarch64-linux-gnu", "amd64": "x86_64-linux-gnu"}
_CROSS_FILE = """[binaries]
c = '{compiler}'
pkg-config = '{pkg_config}'
[properties]
sys_root = '{tree}'
pkg_config_libdir = '{tree}/usr/lib/{triplet}/pkgconfig'
[host_machine]
system = 'linux'
cpu_family = '{family}'
cpu = 'generic'
endian = 'little'
"""


def _libraries(cache: Path, arch: str) -> Path:
    """The libraries that both are linked with, fetched like kernels of guests."""
    tree = cache / f"libraries-{arch}"
    complete = tree / "complete.json"
    if not complete.is_file():
        shutil.rmtree(tree, ignore_errors=True)
        tree.mkdir()
        apt = Apt(cache / "apt", arch)
        apt.update()
        apt.unpack([f"{name}:{arch}" for name in _LIBRARIES], tree)
        complete.write_text(json.dumps(_LIBRARIES))
    return tree


def build_monitor(arch: str = GUEST_ARCH) -> dict[str, bytes]:
    """The programs of this checkout by path in the guest.

    Raises NotApplicable without tools, FastenoughError with the first error.
    """
    if arch not in _TRIPLETS:
        raise NotApplicable(f"the monitor is not built for guests of {arch}")
    require_tool("clang", "clang")
    pkg_config = require_tool("pkg-config", "pkg-config")
    with cache_lock() as cache:
        cross = cache / f"guest-monitor-{arch}.ini"
        cross.write_text(
            _CROSS_FILE.format(
                compiler=compiler(arch),
                family=FAMILIES[arch],
                pkg_config=pkg_config,
                triplet=_TRIPLETS[arch],
                tree=_libraries(cache, arch),
            )
        )
    try:
        built = build(f"guest-monitor-{arch}", (f"--cross-file={cross}", *_OPTIONS), tuple(_TARGETS.values()))
    except (BadInput, NotApplicable):
        raise
    except FastenoughError as error:
        raise FastenoughError(f"the guest's monitor does not build: {error}") from error
    return {path: program.read_bytes() for path, program in zip(_TARGETS, built, strict=True)}


def install_monitor(link: Link) -> str:
    """Copy both into the guest; returns the path of the monitor."""
    for path, content in build_monitor(guest_arch(link)).items():
        link.write(path, content)
        link.run(["chmod", "755", path])
    return MONITOR
