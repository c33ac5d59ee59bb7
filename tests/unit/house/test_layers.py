# SPDX-License-Identifier: GPL-2.0-or-later
"""Imports in fastenough/ point one way; every source file says its licence."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.support.python_scanner import scanned_file

ROOT = Path(__file__).resolve().parents[3]
ORDER = [
    "units",
    "words",
    "registry",
    "model",
    "files",
    "folder",
    "recording",
    "link",
    "gauge",
    "virtual",
    "facts",
    "settings",
    "loads",
    "board",
    "implementations",
    "campaign",
    "store",
    "analysis",
    "hunt",
    "reference",
    "audit",
    "exchange",
    "pack",
    "report",
    "history",
    "jobs",
    "web",
    "farm",
    "fleet",
    "cli",
]
"""The way of the data; each may import only what stands before it (and itself)."""

PURE = {"analysis", "audit", "hunt", "report"}
TOUCHING = {"subprocess", "os", "socket", "serial"}


def _layer(path: Path) -> str:
    return path.relative_to(ROOT / "fastenough").parts[0].removesuffix(".py")


def _sources() -> Iterator[tuple[str, Path]]:
    for path in sorted((ROOT / "fastenough").rglob("*.py")):
        layer = _layer(path)
        if layer not in ("__init__", "__main__"):
            yield layer, path


def test_every_layer_has_its_place() -> None:
    layers = {layer for layer, _ in _sources()}
    assert layers <= set(ORDER)
    assert {"model", "recording", "link", "analysis", "report", "cli"} <= layers


def test_imports_point_one_way() -> None:
    wrong = []
    for layer, path in _sources():
        for name in scanned_file(path).imported():
            parts = name.split(".")
            if (
                parts[0] == "fastenough"
                and len(parts) > 1
                and parts[1] in ORDER
                and (ORDER.index(parts[1]) > ORDER.index(layer))
            ):
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert not wrong


def test_what_only_thinks_touches_no_machine() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for layer, path in _sources()
        if layer in PURE
        for name in scanned_file(path).imported()
        if name.split(".")[0] in TOUCHING
    ]
    assert not wrong


def test_every_source_names_its_licence() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, text=True, capture_output=True, check=True
    ).stdout.splitlines()
    sources = [ROOT / name for name in listed if name.endswith((".py", ".c", ".h", ".S", "meson.build"))]
    assert len(sources) > 20
    bare = [
        str(path.relative_to(ROOT))
        for path in sources
        if path.is_file() and "SPDX-License-Identifier: GPL-" not in path.read_text()[:400]
    ]
    assert not bare
