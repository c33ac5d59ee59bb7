# SPDX-License-Identifier: GPL-2.0-or-later
"""Cost models of a deterministic board: what a plugin of QEMU counts beside the instructions of a path.

The plugin (``target/emulator``) models caches.  It does not change the guest, its clock or its recordings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fastenough.model import BadInput, NotApplicable
from fastenough.virtual.meson_build import build

COUNTS_FILE = "counts"
"""File of a guest's directory with the counts of each path."""
_PLUGIN = "target/emulator/cost-model.so"
_OPTION = "cost-model="
_MAJOR = re.compile(r"version (\d+)\.")
_FIRST_OTHER = 9
"""Major version of the first QEMU that accepts no plugin of the interface's version 1."""
ARCH = "arm64"
"""Debian's name of the only architecture whose paths the plugin recognizes."""


@dataclass(frozen=True)
class CostModel:
    """``caches``: size of each first-level cache as ``BYTES:WAYS:LINE``, by the plugin's option."""

    name: str
    caches: Mapping[str, str]

    @property
    def text(self) -> str:
        """The model with all of its sizes, as recordings state it."""
        sizes = "; ".join(f"L1 {option} {size} LRU" for option, size in self.caches.items())
        return f"{self.name}: {sizes}"

    def options(self, plugin: Path, program: Path, directory: Path) -> list[str]:
        """Options of QEMU that count the paths of a program's tasks."""
        values = {"program": program, "counts": directory / COUNTS_FILE, **self.caches}
        words = [str(plugin), *(f"{name}={value}" for name, value in values.items())]
        return ["-plugin", ",".join(word.replace(",", ",,") for word in words)]


COST_MODELS = {"cache": CostModel("cache", {"instruction": "32768:2:64", "data": "32768:4:64"})}
"""By name.  ``cache``: sizes and ways of a Cortex-A53, the emulated CPU."""


def split_cost_model(arguments: str) -> tuple[str, CostModel | None]:
    """Kernel arguments without ``cost-model=NAME``, and that model; raises BadInput for an unknown one."""
    words = arguments.split()
    names = [word.removeprefix(_OPTION) for word in words if word.startswith(_OPTION)]
    unknown = [name for name in names if name not in COST_MODELS]
    if unknown:
        raise BadInput(f"unknown cost model {unknown[0]!r}; use {_OPTION}{' or '.join(COST_MODELS)}, or none")
    kernel_arguments = " ".join(word for word in words if not word.startswith(_OPTION)) if names else arguments
    return kernel_arguments, COST_MODELS[names[-1]] if names else None


def require_interface(version: str) -> None:
    """Raise NotApplicable for a QEMU, by the version that it prints, whose interface for plugins is another one."""
    stated = _MAJOR.search(version)
    if stated is None or int(stated[1]) >= _FIRST_OTHER:
        raise NotApplicable(f"cost models require a QEMU before {_FIRST_OTHER}.0, and this is: {version}")


def build_plugin() -> Path:
    """The plugin of this checkout; raises NotApplicable without tools, FastenoughError with the first error."""
    (plugin,) = build("emulator", (), (_PLUGIN,))
    return plugin
