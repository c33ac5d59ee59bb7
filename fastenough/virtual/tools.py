# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's programs for boards that lack them, with their libraries and loader, to be unpacked anywhere.

They are fetched as the kernels are (``packages``): by the machine's own apt, from its own sources, and nothing is
installed.  They run whatever libraries a board has: each is started by its own copy of the loader.  The copy has the
name of the program, so that lists of processes show it.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import shutil
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastenough.files import replace_whole
from fastenough.model import FastenoughError
from fastenough.virtual.packages import Apt, cache_lock, file_hash, host_arch, output_of

_LAYOUT = 1
"""Part of the name of the folder: increase it when the content changes."""
_RECORD = "tools.json"
_NEEDED = re.compile(r"\(NEEDED\)\s+Shared library: \[([^]/]+)\]")
_LOADER = re.compile(r"Requesting program interpreter: [^]]*/([^]/]+)\]")
_START = """#!/bin/sh
place=${{0%/bin/*}}
exec "$place/run/{tool}" --library-path "$place/lib" --argv0 "$0" "$place/programs/{tool}" "$@"
"""


@dataclass(frozen=True)
class Tools:
    """Programs: for each the names of its files in ``folder``; and the versions of their packages."""

    folder: Path
    files: Mapping[str, tuple[str, ...]]
    versions: Mapping[str, str]

    def archive(self, tools: Sequence[str]) -> bytes:
        """Some of them as a compressed tar: ``bin/TOOL`` starts one, in any folder."""
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w") as archive:
            for name in sorted({name for tool in tools for name in self.files[tool]}):
                content = (self.folder / name).read_bytes()
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode = len(content), 0o755
                archive.addfile(entry, io.BytesIO(content))
        return gzip.compress(stream.getvalue(), compresslevel=1, mtime=0)


def fetch_tools(packages: Mapping[str, str], arch: str) -> Tools:
    """Programs from Debian packages, from the cache or through apt.

    Raises NotApplicable if this is not a Debian machine, FastenoughError if apt has no such package.
    """
    key = hashlib.sha256(json.dumps([_LAYOUT, *sorted(packages.items())]).encode()).hexdigest()[:16]
    with cache_lock() as cache:
        folder = cache / "tools" / f"{arch}-{key}"
        cached = _cached_tools(folder)
        if cached is not None:
            return cached
        created = _create_folder(Apt(cache / "apt", arch), packages, arch, folder.with_suffix(".unpacking"))
        shutil.rmtree(folder, ignore_errors=True)
        created.rename(folder)
        shutil.rmtree(folder.with_suffix(".unpacking"))
        tools = _cached_tools(folder)
        assert tools is not None, "the files were just written"
        return tools


def _cached_tools(folder: Path) -> Tools | None:
    """The programs fetched before, None unless their files are unchanged."""
    try:
        record: dict[str, Any] = json.loads((folder / _RECORD).read_bytes())
        if any(file_hash(folder / name) != sha256 for name, sha256 in record["sha256"].items()):
            return None
        return Tools(folder, {tool: tuple(names) for tool, names in record["files"].items()}, dict(record["versions"]))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _create_folder(apt: Apt, packages: Mapping[str, str], arch: str, tree: Path) -> Path:
    """Create a folder in the tree of unpacked packages with the files of the programs, and their record."""
    apt.update()
    named = sorted({package if arch == host_arch() else f"{package}:{arch}" for package in packages.values()})
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    apt.unpack(apt.with_libraries(named), tree)
    folder = tree / "fastenough"
    files = _copy_files(tree, sorted(packages), folder)
    record = {
        "files": files,
        "versions": apt.versions(named),
        "sha256": {name: file_hash(folder / name) for names in files.values() for name in names},
    }
    replace_whole(folder / _RECORD, json.dumps(record).encode())
    return folder


def _copy_files(tree: Path, tools: Sequence[str], folder: Path) -> dict[str, list[str]]:
    """Copy the files that each program needs into a folder; returns their names."""
    libraries = {
        path.name: path for lib_folder in ("lib", "usr/lib") for path in sorted((tree / lib_folder).glob("*/*.so*"))
    }
    for part in ("bin", "lib", "programs", "run"):
        (folder / part).mkdir(parents=True)
    files = {}
    for tool in tools:
        program = _program(tree, tool)
        names, loader = _libraries_of(program, libraries)
        for name in names:
            shutil.copyfile(libraries[name], folder / "lib" / name)
        shutil.copyfile(program, folder / "programs" / tool)
        shutil.copyfile(libraries[loader], folder / "run" / tool)
        (folder / "bin" / tool).write_text(_START.format(tool=tool))
        files[tool] = [*(f"{part}/{tool}" for part in ("bin", "programs", "run")), *(f"lib/{name}" for name in names)]
    return files


def _program(tree: Path, tool: str) -> Path:
    for folder in ("usr/bin", "bin", "usr/sbin", "sbin"):
        if (tree / folder / tool).is_file():
            return tree / folder / tool
    raise FastenoughError(f"the Debian package has no program {tool}")


def _libraries_of(program: Path, libraries: Mapping[str, Path]) -> tuple[list[str], str]:
    """The libraries of a program, including indirect ones, and the name of its loader."""
    pending, needed, loader = [program], [], ""
    while pending:
        output = output_of(["readelf", "--wide", "--dynamic", "--program-headers", str(pending.pop())])
        loader = loader or "".join(_LOADER.findall(output))
        for name in _NEEDED.findall(output):
            if name not in libraries:
                raise FastenoughError(f"{program.name} needs {name}, which none of its dependencies contains")
            if name not in needed:
                needed.append(name)
                pending.append(libraries[name])
    if loader not in libraries:
        raise FastenoughError(f"{program.name} is started by {loader or 'no loader'}, which is not in libc6")
    return needed, loader
