# SPDX-License-Identifier: GPL-2.0-or-later
"""Headers of the kernels of other releases of Debian, from the machine's own server, to build the module against."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from fastenough.model import NotApplicable
from fastenough.virtual.packages import Apt, Kernel, cache_lock, host_arch, use_in_place

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
OTHER_TOOLS = ("CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT=", "KCFLAGS=-Wno-attributes", "CONFIG_DEBUG_INFO_BTF_MODULES=")
"""For make, where a kernel is newer than this machine's compiler and pahole: what they do not know is left out."""


def server() -> str:
    """Where this machine gets Debian from; raises NotApplicable where it is no Debian."""
    command = ["apt-get", "indextargets", "--format", "$(LABEL) $(REPO_URI)"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"^Debian (\S+)$", done.stdout, re.MULTILINE)
    if found is None:
        raise NotApplicable("no package source of this machine is Debian's")
    return found[1]


def headers(suite: str, flavour: str, arch: str) -> Kernel:
    """The newest kernel's headers in a suite, from the cache or through apt.

    Raises NotApplicable where this is no Debian machine, FastenoughError where the suite cannot be reached or has none.
    """
    with cache_lock() as cache:
        folder = cache / "suites" / suite
        tree = folder / "tree"
        record = tree / f"{flavour}-{arch}.json"
        if record.is_file():
            return Kernel(flavour, arch, json.loads(record.read_text())["release"], tree)
        tree.mkdir(parents=True, exist_ok=True)
        (folder / "apt").mkdir(exist_ok=True)
        (folder / "apt" / "sources.list").write_text(f"deb [signed-by={KEYRING}] {server()} {suite} main\n")
        kernel = _unpacked(Apt(folder / "apt", arch), flavour, arch, tree)
        record.write_text(json.dumps({"release": kernel.release}))
        return kernel


def _unpacked(apt: Apt, flavour: str, arch: str, tree: Path) -> Kernel:
    apt.update()
    (found,) = (name for name in apt.depends(f"linux-headers-{flavour}:{arch}") if name.startswith("linux-headers-"))
    shared = [name for name in apt.depends(f"{found}:{arch}") if re.match(r"linux-(headers|kbuild)-", name)]
    apt.unpack([f"{found}:{arch}", f"libc6:{host_arch()}", *(f"{name}:{host_arch()}" for name in shared)], tree)
    kernel = Kernel(flavour, arch, found.removeprefix("linux-headers-"), tree)
    use_in_place(kernel.headers, tree)
    for tools in (tree / "usr/lib").glob("linux-kbuild-*"):
        _run_with_their_libc(tools, tree)
    return kernel


def _run_with_their_libc(tools: Path, tree: Path) -> None:
    """Build tools of a newer release need its C library: each is put behind a script that says so."""
    for tool in tools.rglob("*"):
        if tool.is_symlink() or not tool.is_file() or tool.read_bytes()[:4] != b"\x7fELF":
            continue
        needs = subprocess.run(["ldd", str(tool)], capture_output=True, text=True, check=False)
        if "not found" not in needs.stdout + needs.stderr:
            continue
        loader = next((tree / "usr/lib").glob("*/ld-linux-*.so.*"), None) or next((tree / "lib").glob("*/ld-*.so*"))
        program = tool.rename(tool.with_name(f"{tool.name}.program"))
        host = f"/lib/{loader.parent.name}:/usr/lib/{loader.parent.name}"
        tool.write_text(f'#!/bin/sh\nexec "{loader}" --library-path "{loader.parent}:{host}" "{program}" "$@"\n')
        tool.chmod(0o755)
