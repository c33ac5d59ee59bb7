# SPDX-License-Identifier: GPL-2.0-or-later
"""Versions of the recording format: compiled schemas, and the upgrade of version 1 to version 2 (docs/format.md)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import fastjsonschema

from fastenough.model import Role
from fastenough.recording.lines import JsonLine

VERSIONS = (1, 2)
"""Versions that can be read; the last one is written."""


@cache
def line_validators(version: int) -> dict[str, Callable[[JsonLine], object]]:
    """One check per record type of one version; each raises JsonSchemaValueException."""
    name = f"recording-{version}.schema.json"
    packaged = resources.files("fastenough.recording") / name
    beside = Path(__file__).resolve().parents[2] / "format" / name
    schema = json.loads(packaged.read_text() if packaged.is_file() else beside.read_text())
    types = [choice["$ref"].rpartition("/")[2] for choice in schema["oneOf"]]
    return {name: fastjsonschema.compile({"$defs": schema["$defs"], "$ref": f"#/$defs/{name}"}) for name in types}


_OWED, _CORRECTED = "_owed", "_corrected"
_PLACE = ("name", "thread", "cpu")
_RELATIVE = frozenset({"clock_nanosleep-rel", "nanosleep", "ppoll"})


def upgraded_head(head: Mapping[str, Any]) -> JsonLine:
    """The head in version 2; one of version 2 is returned unchanged."""
    if head.get("version") != 1:
        return dict(head)
    names = {entry["name"] for entry in head["series"]}
    relative = head["parameters"].get("method") in _RELATIVE
    line = dict(head) | {
        "version": 2,
        "series": [_series(entry, names, relative) for entry in head["series"]],
        "settings": [_setting(entry) for entry in head["settings"]],
    }
    if "configuration" in head:
        line["configuration"] = {
            "name": head["configuration"],
            "kernel_release": None,
            "kernel_config_sha256": None,
            "command_line": None,
        }
    return line


def _series(entry: Mapping[str, Any], names: set[str], relative: bool) -> JsonLine:
    name = str(entry["name"])
    corrected = name.endswith(_OWED)
    return dict(entry) | {
        "name": name.removesuffix(_OWED) + _CORRECTED if corrected else name,
        "role": _role(entry, names).value,
        "two_sided": "jitter" in name,
        "corrected": corrected,
        "relative": relative and not corrected,
    }


def _role(entry: Mapping[str, Any], names: set[str]) -> Role:
    """The role in version 1: for the verdict, except refused series, throughput, and series corrected by another."""
    if "bytes" in entry:
        return Role.THROUGHPUT
    return Role.DIAGNOSTIC if entry["name"] + _OWED in names or "refused" in entry else Role.VERDICT


def _setting(entry: Mapping[str, Any]) -> JsonLine:
    return {{"asked": "requested", "granted": "in_effect"}.get(name, name): value for name, value in entry.items()}


def upgraded_end(end: Mapping[str, Any], head: Mapping[str, Any]) -> JsonLine:
    """The end in version 2, given the head in version 2; one of version 2 is returned unchanged."""
    line = dict(end)
    changes = line.pop("settings_changed", None)
    return line if changes is None else line | {"settings": _after(head["settings"], changes)}


def _after(settings: Sequence[Mapping[str, Any]], changes: Sequence[Mapping[str, Any]]) -> list[JsonLine]:
    """Settings read back after the run: those of the head with the changes applied."""
    changed = {_place(change): change for change in changes}
    read_back = [
        _read_back(entry, changed[_place(entry)]["after"] if _place(entry) in changed else entry["in_effect"])
        for entry in settings
    ]
    places = {_place(entry) for entry in settings}
    return read_back + [_read_back(change, change["after"]) for place, change in changed.items() if place not in places]


def _place(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(entry.get(key) for key in _PLACE)


def _read_back(entry: Mapping[str, Any], in_effect: Any) -> JsonLine:
    return {key: entry[key] for key in _PLACE if key in entry} | {"in_effect": in_effect}
