# SPDX-License-Identifier: GPL-2.0-or-later
"""Other releases of Debian than this machine's, from the same server with the same signing keys.

Their kernels' build tools are programs of this machine's architecture, but may need a newer C library than it has.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from fastenough.model import NotApplicable

_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_PROGRAM = ".program"


def _server() -> str:
    """The Debian server of this machine; raises NotApplicable if it does not run Debian."""
    if shutil.which("apt-get") is None:
        raise NotApplicable("apt-get is missing; the virtual bench needs a Debian machine")
    command = ["apt-get", "indextargets", "--format", "$(LABEL) $(REPO_URI)"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    match = re.search(r"^Debian (\S+)$", result.stdout, re.MULTILINE)
    if match is None:
        raise NotApplicable("this machine has no Debian package source")
    return match[1]


def choose_suite(folder: Path, suite: str) -> None:
    """Restrict the apt of that folder (``packages.Apt``) to that release."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sources.list").write_text(f"deb [signed-by={_KEYRING}] {_server()} {suite} main\n")


def run_with_their_libc(tree: Path) -> None:
    """Wrap each build tool that needs a newer C library than this machine's in a script that uses the tree's."""
    for tools in (tree / "usr/lib").glob("linux-kbuild-*"):
        for tool in sorted(tools.rglob("*")):
            if tool.suffix != _PROGRAM and not tool.is_symlink() and tool.is_file() and _is_too_new(tool):
                _wrap(tool, tree)


def _is_too_new(tool: Path) -> bool:
    if tool.read_bytes()[:4] != b"\x7fELF":
        return False
    result = subprocess.run(["ldd", str(tool)], capture_output=True, text=True, check=False)
    return "not found" in result.stdout + result.stderr


def _wrap(tool: Path, tree: Path) -> None:
    """Replace a tool by a script; all its paths are resolved, since a link may be gone when it runs."""
    tool, tree = tool.resolve(), tree.resolve()
    loader = next((tree / "usr/lib").glob("*/ld-linux-*.so.*"), None) or next((tree / "lib").glob("*/ld-*.so*"))
    host = f"/lib/{loader.parent.name}:/usr/lib/{loader.parent.name}"
    program = tool.rename(tool.with_name(tool.name + _PROGRAM))
    tool.write_text(f'#!/bin/sh\nexec "{loader}" --library-path "{loader.parent}:{host}" "{program}" "$@"\n')
    tool.chmod(0o755)
