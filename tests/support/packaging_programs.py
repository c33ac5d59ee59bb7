# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs of packaging/ as modules."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

from tests.support.tools import ROOT


def _loaded(name: str) -> ModuleType:
    place = ROOT / "packaging" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"fastenough_packaging_{name}", place)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


man_pages = _loaded("man_pages")
release = _loaded("release")
