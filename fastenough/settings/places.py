# SPDX-License-Identifier: GPL-2.0-or-later
"""Finding a place again that the journal speaks of: one line here for each kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fastenough.settings.kernel_module import ModulePlace
from fastenough.settings.pin import PinPlace
from fastenough.settings.place import FilePlace, Place, TaskPlace

KINDS: Mapping[str, Callable[[Mapping[str, Any]], Place]] = {
    "file": lambda entry: FilePlace(entry["path"]),
    "task": lambda entry: TaskPlace(entry["tid"], entry["start_ticks"], entry["comm"]),
    "pin": lambda entry: PinPlace(entry["number"], entry["name"]),
    "module": lambda entry: ModulePlace(entry["name"]),
}


def place_from(entry: Mapping[str, Any]) -> Place:
    """The place a journal entry speaks of; raises KeyError for what is none."""
    return KINDS[entry["kind"]](entry)
