# SPDX-License-Identifier: GPL-2.0-or-later
"""Meson builds of this checkout for the bench, cached by a hash of the sources.

Several checkouts can share a cache without mixing their builds.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from fastenough.model import FastenoughError, NotApplicable
from fastenough.virtual.module import CHECKOUT
from fastenough.virtual.packages import cache_lock

_SOURCES = ("meson.build", "meson_options.txt", "format", "gauge", "target")
_BUILD = re.compile(r".+-[0-9a-f]{16}")
_UNUSED_S = 30 * 86_400.0


def tools_path() -> str:
    """Search path of build tools: the Python environment of this program, then PATH."""
    return f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"


def require_tool(name: str, package: str) -> str:
    """Path of a build tool; raises NotApplicable with a hint."""
    path = shutil.which(name, path=tools_path())
    if path is None:
        raise NotApplicable(f"{name} is missing; run: apt-get install {package}")
    return path


def _files() -> Iterator[Path]:
    for name in _SOURCES:
        source = CHECKOUT / name
        yield from sorted(path for path in source.rglob("*") if path.is_file()) if source.is_dir() else [source]


def _key(arguments: Sequence[str]) -> str:
    digest = hashlib.sha256("\0".join(arguments).encode())
    for path in _files():
        content = path.read_bytes()
        digest.update(f"\0{path.relative_to(CHECKOUT)}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


def _remove_unused(built: Path) -> None:
    """Remove the builds of former sources: those that no checkout has used for a month."""
    for folder in built.glob("*"):
        if _BUILD.fullmatch(folder.name) and time.time() - folder.stat().st_mtime > _UNUSED_S:
            shutil.rmtree(folder, ignore_errors=True)


def _run(command: Sequence[str]) -> None:
    result = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "PATH": tools_path()}
    )
    if result.returncode:
        lines = (result.stdout + result.stderr).splitlines()
        raise FastenoughError(
            next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "no error message")
        )


def build(name: str, arguments: Sequence[str], targets: Sequence[str]) -> list[Path]:
    """Targets of this checkout, built with these arguments of ``meson setup`` or taken from the cache.

    Raises NotApplicable without tools, FastenoughError with the first error.
    """
    meson, ninja = require_tool("meson", "meson"), require_tool("ninja", "ninja-build")
    with cache_lock() as cache:
        cached = cache / "built" / f"{name}-{_key(arguments)}"
        if not cached.is_dir():
            work = cache / "building"
            shutil.rmtree(work, ignore_errors=True)
            _run([meson, "setup", str(work / "build"), str(CHECKOUT), "-Dpython_package=false", *arguments])
            _run([ninja, "-C", str(work / "build"), *targets])
            (work / "targets").mkdir()
            for target in targets:
                shutil.copy2(work / "build" / target, work / "targets")
            cached.parent.mkdir(exist_ok=True)
            (work / "targets").rename(cached)
            shutil.rmtree(work)
            _remove_unused(cached.parent)
        os.utime(cached)
        return [cached / Path(target).name for target in targets]
