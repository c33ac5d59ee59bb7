# SPDX-License-Identifier: GPL-2.0-or-later
"""Registries: a plain list of module names in a package, one line for each thing there is."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any


def listed(package: str, attribute: str, modules: Iterable[str]) -> list[Any]:
    """What the modules of a package export by this name, or by the one behind a colon: ``"pin"``, ``"pin:SETTING"``."""
    found = []
    for entry in modules:
        module, _, other = entry.partition(":")
        found.append(getattr(import_module(f"{package}.{module}"), other or attribute))
    return found
